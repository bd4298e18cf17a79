"""Tests of `understudy.methods.record_synthesis`."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from tests.models.moving import DOMAIN, NO_SUCH_CELL, RULE, counts, truth
from understudy.domain import Clique, Distribution, Domain, Measurement
from understudy.errors import UsageError
from understudy.methods.dpsyn import DpSyn
from understudy.methods.privsyn import PrivSyn
from understudy.methods.record_synthesis import LEAST_RECORDS, Coarsening, Rare, RecordSynthesis, laid_out_together
from understudy.methods.rounds import CoarseTable
from understudy.models.consistency import OverlapTable
from understudy.models.records import Target

# Making records: noise-free tables come back, totals are estimated, records are bounded, edge cases end.


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


# Coarser codes: which values are rare, bins, the query asked, and the way back.


COARSENING_DOMAIN = Domain.of({"a": 6, "b": 3, "c": 5})
COARSENING_DISTRIBUTION = Distribution("gaussian", Fraction(100))
ANSWER = Measurement("a", ("a",), (6,), np.array([500, 12, -4, 900, 29, 31]), COARSENING_DISTRIBUTION)
OTHER = Measurement("c", ("c",), (5,), np.array([5, 50, 20, 10, 15]), COARSENING_DISTRIBUTION)


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
    made = Coarsening.of(COARSENING_DOMAIN, {"a": ANSWER, "c": OTHER}, {"a": Rare(3.0)}, starts={"c": (1, 3)})
    assert dict(made.domain.sizes) == {"a": 4, "b": 3, "c": 3}
    assert made.places["a"].tolist() == [0, 3, 3, 1, 3, 2]
    assert made.places["c"].tolist() == [0, 1, 1, 2, 2]
    column = made.column("a", ANSWER)
    assert column.values.tolist() == [500.0, 900.0, 31.0, 37.0]
    assert np.asarray(column.variances).tolist() == [100.0, 100.0, 100.0, 300.0]


def test_query_counts_records_by_merged_codes() -> None:
    made = Coarsening.of(COARSENING_DOMAIN, {"a": ANSWER}, {"a": Rare(3.0)})
    queries = made.query(Clique("ab"))
    assert isinstance(queries, CoarseTable)
    assert queries.cells == 12
    rows = {"a": np.array([0, 1, 5]), "b": np.array([2, 0, 1])}
    assert queries.assign(rows).tolist() == [2, 9, 7]
    assert made.query(Clique("bc")) == Clique("bc")


def test_a_single_rare_value_keeps_its_code() -> None:
    few = Measurement("b", ("b",), (3,), np.array([500, 400, 1]), COARSENING_DISTRIBUTION)
    assert not Coarsening.of(COARSENING_DOMAIN, {"b": few}, {"b": Rare(3.0)}).places


def test_the_way_back_follows_the_noisy_counts() -> None:
    made = Coarsening.of(COARSENING_DOMAIN, {"a": ANSWER}, {"a": Rare(3.0)})
    expansion = made.expansion("a", ANSWER, 1472.0)
    assert not expansion.faults(6, 4)
    assert expansion.shares[[0, 3, 5]].tolist() == [1.0, 1.0, 1.0]
    assert expansion.shares[4] > expansion.shares[1] > expansion.shares[2] == 0.0


def test_values_without_any_mass_come_back_evenly() -> None:
    nothing = Measurement("a", ("a",), (6,), np.array([500, -90, -40, 900, -30, 31]), COARSENING_DISTRIBUTION)
    made = Coarsening.of(COARSENING_DOMAIN, {"a": nothing}, {"a": Rare(3.0)})
    np.testing.assert_allclose(made.expansion("a", nothing, 100.0).shares[[1, 2, 4]], 1.0 / 3.0)


def start(pairs, domain=DOMAIN, real=None, rules=(RULE,)):
    real = truth(20_000) if real is None else real
    parts = {name: counts(real, Clique((name,))) for name in domain.columns}
    targets = [Target(pair, counts(real, pair)) for pair in pairs]
    return laid_out_together(domain, targets, parts, rules, rows=20_000, rng=np.random.default_rng(0)), real


def test_records_laid_out_together_have_the_pairs_and_obey_rules() -> None:
    made, real = start(PAIRS)
    for pair in PAIRS:
        assert np.abs(counts(made, pair) - counts(real, pair)).sum() / 2 / 20_000 < 0.01
    assert not counts(made, Clique("ac"))[NO_SUCH_CELL.ravel()].any()


def test_columns_that_no_pair_speaks_of_are_as_asked_and_apart() -> None:
    made, real = start([Clique("bc")], rules=())
    for name in DOMAIN.columns:
        assert np.abs(counts(made, Clique(name)) - counts(real, Clique(name))).max() <= 2
    sizes = DOMAIN.shape(Clique("ad"))
    apart = np.outer(counts(made, Clique("a")), counts(made, Clique("d"))).ravel() / 20_000
    assert apart.size == sizes[0] * sizes[1]
    assert np.abs(counts(made, Clique("ad")) - apart).sum() / 2 / 20_000 < 0.03


def test_what_pairs_leave_open_is_as_random_as_they_allow() -> None:
    """a – b – c by its pairs a × b and b × c: given b, the start has a and c apart."""
    made, _ = start([Clique("ab"), Clique("bc")], rules=())
    triple = counts(made, Clique("abc")).reshape(DOMAIN.shape(Clique("abc")))
    middle = triple.sum(axis=(0, 2))
    apart = triple.sum(axis=2)[:, :, None] * triple.sum(axis=0)[None] / np.maximum(middle, 1.0)[None, :, None]
    assert np.abs(triple - apart).sum() / 2 / 20_000 < 0.03


def test_the_strongest_pairs_are_taken_while_the_model_is_small() -> None:
    """Twelve columns of 16 codes: all 66 pairs at once would be a table of 16¹² cells; those of neighbours stay."""
    names = "abcdefghijkl"
    domain = Domain.of(dict.fromkeys(names, 16))
    rng = np.random.default_rng(1)
    real = {"a": rng.integers(0, 16, 20_000)}
    for before, name in itertools.pairwise(names):
        real[name] = np.where(rng.random(20_000) < 0.8, real[before], rng.integers(0, 16, 20_000))
    tables = {
        Clique((x, y)): np.bincount(real[x] * 16 + real[y], minlength=256).astype(float)
        for at, x in enumerate(names)
        for y in names[at + 1 :]
    }
    parts = {name: np.bincount(real[name], minlength=16).astype(float) for name in names}
    targets = [Target(pair, table) for pair, table in tables.items()]
    made = laid_out_together(domain, targets, parts, (), rows=20_000, rng=rng)
    for x, y in itertools.pairwise(names):
        table = np.bincount(made[x].astype(int) * 16 + made[y], minlength=256)
        assert np.abs(table - tables[Clique((x, y))]).sum() / 2 / 20_000 < 0.05
