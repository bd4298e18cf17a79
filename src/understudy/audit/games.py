"""Games: what an audit runs again and again on either of two neighbouring tables, and what one run tells.

`Game`         one whole run of `synthesize`, of which only the place differs: its ledger lies in memory where the
               system offers that, and nothing is saved.
`Choosing`     a release with each of several methods, and the private choice among them.
`Interrupted`  a training that is broken off after a random number of answers, and taken up again with `resume`.

After every run its queries are put to the other table, with the answers that were given, as a replay does: then the
exact inputs of every answer are known for both. What a step of a training adds up is not the same in both, for nobody
knows which units took part; there every kind of unit is sampled alone once, and all coins are summed over
(below). Rows are drawn with a fixed seed, so that a run and its replay draw the same ones.

Evidence
--------
What one run tells about which of two neighbouring tables it was made from: numbers that go up with the extra unit.

From the transcript, where the distribution of the noise is known: the log likelihood ratio of all answers, which is the
strongest evidence there is (Neyman and Pearson). The exact inputs of every query are known for both tables: the queries
of the run are put once more to the other table, with the answers that were given, as a replay does. So choices, trees
and scores count as noisy tables do. Whoever gets a release has no such inputs; an audit knows both tables.

A step of a training is a noisy sum over units whose coins nobody sees. Its likelihood is a sum over all that the coins
may have been: units that hold the same rows contribute the same vector, so what counts is how many of each kind took
part, binomial numbers at the public rate. It is exact, for the few units that the tables of an audit hold.

From the rows and the model, as a check of everything that might leave in another way: numbers of a black box, which
knows the rows and the model of the releases alone.

The functions see answers and both tables, never which of the two a run was made from; so whatever they compute is a
number that an adversary could compute, and any threshold on it is an event.
"""

import itertools
import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import binom

from understudy.arrays import Floats, Ints
from understudy.audit.bounds import ClaimedAccount, MixedAccount, PureAccount, RhoAccount, TrainingAccount
from understudy.audit.neighbours import WorstPair
from understudy.codec.table import TableCodec
from understudy.compare.choice import Choice, choose
from understudy.counts.source import LabelCounts, OccupiedCells, Records
from understudy.domain import RESIDUAL_UNIT, Distribution, Trained
from understudy.errors import UsageError
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget
from understudy.privacy.ledger import Ledger
from understudy.privacy.randomizer import Randomizer, Request, SecureRandomizer, contrasts
from understudy.privacy.training import course_parts
from understudy.release import Release
from understudy.release.release import Fitted
from understudy.schema import Schema
from understudy.synthesizer import Environment, synthesize
from understudy.synthesizer.account import is_continuable
from understudy.synthesizer.design import Design, check_without_public
from understudy.testing.replay import Exchange, Leak, Record, Recorder, Replayer, split_loss, whitened

MOST = 1e3
"""No answer counts for more: beyond it lies certainty."""

_MASKED = np.iinfo(np.int64).min
_MOST_CELLS = 100_000


def is_sampled(request: Request) -> bool:
    """Whether an answer is a noisy sum over units that were sampled."""
    return request.kind == "train" and request.rate > 0


def sampled_ratio(exchange: Exchange, vectors: Sequence[Floats], counts: tuple[Sequence[int], Sequence[int]]) -> float:
    """ln of how much likelier the answer of a step is with the extra unit.

    Args:
        exchange: the step and what was answered.
        vectors: what a unit of each kind contributes.
        counts: how many units of each kind there are, without and with the extra unit.
    """
    without, with_unit = (_log_of_sum(exchange, vectors, held) for held in counts)
    return min(max(with_unit - without, -MOST), MOST)


def _log_of_sum(exchange: Exchange, vectors: Sequence[Floats], held: Sequence[int]) -> float:
    """ln of the density of a noisy sum over sampled units, up to a constant: over all numbers of units of each kind."""
    request, answer = exchange.request, np.asarray(exchange.answer, np.float64)
    assert request.distribution is not None
    rate, twice = -math.expm1(-float(request.rate)), 2 * request.distribution.scale**2
    found = []
    for taken in itertools.product(*(range(most + 1) for most in held)):
        away = answer - sum((number * one for number, one in zip(taken, vectors, strict=True)), np.zeros(answer.size))
        coins = sum(binom.logpmf(number, most, rate) for number, most in zip(taken, held, strict=True))
        found.append(float(coins) - float(away @ away) / twice)
    return float(np.logaddexp.reduce(found))


def log_ratio(without: Exchange, with_unit: Exchange) -> float:
    """ln of how much likelier an answer is with the extra unit than without it, from the exact inputs of both."""
    request, answer = with_unit.request, with_unit.answer
    one, other = with_unit.exact, without.exact
    if isinstance(one, OccupiedCells):
        assert isinstance(other, OccupiedCells)
        assert isinstance(answer, OccupiedCells)
        found = _censored(without, _as_dict(one), _as_dict(other), _as_dict(answer))
    elif isinstance(one, LabelCounts):
        assert isinstance(other, LabelCounts)
        assert isinstance(answer, LabelCounts)
        found = _censored(without, _by_label(one), _by_label(other), _by_label(answer))
    else:
        assert not isinstance(other, OccupiedCells | LabelCounts)
        if request.kind == "grow":
            found = split_loss(request, one, other, np.asarray(answer, np.bool_))
        elif request.distribution is None:
            found = _chosen(float(request.rate), one, answer) - _chosen(float(request.rate), other, answer)
        else:
            found = _noisy(without, one, other)
    return min(max(found, -MOST), MOST) if math.isfinite(found) else math.copysign(MOST, found)


def _noisy(exchange: Exchange, one: Ints, other: Ints) -> float:
    """The log likelihood ratio of noisy counts, noisy scores and noisy residuals."""
    request, answer = exchange.request, np.asarray(exchange.answer, np.int64)
    distribution = request.distribution
    assert distribution is not None
    if request.kind == "residuals":
        near, far = (
            whitened(answer - contrasts(exact * RESIDUAL_UNIT, request.shape), request.shape) for exact in (one, other)
        )
    else:
        moved = one != other
        near, far = (answer - one)[moved].astype(np.float64), (answer - other)[moved].astype(np.float64)
    if distribution.kind == "laplace":
        return float((np.abs(far) - np.abs(near)).sum() / distribution.scale)
    return float((far**2 - near**2).sum() / (2 * distribution.scale**2))


def _chosen(rate: float, scores: Ints, answer: object) -> float:
    """ln of the probability of one choice, or of one in each row; options with the least score were not allowed."""
    rows = np.atleast_2d(scores)
    picks = np.atleast_1d(np.asarray(answer, np.int64))
    allowed = rows != _MASKED
    best = np.where(allowed, rows, -(2**62)).max(axis=1, keepdims=True)
    weights = np.where(allowed, rate * (np.where(allowed, rows, best) - best).astype(np.float64), -np.inf)
    return float((weights[np.arange(picks.size), picks] - np.logaddexp.reduce(weights, axis=1)).sum())


def _censored(exchange: Exchange, one: dict[object, int], other: dict[object, int], shown: dict[object, int]) -> float:
    """The log likelihood ratio of noisy counts above a threshold; a label that nobody holds is never shown."""
    request = exchange.request
    distribution = request.distribution
    assert distribution is not None
    labels = isinstance(exchange.exact, LabelCounts)
    total = 0.0
    for place in {*one, *other}:
        near, far = one.get(place, 0), other.get(place, 0)
        if near == far:
            continue
        value = shown.get(place)
        chances = [
            0.0 if labels and not count and value is None
            else -math.inf if labels and not count
            else _log_shown(distribution, value, count, request.threshold)
            for count in (near, far)
        ]  # fmt: skip
        total += chances[0] - chances[1]
    return total


def _log_shown(distribution: Distribution, value: int | None, count: int, threshold: int) -> float:
    """ln of the chance of a noisy count, up to a constant, or of one below the threshold; Laplace noise."""
    rate = 1 / distribution.scale
    constant = math.log1p(-math.exp(-rate)) - math.log1p(math.exp(-rate))
    if value is not None:
        return constant - abs(value - count) * rate
    below = threshold - 1 - count
    if below < 0:
        return below * rate - math.log1p(math.exp(-rate))
    return math.log1p(-math.exp(-(below + 1) * rate) / (1 + math.exp(-rate)))


def _as_dict(cells: OccupiedCells) -> dict[object, int]:
    return dict(zip(cells.indices.tolist(), cells.counts.tolist(), strict=True))


def _by_label(found: LabelCounts) -> dict[object, int]:
    return dict(zip(found.labels, found.counts.tolist(), strict=True))


BLACK_BOX = (
    "the number of synthetic rows",
    "the number of synthetic rows that equal the unit's",
    "the number of values that the synthetic rows share with the unit's",
    "the number of rows that the model expects where the unit lies",
)
"""What is read off the rows and the model, in the order of `seen_from_outside`."""


def seen_from_outside(releases: Sequence[Release], record: Record) -> Floats:
    """The numbers of `BLACK_BOX`, over all models and copies of these releases together."""
    found = np.zeros(len(BLACK_BOX))
    for release in releases:
        found[:3] += np.sum([_in_rows(release, rows, record) for rows in release.tables], axis=0)
        found[3] += sum(_expected(fitted, record) for fitted in release.fits)
    return found


def _in_rows(release: Release, rows: object, record: Record) -> list[int]:
    """How many rows there are, how many equal the record, and how many values agree with it."""
    assert isinstance(rows, pa.Table), "a release of an Arrow table gives Arrow tables"
    codec = release.codec
    names = codec.domain.columns
    same = [codec.encode(name, rows.column(codec.origin(name))) == _code(codec, name, record) for name in names]
    return [rows.num_rows, int(np.logical_and.reduce(same).sum()), sum(int(one.sum()) for one in same)]


def _expected(fitted: Fitted, record: Record) -> float:
    """How many rows a model expects where the record lies; 0 where its cells are too many to write out."""
    domain, model = fitted.codec.domain, fitted.model
    clique = domain.everything()
    if domain.cells(clique) > _MOST_CELLS:
        return 0.0
    codes = tuple(_code(fitted.codec, name, record) for name in domain.columns)
    place = np.ravel_multi_index(codes, domain.shape(clique), mode="clip")
    return float(model.marginal(clique)[place]) * model.total


def _code(codec: TableCodec, name: str, record: Record) -> int:
    own = pa.chunked_array([pa.array([record[codec.origin(name)]], pa.string())])
    return int(codec.encode(name, own)[0])


ANSWERS = "the log likelihood ratio of all noisy answers"
_CHOSEN = "the place of the chosen method in the list"
_SEED = 7


class BrokenOff(KeyboardInterrupt):
    """What ends an interrupted run, as Ctrl-C would."""


@dataclass(slots=True)
class Witness(Recorder):
    """Keeps what the secure randomizer was asked and what it answered; in nothing else different from it.

    With `most` it breaks the run off where one answer more would be given.
    """

    private: bool = True
    most: int | None = None

    def sample(self, request: Request, records: Records) -> Ints:
        """As the inner randomizer, and not by a hash: a training must be as it is in a release."""
        if self.most is not None and len(self.log) >= self.most:
            raise BrokenOff
        return self.inner.sample(request, records)

    def add_noise(self, request: Request, exact: Ints) -> Ints:
        """As the inner randomizer."""
        if self.most is not None and len(self.log) >= self.most:
            raise BrokenOff
        return Recorder.add_noise(self, request, exact)


@dataclass(slots=True)
class Probe(Replayer):
    """Answers from a record, and lets one unit of one kind alone take part in every step of a training."""

    private: bool = True
    kind: int = 0
    """Which kind, in the order of the rows that its units hold."""
    kinds: Counter[bytes] = field(default_factory=Counter)
    """How many units hold which rows; empty if nothing was trained."""

    def sample(self, request: Request, records: Records) -> Ints:
        """The place of one unit of that kind, or none if the table has no unit of it."""
        held = [
            records.codes[one:other].tobytes()
            for one, other in zip(records.starts[:-1], records.starts[1:], strict=True)
        ]
        self.kinds = Counter(held)
        wanted = sorted(self.kinds)[self.kind : self.kind + 1]
        return np.array([held.index(one) for one in wanted], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Played:
    """What a run released, what else it showed, and the account behind its claim."""

    releases: tuple[Release, ...]
    account: ClaimedAccount
    numbers: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """The numbers of one run: the log likelihood ratio first; what each answer added to it; and its account."""

    numbers: tuple[float, ...]
    shares: Mapping[str, float]
    account: ClaimedAccount


@dataclass(frozen=True)
class Game:
    """A method under audit with its settings."""

    schema: Schema
    method: str
    budget: Budget
    options: Mapping[str, object]
    copies: int = 1
    copies_mode: str = "resample"
    public: object | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers of a run are."""
        return (ANSWERS, *BLACK_BOX)

    @cached_property
    def design(self) -> Design:
        """The plan of every run, which needs no data."""
        runs = self.copies if self.copies_mode == "remeasure" else 1
        design = Design.of(self.schema, self.method, self.budget, options=self.options, runs=runs, public=self.public)
        if self.public is None:
            check_without_public(design)
        if design.plan.refused:
            raise UsageError("options", f"leave nothing to audit: no privacy claim is made. {design.plan.refused}")
        return design

    def check(self) -> None:
        """Raises where there is no run to audit; runs nothing."""
        _ = self.design

    def play(self, table: pa.Table, randomizer: Randomizer) -> Played:
        """One run."""
        release = self._release(table, randomizer)
        return Played((release,), self._account(release))

    def witnessed(self, table: pa.Table) -> tuple[Played, list[Exchange]]:
        """One run with noise of its own, and all that was answered in it."""
        witness = Witness(SecureRandomizer())
        return self.play(table, witness), witness.log

    def told(self, pair: WorstPair, side: int) -> Told:
        """One run on one of the two tables, and the replays that say what its answers tell."""
        played, log = self.witnessed(pair.sides()[side])
        other = self._replayed(pair.sides()[1 - side], log)
        if any(is_sampled(exchange.request) for exchange in log):
            parts = self._parts_of_training(pair, log)
        else:
            ordered = (log, other.log) if side == 0 else (other.log, log)
            parts = [log_ratio(without, with_unit) for without, with_unit in zip(*ordered, strict=True)]
        shares: dict[str, float] = defaultdict(float)
        for exchange, part in zip(log, parts, strict=True):
            shares[f"{exchange.request.kind} {exchange.request.name}"] += part
        seen = seen_from_outside(played.releases, pair.record)
        return Told((sum(shares.values()), *seen, *played.numbers), shares, played.account)

    def _replayed(self, table: pa.Table, log: list[Exchange], kind: int = 0) -> Probe:
        probe = Probe(log, kind=kind)
        self.play(table, probe)
        if len(probe.log) != len(log):
            raise Leak(f"{len(log)} queries on one table, {len(probe.log)} on its neighbour")
        return probe

    def _parts_of_training(self, pair: WorstPair, log: list[Exchange]) -> list[float]:
        """The log likelihood ratio of every answer, where those of a training are sums over units that nobody knows."""
        without, with_unit = (self._replayed(table, log) for table in pair.sides())
        lone = [with_unit, *(self._replayed(pair.neighbour, log, kind) for kind in range(1, len(with_unit.kinds)))]
        names = sorted(with_unit.kinds)
        counts = ([without.kinds[name] for name in names], [with_unit.kinds[name] for name in names])
        found = []
        for place, exchange in enumerate(log):
            if is_sampled(exchange.request):
                vectors = [np.asarray(probe.log[place].exact, np.float64) for probe in lone]
                found.append(sampled_ratio(exchange, vectors, counts))
            else:
                found.append(log_ratio(without.log[place], with_unit.log[place]))
        return found

    def _release(self, table: pa.Table, randomizer: Randomizer, **more: Any) -> Release:
        return synthesize(
            table,
            self.schema,
            method=self.method,
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            options=self.options,
            copies=self.copies,
            copies_mode=self.copies_mode,
            seed=_SEED,
            public=self.public,
            _environment=replace(Environment.real(), randomizer=randomizer),
            **more,
        )

    def _account(self, release: Release) -> ClaimedAccount:
        granted, currency = self.design.granted, self.design.currency
        epsilon, delta = self.budget.claim(granted, currency)
        epsilon = min(epsilon, self.budget.epsilon)
        trained = [answer for answer in release.fits[0].transcript if isinstance(answer, Trained)]
        if granted.rho and not granted.epsilon:
            return RhoAccount(epsilon, delta, granted, currency, self.design.variances)
        if trained and len(release.statement.charges) == 1:
            (answer,) = trained
            parts = course_parts(answer.course, answer.first_distribution, answer.distribution)
            return TrainingAccount(epsilon, delta, tuple(parts))
        if granted.rho or trained:
            return ClaimedAccount(epsilon, delta)
        return PureAccount(epsilon, delta, _prices(release), granted.delta / DELTA_UNIT)


@dataclass(frozen=True)
class Choosing(Game):
    """A private choice among several methods; `budget` is that of each release, `method` their names together."""

    methods: tuple[str, ...] = ()
    choice: float = 1.0

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers of a run are."""
        return (ANSWERS, *BLACK_BOX, _CHOSEN)

    def check(self) -> None:
        """Nothing: a choice checks everything before its first charge."""

    def play(self, table: pa.Table, randomizer: Randomizer) -> Played:
        """All releases, and the choice; a ledger of its own covers them."""
        environment = replace(Environment.real(), randomizer=randomizer, seed=lambda: _SEED)
        with tempfile.TemporaryDirectory() as folder:
            budget = Budget(1e6, 0.5)
            choice = choose(
                table,
                self.schema,
                methods=self.methods,
                epsilon=self.budget.epsilon,
                delta=self.budget.delta,
                choice_epsilon=self.choice,
                ledger=Ledger.create(Path(folder) / "ledger.db", "audit", budget),
                _environment=environment,
            )
        releases = tuple(choice.releases.values())
        place = float(list(choice.releases).index(choice.chosen))
        return Played(releases, self._account_of(choice), (place,))

    def _account_of(self, choice: Choice) -> ClaimedAccount:
        """Prices of all releases and of the choice, where everything is paid in ε; otherwise what all cost in ρ."""
        epsilon, delta = choice.cost.epsilon, choice.cost.delta
        releases = choice.releases.values()
        if any(isinstance(answer, Trained) for release in releases for answer in release.fits[0].transcript):
            return ClaimedAccount(epsilon, delta)
        spent = [release.statement.granted for release in releases]
        if not delta and not any(cost.rho for cost in spent):
            parts = [price for release in releases for price in _prices(release)]
            return PureAccount(epsilon, delta, (*parts, self.choice))
        rho = sum(cost.rho / UNIT + (cost.epsilon / UNIT) ** 2 / 2 for cost in spent) + self.choice**2 / 8
        return MixedAccount(epsilon, delta, rho, sum(cost.delta for cost in spent) / DELTA_UNIT)


@dataclass(frozen=True)
class Interrupted(Game):
    """Every run is broken off once and taken up again."""

    def check(self) -> None:
        """Raises unless the method can be taken up."""
        if not is_continuable(self.design):
            raise UsageError("interrupt", f"{self.method} cannot be resumed.", "Audit a method that trains.")

    @cached_property
    def _answers(self) -> int:
        """How many answers a whole run gets, which the plan fixes."""
        witness = Witness(SecureRandomizer())
        self.play(self._nobody, witness)
        return len(witness.log)

    @property
    def _nobody(self) -> pa.Table:
        return pa.table({column.name: pa.array([], pa.string()) for column in self.schema.columns})

    def witnessed(self, table: pa.Table) -> tuple[Played, list[Exchange]]:
        """One run in two sittings, and the answers that lead to its release: those that were lost do not."""
        first, second = (
            Witness(SecureRandomizer(), most=Environment.real().seed() % self._answers),
            Witness(SecureRandomizer()),
        )
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "release"
            try:
                self._release(table, first, out=out)
            except BrokenOff:
                release = self._release(table, second, out=out, resume=True)
            else:
                raise Leak(f"{len(first.log)} queries on one table, {self._answers} on another")
            _ = release.tables  # read while the folder is there
        begun = second.log[0].request.layer
        kept = [exchange for exchange in first.log if exchange.request.layer < begun]
        return Played((release,), self._account(release)), [*kept, *second.log]


def _prices(release: Release) -> tuple[float, ...]:
    return tuple(charge.cost.epsilon / UNIT for charge in release.statement.charges if charge.cost.epsilon)
