"""Leaf tables: a cell for every leaf and label, one cell per record, coins that are fair and public."""

import numpy as np

from understudy.domain import Clique, Partition
from understudy.methods.rdt import ChainedPartition, LeafPartition, coins
from understudy.models.label_trees import Attributes, DecisionTree, Ensemble

ORDER = ("a", "sex", "race")
ATTRIBUTES = Attributes.of({"a": np.arange(3), "sex": np.arange(2)})
TREE = DecisionTree(np.array([1, -1, 0, -1, -1, -1]), ATTRIBUTES.fan_outs)
PLAIN = LeafPartition("leaves", Clique.of(ORDER, ORDER), ATTRIBUTES, TREE, "race", 4)
PUBLIC = Attributes.of({"a": np.arange(3)})
SEXES = Ensemble.of_counts("sex", PUBLIC, [DecisionTree(np.array([0, -1, -1, -1]), (3,))], [[1, 3, 2, 2, 4, 0]])
CHAINED = ChainedPartition(PLAIN, (SEXES,), Clique.of(ORDER, ORDER), 7)


def _records(rows, seed=0):
    rng = np.random.default_rng(seed)
    return {"a": rng.integers(0, 3, rows), "sex": rng.integers(0, 2, rows), "race": rng.integers(0, 4, rows)}


def test_every_label_has_a_cell_in_every_leaf():
    assert isinstance(PLAIN, Partition)
    assert PLAIN.cells == TREE.leaves * 4 == 16
    cells = PLAIN.assign(_records(2000))
    assert set(cells.tolist()) == set(range(16))
    absent = PLAIN.assign({"a": np.array([0]), "sex": np.array([0]), "race": np.array([3])})
    assert absent.tolist() == [3]


def test_a_cell_depends_on_its_own_record_alone():
    codes = _records(500)
    for partition in (PLAIN, CHAINED):
        whole = partition.assign(codes)
        alone = [partition.assign({name: part[[row]] for name, part in codes.items()})[0] for row in range(500)]
        assert whole.tolist() == alone


def test_the_chained_route_keeps_the_label_and_forgets_the_true_first_value():
    codes = _records(60_000)
    cells = CHAINED.assign(codes)
    assert np.array_equal(cells % 4, codes["race"])
    # The share of records routed to the leaf of sex 0 is the distribution's, whatever the true sex; equal records go
    # together, so shares are over the 24 different records and loose.
    everything = _records(0)
    assert CHAINED.assign(everything).size == 0
    different = len({tuple(record) for record in np.stack(list(codes.values())).T.tolist()})
    assert different == 24


def test_many_different_records_are_routed_by_the_distribution():
    rows = 40_000
    order = ("a", "sex", "race", "id")
    chained = ChainedPartition(PLAIN, (SEXES,), Clique.of(order, order), 7)
    codes = _records(rows) | {"id": np.arange(rows)}
    leaves = chained.assign(codes) // 4
    for a, share in enumerate((0.25, 0.5, 1.0)):
        for sex in range(2):
            mine = (codes["a"] == a) & (codes["sex"] == sex)
            found = (leaves[mine] == 0).mean()
            assert abs(found - share) < 5 * np.sqrt(0.25 / mine.sum()), (a, sex)


def test_coins_are_uniform_and_independent_of_salt_place_and_column():
    rows = 200_000
    codes = [np.arange(rows) % 1000, np.arange(rows) // 1000]
    first = coins(codes, 1, 0)
    assert first.min() >= 0.0
    assert first.max() < 1.0
    counts = np.histogram(first, bins=100, range=(0, 1))[0]
    assert ((counts - rows / 100) ** 2 / (rows / 100)).sum() < 99 + 6 * np.sqrt(2 * 99)
    for other in (coins(codes, 2, 0), coins(codes, 1, 1), coins(codes[::-1], 1, 0)):
        assert abs(np.corrcoef(first, other)[0, 1]) < 5 / np.sqrt(rows)


def test_equal_records_share_a_coin():
    same = coins([np.array([3, 3]), np.array([1, 1])], 5, 0)
    assert same[0] == same[1]
