"""Label models: the contract of models, labels for given records, blocks as good as the whole."""

import numpy as np
import pytest

from tests.models.small_chain import DOMAIN, chain, joint_of, model
from understudy.domain import StructuralZeros
from understudy.errors import UsageError
from understudy.models.label_trees import LabelModel
from understudy.testing import check_model


@pytest.mark.parametrize("kept", [2**24, 1], ids=["whole", "in blocks"])
def test_contract(kept, monkeypatch):
    monkeypatch.setattr("understudy.models.label_trees._KEPT_ENTRIES", kept)
    made = model()
    check_model(made, joint_of(made).ravel())


def test_a_condition_on_several_columns_is_exact():
    made = model()
    joint = joint_of(made)
    given = made.condition({"race": np.array([1, 2]), "b": np.array([1]), "sex": np.array([0])})
    wanted = np.zeros_like(joint)
    wanted[:, 0, 1, 1:] = joint[:, 0, 1, 1:]
    np.testing.assert_allclose(given.marginal(DOMAIN.everything()), (wanted / wanted.sum()).ravel(), atol=1e-12)
    assert given.total == pytest.approx(12.5 * wanted.sum())
    assert given.condition({"sex": np.array([0, 1])}).total == pytest.approx(given.total)


def test_labels_follow_the_distribution_of_each_record():
    made = model()
    rows = 30_000
    codes = {"a": np.arange(rows) % 3, "b": np.arange(rows) % 2}
    drawn = made.label(codes, np.random.default_rng(1), rows=rows)
    assert set(drawn) == {"sex", "race"}
    cells = drawn["sex"].astype(int) * 3 + drawn["race"]
    for a in range(3):
        for b in range(2):
            mine = (codes["a"] == a) & (codes["b"] == b)
            distribution = made.chain.distribution({"a": np.array([a]), "b": np.array([b])}, 1)[0]
            observed, expected = np.bincount(cells[mine], minlength=6), distribution * mine.sum()
            used = expected > 0
            assert not observed[~used].any()
            assert ((observed - expected)[used] ** 2 / expected[used]).sum() < 25.7
    again = made.label(codes, np.random.default_rng(1), rows=rows)
    assert all(np.array_equal(drawn[name], again[name]) for name in drawn)


def test_records_without_rows_are_labelled_too():
    drawn = model().label({"a": np.zeros(0, int), "b": np.zeros(0, int)}, np.random.default_rng(1), rows=0)
    assert [part.size for part in drawn.values()] == [0, 0]


def test_no_weight_on_possible_cells_is_shared_by_all_of_them():
    made = LabelModel.of(chain(), np.arange(6), np.array([0.0, 0.0, 9.0, 0.0, 0.0, 0.0]), 1.0)
    assert made.cells.tolist() == [0, 1, 3, 4, 5]
    np.testing.assert_allclose(made.probabilities, 0.2)


def test_rules_that_leave_nothing_are_refused():
    nothing = StructuralZeros(DOMAIN.clique(["sex"]), np.ones(2, dtype=bool))
    with pytest.raises(UsageError, match="no combination"):
        LabelModel.of(chain(rules=(nothing,)), np.arange(6), np.ones(6), 1.0)


@pytest.mark.parametrize(
    ("cells", "shares", "total"),
    [
        ([1, 0], [0.5, 0.5], 1.0),
        ([0, 6], [0.5, 0.5], 1.0),
        ([0, 1], [0.5, 0.6], 1.0),
        ([0, 1], [1.5, -0.5], 1.0),
        ([0, 1], [0.5, 0.5], -1.0),
        ([0], [0.5, 0.5], 1.0),
        ([], [], 1.0),
    ],
)
def test_damaged_parts_are_refused(cells, shares, total):
    with pytest.raises(UsageError):
        LabelModel(chain(), np.array(cells, np.int64), np.array(shares, float), total, np.ones(6, dtype=bool))
