"""Tests of `understudy.models.junction_tree`."""

import itertools

import numpy as np
import pytest

from tests.models.enumeration import random_cliques, small_domain
from understudy.domain import Clique, Domain
from understudy.errors import UsageError
from understudy.models.junction_tree import GraphicalSize, JunctionTree, ModelGrowth, eliminate


def heaviest_spanning_tree(bags):
    """Total separator size of a maximum spanning tree, by Kruskal."""
    edges = sorted(
        ((len(set(x) & set(y)), i, j) for (i, x), (j, y) in itertools.combinations(enumerate(bags), 2)), reverse=True
    )
    group = list(range(len(bags)))
    weight = 0
    for shared, i, j in edges:
        if group[i] != group[j]:
            weight += shared
            group = [group[i] if member == group[j] else member for member in group]
    return weight


@pytest.mark.parametrize("seed", range(12))
def test_random_trees_are_junction_trees(seed):
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"c{i}": int(size) for i, size in enumerate(rng.integers(1, 6, size=10))})
    cliques = random_cliques(domain, rng, count=int(rng.integers(0, 14)))
    tree = JunctionTree.of(domain, cliques)
    assert all(tree.bag_of(clique) >= 0 for clique in cliques)
    assert sum(domain.cells(bag) for bag in tree.bags) == GraphicalSize.of(domain, cliques).cells
    assert not any(set(x) <= set(y) for x, y in itertools.permutations(tree.bags, 2))
    assert sum(map(len, tree.separators)) == heaviest_spanning_tree(tree.bags)
    for name in tree.home:  # the bags of a column hang together
        holders = [bag for bag, names in enumerate(tree.bags) if name in names]
        assert sum(name not in tree.separators[bag] for bag in holders) == 1
    assert sorted(name for fresh in tree.fresh for name in fresh) == sorted(tree.home)
    for bag, children in enumerate(tree.children):
        assert all(tree.parents[child] == bag for child in children)


def test_columns_of_one_code_stay_out():
    domain = Domain.of({"one": 1, "two": 2})
    assert JunctionTree.of(domain, [domain.everything()]).bags == (Clique(("two",)),)
    alone = JunctionTree.of(Domain.of({"one": 1}), [])
    assert alone.bags == (Clique(),)
    assert alone.bag_of(("one",)) == 0


@pytest.mark.parametrize(
    ("bags", "parents", "message"),
    [
        ((), (), "first bag"),
        (("abcde",), (0,), "first bag"),
        (("abc", "cde"), (-1, 1), "before its bag"),
        (("abc", "cde"), (-1, -1), "before its bag"),
        (("abc",), (-1,), "every column"),
        (("abc", "bd", "ae"), (-1, 0, 1), "come back"),
        (("abc", "ab", "de"), (-1, 0, 0), "add a column"),
    ],
)
def test_malformed_trees_are_refused(bags, parents, message):
    domain = small_domain()
    with pytest.raises(UsageError, match=message):
        JunctionTree(domain, tuple(domain.clique(bag) for bag in bags), parents)


def test_bags_must_be_spelled_in_order_without_one_code_columns():
    domain = small_domain()
    for bag in (Clique(("b", "a", "c", "d", "e")), domain.everything()):
        with pytest.raises(UsageError, match="order of the domain"):
            JunctionTree(domain, (bag,), (-1,))


def test_a_chain_costs_its_pairs_and_a_circle_is_filled():
    domain = Domain.of(dict.fromkeys("abcd", 2))
    chain = [domain.clique(pair) for pair in ("ab", "bc", "cd")]
    assert GraphicalSize.of(domain, chain) == GraphicalSize(cells=12, largest=4)
    assert GraphicalSize.of(domain, [*chain, domain.clique("ad")]) == GraphicalSize(cells=16, largest=8)


def test_the_smallest_table_goes_first():
    # A circle a-b-c-d can be filled by b-d (tables abd, bcd) or a-c: the cheaper fill is taken.
    domain = Domain.of({"a": 100, "b": 2, "c": 100, "d": 2})
    circle = [domain.clique(pair) for pair in ("ab", "bc", "cd", "ad")]
    assert GraphicalSize.of(domain, circle).cells == 800


@pytest.mark.parametrize("seed", range(6))
def test_a_forest_of_pairs_stays_as_it_is(seed):
    # Small columns in the middle of large ones are tempting to remove first; that would tie their neighbours.
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"c{i}": int(size) for i, size in enumerate(rng.integers(2, 60, size=14))})
    pairs = [domain.clique([f"c{i}", f"c{rng.integers(i)}"]) for i in range(1, 14)]
    found = eliminate(domain, pairs)
    assert max(map(len, found.bags)) == 2
    assert GraphicalSize.of(domain, pairs).cells == sum(domain.cells(pair) for pair in pairs)


def test_nested_cliques_and_single_columns():
    domain = small_domain()
    assert GraphicalSize.of(domain, [domain.clique("a"), domain.clique("ab"), domain.clique("abd")]).cells == 18 + 4 + 2
    assert GraphicalSize.of(domain, []).cells == 2 + 3 + 4 + 3 + 2
    assert GraphicalSize.of(Domain.of({"one": 1}), []).cells == 1


def test_sizes_are_exact_integers_of_any_size():
    domain = Domain.of({f"c{i}": 10**6 + 3 for i in range(12)})
    size = GraphicalSize.of(domain, [domain.everything()])
    assert size.cells == (10**6 + 3) ** 12
    assert size.bytes == 8 * size.cells


@pytest.mark.parametrize("seed", range(8))
def test_growth_answers_what_a_rebuilt_model_would_measure(seed):
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"c{i}": int(size) for i, size in enumerate(rng.integers(1, 9, size=9))})
    cliques = random_cliques(domain, rng, count=int(rng.integers(0, 9)))
    candidates = [
        domain.clique(names) for width in (0, 1, 2, 3) for names in itertools.combinations(domain.columns, width)
    ]
    grown = ModelGrowth(domain, cliques).cells_with(candidates)
    expected = [GraphicalSize.of(domain, [*cliques, candidate]).cells for candidate in candidates]
    np.testing.assert_array_equal(grown, np.array(expected, dtype=float))


def test_growth_without_candidates_or_columns():
    assert ModelGrowth(small_domain(), []).cells_with([]).size == 0
    one = Domain.of({"one": 1})
    np.testing.assert_array_equal(ModelGrowth(one, []).cells_with([one.everything()]), [0.0])


def test_every_column_is_eliminated_once():
    domain = small_domain()
    found = eliminate(domain, [domain.clique("abc"), domain.clique("cde")])
    assert sorted(found.columns) == list("abcde")
    assert all(name in bag for name, bag in zip(found.columns, found.bags, strict=True))
