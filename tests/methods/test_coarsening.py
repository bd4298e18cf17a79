"""Coarser codes: which values are rare, bins, the question asked, and the way back."""

from fractions import Fraction

import numpy as np
import pytest

from understudy.answers import Distribution, Measurement
from understudy.domain import Clique, Domain
from understudy.methods.record_synthesis import Coarsening, Rare
from understudy.methods.rounds import CoarseTable

DOMAIN = Domain.of({"a": 6, "b": 3, "c": 5})
DISTRIBUTION = Distribution("gaussian", Fraction(100))
ANSWER = Measurement("a", ("a",), (6,), np.array([500, 12, -4, 900, 29, 31]), DISTRIBUTION)
OTHER = Measurement("c", ("c",), (5,), np.array([5, 50, 20, 10, 15]), DISTRIBUTION)


@pytest.mark.parametrize(
    ("rare", "kept"),
    [
        (Rare(3.0), [0, 3, 5]),
        (Rare(0.0), [0, 1, 3, 4, 5]),
        (Rare(3.0, least=600.0), [3]),
        (Rare(3.0, most=2), [0, 3]),
        (Rare(1e6), []),
    ],
)
def test_which_values_stay(rare: Rare, kept: list[int]) -> None:
    assert rare.kept(ANSWER).tolist() == kept


def test_merged_codes_add_up_with_their_variances() -> None:
    made = Coarsening.of(DOMAIN, {"a": ANSWER, "c": OTHER}, {"a": Rare(3.0)}, starts={"c": (1, 3)})
    assert dict(made.domain.sizes) == {"a": 4, "b": 3, "c": 3}
    assert made.places["a"].tolist() == [0, 3, 3, 1, 3, 2]
    assert made.places["c"].tolist() == [0, 1, 1, 2, 2]
    column = made.column("a", ANSWER)
    assert column.values.tolist() == [500.0, 900.0, 31.0, 37.0]
    assert np.asarray(column.variances).tolist() == [100.0, 100.0, 100.0, 300.0]


def test_question_counts_records_by_merged_codes() -> None:
    made = Coarsening.of(DOMAIN, {"a": ANSWER}, {"a": Rare(3.0)})
    queries = made.question(Clique("ab"))
    assert isinstance(queries, CoarseTable)
    assert queries.cells == 12
    rows = {"a": np.array([0, 1, 5]), "b": np.array([2, 0, 1])}
    assert queries.assign(rows).tolist() == [2, 9, 7]
    assert made.question(Clique("bc")) == Clique("bc")


def test_a_single_rare_value_keeps_its_code() -> None:
    few = Measurement("b", ("b",), (3,), np.array([500, 400, 1]), DISTRIBUTION)
    assert not Coarsening.of(DOMAIN, {"b": few}, {"b": Rare(3.0)}).places


def test_the_way_back_follows_the_noisy_counts() -> None:
    made = Coarsening.of(DOMAIN, {"a": ANSWER}, {"a": Rare(3.0)})
    expansion = made.expansion("a", ANSWER, 1472.0)
    assert not expansion.faults(6, 4)
    assert expansion.shares[[0, 3, 5]].tolist() == [1.0, 1.0, 1.0]
    assert expansion.shares[4] > expansion.shares[1] > expansion.shares[2] == 0.0


def test_values_without_any_mass_come_back_evenly() -> None:
    nothing = Measurement("a", ("a",), (6,), np.array([500, -90, -40, 900, -30, 31]), DISTRIBUTION)
    made = Coarsening.of(DOMAIN, {"a": nothing}, {"a": Rare(3.0)})
    np.testing.assert_allclose(made.expansion("a", nothing, 100.0).shares[[1, 2, 4]], 1.0 / 3.0)
