"""Making records: noise-free tables come back, totals are estimated, records are bounded, edge cases end."""

from fractions import Fraction

import numpy as np
import pytest

from tests.models.moving import DOMAIN, NO_SUCH_CELL, RULE, counts, truth
from understudy.answers import Distribution, Measurement
from understudy.domain import Clique
from understudy.errors import UsageError
from understudy.methods.dpsyn import DpSyn
from understudy.methods.privsyn import PrivSyn
from understudy.methods.record_synthesis import LEAST_RECORDS, Coarsening, Rare, RecordSynthesis
from understudy.models.consistency import OverlapTable

DISTRIBUTION = Distribution("gaussian", Fraction(4))
PAIRS = [Clique(pair) for pair in ("ab", "bc", "cd", "ac")]


def ones(codes, shift: float = 0.0) -> dict[str, list[Measurement]]:
    return {
        name: [
            Measurement(name, (name,), (size,), (counts(codes, Clique(name)) + shift).astype(np.int64), DISTRIBUTION)
        ]
        for name, size in DOMAIN.sizes.items()
    }


def tables(codes) -> list[OverlapTable]:
    return [OverlapTable(pair, counts(codes, pair), 4.0) for pair in PAIRS]


@pytest.mark.parametrize("update", ["sweeps", "gradual", "both"])
def test_exact_tables_come_back(update) -> None:
    real = truth(6_000)
    made = RecordSynthesis(update=update).made(Coarsening(DOMAIN, {}), ones(real), tables(real), [RULE])
    assert made.total == pytest.approx(6_000)
    assert made.records == 6_000
    for pair in PAIRS:
        assert np.abs(made.marginal(pair) * 6_000 - counts(real, pair)).sum() / 2 / 6_000 < 0.03
    assert not made.marginal(Clique("ac"))[NO_SUCH_CELL.ravel()].any()


def test_merged_values_come_back_by_their_counts() -> None:
    real = truth(6_000)
    answers = ones(real)
    coarsening = Coarsening.of(DOMAIN, {"b": answers["b"][0]}, {"b": Rare(0.0, most=1)})
    assert coarsening.domain.sizes["b"] == 2
    made = RecordSynthesis().made(coarsening, answers, (), [RULE])
    np.testing.assert_allclose(made.marginal(Clique("b")) * 6_000, counts(real, Clique("b")), atol=3.0)


@pytest.mark.parametrize(
    ("rows", "most", "records"), [(200, 2**20, LEAST_RECORDS), (6_000, 2_500, 2_500), (200, 50, 50)]
)
def test_number_of_records(rows: int, most: int, records: int) -> None:
    real = truth(rows)
    made = RecordSynthesis(most_records=most).made(Coarsening(DOMAIN, {}), ones(real), tables(real), [RULE])
    assert made.records == records
    assert made.total == pytest.approx(rows)


def test_noise_below_zero_everywhere_still_makes_records() -> None:
    made = RecordSynthesis().made(Coarsening(DOMAIN, {}), ones(truth(0), shift=-50.0), (), [RULE])
    assert made.records == LEAST_RECORDS
    assert not made.marginal(Clique("ac"))[NO_SUCH_CELL.ravel()].any()


def test_blocks_keep_their_own_tables() -> None:
    real = truth(6_000)
    made = RecordSynthesis().made(Coarsening(DOMAIN, {}), ones(real), tables(real)[:3], [], [PAIRS[:1], PAIRS[1:3]])
    for pair in PAIRS[:3]:
        assert np.abs(made.marginal(pair) * 6_000 - counts(real, pair)).sum() / 2 / 6_000 < 0.02


def test_stated_bytes_cover_the_records() -> None:
    assert RecordSynthesis(most_records=10**6).bytes(DOMAIN, 0, 10**9) >= 10**6 * 4 * 4
    assert RecordSynthesis(most_records=10**6).bytes(DOMAIN, 0, 10**4) < 10**6


@pytest.mark.parametrize("options", [{"update": "fast"}, {"sweeps": -1}, {"rounds": 2.0}, {"most_records": 0}])
def test_options_are_checked(options) -> None:
    with pytest.raises(UsageError):
        DpSyn(marginals="pairs", **options)
    with pytest.raises(UsageError):
        PrivSyn(**options)
