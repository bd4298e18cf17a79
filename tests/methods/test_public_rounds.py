"""`aim` with a public table: paid for, used when it helps, never trusted blindly."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import MEMORY, door, letters, rho, rows_of
from tests.methods.test_mst import CHAIN, EDGES, ROW, chain
from understudy.answers import Measurement, Selection
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.domain import Clique
from understudy.methods.aim import Aim
from understudy.methods.rounds import Measured, PublicRounds
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.randomizer import SecureRandomizer
from understudy.privacy.scores import PublicOrPrivate
from understudy.testing import cases as tables
from understudy.testing.cases import Case
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.replay import Leak, NeighbourPair, Recorder, check_pair, cost_of, designed_pairs, random_pairs

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


def test_an_empty_public_table_changes_no_question() -> None:
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
    assert sum(table.nbytes for table in model.tables) <= model_bytes


def _check_pairs(case: Case, pairs: list[NeighbourPair]) -> None:
    for index, pair in enumerate(pairs):
        check_pair(case.pipeline(), pair.table, pair.neighbour, SeededRandomizer(index))


@pytest.mark.parametrize(
    "schema",
    [tables.small(), tables.several_rows(), tables.every_kind()],
    ids=["row level", "several rows", "every kind"],
)
def test_replay_on_neighbours(schema) -> None:
    # The private units' column is not asked of public rows.
    public = tables.some_rows(replace(schema, unit=tables.small().unit), 60, seed=8)
    case = Case(schema, "aim", BUDGET, public=public)
    rng = np.random.default_rng(0)
    _check_pairs(case, [*list(designed_pairs(schema))[:8], *random_pairs(schema, 12, rng)])


def test_replay_catches_the_sensitivity_of_the_published_program(monkeypatch) -> None:
    """One row for both kinds of score, which is half of what a public one moves by."""
    schema = tables.small()
    case = Case(schema, "aim", BUDGET, public=tables.some_rows(schema, 60, seed=8))
    monkeypatch.setattr(PublicOrPrivate, "sensitivity", property(lambda quality: Fraction(ROW)))
    with pytest.raises(Leak, match="moved by"):
        _check_pairs(case, list(random_pairs(schema, 30, np.random.default_rng(1))))
