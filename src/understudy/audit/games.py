"""Games: what an audit runs again and again on either of two neighbouring tables, and what one run tells.

`Game`         one whole run of `synthesize`, of which only the place differs: its ledger lies in memory where the
               system offers that, and nothing is saved.
`Choosing`     `compare --choose`: a release with each of several methods, and the private choice among them.
`Interrupted`  a training that is broken off after a random number of answers, and taken up again with `resume`.

After every run its queries are put to the other table, with the answers that were given, as a replay does: then the
exact inputs of every answer are known for both. What a step of a training adds up is not the same in both, for nobody
knows which units took part; there every kind of unit is sampled alone once, and all coins are summed over
(`evidence.py`). Rows are drawn with a fixed seed, so that a run and its replay draw the same ones.
"""

import secrets
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.arrays import Ints
from understudy.audit.accounts import ClaimedAccount, PureAccount, RhoAccount, TrainingAccount
from understudy.audit.evidence import BLACK_BOX, is_sampled, log_ratio, sampled_ratio, seen_from_outside
from understudy.audit.neighbours import WorstPair
from understudy.compare.choice import Choice, choose
from understudy.counts.source import Records
from understudy.domain import Trained
from understudy.errors import UsageError
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget
from understudy.privacy.ledger import Ledger
from understudy.privacy.randomizer import Randomizer, Request, SecureRandomizer
from understudy.privacy.training import course_parts
from understudy.release import Release
from understudy.schema import Schema
from understudy.synthesizer import Environment, synthesize
from understudy.synthesizer.account import is_continuable
from understudy.synthesizer.design import Design, check_without_public
from understudy.testing.replay import Exchange, Leak, Recorder, Replayer

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
        """Prices of all releases and of the choice, where everything is paid in ε."""
        epsilon, delta = choice.cost.epsilon, choice.cost.delta
        spent = [release.statement.granted for release in choice.releases.values()]
        if delta or any(cost.rho for cost in spent):
            return ClaimedAccount(epsilon, delta)
        parts = [price for release in choice.releases.values() for price in _prices(release)]
        return PureAccount(epsilon, delta, (*parts, self.choice))


@dataclass(frozen=True)
class Interrupted(Game):
    """Every run is broken off once and taken up again."""

    def check(self) -> None:
        """Raises unless the method can be taken up."""
        if not is_continuable(self.design):
            raise UsageError("interrupt", f"{self.method} cannot be taken up again.", "Audit a method that trains.")

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
        first, second = Witness(SecureRandomizer(), most=secrets.randbelow(self._answers)), Witness(SecureRandomizer())
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
