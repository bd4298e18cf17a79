import itertools

import numpy as np
import pytest

from tests.models.enumeration import random_cliques, small_domain
from understudy.domain import Clique, Domain
from understudy.errors import UsageError
from understudy.models.junction_tree import GraphicalSize, JunctionTree


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
