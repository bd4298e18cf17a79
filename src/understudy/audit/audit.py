"""An audit: a method run again and again on two neighbouring tables, and what that proves about its ε.

Every run is a whole run of `synthesize`: plan, charge, curator, noise of the operating system's generator, fit, rows.
Only its place differs: the ledger of each run lies in memory where the system offers that, and nothing is saved. The
tables are made from the schema (`neighbours.py`), so no private table is read and nothing here is confidential.

1. Some pairs of neighbours are tried in a few runs each; the one whose sides differ most is taken.
2. Half of the runs choose: of every number in `evidence.py` and every threshold the event that shows the largest bound.
3. The other half tests: how often the chosen event occurs on either side, in bounds that hold together with the
   confidence, gives the result. What was chosen cannot have been fitted to the runs it is tested on.

Two bounds share the allowed error: one for (ε, δ) as it is defined, and one for the account (ρ) behind a claim with
δ > 0, written as the ε that this account would print (`bounds.py`). Either above the claim is a violation. A bound
below the claim proves nothing about other tables, other events, or rarer ones: an audit finds faults and cannot show
that there are none.
"""

import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.arrays import Floats, Ints
from understudy.audit.bounds import EventRates
from understudy.audit.evidence import BLACK_BOX, is_known, log_ratio, seen_from_outside
from understudy.audit.neighbours import WorstPair, invented_public, worst_pairs
from understudy.charts import Lines, Series
from understudy.counts.source import Records
from understudy.errors import UnderstudyWarning, UsageError
from understudy.methods.method import method_named
from understudy.privacy.composition import tight_epsilon
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost, Currency, epsilon_of_rho
from understudy.privacy.gaussian import gaussian_epsilon
from understudy.privacy.randomizer import Request, SecureRandomizer
from understudy.progress import Progress, silent
from understudy.release import Release
from understudy.report import Page, Paragraph, Section, TextTable, render_page
from understudy.schema import Category, Schema, Unit
from understudy.synthesizer import Environment, synthesize
from understudy.synthesizer.design import Design, check_without_public
from understudy.testing.cases import in_memory
from understudy.testing.replay import Leak, Recorder, Replayer

NOTICE = "Made without private data: every table of this audit was invented from the schema."
RUNS = 2000
CONFIDENCE = 0.9999
LEAST_RUNS = 20
_TRIAL_SHARE = 50
_CUTS = 99
_MORE = (1, 3, 10, 30, 100)
_ANSWERS = "the log likelihood ratio of all noisy answers"
_TOGETHER = "a linear classifier on the synthetic rows and the model"
_SEED = 7


@dataclass(slots=True)
class Witness(Recorder):
    """Keeps what the secure randomizer was asked and what it answered; in nothing else different from it."""

    private: bool = True

    def sample(self, request: Request, records: Records) -> Ints:
        """As the inner randomizer, and not by a hash: a training must be as it is in a release."""
        return self.inner.sample(request, records)


@dataclass(frozen=True, slots=True)
class ClaimedAccount:
    """The claim of a run and how it was computed from ρ, if it was."""

    epsilon: float
    delta: float
    cost: Cost
    currency: Currency
    variances: tuple[Fraction, ...] = ()

    def bound(self, rates: EventRates) -> float | None:
        """The ε that the account would print if it were as small as these rates allow; None if it is no account of ρ.

        Steps that may fail (of probability δ', part of the cost) count against the bound twice, once for each table.
        """
        if not self.cost.rho or self.cost.epsilon:
            return None
        failure = 2 * self.cost.delta / DELTA_UNIT
        if self.currency == "gaussian":
            rho = rates.gaussian_lower(failure + self.delta)
        else:
            rho = rates.rho_lower(failure)
        return self._printed(rho, Fraction(self.delta) - Fraction(self.cost.delta, DELTA_UNIT))

    def _printed(self, rho: float, delta: Fraction) -> float:
        if rho < 1e-9:
            return 0.0
        exact = Fraction(rho)
        if self.currency == "gaussian":
            return float(gaussian_epsilon(exact, delta) or 0.0)
        if self.variances:  # the same noise, wider or narrower throughout
            factor = Fraction(self.cost.rho, UNIT) / exact
            tight = tight_epsilon(tuple(variance * factor for variance in self.variances), delta)
            if tight is not None:
                return tight
        return float(epsilon_of_rho(exact, delta))


@dataclass(frozen=True, slots=True)
class Event:
    """Something that can be seen in a release, and in how many of `runs` runs it was, without and with the unit."""

    number: str
    cut: float
    without: int
    with_unit: int
    runs: int

    @property
    def sentence(self) -> str:
        """The event in words, with how often it was seen."""
        what = f"{self.number} is at least {self.cut:.4g}"
        seen = f"{self.with_unit:,} of {self.runs:,} runs with the unit, {self.without:,} of {self.runs:,} without it"
        return f"{what[0].upper()}{what[1:]}: {seen}."

    def rates(self, confidence: float, times: int = 1) -> EventRates:
        """Bounds of its two rates; of `times` as many runs in which it was as frequent."""
        return EventRates.of(self.without * times, self.with_unit * times, self.runs * times, confidence)


@dataclass(frozen=True, slots=True)
class Samples:
    """Numbers that were read off runs of both tables: one row per run, one column for each of `names`."""

    names: tuple[str, ...]
    without: Floats
    with_unit: Floats

    def halves(self) -> tuple["Samples", "Samples"]:
        """Runs to choose with, and runs to test on; a classifier is fitted to the first ones and added to both."""
        half = len(self.without) // 2
        first = Samples(self.names, self.without[:half], self.with_unit[:half])
        rest = Samples(self.names, self.without[half:], self.with_unit[half:])
        weights = _classifier(first)
        return first._classified(weights), rest._classified(weights)

    def _classified(self, weights: Floats) -> "Samples":
        sides = [np.column_stack([side, side[:, -weights.size :] @ weights]) for side in (self.without, self.with_unit)]
        return Samples((*self.names, _TOGETHER), sides[0], sides[1])

    def event(self, place: int, cut: float) -> Event:
        """How often one number is at least `cut`."""
        hits = [int((side[:, place] >= cut).sum()) for side in (self.without, self.with_unit)]
        return Event(self.names[place], cut, hits[0], hits[1], len(self.without))

    def events(self) -> Iterator[tuple[int, Event]]:
        """Thresholds of every number that part these runs."""
        for place in range(len(self.names)):
            pooled = np.concatenate([self.without[:, place], self.with_unit[:, place]])
            for cut in np.unique(np.quantile(pooled, np.linspace(0.005, 0.995, _CUTS), method="nearest")):
                yield place, self.event(place, float(cut))


def _classifier(first: Samples) -> Floats:
    """Weights of what is seen from outside, by least squares; numbers that never vary get none."""
    seen = np.concatenate([side[:, -len(BLACK_BOX) :] for side in (first.without, first.with_unit)])
    label = np.repeat([-1.0, 1.0], [len(first.without), len(first.with_unit)])
    spread = seen.std(axis=0)
    scaled = (seen - seen.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    found = np.linalg.lstsq(scaled, label, rcond=None)[0]
    return np.asarray(np.where(spread > 0, found / np.where(spread > 0, spread, 1.0), 0.0), np.float64)


@dataclass(frozen=True, slots=True)
class Finding:
    """A bound, the event that shows it, and what more runs would show if the event stayed as frequent."""

    bound: float
    event: Event
    expected: tuple[tuple[int, float], ...]


def findings(samples: Samples, account: ClaimedAccount, confidence: float) -> tuple[Finding, Finding | None]:
    """The bound on (ε, δ) itself and that on the account, if there is one, which share the allowed error."""
    each = 1 - (1 - confidence) / 2
    chosen, tested = samples.halves()

    def found(bound: Any) -> Finding:
        place, event = max(chosen.events(), key=lambda option: bound(option[1].rates(each)))
        seen = tested.event(place, event.cut)
        shown = bound(seen.rates(each))
        most = max(shown, account.epsilon)  # rates of few runs promise more than a claim that holds lets any show
        more = tuple((2 * seen.runs * times, min(bound(seen.rates(each, times)), most)) for times in _MORE)
        return Finding(shown, seen, more)

    direct = found(lambda rates: rates.epsilon_lower(account.delta))
    by_account = found(account.bound) if account.cost.rho and not account.cost.epsilon else None
    return direct, by_account


@dataclass(frozen=True)
class Audit:
    """What an audit found. `bound` is the number to hold beside the claim."""

    method: str
    options: Mapping[str, object]
    claim: tuple[float, float]
    runs: int
    confidence: float
    pair: str
    found: tuple[Finding, Finding | None]
    """By (ε, δ) as defined, and by the account of ρ, if there is one."""
    shares: Mapping[str, float]
    """Mean log likelihood ratio that each answer contributed in runs with the unit, the largest first."""
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def direct(self) -> Finding:
        """The bound on (ε, δ) as defined."""
        return self.found[0]

    @property
    def by_account(self) -> Finding | None:
        """The bound by the account of ρ; None where the claim is none of ρ."""
        return self.found[1]

    @property
    def telling(self) -> Finding:
        """The finding with the larger bound."""
        return max(filter(None, (self.direct, self.by_account)), key=lambda found: found.bound)

    @property
    def bound(self) -> float:
        """The larger of the two lower bounds on ε."""
        return self.telling.bound

    @property
    def violated(self) -> bool:
        """Whether the runs refute the claim."""
        return self.bound > self.claim[0]

    def sentences(self) -> list[str]:
        """The result in words."""
        epsilon, delta = self.claim
        claim = f"ε = {epsilon:.4g}" + (f", δ = {delta:.4g}" if delta else "")
        odds = f"{1 - self.confidence:.2g}"
        verdict = (
            f"THE CLAIM IS REFUTED: {self.method} claims {claim}, and its runs show at least ε = {self.bound:.4g}."
            if self.violated
            else f"{self.method} claims {claim}; {self.runs:,} runs a side show at least ε = {self.bound:.4g}."
        )
        found = [verdict, f"The chance that a correct method is refuted in this way is at most {odds}."]
        found.append(f"Tables: {self.pair}.")
        found.append(f"The most telling event: {self.telling.event.sentence}")
        if self.by_account is not None:
            found.append(
                f"Bound on (ε, δ) as defined: {self.direct.bound:.4g}; bound by the account of ρ: "
                f"{self.by_account.bound:.4g}."
            )
        return [*found, *self.notes, NOTICE]

    def document(self) -> dict[str, object]:
        """Everything for programs."""
        return {
            "method": self.method,
            "options": dict(self.options),
            "epsilon": self.claim[0],
            "delta": self.claim[1],
            "bound": self.bound,
            "violated": self.violated,
            "confidence": self.confidence,
            "runs": self.runs,
            "tables": self.pair,
            "direct": _finding_document(self.direct),
            "account": None if self.by_account is None else _finding_document(self.by_account),
            "answers": dict(self.shares),
            "seconds": self.seconds,
            "notes": [*self.notes, NOTICE],
        }

    def save(self, place: Path | str) -> None:
        """Writes the page, which must not exist yet."""
        with Path(place).open("x", encoding="utf-8") as file:
            file.write(render_page(self.page()))

    def page(self) -> Page:
        """The result with its picture."""
        return Page(f"Audit of {self.method}", NOTICE, [self._result(), self._power(), self._answers(), _limits()])

    def _result(self) -> Section:
        first, *rest = self.sentences()
        blocks = (Paragraph(first, strong=True), *map(Paragraph, rest))
        return Section("Result", "Do the runs agree with the claim?", blocks)

    def _power(self) -> Section:
        runs, bounds = zip(*self.telling.expected, strict=True)
        chart = Lines(
            caption="Bound shown by these runs (first mark) and expected from more; the line is the claim",
            across="runs a side",
            upward="ε",
            series=(
                Series("lower bound", tuple(map(float, runs)), tuple(bounds)),
                Series("claim", tuple(map(float, runs)), (self.claim[0],) * len(runs)),
            ),
            logarithmic=True,
            yardstick=self.claim[0],
        )
        shown = zip(runs, bounds, strict=True)
        rows = tuple((f"{count:,}", f"{bound:.4g}", f"{bound / self.claim[0]:.0%}") for count, bound in shown)
        table = TextTable(("runs a side", "bound on ε", "of the claim"), rows, numeric=frozenset({"bound on ε"}))
        text = Paragraph("Expected if the event stays as frequent as it was; the first row is what was shown.")
        return Section("Power", "How many runs would show more?", (chart, text, table))

    def _answers(self) -> Section:
        if not self.shares:
            text = (
                "The noise of a training is not known to whoever sees the release: only its rows and model count here."
            )
            return Section("Answers", "Which answers tell most?", (Paragraph(text),))
        rows = tuple((name, f"{share:.4g}") for name, share in self.shares.items())
        table = TextTable(("answer", "log likelihood ratio with the unit, mean"), rows)
        return Section("Answers", "Which answers tell most?", (table,))


def _limits() -> Section:
    text = (
        "A bound below the claim is no proof of privacy. It is about these two tables, these numbers and events as "
        "frequent as these; a fault that shows elsewhere, or once in a million runs, stays unseen."
    )
    return Section("Limits", "What does this not prove?", (Paragraph(text),))


def _finding_document(finding: Finding) -> dict[str, object]:
    event = finding.event
    return {
        "bound": finding.bound,
        "event": event.sentence,
        "without": event.without,
        "with": event.with_unit,
        "of": event.runs,
        "expected": [{"runs": runs, "bound": bound} for runs, bound in finding.expected],
    }


@dataclass(frozen=True)
class Game:
    """The method under audit with its settings: one run, and what it tells."""

    schema: Schema
    method: str
    budget: Budget
    options: Mapping[str, object]
    copies: int = 1
    copies_mode: str = "resample"
    public: object | None = None

    @cached_property
    def account(self) -> ClaimedAccount:
        """The claim, by a plan that needs no data."""
        runs = self.copies if self.copies_mode == "remeasure" else 1
        design = Design.of(self.schema, self.method, self.budget, options=self.options, runs=runs, public=self.public)
        if self.public is None:
            check_without_public(design)
        if design.plan.refused:
            raise UsageError("options", f"leave nothing to audit: no privacy claim is made. {design.plan.refused}")
        epsilon, delta = self.budget.claim(design.granted, design.currency)
        return ClaimedAccount(
            min(epsilon, self.budget.epsilon), delta, design.granted, design.currency, design.variances
        )

    def release(self, table: pa.Table, randomizer: Any) -> Release:
        """One run from table to release."""
        real = Environment.real()
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
            _environment=Environment(randomizer, real.now, real.run),
        )

    def told(self, pair: WorstPair, side: int) -> tuple[list[float], dict[str, float]]:
        """The numbers of one run on one of the two tables, and what each answer added to the first of them."""
        witness = Witness(SecureRandomizer())
        release = self.release(pair.sides()[side], witness)
        seen = seen_from_outside(release, pair.record).tolist()
        if not is_known(witness.log):
            return seen, {}
        again = Replayer(witness.log)
        self.release(pair.sides()[1 - side], again)
        if len(again.log) != len(witness.log):
            raise Leak(f"{len(witness.log)} queries on one table, {len(again.log)} on its neighbour")
        parts: dict[str, float] = defaultdict(float)
        without, with_unit = (witness.log, again.log) if side == 0 else (again.log, witness.log)
        for one, other in zip(without, with_unit, strict=True):
            parts[f"{other.request.kind} {other.request.name}"] += log_ratio(one, other)
        return [sum(parts.values()), *seen], parts

    def samples(self, pair: WorstPair, runs: int, progress: Progress) -> tuple[Samples, dict[str, float]]:
        """As many runs on either table, in turns, and the mean of what each answer told with the unit."""
        sides: tuple[list[list[float]], list[list[float]]] = ([], [])
        shares: dict[str, float] = defaultdict(float)
        for run in range(runs):
            for side, rows in enumerate(sides):
                numbers, parts = self.told(pair, side)
                rows.append(numbers)
                if side == 1:
                    for name, part in parts.items():
                        shares[name] += part / runs
            progress.stage("measure", (run + 1) / runs)
        names = BLACK_BOX if len(sides[0][0]) == len(BLACK_BOX) else (_ANSWERS, *BLACK_BOX)
        ordered = dict(sorted(shares.items(), key=lambda one: -abs(one[1])))
        return Samples(names, np.array(sides[0]), np.array(sides[1])), ordered

    def most_telling(self, runs: int) -> WorstPair:
        """The designed pair of tables whose sides are farthest apart in short trials."""
        trials = max(4, runs // _TRIAL_SHARE)
        pairs = worst_pairs(self.schema)
        return max(pairs, key=lambda pair: _apart(self.samples(pair, trials, silent)[0]))


def _apart(samples: Samples) -> float:
    """The largest difference of means, in standard deviations, of what the trials told."""
    gap = np.abs(samples.with_unit.mean(axis=0) - samples.without.mean(axis=0))
    spread = np.sqrt((samples.with_unit.var(axis=0) + samples.without.var(axis=0)) / 2)
    return float(np.max(gap / np.maximum(spread, 1e-3)))


def default_schema() -> Schema:
    """Three columns of two labels each: small, so that many runs take little time and the noise is all there is."""
    names = ("registered", "voted", "member")
    return Schema(tuple(Category(name=name, labels=("no", "yes"), missing=False) for name in names), Unit())


def audit(
    method: str,
    schema: Schema | str | Path | None = None,
    *,
    epsilon: float = 3.0,
    delta: float | None = None,
    runs: int = RUNS,
    options: Mapping[str, object] | None = None,
    copies: int = 1,
    copies_mode: str = "resample",
    public: object | None = None,
    confidence: float = CONFIDENCE,
    progress: Progress | None = None,
) -> Audit:
    """An empirical lower bound on the ε of a method, from real runs on neighbouring tables made from the schema.

    Reads no private data and charges no ledger of yours.

    Args:
        method: name of a method.
        schema: what tables may contain; three columns of two labels when not given.
        epsilon: the budget's ε; a larger one needs fewer runs to show a given share of the claim.
        delta: the budget's δ; 0 for methods that know pure ε alone and 1e-6 for others when not given.
        runs: runs on either table; half of them choose the event, the other half test it.
        options: options of the method.
        copies, copies_mode: as for `synthesize`.
        public: a public table, for methods that use one; one is invented where the method needs it.
        confidence: with which the bound holds.
        progress: called with how much is done.

    Raises:
        UsageError, SchemaError: for settings under which there is no run.
        Leak: if a method asks other queries of neighbouring tables given the same answers.
    """
    _check(runs, confidence)
    schema = default_schema() if schema is None else Schema.of(schema)
    budget = Budget(epsilon, _usual_delta(method, options) if delta is None else delta)
    game = _game(Game(schema, method, budget, options or {}, copies, copies_mode, public))
    notes = () if game.public is public else ("The public table was invented from the schema as well.",)
    return replace(_audited(game, runs, confidence, progress or silent), notes=notes)


def _audited(game: Game, runs: int, confidence: float, progress: Progress) -> Audit:
    began = time.process_time()
    progress.stage("prepare", 0.0)
    with in_memory(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnderstudyWarning)  # of each run anew, about tables that nobody has
        pair = game.most_telling(runs)
        progress.stage("prepare", 1.0)
        samples, shares = game.samples(pair, runs, progress)
    return Audit(
        method=game.method,
        options=game.options,
        claim=(game.account.epsilon, game.account.delta),
        runs=runs,
        confidence=confidence,
        pair=pair.words,
        found=findings(samples, game.account, confidence),
        shares=shares,
        seconds=round(time.process_time() - began, 3),
    )


def _usual_delta(method: str, options: Mapping[str, object] | None) -> float:
    known = method_named(method, options)
    return 0.0 if known.currencies == ("pure",) and not known.spends_delta else 1e-6


def _game(game: Game) -> Game:
    """The game, with an invented public table if it cannot be played without one."""
    if game.public is not None:
        _ = game.account
        return game
    try:
        _ = game.account
    except UsageError:
        if not method_named(game.method, game.options).uses_public:
            raise
        game = replace(game, public=invented_public(game.schema))
        _ = game.account
    return game


def _check(runs: int, confidence: float) -> None:
    if type(runs) is not int or runs < LEAST_RUNS:
        raise UsageError("runs", f"must be a whole number of at least {LEAST_RUNS}, got {runs!r}.")
    if not 0.5 <= confidence < 1:
        raise UsageError("confidence", f"must be at least 0.5 and below 1, got {confidence!r}.")
