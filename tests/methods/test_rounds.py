"""Tests of `understudy.methods.rounds`."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import MEMORY, door, letters, rho, rows_of
from tests.methods.test_mst import CHAIN, EDGES, ROW, chain
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.domain import Clique, Distribution, Domain, Measurement, Partition, Selection, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.aim import Aim
from understudy.methods.marginals import ListedTable
from understudy.methods.rounds import (
    Chosen,
    CoarseTable,
    Compression,
    Measured,
    MergingLimits,
    NoiseCut,
    PublicRounds,
    RemainingBudget,
    Round,
    RoundCosts,
    check_start,
    live_columns,
    shares_of,
    shrunk_counts,
    smallest,
    spend_in_rounds,
    start_size,
)
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.randomizer import SecureRandomizer
from understudy.privacy.scores import PublicOrPrivate
from understudy.testing import cases as tables
from understudy.testing.cases import Case
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.replay import Leak, NeighbourPair, Recorder, check_pair, cost_of, random_pairs

DOMAIN = Domain.of({"a": 4, "b": 4, "c": 4, "d": 4})
AB, BC, CD = (DOMAIN.clique(pair) for pair in ("ab", "bc", "cd"))


def answer(clique, values, variance=1.0):
    shape = DOMAIN.shape(clique)
    return Measurement("t", tuple(clique), shape, np.array(values), Distribution("gaussian", Fraction(variance)))


def test_total_and_expected_counts_follow_from_the_answers():
    measured = Measured(DOMAIN, (), 2**20)
    measured.add([answer("a", [5, 5, 0, 10]), answer(AB, np.full(16, 1), 3.0)])
    # sums 20 (4 cells of variance 1) and 16 (16 cells of variance 3)
    assert measured.total == pytest.approx((20 / 4 + 16 / 48) / (1 / 4 + 1 / 48))
    measured.refit(500)
    expected = measured.expected([DOMAIN.clique("a"), CD])
    assert expected[("a",)].sum() == pytest.approx(measured.total)  # type: ignore[index]
    assert expected[CD] == pytest.approx(np.full(16, measured.total / 16))


def test_no_model_before_the_first_fit():
    with pytest.raises(UsageError, match="not fitted"):
        Measured(DOMAIN, (), 2**20).expected([AB])


def test_noise_that_is_surely_zero_still_gets_a_weight():
    measured = Measured(DOMAIN, (), 2**20)
    distribution = Distribution("laplace", Fraction(1, 10**6))
    measured.add([Measurement("a", ("a",), (4,), np.array([1, 2, 3, 4]), distribution)])
    assert distribution.variance == 0.0
    assert measured.refit(300).marginal(DOMAIN.clique("a")) == pytest.approx(np.array([1, 2, 3, 4]) / 10, abs=1e-3)


def test_only_candidates_that_fit_or_change_nothing_remain():
    measured = Measured(DOMAIN, (), 2**20)
    measured.add([answer(AB, np.ones(16))])
    # a·b, c, d: 16 + 4 + 4 cells; with b·c 16 + 16 + 4; a·b again changes nothing
    assert measured.fitting([AB, BC], 36 * 8) == [AB, BC]
    assert measured.fitting([AB, BC], 35 * 8) == [AB]
    assert measured.fitting([AB, BC], 0) == [AB]
    assert measured.fitting([BC], 36 * 8, extra=[CD]) == []
    assert [measured.bytes_with(extra) for extra in ([], [AB], [BC])] == [24 * 8, 24 * 8, 36 * 8]


def test_a_forest_is_fitted_in_closed_form_and_rules_by_descent():
    tables = [answer(AB, np.arange(16)), answer(BC, np.arange(16))]
    measured = Measured(DOMAIN, (), 2**20)
    measured.add(tables)
    assert measured.fit_tree(300).fit is None
    tied = StructuralZeros(DOMAIN.clique("abc"), np.arange(64) % 7 == 0)
    ruled = Measured(DOMAIN, (tied,), 2**20)
    ruled.add(tables)
    assert not ruled.fit_tree(300).marginal(tied.clique)[tied.mask].any()


def test_a_round_chooses_measures_and_moves_the_model():
    cost = rho(1)
    curator = door(rows_of(chain(2_000)), CHAIN, cost, NoNoise())
    measured = Measured(curator.domain, (), 2**20)
    measured.add(curator.measure([Clique((name,)) for name in "abcd"], rho(0.5)))
    measured.refit(300)
    chosen = measured.next_table(curator, {AB: 1.0, CD: 1.0}, Round(rho(0.1), rho(0.4), 2**20, 300))
    assert chosen.clique == AB
    assert chosen.noise == pytest.approx(16 * np.sqrt(2 / np.pi / 0.8))
    assert chosen.moved > 1_000
    assert curator.left == Cost()


def test_tables_of_nothing_but_noise_are_not_worth_choosing():
    schema = letters({"u": 50, "v": 50, "a": 2})
    curator = door(rows_of({"u": [1] * 20, "v": [2] * 20, "a": [0, 1] * 10}), schema, rho(1), NoNoise())
    measured = Measured(curator.domain, (), 2**20)
    measured.add(curator.measure([Clique((name,)) for name in "uva"], rho(0.5)))
    measured.refit(300)
    wide, small = curator.domain.clique("uv"), curator.domain.clique("a")
    measured.next_table(curator, {wide: 1.0, small: 1.0}, Round(rho(0.1), rho(0.4), 2**20, 50))
    assert curator.transcript.answers[-2].options == 2
    assert curator.transcript.answers[-1].columns == small


def test_the_remaining_budget_counts_only_its_own_run():
    curator = door(rows_of(chain(10)), CHAIN, rho(1))
    curator.measure([AB], rho(0.25))
    remaining = RemainingBudget(curator, rho(0.5))
    curator.measure([AB], rho(0.125))
    assert remaining.spent == rho(0.125)
    assert remaining.left == rho(0.375)


def test_live_columns_shares_and_the_smallest_model():
    domain = Domain.of({"x": 1, "y": 8, "z": 27})
    assert live_columns(domain) == ["y", "z"]
    assert live_columns(Domain.of({"x": 1, "w": 1})) == ["x"]
    assert shares_of(domain, [Clique("y"), Clique("z")]) == pytest.approx([4.0, 9.0])
    tied = StructuralZeros(domain.clique("yz"), np.zeros(216, dtype=bool))
    assert start_size(domain, []).cells == 35
    assert start_size(domain, [tied]).cells == 216
    check_start(domain, [tied], 216 * 8, "aim")
    with pytest.raises(ResourceError, match="method aim"):
        check_start(domain, [tied], 216 * 8 - 1, "aim")


@pytest.mark.parametrize(("moved", "dearer"), [(0.0, 4), (0.9, 4), (1.0, 4), (1.1, 1), (3.0, 1)])
def test_rounds_become_dearer_when_the_model_moved_by_no_more_than_the_noise(moved, dearer):
    """The threshold of AIM's annealing is the expected noise itself, neither half of it nor twice."""
    curator = door(rows_of(chain(50, 1)), CHAIN, rho(1), NoNoise())
    paid = []

    def next_table(cost, last):
        paid.append(cost.measure.rho)
        curator.measure([Clique("a")], cost.select + cost.measure)
        return Chosen(Clique("a"), 10.0 * moved, 10.0)

    spend_in_rounds(RemainingBudget(curator, rho(1)), RoundCosts(rho(0.001), rho(0.009), 0.1, 1), 2**20, next_table)
    assert paid[1] == dearer * paid[0]


def test_the_noise_of_a_round_is_its_expected_absolute_noise_over_all_cells():
    curator = door(rows_of(chain(2_000, 1)), CHAIN, rho(1), NoNoise())
    measured = Measured(curator.domain, (), 2**20)
    measured.add(curator.measure([Clique((name,)) for name in curator.domain.columns], rho(0.1)))
    measured.refit(100)
    pair = curator.domain.clique("ab")
    chosen = measured.next_table(curator, {pair: 1.0}, Round(rho(0.01), rho(0.02), 2**20, 100))
    sigma = math.sqrt(1 / (2 * 0.02))
    assert chosen.noise == pytest.approx(math.sqrt(2 / math.pi) * sigma * curator.domain.cells(pair), rel=0.01)


FULL = Domain.of({"a": 6, "b": 3, "c": 4})
DISTRIBUTION = Distribution("gaussian", Fraction(25))  # σ = 5, so values below 15 rows are merged


def compression_answer(name, values):
    return Measurement(name, (name,), (len(values),), np.array(values), DISTRIBUTION)


ANSWERS = {"a": compression_answer("a", [40, 14, 15, -3, 7, 90]), "b": compression_answer("b", [50, 2, 60])}
COMPRESSION = Compression.of(FULL, ANSWERS, 3.0)


def test_values_below_the_threshold_share_a_code():
    assert dict(COMPRESSION.domain.sizes) == {"a": 4, "b": 3, "c": 4}
    assert COMPRESSION.places("a").tolist() == [0, 3, 1, 3, 3, 2]
    assert COMPRESSION.places("b").tolist() == [0, 1, 2]  # a single rare value keeps its own code
    assert COMPRESSION.places("c").tolist() == [0, 1, 2, 3]  # not asked about, never merged
    assert COMPRESSION.merged == ["a"]


@pytest.mark.parametrize(("values", "size"), [([0, 1, 2], 1), ([99, 99, 99], 3), ([99, 0, -8], 2)])
def test_nothing_or_everything_may_be_rare(values, size):
    assert Compression.of(FULL, {"b": compression_answer("b", values)}, 3.0).domain.sizes["b"] == size


def test_no_kept_value_is_below_three_sigma():
    rng = np.random.default_rng(3)
    full = Domain.of({"a": 500})
    values = rng.normal(10.0, 15.0, 500).astype(np.int64)
    compression = Compression.of(full, {"a": compression_answer("a", values)}, 3.0)
    places = compression.places("a")
    merged = places == places.max()
    assert values[~merged].min() >= 15 > values[merged].max()
    assert len(set(places[~merged])) == int((~merged).sum())


def test_more_is_merged_until_tables_and_model_fit():
    full = Domain.of({"a": 100, "b": 100, "c": 100})
    falling = {name: compression_answer(name, np.arange(1_000, 900, -1)) for name in "abc"}
    start = Compression.of(full, falling, 3.0)
    cliques = (full.clique("ab"), full.clique("bc"), full.clique("ac"))
    assert start.within(MergingLimits(10_000, 2**30, cliques)).domain == full
    tables = start.within(MergingLimits(2_000, 2**30, cliques))
    assert max(tables.domain.cells(clique) for clique in cliques) <= 2_000
    kept = tables.kept["a"]
    assert tables.places("a").tolist() == [*range(kept), *([kept] * (100 - kept))]  # higher counts stay
    model = start.within(MergingLimits(10_000, 8 * 50_000, cliques))
    assert 30_000 < np.prod(list(model.domain.sizes.values())) <= 50_000
    nothing = Compression.of(full, {"a": falling["a"]}, 3.0).within(MergingLimits(100, 2**30, cliques))
    assert dict(nothing.domain.sizes) == {"a": 1, "b": 100, "c": 100}  # all that may be merged is


def test_queries_put_each_record_in_one_cell():
    plain = ListedTable(FULL.clique("bc"), 1.0)
    assert COMPRESSION.query(plain) == FULL.clique("bc")
    coarse = COMPRESSION.query(ListedTable(FULL.clique("ac"), 1.0, {"c": (1, 3)}))
    assert isinstance(coarse, CoarseTable)
    assert isinstance(coarse, Partition)
    assert coarse.cells == 4 * 3
    codes = {"a": np.array([0, 1, 3, 5], np.uint8), "c": np.array([0, 3, 2, 1], np.uint8)}
    assert coarse.assign(codes).tolist() == [0, 3 * 3 + 2, 3 * 3 + 1, 2 * 3 + 1]


def test_grouped_answers_say_which_cells_they_count():
    listed = ListedTable(FULL.clique("ac"), 1.0, {"c": (1, 3)})
    measured = Measurement("a × c", ("a", "c"), (12,), np.arange(12), DISTRIBUTION)
    table = COMPRESSION.table(listed, measured, 25.0)
    table.check(COMPRESSION.domain)
    assert table.groups.reshape(4, 4).tolist() == [[0, 1, 1, 2], [3, 4, 4, 5], [6, 7, 7, 8], [9, 10, 10, 11]]
    assert COMPRESSION.table(ListedTable(FULL.clique("bc"), 1.0), measured, 25.0).groups is None


def test_the_merged_code_takes_its_part_of_what_is_missing_to_the_total():
    table = COMPRESSION.column("a", ANSWERS["a"], 25.0, 175.0)
    # Kept: 40, 15, 90; merged: 14 − 3 + 7 = 18; 12 rows are missing, 2 for each of the six values.
    assert table.values.tolist() == [42.0, 17.0, 92.0, 24.0]
    assert COMPRESSION.column("b", ANSWERS["b"], 25.0, 175.0).values.tolist() == [50.0, 2.0, 60.0]


def test_expansions():
    even = COMPRESSION.expansion("a", ANSWERS["a"], 12.0, even=True)
    assert even.shares.tolist() == pytest.approx([1, 1 / 3, 1, 1 / 3, 1 / 3, 1])
    counted = COMPRESSION.expansion("a", ANSWERS["a"], 12.0, even=False)
    # Nearest counts of 0 or more that add up to 12: 14 − 4.5 and 7 − 4.5.
    assert counted.shares.tolist() == pytest.approx([1, 9.5 / 12, 1, 0, 2.5 / 12, 1])
    for mass in (0.0, 1e9):
        assert COMPRESSION.expansion("a", ANSWERS["a"], mass, even=False).faults(6, 4) == []


def test_counts_are_shrunk_by_what_noise_explains():
    """Pure noise goes to its mean, loud counts stay, and the expected error is below that of both ways without it."""
    rng = np.random.default_rng(7)
    errors = {"counts": 0.0, "evenly": 0.0, "shrunk": 0.0}
    for _ in range(300):
        exact = rng.exponential(40.0, 30)
        noisy = exact + rng.normal(0.0, 60.0, 30)
        found = {"counts": noisy, "evenly": np.full(30, noisy.mean()), "shrunk": shrunk_counts(noisy, 3600.0)}
        for name, values in found.items():
            errors[name] += float(((values - exact) ** 2).sum())
    assert errors["shrunk"] < 0.95 * min(errors["counts"], errors["evenly"])
    loud = np.array([0.0, 9000.0, 100.0])
    assert shrunk_counts(loud, 100.0).tolist() == pytest.approx(loud.tolist(), abs=1.0)
    assert shrunk_counts(np.full(4, 3.0), 1.0).tolist() == [3.0] * 4


def test_a_shrunk_expansion_lies_between_even_and_counted_ones():
    mass = 12.0
    ways = [{"even": True}, {"shrunk": True}, {}]
    even, shrunk, counted = (COMPRESSION.expansion("a", ANSWERS["a"], mass, **way).shares for way in ways)
    assert shrunk.sum() == pytest.approx(even.sum())
    assert np.abs(shrunk - even).sum() < np.abs(counted - even).sum()


def test_smallest_domain():
    assert dict(smallest(FULL, ["a", "c"]).sizes) == {"a": 1, "b": 3, "c": 1}


# `aim` with a public table: paid for, used when it helps, never trusted blindly.


BUDGET = Budget(1.0, 1e-6)
PAIRS = ("ab", "bc", "ac", "ad")


def assisted(table, schema, public, granted, randomizer=None) -> Curator:
    private, other = (FrameTable(rows, schema, memory_bytes=MEMORY) for rows in (table, public))
    curator = Curator(private, granted, randomizer or SecureRandomizer(), public=other)
    curator.fix_codec(TableCodec.of(schema))
    return curator


def error_of(model, codes) -> float:
    """Mean total variation over pairs."""
    found = []
    for pair in PAIRS:
        truth = np.bincount(codes[pair[0]] * 4 + codes[pair[1]], minlength=16) / codes["a"].size
        found.append(np.abs(model.marginal(model.domain.clique(pair)) - truth).sum() / 2)
    return float(np.mean(found))


def public_picks(curator: Curator) -> int:
    """Draws that no measurement followed: the columns of CHAIN are four."""
    return len(curator.transcript.of(Selection)) - (len(curator.transcript.of(Measurement)) - 4)


def unrelated(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return rows_of({name: rng.integers(0, 4, rows) for name in "abcd"})


@pytest.mark.parametrize("cost", [rho(1e-5), rho(0.01), rho(10)], ids=str)
def test_the_whole_cost_is_spent_and_no_more(cost) -> None:
    for seed in range(3):
        recorder = Recorder(SecureRandomizer())
        curator = assisted(rows_of(chain(300, seed)), CHAIN, rows_of(chain(900, seed + 50)), cost, recorder)
        Aim().fit(curator, cost)
        assert curator.left == Cost()
        assert sum((part for _, part in curator.charges), Cost()) == cost
        assert cost_of([exchange.request for exchange in recorder.log], zcdp=True).fits(cost)
        assert len(curator.transcript.of(Selection)) <= 16


def test_a_public_pick_leaves_its_measurement_to_later_rounds() -> None:
    cost = rho(0.01)
    curator = assisted(rows_of(chain(1_000)), CHAIN, rows_of(chain(4_000, 9)), cost, NoNoise())
    Aim().fit(curator, cost)
    assert public_picks(curator) >= 2
    left, checked = cost.rho - sum(part.rho for _, part in curator.charges[:4]), 0
    for (step, part), (following, next_part) in itertools.pairwise(curator.charges[4:]):
        if step.startswith("select") and following.startswith("select"):
            rounds = math.floor(0.1 * left / part.rho + 1e-6) - 1
            assert next_part.rho == pytest.approx(0.1 * (left - part.rho) / rounds, rel=1e-6)
            checked += 1
        left -= part.rho
    assert checked >= 2


def test_the_draws_claim_twice_the_row() -> None:
    curator = assisted(rows_of(chain(100)), CHAIN, rows_of(chain(100, 1)), rho(0.01))
    Aim().fit(curator, rho(0.01))
    assert {draw.sensitivity for draw in curator.transcript.of(Selection)} == {2 * ROW}


def test_a_public_table_of_the_same_kind_lowers_the_error() -> None:
    """A paired t-test over 20 fixed repeats; were the errors equal in the mean, t > 3.58 has probability 0.001."""
    cost, gains = rho(0.001), []
    for seed in range(20, 40):
        codes = chain(1_000, seed)
        public = rows_of(chain(5_000, seed + 100))
        alone = Aim().fit(door(rows_of(codes), CHAIN, cost, SeededRandomizer(seed)), cost)
        helped = Aim().fit(assisted(rows_of(codes), CHAIN, public, cost, SeededRandomizer(seed)), cost)
        gains.append(error_of(alone, codes) - error_of(helped, codes))
    assert np.mean(gains) / (np.std(gains, ddof=1) / math.sqrt(20)) > 3.58


def test_an_unrelated_public_table_is_left_alone() -> None:
    codes, cost = chain(3_000), rho(0.5)
    curator = assisted(rows_of(codes), CHAIN, unrelated(3_000, 5), cost, SeededRandomizer(1))
    model = Aim().fit(curator, cost)
    measured = {answer.columns for answer in curator.transcript.of(Measurement)}
    assert {("a", "b"), ("b", "c")} <= measured
    assert error_of(model, codes) < 0.05


def test_the_total_comes_from_private_answers_alone() -> None:
    cost = rho(100)
    model = Aim().fit(assisted(rows_of(chain(500)), CHAIN, rows_of(chain(20_000, 1)), cost), cost)
    assert model.total == pytest.approx(500, abs=2)


def test_an_empty_public_table_changes_no_query() -> None:
    cost, codes = rho(0.05), chain(200)
    alone = door(rows_of(codes), CHAIN, cost, SeededRandomizer(3))
    beside = assisted(rows_of(codes), CHAIN, rows_of(chain(0)), cost, SeededRandomizer(3))
    Aim().fit(alone, cost)
    Aim().fit(beside, cost)
    names = [[step for step, _ in curator.charges] for curator in (alone, beside)]
    assert names[0] == names[1]
    assert public_picks(beside) == 0


def test_the_variance_of_a_public_table_is_that_of_noise_or_of_sampling() -> None:
    schema = letters({"a": 2, "b": 2})
    public = rows_of({"a": [0, 1] * 50, "b": [0, 1] * 50})
    curator = assisted(public, schema, public, rho(1))
    pair = Clique(("a", "b"))
    measured = Measured(curator.domain, (), 2**20)
    measured.add(curator.measure([Clique(("a",))], rho(1)))
    rounds = PublicRounds.of(curator, measured, {pair: 1.0})
    total = measured.total
    sampling = total**2 / 100 * 0.5 / 4
    for noise in (sampling / 2, sampling * 2):
        rounds.taken[pair] = noise
        assert rounds.tables[-1].variance == pytest.approx(max(noise, sampling))
        assert rounds.tables[-1].values.tolist() == pytest.approx([total / 2, 0, 0, total / 2])


@pytest.mark.parametrize(("schema", "columns"), EDGES.values(), ids=EDGES.keys())
@pytest.mark.parametrize("cost", [rho(1e-9), rho(1e5)], ids=str)
def test_edge_shapes(schema, columns, cost) -> None:
    curator = assisted(rows_of(columns), schema, rows_of(columns), cost)
    drawn = Aim().fit(curator, cost).draw(20, np.random.default_rng(0))
    assert all(column.max() < curator.domain.sizes[name] for name, column in drawn.items())
    assert curator.left == Cost()


@pytest.mark.parametrize("model_bytes", [1_024, 2_048])
def test_the_model_stays_within_its_bytes(model_bytes) -> None:
    curator = assisted(rows_of(chain(2_000)), CHAIN, rows_of(chain(9_000, 1)), rho(1))
    model = Aim(workload="triples", model_bytes=model_bytes).fit(curator, rho(1))
    assert sum(table.nbytes for table in model.tables) <= model_bytes  # type: ignore[attr-defined]


def _check_pairs(case: Case, pairs: list[NeighbourPair]) -> None:
    for index, pair in enumerate(pairs):
        check_pair(case.pipeline(), pair.table, pair.neighbour, SeededRandomizer(index))


def test_replay_catches_the_sensitivity_of_the_published_program(monkeypatch) -> None:
    """One row for both kinds of score, which is half of what a public one moves by if no other weighs more."""
    schema = tables.small()
    case = Case(schema, "aim", BUDGET, public=tables.some_rows(schema, 60, seed=8))
    monkeypatch.setattr(NoiseCut, "weight", lambda cut, expected: 1.0)
    _check_pairs(case, list(random_pairs(schema, 30, np.random.default_rng(1))))
    monkeypatch.setattr(PublicOrPrivate, "sensitivity", property(lambda quality: Fraction(ROW)))
    with pytest.raises(Leak, match="moved by"):
        _check_pairs(case, list(random_pairs(schema, 30, np.random.default_rng(1))))
