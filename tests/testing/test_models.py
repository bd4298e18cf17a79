"""Every model against the contract of models."""

import numpy as np

from tests.models import small_chain
from understudy.domain import Domain, StructuralZeros
from understudy.models.histogram_tree import TreeModel, TreeStructure
from understudy.models.product import Block, BlockModel
from understudy.testing import check_model

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4})
RNG = np.random.default_rng(1)


def test_independent_blocks() -> None:
    parts = {DOMAIN.clique(name): RNG.dirichlet(np.ones(size)) for name, size in DOMAIN.sizes.items()}
    model = BlockModel.of_marginals(DOMAIN, parts, (), 10.0)
    one, two, three = parts.values()
    check_model(model, np.einsum("a,b,c->abc", one, two, three).reshape(-1))


def test_a_full_table_with_empty_cells() -> None:
    joint = RNG.dirichlet(np.full(24, 0.3))
    joint[[0, 5, 6, 7]] = 0.0
    joint /= joint.sum()
    everything = DOMAIN.everything()
    check_model(BlockModel(DOMAIN, (Block.of(everything, np.arange(24), joint),), 3.0), joint)


def test_a_code_that_never_occurs() -> None:
    joint = RNG.dirichlet(np.ones(24)).reshape(2, 3, 4)
    joint[0] = 0.0
    joint /= joint.sum()
    check_model(BlockModel(DOMAIN, (Block.of(DOMAIN.everything(), np.arange(24), joint.reshape(-1)),), 3.0), joint)


def test_rules_tie_columns_together() -> None:
    mask = np.zeros(6, dtype=bool)
    mask[[1, 5]] = True
    parts = {DOMAIN.clique(name): RNG.dirichlet(np.ones(size)) for name, size in DOMAIN.sizes.items()}
    model = BlockModel.of_marginals(DOMAIN, parts, (StructuralZeros(DOMAIN.clique("ab"), mask),), 10.0)
    tied = model.marginal(DOMAIN.clique("ab"))
    assert not tied[mask].any()
    check_model(model, np.einsum("x,c->xc", tied, model.marginal(DOMAIN.clique("c"))).reshape(-1))


def test_a_tree_with_impossible_cells() -> None:
    joint = RNG.dirichlet(np.full(24, 0.5))
    joint[[1, 2, 13]] = 0.0
    joint /= joint.sum()
    structure = TreeStructure.root(DOMAIN).split(["b"]).refine(["c", "a", None], parts=2)
    for rounding in ("multinomial", "controlled"):
        check_model(TreeModel.of(structure, joint * 9.0, joint, 9.0, rounding), joint)


def test_labels_after_public_columns() -> None:
    made = small_chain.model()
    check_model(made, small_chain.joint_of(made).ravel())
