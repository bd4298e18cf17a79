"""Two private columns after two public ones, with rules of both kinds; and its full table by enumeration."""

import numpy as np

from understudy.domain import Domain, StructuralZeros
from understudy.models.label_trees import Attributes, DecisionTree, Ensemble, LabelChain, LabelModel

DOMAIN = Domain.of({"a": 3, "sex": 2, "b": 2, "race": 3})
RACE_RULE = StructuralZeros(DOMAIN.clique(["b", "race"]), np.array([0, 0, 1, 0, 0, 0], dtype=bool))
PUBLIC_RULE = StructuralZeros(DOMAIN.clique(["a", "b"]), np.array([0, 0, 1, 0, 0, 0], dtype=bool))


def chain(rules=(RACE_RULE, PUBLIC_RULE), seed=0):
    rng = np.random.default_rng(seed)
    public = Attributes.of({"a": np.array([0, 1, 1]), "b": np.arange(2)})
    trees = [DecisionTree(np.array([0, -1, 1, -1, -1]), public.fan_outs), DecisionTree.leaf(public.fan_outs)]
    sexes = Ensemble.of_counts("sex", public, trees, [rng.integers(1, 20, tree.leaves * 2) for tree in trees])
    wider = Attributes.of({"a": np.arange(3), "b": np.arange(2), "sex": np.arange(2)})
    tree = DecisionTree(np.array([2, 0, -1, -1, -1, -1]), wider.fan_outs)
    races = Ensemble.of_counts("race", wider, [tree], [rng.integers(1, 20, tree.leaves * 3)])
    return LabelChain(DOMAIN, (sexes, races), rules)


def model(rules=(RACE_RULE, PUBLIC_RULE)):
    weights = np.array([3.0, 1.0, 5.0, 2.0, 0.0, 4.0])
    return LabelModel.of(chain(rules), np.arange(6), weights, 12.5)


def joint_of(labelled):
    """The full table of a model, cell by cell, by the formula of the chain."""
    made = labelled.chain
    joint = np.zeros((3, 2, 2, 3))
    for cell, share in zip(labelled.cells.tolist(), labelled.probabilities.tolist(), strict=True):
        a, b = divmod(cell, 2)
        distribution = np.zeros((2, 3))
        for sex in range(2):
            first = made.ensembles[0].distribution({"a": np.array([a]), "b": np.array([b])}, 1)[0, sex]
            codes = {"a": np.array([a]), "b": np.array([b]), "sex": np.array([sex])}
            distribution[sex] = first * made.ensembles[1].distribution(codes, 1)[0]
        for rule in made.structural_zeros:
            if "race" in rule.clique:
                distribution[:, rule.mask.reshape(2, 3)[b]] = 0.0
        joint[a, :, b, :] = share * distribution / distribution.sum()
    return joint
