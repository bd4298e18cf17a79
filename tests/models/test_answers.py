import itertools

import numpy as np
import pytest

from tests.models import enumeration
from understudy.domain import Domain
from understudy.errors import ResourceError
from understudy.models import propagation as answers
from understudy.models.junction_tree import JunctionTree
from understudy.models.markov_field import MarkovField


def random_field(seed, sizes=(2, 3, 1, 4, 3, 2, 2), count=6, width=3, zeros=0.2):
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"c{i}": size for i, size in enumerate(sizes)})
    tree = JunctionTree.of(domain, enumeration.random_cliques(domain, rng, count, width))
    shapes = [(domain.cells(s), domain.cells(f)) for s, f in zip(tree.separators, tree.fresh, strict=True)]
    factors = [rng.gamma(1.0, 1.0, shape) * (rng.random(shape) >= zeros) + 1e-3 for shape in shapes]
    factors[0][0, 0] = 0.0
    return MarkovField.of_factors(tree, factors, 1.0)


@pytest.mark.parametrize("seed", range(10))
def test_every_clique_equals_enumeration_alone_and_in_one_batch(seed):
    field = random_field(seed, count=2 + seed, width=2 + seed % 2)
    table = enumeration.joint_of(field)
    cliques = enumeration.all_cliques(field.domain, range(len(field.domain.columns) + 1))
    together = field.marginals(cliques)
    assert set(together) == set(cliques)
    for clique in cliques:
        expected = enumeration.marginal_of(field.domain, table, clique)
        np.testing.assert_allclose(field.marginal(clique), expected, atol=1e-13)
        np.testing.assert_allclose(together[clique], expected, atol=1e-13)


def test_batches_in_pieces_give_the_same(monkeypatch):
    field = random_field(3, count=5)
    cliques = enumeration.all_cliques(field.domain, (2, 3))
    whole = field.marginals(cliques)
    monkeypatch.setattr(answers, "MESSAGE_CELLS", 1)
    monkeypatch.setattr(answers, "CACHED_CELLS", 0)
    pieces = MarkovField(field.tree, field.tables, 1.0).marginals(cliques)
    for clique in cliques:
        np.testing.assert_allclose(pieces[clique], whole[clique], atol=1e-13)


@pytest.mark.parametrize("room", [0, 50, 400])
def test_what_is_kept_for_later_answers_has_a_limit_for_all_of_it(room, monkeypatch):
    monkeypatch.setattr(answers, "CACHED_CELLS", room)
    field = random_field(3, count=5)
    queries = field.answers
    found = dict(queries.many(enumeration.all_cliques(field.domain, (1, 2, 3))))
    assert len(found) > 20
    assert sum(table.size for table in queries._cache.values()) <= room


def test_all_pairs_of_a_long_chain():
    # Far more columns than a full table could hold: compare with products of transition matrices.
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(40)]
    domain = Domain.of(dict.fromkeys(names, 5))
    tree = JunctionTree.of(domain, [domain.clique(pair) for pair in itertools.pairwise(names)])
    factors = [
        rng.gamma(1.0, 1.0, (domain.cells(s), domain.cells(f)))
        for s, f in zip(tree.separators, tree.fresh, strict=True)
    ]
    field = MarkovField.of_factors(tree, factors, 1.0)
    steps = [field.marginal(domain.clique(pair)).reshape(5, 5) for pair in itertools.pairwise(names)]
    pairs = field.marginals(enumeration.all_cliques(domain, (2,)))
    assert len(pairs) == 780
    for first, second in ((0, 39), (3, 17), (20, 38)):
        expected = steps[first]
        for step in steps[first + 1 : second]:
            expected = expected @ (step / step.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(pairs[domain.clique([names[first], names[second]])], expected.ravel(), atol=1e-12)


def test_asking_for_too_much_is_refused_before_it_is_built(monkeypatch):
    field = random_field(1, count=3, width=2)
    monkeypatch.setattr(answers, "WORKING_CELLS", 8)
    with pytest.raises(ResourceError, match="fewer columns"):
        field.marginal(field.domain.everything())
    wide = Domain.of({f"c{i}": 100 for i in range(5)})
    uniform = MarkovField.of_factors(JunctionTree.of(wide, []), [np.ones((1, 100))] * 5, 1.0)
    with pytest.raises(ResourceError, match="fewer columns"):
        uniform.marginal(wide.everything())
