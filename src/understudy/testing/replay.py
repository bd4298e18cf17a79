"""Replay on neighbouring tables with frozen noise: what leaves must differ only where it was paid for.

Run a pipeline on table D and record every request that reached the randomizer with its exact input and its answer.
Run it again on a neighbour D′ and answer exactly as before. If the pipeline is private then

1. the sequence of requests is the same (no query, scale or claim depends on the rows),
2. each exact input moved by at most the sensitivity its request claims, and the decisions of a growing tree taken
   together are not more likely on one table than its cost allows,
3. the costs of the requests add up to no more than the cost that was granted,
4. everything that leaves is the same, byte for byte: rows, model, statement, messages, error type and text.

One pair of runs, no statistics. It says nothing about the shape of the noise: `understudy.audit`, the sampler
tests and the audit below do that.

Neighbours
----------
Random pairs alone miss bugs that need a special record (the sole holder of a category, the first missing value), so
the designed list is mandatory. Tables are Arrow tables of text, as a CSV file would give them: every hostile value
fits, and the pipeline under test has to parse them itself.

Training
--------
A unit takes part in a step if a hash of its rows says so (NOT PRIVATE). Replay gives the same coins and the same noise
to both tables, so the coin of a unit must depend on that unit and the step alone, not on where it stands among the
others.

Growing trees
-------------
`tree_epsilon` is the cost by the theorem of `privacy/trees.py`, from the noise and the bias that a request
states, rounded up. `split_loss` is no theorem: it is the exact log ratio of the probabilities of the decisions that
were taken, on two tables, from the biased counts that really reached the randomizer.

Audit: did the noise follow the distributions that were asked for?
------------------------------------------------------------------
The probability transform: an answer X with distribution function F gives u = F(X−) + V·P(X) with V uniform on [0, 1].
If X was drawn from F, given all that was answered before, then u is uniform and independent of all earlier ones. So
answers of all kinds, scales and queries can be put into one sequence and tested together:

* u itself, and how far it lies from the middle (too much and too little noise),
* u minus that of the query before, cell by cell and modulo 1 (noise used twice in one run),
* u minus that of the run before, modulo 1 (noise used again in the next run).

Each is uniform again. The distance of its empirical distribution from the uniform one is held against the bound of
Dvoretzky, Kiefer, Wolfowitz and Massart, P(D > d) ≤ 2·exp(−2nd²), which holds for every n. A tree decides by its
answers how many queries follow, so n may depend on what is tested: of each sequence as many are used as the largest
power of two allows, and the level is divided among all powers. Which empty cells of a sparse table show is not tested
here, only how many do and with which counts. The V come from a seed; they are part of the test and not of any answer.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

from understudy.arrays import Bools, Floats, Ints
from understudy.counts.kernels import hash_rows
from understudy.counts.source import LabelCounts, OccupiedCells, Records
from understudy.domain import GROWTH_UNIT, RESIDUAL_UNIT, Distribution, centred
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost
from understudy.privacy.gaussian import residual_shift
from understudy.privacy.noise import exp_minus
from understudy.privacy.randomizer import Randomizer, Request, contrasts
from understudy.privacy.training import TrainingPart, parts_epsilon, rate_of
from understudy.schema import Boolean, Category, Column, OpenCategory, Schema

Record = dict[str, str | None]

HOSTILE: tuple[str | None, ...] = (
    None, "", " ", "nan", "NaN", "null", "None", "inf", "-inf", "-0.0", "1e308", "-1e308", "9" * 40, "0x10", "1,5",
    "outside-the-schema", "\x00", "\ufeff", "é", "e\u0301", "\u202egnp", "🙂", "'; drop table t; --", "=1+1",
    "x" * 5000, "9999-12-31", "0001-01-01", "2020-02-30", "24:00:00", "true", "false",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NeighbourPair:
    """Two neighbouring tables: `neighbour` holds one more unit."""

    name: str
    table: pa.Table
    neighbour: pa.Table


def to_table(schema: Schema, records: Sequence[Record]) -> pa.Table:
    """Text columns in schema order (with the unit column, if there is one)."""
    names = [column.name for column in schema.modelled]
    if schema.unit.column is not None:
        names.append(schema.unit.column)
    return pa.table({name: pa.array([record.get(name) for record in records], pa.string()) for name in names})


def valid_texts(column: Column) -> tuple[str, ...]:
    """A few values the column declares, as text: its labels, or its ends and middle."""
    if isinstance(column, Category):
        return column.labels[:12]
    if isinstance(column, OpenCategory):
        return ("first", "second", "third")
    if isinstance(column, Boolean):
        return ("false", "true")
    lower, upper = getattr(column, "lower", 0), getattr(column, "upper", 0)
    ends = [lower, upper, *getattr(column, "special", ())]
    if isinstance(lower, int | float) and isinstance(upper, int | float):
        ends.append(type(lower)((lower + upper) // 2 if isinstance(lower, int) else (lower + upper) / 2))
        ends += [lower + divisor for divisor in getattr(column, "split", ()) if lower + divisor <= upper]
        return tuple(str(value) for value in ends)
    style = getattr(column, "format", None)
    return tuple(value.strftime(style) if style else value.isoformat() for value in ends)


def record_pool(schema: Schema) -> list[Record]:
    """Valid records that together hold every listed value of every column at least once."""
    pools = {column.name: valid_texts(column) for column in schema.modelled}
    length = max(map(len, pools.values()))
    return [{name: pool[index % len(pool)] for name, pool in pools.items()} for index in range(length)]


def designed_pairs(schema: Schema) -> Iterator[NeighbourPair]:
    """The mandatory list: sole holders, empty and tiny tables, ends, hostile and missing values, borders of n."""
    pool = record_pool(schema)
    for index, record in enumerate(pool):
        yield _pair(schema, f"sole holder {index}", [other for other in pool if other is not record], record)
    yield _pair(schema, "empty table", [], pool[0])
    yield _pair(schema, "one row", pool[:1], pool[-1])
    yield _pair(schema, "two equal rows", pool[:1] * 2, pool[0])
    yield _pair(schema, "constant table", pool[:1] * 30, pool[-1])
    nothing: Record = {column.name: None for column in schema.modelled}
    yield _pair(schema, "first missing record", pool * 2, nothing)
    yield _pair(schema, "all missing", [nothing] * 9, nothing)
    for size in (9, 10, 99, 100, 255, 256, 999):
        yield _pair(schema, f"{size} rows and one more", _cycle(pool, size), pool[0])
    for position, value in enumerate(HOSTILE):
        for column in schema.modelled:
            record = {**pool[position % len(pool)], column.name: value}
            yield _pair(schema, f"hostile value {position} in {column.name}", pool, record)


def random_pairs(
    schema: Schema, count: int, rng: np.random.Generator, *, most_rows: int = 30
) -> Iterator[NeighbourPair]:
    """`count` pairs of random records, every fourth value hostile. The generator is for tables, never for noise."""
    pools = {column.name: valid_texts(column) for column in schema.modelled}

    def draw() -> Record:
        record: Record = {}
        for name, pool in pools.items():
            choices: Sequence[str | None] = HOSTILE if rng.integers(4) == 0 else pool
            record[name] = choices[int(rng.integers(len(choices)))]
        return record

    for number in range(count):
        rows = [draw() for _ in range(int(rng.integers(most_rows + 1)))]
        yield _pair(schema, f"random {number}", rows, draw())


def _cycle(pool: Sequence[Record], size: int) -> list[Record]:
    return list(itertools.islice(itertools.cycle(pool), size))


def _pair(schema: Schema, name: str, rows: Sequence[Record], extra: Record) -> NeighbourPair:
    """The unit added is one row, or (with an id column) somebody who holds more rows than the bound allows."""
    unit = schema.unit.column
    if unit is None:
        return NeighbourPair(name, to_table(schema, rows), to_table(schema, [*rows, extra]))
    bound = schema.unit.rows
    named = [{**row, unit: f"unit-{index // bound}"} for index, row in enumerate(rows)]
    others = record_pool(schema)
    added = [{**extra, unit: "the-extra-unit"}, *({**row, unit: "the-extra-unit"} for row in _cycle(others, bound + 2))]
    return NeighbourPair(name, to_table(schema, named), to_table(schema, [*named, *added]))


_KEY = 0x636F696E7320666F  # public; any number would do
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def coins_of(request: Request, records: Records) -> Ints:
    """Positions of the units that take part in this step, in increasing order."""
    if not records.units:
        return np.zeros(0, dtype=np.int64)
    columns = [np.ascontiguousarray(column) for column in records.codes.T]
    hashes = hash_rows(columns, _KEY + request.layer, len(records.codes))
    sums = np.add.reduceat(hashes, records.starts[:-1])
    mixed = (sums ^ (sums >> np.uint64(31))) * _SPREAD
    share = -math.expm1(-float(request.rate))
    return np.flatnonzero((mixed >> np.uint64(11)) < np.uint64(int(share * 2**53))).astype(np.int64)


def trainings_cost(requests: Sequence[Request]) -> list[tuple[Fraction, int]]:
    """ε and the units of δ of every training among the requests; a step number that does not rise begins another."""
    trainings: list[list[Request]] = []
    before = None
    for request in requests:
        if request.kind != "train":
            continue
        if before is None or request.layer <= before.layer or request.name != before.name:
            trainings.append([])
        trainings[-1].append(request)
        before = request
    return [_cost(queries) for queries in trainings]


def _cost(queries: Sequence[Request]) -> tuple[Fraction, int]:
    alike: Counter[tuple[float, float]] = Counter()
    for request in queries:
        assert request.distribution is not None
        rate = 1.0 if request.layer == 0 else rate_of(1 / request.rate)
        alike[rate, request.distribution.scale / float(request.sensitivity)] += 1
    delta = max(request.delta for request in queries)
    parts = [TrainingPart(rate, multiplier, steps) for (rate, multiplier), steps in alike.items()]
    return Fraction(parts_epsilon(parts, delta / DELTA_UNIT)), delta


_BITS = 192


def tree_epsilon(request: Request) -> Fraction | None:
    """ε of a whole tree, from below never; None where the theorem does not apply."""
    if request.distribution is None or request.distribution.kind != "laplace" or request.bias < GROWTH_UNIT:
        return None
    scale = request.distribution.parameter
    ratio = Fraction(exp_minus(request.bias / scale, _BITS)[1], 1 << _BITS)  # at least e^(−bias/scale) = 1/β'
    return request.sensitivity / scale * (2 + ratio / (1 - ratio))


def split_probability(above: Ints, scale: Fraction) -> Floats:
    """ln P(above + X > 0) for discrete Laplace X of that scale.

    >>> import numpy as np
    >>> float(np.exp(split_probability(np.array([0]), Fraction(10**6)))[0]).__round__(3)
    0.5
    """
    rate = 1.0 / float(scale)
    places = above.astype(np.float64)
    below = -(1.0 - np.minimum(places, 1.0)) * rate - math.log1p(math.exp(-rate))
    beyond = np.log1p(-np.exp(-np.maximum(places, 1.0) * rate) / (1.0 + math.exp(-rate)))
    return np.where(places <= 1.0, below, beyond)


def split_loss(request: Request, one: Ints, other: Ints, split: Bools) -> float:
    """ln of how much likelier these decisions are on one table's biased counts than on the other's."""
    if request.distribution is None:
        return math.inf
    probabilities = []
    for biased in (one, other):
        above = biased - request.threshold
        # Not splitting is the mirror image: P(above + X ≤ 0) = P(X ≥ above) = P(1 − above + X > 0).
        probabilities.append(split_probability(np.where(split, above, 1 - above), request.distribution.parameter).sum())
    return float(probabilities[0] - probabilities[1])


_ROUNDING = 1e-9
_PAID_IN_EPSILON = ("measure", "sparse")
"""Queries that get Laplace noise only if they are paid in ε."""
Exact = Ints | OccupiedCells | LabelCounts
Reply = TypeVar("Reply")
Pipeline = Callable[[pa.Table, Randomizer], tuple[bytes, Cost]]
"""Runs on a table with a randomizer; returns all released bytes and the cost it claims to have spent."""


class Leak(AssertionError):
    """Something that left the system depends on the private rows in a way nobody paid for."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request with its exact input and its answer. Private: never leaves a test."""

    request: Request
    exact: Exact
    answer: object


@dataclass(slots=True)
class Recorder:
    """Passes requests on to another randomizer and keeps what was said."""

    inner: Randomizer
    log: list[Exchange] = field(default_factory=list)
    private: bool = False

    def add_noise(self, request: Request, exact: Ints) -> Ints:
        """As the inner randomizer."""
        return self._keep(request, exact.copy(), self.inner.add_noise(request, exact))

    def add_residual_noise(self, request: Request, exact: Ints) -> Ints:
        """As the inner randomizer."""
        return self._keep(request, exact.copy(), self.inner.add_residual_noise(request, exact))

    def add_sparse_noise(self, request: Request, occupied: OccupiedCells) -> OccupiedCells:
        """As the inner randomizer."""
        return self._keep(request, occupied, self.inner.add_sparse_noise(request, occupied))

    def keep_frequent(self, request: Request, exact: LabelCounts) -> LabelCounts:
        """As the inner randomizer."""
        return self._keep(request, exact, self.inner.keep_frequent(request, exact))

    def choose(self, request: Request, scores: Ints) -> int:
        """As the inner randomizer."""
        return self._keep(request, scores.copy(), self.inner.choose(request, scores))

    def choose_each(self, request: Request, scores: Ints, allowed: Bools) -> Ints:
        """As the inner randomizer."""
        chosen = self.inner.choose_each(request, scores, allowed)
        return self._keep(request, _masked(scores, allowed), chosen).copy()

    def split(self, request: Request, biased: Ints) -> Bools:
        """As the inner randomizer."""
        return self._keep(request, biased.copy(), self.inner.split(request, biased)).copy()

    def sample(self, request: Request, records: Records) -> Ints:
        """By a hash of each unit and not as the inner randomizer: on both tables a unit must have the same coin."""
        return coins_of(request, records)

    def _keep(self, request: Request, exact: Exact, answer: Reply) -> Reply:
        self.log.append(Exchange(request, exact, answer))
        return answer


@dataclass(slots=True)
class Replayer:
    """Answers from a record, whatever the table; raises `Leak` when the queries differ."""

    frozen: list[Exchange]
    log: list[Exchange] = field(default_factory=list)
    private: bool = False

    def add_noise(self, request: Request, exact: Ints) -> Ints:
        """The recorded answer."""
        return np.array(self._replay(request, exact.copy()), dtype=np.int64)

    def add_residual_noise(self, request: Request, exact: Ints) -> Ints:
        """The recorded answer."""
        return np.array(self._replay(request, exact.copy()), dtype=np.int64)

    def add_sparse_noise(self, request: Request, occupied: OccupiedCells) -> OccupiedCells:
        """The recorded answer."""
        answer = self._replay(request, occupied)
        assert isinstance(answer, OccupiedCells)
        return answer

    def keep_frequent(self, request: Request, exact: LabelCounts) -> LabelCounts:
        """The recorded answer."""
        answer = self._replay(request, exact)
        assert isinstance(answer, LabelCounts)
        return answer

    def choose(self, request: Request, scores: Ints) -> int:
        """The recorded answer."""
        answer = self._replay(request, scores.copy())
        assert isinstance(answer, int | np.integer)
        return int(answer)

    def choose_each(self, request: Request, scores: Ints, allowed: Bools) -> Ints:
        """The recorded answer."""
        return np.array(self._replay(request, _masked(scores, allowed)), dtype=np.int64)

    def split(self, request: Request, biased: Ints) -> Bools:
        """The recorded answer."""
        return np.array(self._replay(request, biased.copy()), dtype=np.bool_)

    def sample(self, request: Request, records: Records) -> Ints:
        """By the same hash as when it was recorded."""
        return coins_of(request, records)

    def _replay(self, request: Request, exact: Exact) -> object:
        position = len(self.log)
        if position >= len(self.frozen):
            raise Leak(f"query {position} was not asked on the neighbouring table: {request}")
        earlier = self.frozen[position]
        if earlier.request != request:
            raise Leak(f"query {position} differs between neighbours: {request} against {earlier.request}")
        self.log.append(Exchange(request, exact, earlier.answer))
        return earlier.answer


def check_pair(pipeline: Pipeline, table: pa.Table, neighbour: pa.Table, randomizer: Randomizer) -> None:
    """Raises `Leak` unless the pipeline treats the two neighbouring tables alike, given the same answers."""
    recorder = Recorder(randomizer)
    released, claimed = pipeline(table, recorder)
    replayer = Replayer(recorder.log)
    released_again, claimed_again = pipeline(neighbour, replayer)
    if len(replayer.log) != len(recorder.log):
        raise Leak(f"{len(recorder.log)} queries on one table, {len(replayer.log)} on its neighbour")
    for one, other in zip(recorder.log, replayer.log, strict=True):
        _check_distance(one, other)
    _check_trees(recorder.log, replayer.log)
    if claimed != claimed_again:
        raise Leak(f"claims differ between neighbours: {claimed} against {claimed_again}")
    queries = cost_of([exchange.request for exchange in recorder.log], zcdp=claimed.rho > 0)
    if not queries.fits(claimed):
        raise Leak(f"the queries cost {queries}, the claim is {claimed}")
    if released != released_again:
        raise Leak(f"released bytes differ: {_first_difference(released, released_again)}")


def cost_of(requests: list[Request], *, zcdp: bool) -> Cost:
    """What the requests cost by their own scales and sensitivities, rounded up; of δ only that of trainings is charged.

    In the zCDP currency a histogram with Laplace noise was paid in ε and counts there; other Laplace noise at ε
    counts ε²/2, and the exponential mechanism at ε counts ε²/8.
    """
    trainings = trainings_cost(requests)
    epsilon_units = 0 if zcdp else sum(_up(epsilon) for epsilon, _ in trainings)
    rho_units = sum(_up(epsilon**2 / 2) for epsilon, _ in trainings) if zcdp else 0
    for request in requests:
        if request.kind == "train":
            continue
        if request.kind == "residuals" and request.distribution is not None:
            moved = request.sensitivity**2 * residual_shift(request.shape)
            rho_units += _up(moved / (2 * request.distribution.parameter))
            continue
        entries = request.cells if request.kind == "score" else 1  # each score may move by the whole sensitivity
        if request.distribution is not None and request.distribution.kind == "gaussian":
            rho_units += _up(entries * request.sensitivity**2 / (2 * request.distribution.parameter))
            continue
        if request.distribution is None:
            epsilon, divisor = request.rate * request.sensitivity * (1 if request.monotone else 2), 8
        elif request.kind == "grow":
            epsilon, divisor = _tree_cost(request), 2
        else:
            epsilon, divisor = entries * request.sensitivity / request.distribution.parameter, 2
        if zcdp and request.kind not in _PAID_IN_EPSILON:
            rho_units += _up(epsilon**2 / divisor)
        else:
            epsilon_units += _up(epsilon)
    return Cost(epsilon=epsilon_units, rho=rho_units, delta=sum(delta for _, delta in trainings))


def _tree_cost(request: Request) -> Fraction:
    """The first layer carries the cost of the whole tree."""
    epsilon = tree_epsilon(request)
    if epsilon is None:
        raise Leak(f"{request.name}: nodes are lowered by less than one row per level, so no cost is proved")
    return epsilon if request.layer == 0 else Fraction(0)


def _up(amount: Fraction) -> int:
    return -((-amount.numerator * UNIT) // amount.denominator)


def _check_distance(one: Exchange, other: Exchange) -> None:
    request = one.request
    if request.kind == "select within":
        _check_cells(one, other)
        return
    changes = _changes(one.exact, other.exact)
    largest = Fraction(max((abs(change) for change in changes), default=0))
    if request.distribution is None or request.kind == "score":
        moved = largest
        if request.monotone and min(changes, default=0) < 0 < max(changes, default=0):
            raise Leak(f"{request.name}: scores claimed to be monotone moved in both directions")
    elif request.distribution.kind == "laplace":
        moved = Fraction(sum(abs(change) for change in changes))
    else:
        squares = sum(change * change for change in changes)
        if squares > request.sensitivity**2:
            raise Leak(f"{request.name}: input moved by √{squares}, claimed {request.sensitivity}")
        if request.kind == "residuals":
            _check_residuals(one, other)
        return
    if moved > request.sensitivity:
        raise Leak(f"{request.name}: input moved by {moved}, claimed {request.sensitivity}")


def _check_residuals(one: Exchange, other: Exchange) -> None:
    """Residuals of real numbers move by no more than the integers that the noise is fitted to."""
    request = one.request
    assert isinstance(one.exact, np.ndarray)
    assert isinstance(other.exact, np.ndarray)
    moved = RESIDUAL_UNIT * centred((one.exact - other.exact).reshape(request.shape).astype(np.float64))
    most = float(request.sensitivity**2 * residual_shift(request.shape))
    if float((moved**2).sum()) > most * (1 + _ROUNDING):
        raise Leak(f"{request.name}: residuals moved by √{(moved**2).sum():.6g} steps, noise is fitted to √{most:.6g}")


def _check_cells(one: Exchange, other: Exchange) -> None:
    """Choices within cells: the largest changes of the cells add up to no more than the sensitivity."""
    request, first, second = one.request, one.exact, other.exact
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray) or first.shape != second.shape:
        raise Leak(f"{request.name}: scores have different shapes on neighbouring tables")
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    changes = [[left - right for left, right in zip(*pair, strict=True)] for pair in pairs]
    if request.monotone and any(min(row, default=0) < 0 < max(row, default=0) for row in changes):
        raise Leak(f"{request.name}: scores claimed to be monotone moved in both directions")
    moved = sum(max(map(abs, row), default=0) for row in changes)
    if moved > request.sensitivity:
        raise Leak(f"{request.name}: scores moved by {moved} over all cells, claimed {request.sensitivity}")


def _check_trees(log: list[Exchange], again: list[Exchange]) -> None:
    """The decisions of each tree taken together: how much likelier they are on one table than on the other."""
    loss, layer = 0.0, 0
    for one, other in zip(log, again, strict=True):
        request = one.request
        if request.kind != "grow":
            continue
        if request.layer not in (0, layer):
            raise Leak(f"{request.name}: layer {request.layer} was asked where layer {layer} was due")
        loss = 0.0 if request.layer == 0 else loss
        layer = request.layer + 1
        assert isinstance(one.exact, np.ndarray)
        assert isinstance(other.exact, np.ndarray)
        assert isinstance(one.answer, np.ndarray)
        loss += split_loss(request, one.exact, other.exact, one.answer)
        epsilon = tree_epsilon(request)
        if epsilon is not None and abs(loss) > float(epsilon) + _ROUNDING:
            paid = f"e^{float(epsilon):.6g} is paid"
            raise Leak(f"{request.name}: the tree is e^{abs(loss):.6g} times likelier on one table, {paid}")


def _changes(one: Exact, other: Exact) -> list[int]:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.shape != other.shape:
            raise Leak("the exact inputs have different shapes on neighbouring tables")
        return [int(change) for change in (one - other) if change]
    first, second = _as_counts(one), _as_counts(other)
    return [first.get(key, 0) - second.get(key, 0) for key in {*first, *second}]


def _as_counts(exact: Exact) -> dict[object, int]:
    if isinstance(exact, OccupiedCells):
        return dict(zip(exact.indices.tolist(), exact.counts.tolist(), strict=True))
    if isinstance(exact, LabelCounts):
        return dict(zip(exact.labels, exact.counts.tolist(), strict=True))
    raise Leak("the exact inputs have different types on neighbouring tables")


def _masked(scores: Ints, allowed: Bools) -> Ints:
    """Scores with a mark where an option is not allowed: which ones are must not depend on rows either."""
    return np.where(allowed, scores, np.iinfo(np.int64).min)


def _first_difference(one: bytes, other: bytes) -> str:
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            around = slice(max(0, position - 40), position + 40)
            return f"at byte {position}: {one[around]!r} against {other[around]!r}"
    return f"{len(one)} bytes against {len(other)}"


LEVEL = 1e-8
"""How likely correct noise fails one call of `check_noise`, at most: a hundred calls cry wolf once in a million."""

_TESTS = 4
_POWERS = 40
_WIDEST_TABLE = 2000.0
_MASKED = np.iinfo(np.int64).min


def check_noise(runs: Sequence[Sequence[Exchange]], *, fewest: int, seed: int = 0) -> None:
    """Raises `Leak` unless the answers of these runs follow the distributions of their requests, each drawn afresh.

    `fewest` is the number of draws below which the audit would have no power, and refuses to pass.
    """
    rng = np.random.default_rng(seed)
    found = [[uniforms(exchange, rng) for exchange in run] for run in runs]
    whole = [np.concatenate([np.zeros(0), *parts]) for parts in found]
    pooled = np.concatenate([np.zeros(0), *whole])
    if pooled.size < fewest:
        raise Leak(f"the audit of the noise has no power: {pooled.size} draws, it needs {fewest}")
    earlier = [_apart(parts) for parts in found]
    _check_uniform(pooled, "does not follow its distribution")
    _check_uniform(np.abs(2 * pooled - 1), "is too small or too large for its distribution")
    _check_uniform(np.concatenate([np.zeros(0), *earlier]), "is that of the query before")
    _check_uniform(_apart(whole), "is that of the run before")


def draws_of(exchange: Exchange) -> int:
    """How many draws of noise are behind an answer, as far as they are tested."""
    return sum(below.size for below, _ in _intervals(exchange))


def uniforms(exchange: Exchange, rng: np.random.Generator) -> Floats:
    """One number per draw of noise behind this answer, uniform and independent if it followed the request."""
    below, mass = (np.concatenate(parts) for parts in zip(*_intervals(exchange), strict=True))
    return np.asarray(below + rng.random(below.size) * mass, np.float64)


def _apart(parts: Sequence[Floats]) -> Floats:
    """Each part minus the one before, as far as both go, modulo 1."""
    pairs = [(one[: other.size], other[: one.size]) for one, other in pairwise(parts)]
    return np.concatenate([np.zeros(0), *((other - one) % 1.0 for one, other in pairs)])


def _check_uniform(sequence: Floats, fault: str) -> None:
    if not sequence.size:
        return
    draws = 1 << (sequence.size.bit_length() - 1)
    ordered = np.sort(sequence[:draws])
    steps = np.arange(draws + 1) / draws
    distance = max(float((steps[1:] - ordered).max()), float((ordered - steps[:-1]).max()))
    limit = math.sqrt(math.log(2 * _TESTS * _POWERS / LEVEL) / (2 * draws))
    if distance > limit:
        raise Leak(f"the noise {fault}: distance {distance:.3f} in {draws:,} draws, allowed {limit:.3f}")


def _intervals(exchange: Exchange) -> Iterator[tuple[Floats, Floats]]:
    """P(X < x) and P(X = x) of every draw, where x is what was answered."""
    request, exact, answer = exchange.request, exchange.exact, exchange.answer
    if isinstance(exact, OccupiedCells):
        assert isinstance(answer, OccupiedCells)
        yield from _sparse(exchange, exact, answer)
    elif isinstance(exact, LabelCounts):
        assert isinstance(answer, LabelCounts)
        kept = dict(zip(answer.labels, answer.counts.tolist(), strict=True))
        shown = np.array([kept.get(label, request.threshold - 1) for label in exact.labels], dtype=np.int64)
        yield _censored(_distribution_of(exchange), exact.counts, shown, request.threshold)
    elif request.kind == "select":
        yield _choices(float(request.rate), exact.reshape(1, -1), np.array([answer], dtype=np.int64))
    elif request.kind == "select within":
        yield _choices(float(request.rate), exact, np.asarray(answer, dtype=np.int64))
    elif request.kind == "grow":
        stays = _cumulative(_distribution_of(exchange), request.threshold - exact)
        split = np.asarray(answer, dtype=np.bool_)
        yield np.where(split, stays, 0.0), np.where(split, 1 - stays, stays)
    elif request.kind == "residuals":
        assert isinstance(answer, np.ndarray)
        yield _whitened(exchange, answer - contrasts(exact * RESIDUAL_UNIT, request.shape))
    else:
        assert isinstance(answer, np.ndarray)
        residual = answer - exact
        below = _cumulative(_distribution_of(exchange), residual - 1)
        yield below, _cumulative(_distribution_of(exchange), residual) - below


def _whitened(exchange: Exchange, noise: Ints) -> tuple[Floats, Floats]:
    """Contrasts of wide integer noise, made independent."""
    scale = _distribution_of(exchange).scale
    if scale < 64.0:  # the sum of four draws is not smooth enough to be taken for a normal one
        return np.zeros(0), np.zeros(0)
    below = ndtr(whitened(noise, exchange.request.shape) / scale)
    return np.asarray(below, np.float64), np.zeros(below.size)


def whitened(noise: Ints, shape: tuple[int, ...]) -> Floats:
    """Contrasts of noise with variance σ², made independent: differences from one cell have covariance σ²·(I + J)."""
    found = noise.reshape([size - 1 for size in shape]).astype(np.float64)
    for axis, size in enumerate(shape):
        independent = np.linalg.inv(np.linalg.cholesky(np.eye(size - 1) + 1.0))
        found = np.moveaxis(np.tensordot(independent, found, (1, axis)), 0, axis)
    return found.ravel()


def _sparse(exchange: Exchange, exact: OccupiedCells, answer: OccupiedCells) -> Iterator[tuple[Floats, Floats]]:
    """The occupied cells, how many empty ones show, and by how much those exceed the threshold."""
    from scipy.stats import binom

    distribution, threshold = _distribution_of(exchange), exchange.request.threshold
    kept = dict(zip(answer.indices.tolist(), answer.counts.tolist(), strict=True))
    shown = np.array([kept.pop(cell, threshold - 1) for cell in exact.indices.tolist()], dtype=np.int64)
    yield _censored(distribution, exact.counts, shown, threshold)
    ratio = math.exp(-1 / distribution.scale)
    empty = binom(exchange.request.cells - exact.indices.size, ratio**threshold / (1 + ratio))
    yield np.array([empty.cdf(len(kept) - 1)]), np.array([empty.pmf(len(kept))])
    beyond = ratio ** (np.array(list(kept.values()), dtype=np.float64) - threshold)
    yield 1 - beyond, beyond * (1 - ratio)


def _censored(distribution: Distribution, exact: Ints, shown: Ints, threshold: int) -> tuple[Floats, Floats]:
    """Noisy counts of which those below the threshold show as one less than it."""
    hidden = shown < threshold
    below = np.where(hidden, 0.0, _cumulative(distribution, shown - 1 - exact))
    return below, _cumulative(distribution, shown - exact) - below


def _choices(rate: float, scores: Ints, chosen: Ints) -> tuple[Floats, Floats]:
    """One option for every row, drawn with probability ∝ exp(rate × score)."""
    allowed = scores != _MASKED
    best = np.where(allowed, scores, -(2**62)).max(axis=1, keepdims=True)
    lowered = np.where(allowed, scores, best) - best
    weights = np.where(allowed, np.exp(rate * lowered.astype(np.float64)), 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    mass = np.take_along_axis(weights, chosen[:, np.newaxis], axis=1)[:, 0]
    return np.take_along_axis(np.cumsum(weights, axis=1), chosen[:, np.newaxis], axis=1)[:, 0] - mass, mass


def _distribution_of(exchange: Exchange) -> Distribution:
    distribution = exchange.request.distribution
    assert distribution is not None
    return distribution


def _cumulative(distribution: Distribution, places: Ints) -> Floats:
    """P(noise ≤ place): closed form for Laplace, summed for Gaussian noise, whose sum is its integral where wide."""
    if distribution.grid > 1:
        fine = Distribution("gaussian", distribution.parameter * distribution.grid**2)
        return _cumulative(fine, places * distribution.grid + distribution.grid // 2)
    at = places.astype(np.float64)
    if distribution.kind == "laplace":
        ratio = math.exp(-1 / distribution.scale)
        with np.errstate(over="ignore"):
            return np.where(at < 0, ratio**-at, 1 + ratio - ratio ** (at + 1)) / (1 + ratio)
    if distribution.scale > _WIDEST_TABLE:
        return np.asarray(ndtr((at + 0.5) / distribution.scale), np.float64)
    table = _summed(distribution)
    reach = (table.size - 1) // 2
    return np.asarray(np.where(at < -reach, 0.0, table[np.clip(places, -reach, reach) + reach]), np.float64)


@lru_cache(maxsize=64)
def _summed(distribution: Distribution) -> Floats:
    """P(noise ≤ k) of integer Gaussian noise for k = −reach, …, reach."""
    reach = math.ceil(12 * distribution.scale) + 2
    points = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(points**2) / (2 * distribution.scale**2))
    return np.asarray(np.cumsum(weights) / weights.sum(), np.float64)
