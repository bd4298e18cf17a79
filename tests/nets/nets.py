"""The nets: checks that correct code passes and every planted bug must fail.

`replay`      the whole way from table to release, on neighbours, with frozen noise
`tree replay` the same for trees, choices within cells and noisy scores
`residual replay` and `residuals` the same for residual tables, and that these tell no sums
`choice replay` the same for rounds that choose a table, with and without a public table to take it from
`training replay` the same for a method that trains on sampled rows
`check replay` the same where a part of the budget is held back to compare the rows with, in every currency
`noise`       the distribution, freshness and integrality of what the secure randomizer adds
`selection`   direction and log odds of the exponential mechanism
`discovery`   how often a lone label shows
`growth`      how much a tree of many layers tells about one row
`training`    coins that are independent, and how much a noisy step tells about one row
`accounting`  claims against direct sums of the exact integer distribution
`claims`      what a statement claims, for units of one row and of several, against the noise of its answers
`ledger`      charge before read, no free retry, no refund
`resume`      an interrupted run is continued at no charge, and yields one release

Statistical nets use a fixed level (z < 6 or 99.9999 % confidence) and enough runs that the planted bugs are far
outside it.
"""

import contextlib
import math
import tempfile
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats

from tests.nets.doubles import Chains, Chooser, Grower, Interrupted, Trainee
from tests.nets.lower_bound import exact_epsilon, log_odds_lower
from understudy.audit.bounds import epsilon_lower, rate_bounds
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.counts.source import OccupiedCells, PrivateTable, Records
from understudy.counts.streaming import ChunkedSource
from understudy.domain import Course, Distribution, Grown, Measurement
from understudy.errors import LedgerError
from understudy.methods.method import METHODS
from understudy.privacy import training as accountant
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost, distribution_for
from understudy.privacy.curator import Curator
from understudy.privacy.ledger import Ledger
from understudy.privacy.randomizer import Request, SecureRandomizer
from understudy.schema import Integer, Schema, UniformBins, Unit
from understudy.synthesizer import synthesize
from understudy.testing import cases as tables
from understudy.testing.cases import Case
from understudy.testing.contracts import check_source
from understudy.testing.doubles import SeededRandomizer
from understudy.testing.replay import Recorder, check_pair, designed_pairs, random_pairs

MOST_Z = 6.0
CONFIDENCE = 1 - 1e-8


def replay_net() -> None:
    """Designed and random neighbours through methods that use every verb of counting, with the release folder."""
    _replayed(
        [
            (tables.small(), "chooser", Budget(1.0)),
            (tables.small(), "independent", Budget(1.0, 1e-6)),
            (tables.several_rows(), "chooser", Budget(1.0, 1e-6)),
            (tables.small(), "laplace", Budget(1.0)),
        ],
        pairs=9,
    )


def tree_replay_net() -> None:
    """The same for a method that grows a tree, chooses within its leaves and asks for noisy scores."""
    _replayed([(tables.several_rows(), "grower", Budget(1.0, 1e-6)), (tables.small(), "grower", Budget(3.0))], pairs=8)


def choice_replay_net() -> None:
    """Random neighbours through a method whose rounds choose what to measure, and from where.

    The budget is large, because cells that are off by less than the noise do not count in a score.
    """
    schema = tables.small()
    for public in (None, tables.some_rows(schema, 60, seed=8)):
        case = Case(schema, "aim", Budget(1000.0, 1e-6), {"rounds": 6}, public=public)
        for index, pair in enumerate(random_pairs(schema, 12, np.random.default_rng(1))):
            check_pair(case.pipeline(), pair.table, pair.neighbour, SeededRandomizer(index))


def training_replay_net() -> None:
    """Random neighbours through a method that trains, for rows and for people who hold several."""
    options = {"steps": 3, "hidden": 4, "latent": 2, "batch": 8, "components": 8, "rate": 0.4}
    for schema in (tables.small(), tables.several_rows()):
        case = Case(schema, "dpwgan", Budget(2.0, 1e-6), options, with_folder=True)
        for index, pair in enumerate(random_pairs(schema, 20, np.random.default_rng(3))):
            check_pair(case.pipeline(), pair.table, pair.neighbour, SeededRandomizer(index))


def _replayed(cases: list[tuple[Schema, str, Budget]], *, pairs: int) -> None:
    with mock.patch.dict(METHODS.built_in, {"chooser": Chooser, "grower": Grower}):
        for number, (schema, method, budget) in enumerate(cases):
            case = Case(schema, method, budget, with_folder=True)
            assert method in case.release(tables.some_rows(schema, 9, seed=1), SeededRandomizer(0)).statement.method
            fixed = [pair for pair in designed_pairs(schema) if not pair.name.startswith("hostile")]
            hostile = [pair for pair in designed_pairs(schema) if pair.name.startswith("hostile value 15")]
            rng = np.random.default_rng(number)
            for index, pair in enumerate([*fixed, *hostile, *random_pairs(schema, pairs, rng)]):
                check_pair(case.pipeline(), pair.table, pair.neighbour, SeededRandomizer(index))


def residual_replay_net() -> None:
    """Random neighbours through a method that measures residuals and is accounted as Gaussian."""
    options = {"components": 3, "steps": 3, "threshold": 0.0}
    asked = 0
    for schema in (tables.small(), tables.several_rows()):
        # Of such small tables the method measures pairs only where noise hardly counts.
        case = Case(schema, "ensemble", Budget(100.0, 1e-6), options, with_folder=True)
        for index, pair in enumerate(random_pairs(schema, 6, np.random.default_rng(4))):
            recorder = Recorder(SeededRandomizer(index))
            case.pipeline()(pair.table, recorder)
            asked += any(exchange.request.kind == "residuals" for exchange in recorder.log)
            check_pair(case.pipeline(), pair.table, pair.neighbour, SeededRandomizer(index))
    assert asked > 3, "this net sees no residuals"


def check_replay_net() -> None:
    """Designed and random neighbours through runs with a check, for rows and for people, in every currency."""
    cases = [
        (tables.small(), "independent", Budget(1.0)),
        (tables.several_rows(), "independent", Budget(1.0, 1e-6)),
        (tables.small(), "ensemble", Budget(2.0, 1e-6)),
    ]
    for number, (schema, method, budget) in enumerate(cases):
        options = {"components": 3, "steps": 3, "threshold": 0.0} if method == "ensemble" else {}
        case = Case(schema, method, budget, options, copies=2, with_folder=True, check_share=0.2)
        pairs = [pair for pair in designed_pairs(schema) if not pair.name.startswith("hostile")]
        pairs = pairs if method == "independent" else pairs[:4]
        for index, pair in enumerate([*pairs, *random_pairs(schema, 4, np.random.default_rng(number))]):
            check_pair(case.pipeline(), pair.table, pair.neighbour, SeededRandomizer(index))


def residuals_net() -> None:
    """A residual answer is noise around 0 for a table that is a sum of rows and columns."""
    exact = (np.arange(8)[:, None] * 10**6 + np.arange(5)[None, :] * 10**4).astype(np.int64).ravel()
    request = Request("residuals", "net", 40, Distribution("gaussian", Fraction(10**4)), Fraction(1), shape=(8, 5))
    answer = SecureRandomizer().add_residual_noise(request, exact)
    assert answer.size == 28, "one contrast for each pair of codes but the first"
    assert np.abs(answer).max() < 2 * MOST_Z * 100, "residuals tell sums of rows or columns"


def sources_net() -> None:
    """The contract of sources, for rows in memory and for rows in a file."""
    check_source(open_table)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"

        def written(table: pa.Table, schema: Schema) -> PrivateTable:
            pq.write_table(table, path)
            return open_table(path, schema)

        check_source(written)


def noise_net() -> None:
    """Laplace, Gaussian and sparse noise of the secure randomizer."""
    randomizer = SecureRandomizer()
    for distribution in (Distribution("laplace", Fraction(3)), Distribution("gaussian", Fraction(9))):
        request = Request("measure", "net", 200_000, distribution, Fraction(1))
        exact = np.full(200_000, 5, dtype=np.int64)
        first, second = randomizer.add_noise(request, exact), randomizer.add_noise(request, exact)
        assert first.dtype == np.int64, "answers must be integers"
        assert not np.array_equal(first, second), "two answers share their noise"
        correlation = float(np.corrcoef(first, second)[0, 1])
        assert abs(correlation) < MOST_Z / math.sqrt(first.size), "two answers share their noise"
        assert _chi_square_z(first - exact, distribution) < MOST_Z, "the noise does not follow its distribution"
    _sparse_net(randomizer)


def _sparse_net(randomizer: SecureRandomizer) -> None:
    distribution, threshold, cells = Distribution("laplace", Fraction(5)), 20, 1_000_000
    request = Request("sparse", "net", cells, distribution, Fraction(1), threshold=threshold)
    kept = randomizer.add_sparse_noise(request, OccupiedCells(np.array([17], dtype=np.int64), np.array([1])))
    ratio = math.exp(-1 / distribution.scale)
    expected = cells * ratio**threshold / (1 + ratio)
    assert abs(kept.indices.size - expected) < MOST_Z * math.sqrt(expected), "empty cells do not pass as they should"


def _chi_square_z(draws: np.ndarray, distribution: Distribution) -> float:
    reach = int(distribution.scale * 8)
    points = np.arange(-40 * reach, 40 * reach + 1, dtype=np.float64)
    exponent = (
        -np.abs(points) / distribution.scale
        if distribution.kind == "laplace"
        else -(points**2) / (2 * distribution.scale**2)
    )
    weights = np.exp(exponent)
    weights /= weights.sum()
    inside = np.abs(points) <= reach
    expected = np.append(weights[inside], weights[~inside].sum()) * draws.size
    clipped = np.where(np.abs(draws) <= reach, draws, reach + 1).astype(np.int64)
    observed = np.bincount(clipped + reach, minlength=2 * reach + 2)
    used = expected >= 25
    statistic = float(((observed[used] - expected[used]) ** 2 / expected[used]).sum())
    # As the normal deviate of the same chance: with few cells the tail of the statistic is far from normal.
    return float(stats.norm.isf(stats.chi2.sf(statistic, int(used.sum()))))


def selection_net() -> None:
    """Among two options the better one wins as often as it should; log odds move by at most ε between neighbours.

    The neighbours are chosen so that permute-and-flip, which is ε-DP too, moves them by more than ε.
    """
    runs, epsilon = 6_000, Fraction(2)
    randomizer = SecureRandomizer()
    rate = epsilon / 2

    def wins(scores: list[int]) -> int:
        request = Request("select", "net", len(scores), None, Fraction(1), rate)
        array = np.array(scores, dtype=np.int64)
        return sum(randomizer.choose(request, array) == 0 for _ in range(runs))

    expected = math.exp(rate * 2) / (math.exp(rate * 2) + 1)
    low, high = rate_bounds(wins([2, 0]), runs, CONFIDENCE)
    assert low <= expected <= high, "the better option does not win as often as it should"
    moved = log_odds_lower(wins([0, 1]), wins([1, 0]), runs, CONFIDENCE)
    assert moved <= float(epsilon), "log odds moved by more than ε"
    many = np.tile(np.array([2, 0], dtype=np.int64), (runs, 1))
    request = Request("select within", "net", 2, None, Fraction(1), rate)
    chosen = randomizer.choose_each(request, many, np.ones(many.shape, dtype=np.bool_))
    low, high = rate_bounds(int((chosen == 0).sum()), runs, CONFIDENCE)
    assert low <= expected <= high, "the better option of a cell does not win as often as it should"


def growth_net() -> None:
    """Chains of twelve layers, half of them with one row: what tells the halves apart stays within the cost.

    At ε = 3 and without any bias a chain with a row is e^5.9 times likelier to reach the end.
    """
    chains, layers, epsilon = 20_000, 12, 3
    every = UniformBins(2 * chains)
    schema = Schema((Integer(name="code", lower=0, upper=2 * chains - 1, bins=every, missing=False),), Unit())
    table = open_table(pa.table({"code": np.arange(chains, 2 * chains)}), schema)
    curator = Curator(table, Cost(epsilon=epsilon * UNIT), SecureRandomizer())
    curator.fix_codec(TableCodec.of(schema))
    grown = curator.grow(Chains("code", layers, tuple(range(2 * chains))), Cost(epsilon=epsilon * UNIT))
    reached = [sum(code < chains for code in grown.nodes), sum(code >= chains for code in grown.nodes)]
    assert epsilon_lower(reached[0], reached[1], chains, CONFIDENCE) <= epsilon, "a tree tells more than was paid"
    first = curator.transcript.of(Grown)[0].splits[0]
    told = epsilon_lower(int(first[:chains].sum()), int(first[chains:].sum()), chains, CONFIDENCE)
    assert told > 0.2, "the audit of trees has lost its power"


def training_net() -> None:
    """One noisy step on thousands of lone rows, each with a code of its own: an experiment per row.

    A row takes part with probability 0.1; noise that relies on this tells far too much if it always does. Batches must
    also vary in size as coins do, which batches of a shuffled table do not.
    """
    rows, epsilon, delta, clip = 20_000, 2, 0.01, 64
    course = Course(clip, 1, Fraction(19, 2))
    every = UniformBins(2 * rows)
    schema = Schema((Integer(name="code", lower=0, upper=2 * rows - 1, bins=every, missing=False),), Unit())
    table = open_table(pa.table({"code": np.arange(rows, 2 * rows)}), schema)
    cost = Cost(epsilon=epsilon * UNIT, delta=int(delta * DELTA_UNIT))
    curator = Curator(table, cost, SecureRandomizer())
    curator.fix_codec(TableCodec.of(schema))
    trainee = Trainee(2 * rows, course, clip)
    trained = curator.train(trainee, cost)
    above = trainee.sums[0][:-1] > clip / 2 + 1.5 * trained.distribution.scale
    told = epsilon_lower(int(above[:rows].sum()), int(above[rows:].sum()), rows, CONFIDENCE, delta=delta)
    assert told <= epsilon, "a step tells more than was paid"
    assert epsilon_lower(int(above[:rows].sum()), int(above[rows:].sum()), rows, CONFIDENCE) > 0.2, "no power"
    records = Records(np.zeros((rows, 1), dtype=np.uint8), np.arange(rows + 1, dtype=np.int64))
    request = Request("train", "net", 1, None, Fraction(clip), 1 / course.gap, layer=1)
    sizes = np.array([SecureRandomizer().sample(request, records).size for _ in range(400)])
    rate = -math.expm1(-1 / float(course.gap))
    assert abs(sizes.mean() - rate * rows) < MOST_Z * math.sqrt(rate * (1 - rate) * rows / sizes.size)
    spread = sizes.var(ddof=1) / (rate * (1 - rate) * rows)
    assert abs(spread - 1) < MOST_Z * math.sqrt(2 / (sizes.size - 1)), "batches do not vary as coins do"
    (part,) = accountant.course_parts(course, None, trained.distribution)
    least = (sizes.mean() - MOST_Z * math.sqrt(rate * (1 - rate) * rows / sizes.size)) / rows
    assert part.rate >= least, "the cost counts on fewer rows taking part than do"


def discovery_net() -> None:
    """A label held by one unit shows with probability δ at most."""
    runs, delta = 3_000, 0.02
    schema = tables.open_labels()
    table = open_table(pa.table({"sex": ["F"], "job": ["the only one"]}), schema)
    cost = Cost(epsilon=UNIT, delta=int(delta * DELTA_UNIT))
    shown = sum(bool(Curator(table, cost, SecureRandomizer()).discover("job", cost).labels) for _ in range(runs))
    low, _ = rate_bounds(shown, runs, CONFIDENCE)
    assert low <= delta, "a lone label shows too often"


def accounting_net() -> None:
    """What a budget buys never costs more than the budget, by direct summation; parts never exceed the whole."""
    for epsilon in (0.5, 1.0, 2.254, 3.098, 8.0):
        for delta in (1e-6, 1e-3):
            budget = Budget(epsilon, delta)
            distribution = distribution_for(budget.cost("zcdp"), 1, "net")
            assert exact_epsilon(distribution, 1, delta) <= epsilon, "the noise costs more than the budget"
        pure = distribution_for(Budget(epsilon).cost("pure"), 1, "net")
        assert exact_epsilon(pure, 1, 0.0) <= epsilon * (1 + 1e-9)
    for units in (10, 10**12 + 7):
        for weights in ([1.0, 1.0, 1.0], [0.1, 0.2, 0.7], [3.0, 1e-9]):
            parts = sum(Cost(epsilon=units, rho=units).split(weights), Cost())
            assert parts.fits(Cost(epsilon=units, rho=units)), "the parts of a cost exceed the whole"


def claims_net() -> None:
    """The ε of a finished statement covers its only answer, recomputed from the noise and from the rows of a unit."""
    for rows in (1, 2, 4):
        unit = Unit("person", rows) if rows > 1 else Unit()
        schema = Schema((Integer(name="age", lower=0, upper=3),), unit)
        table = pa.table({"person": np.arange(40), "age": np.arange(40) % 4})
        release = synthesize(table.select(["age"] if rows == 1 else ["person", "age"]), schema, **_SETTINGS)
        (answer,) = release.transcript.of(Measurement)
        assert release.statement.claim is not None
        epsilon, delta = release.statement.claim
        true = exact_epsilon(answer.distribution, rows, delta)
        assert true <= epsilon * (1 + 1e-9), f"a unit of {rows} rows is promised {epsilon:.4g}, and has {true:.4g}"


_SETTINGS: Mapping[str, Any] = {"method": "independent", "epsilon": 1.0, "delta": 1e-6}


def ledger_net() -> None:
    """No row is read before the charge is on disk; a crash keeps the charge; a retry under the same name is refused."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "ledger.db", "people", Budget(10.0))
        schema, reads = tables.small(), []
        counting = ChunkedSource.counts

        def watched(source: ChunkedSource, cliques: object) -> Mapping[object, object]:
            reads.append(ledger.balance("people").releases)
            return counting(source, cliques)  # type: ignore[arg-type, return-value]

        with mock.patch.object(ChunkedSource, "counts", watched):
            table = tables.some_rows(schema, 20, seed=1)
            synthesize(table, schema, method="independent", epsilon=1.0, ledger=ledger, dataset="people")
        assert reads, "the net does not see any read"
        assert min(reads) >= 1, "rows were read before the charge was on disk"
        _crash(ledger)
        _retry(ledger)


def _crash(ledger: Ledger) -> None:
    before = ledger.balance("people")
    table = tables.some_rows(tables.small(), 20, seed=1)
    broken = mock.patch.object(ChunkedSource, "counts", side_effect=KeyboardInterrupt)
    with broken, contextlib.suppress(KeyboardInterrupt):
        synthesize(table, tables.small(), method="independent", epsilon=1.0, ledger=ledger, dataset="people")
    assert ledger.balance("people").releases == before.releases + 1, "a crash was refunded"
    assert not ledger.verify(), "the ledger does not verify"


def _retry(ledger: Ledger) -> None:
    budget = Budget(1.0)
    unit = ledger.entries("people")[-1].unit or "one row"
    before = ledger.balance("people").releases
    for _ in range(2):
        try:
            ledger.charge("people", run="again", method="x", cost=budget.cost("pure"), budget=budget, unit=unit)
        except LedgerError:
            return
    assert ledger.balance("people").releases == before + 2, "a retry was not charged"


def resume_net() -> None:
    """A run that is interrupted twice is continued under its one charge; a second release of it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "ledger.db", "people", Budget(10.0, 1e-3))
        Interrupted(ledger, Path(folder) / "release").check()


NETS: dict[str, Callable[[], None]] = {
    "replay": replay_net,
    "tree replay": tree_replay_net,
    "choice replay": choice_replay_net,
    "training replay": training_replay_net,
    "residual replay": residual_replay_net,
    "check replay": check_replay_net,
    "residuals": residuals_net,
    "sources": sources_net,
    "noise": noise_net,
    "selection": selection_net,
    "discovery": discovery_net,
    "growth": growth_net,
    "training": training_net,
    "accounting": accounting_net,
    "claims": claims_net,
    "ledger": ledger_net,
    "resume": resume_net,
}
