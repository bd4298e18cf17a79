"""An audit: a method run again and again on two neighbouring tables, and what that proves about its ε.

Every run is a whole run (`games.py`): plan, charge, curator, noise of the operating system's generator, fit, rows. The
tables are made from the schema (`neighbours.py`), so no private table is read and nothing here is confidential.

1. Some pairs of neighbours are tried in a few runs each; the one whose sides differ most is taken.
2. Half of the runs choose: of every number in `games.py` and every threshold the event that shows the largest bound.
3. The other half tests: how often the chosen event occurs on either side, in bounds that hold together with the
   confidence, gives the result. What was chosen cannot have been fitted to the runs it is tested on.

Two bounds share the allowed error: one for (ε, δ) as it is defined (`bounds.py`), and one for the account of all
answers from which the claim was computed, written as an ε (`bounds.py`). Either above the claim is a violation. A
bound below the claim proves nothing about other tables, other events, or rarer ones: an audit finds faults and cannot
show that there are none.
"""

import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from understudy.arrays import Floats
from understudy.audit.bounds import ClaimedAccount, EventRates, VaryingAccount
from understudy.audit.games import ANSWERS, Choosing, Game, Interrupted, Told
from understudy.audit.neighbours import WorstPair, invented_public, worst_pairs
from understudy.charts import Lines, Series
from understudy.compare.study import Candidate
from understudy.errors import UnderstudyWarning, UsageError
from understudy.methods.method import method_named
from understudy.privacy.cost import Budget
from understudy.progress import Progress, silent
from understudy.report import Page, Paragraph, Section, TextTable, render_page
from understudy.schema import Category, Schema, Unit
from understudy.testing.cases import in_memory

NOTICE = "Made without private data: every table of this audit was invented from the schema."
RUNS = 2000
CONFIDENCE = 0.9999
LEAST_RUNS = 20
_TRIAL_SHARE = 50
_CUTS = 99
_MORE = (1, 3, 10, 30, 100)
_TOGETHER = "a linear classifier on the synthetic rows and the model"


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
    shares: Mapping[str, float] = field(default_factory=dict)
    """What each answer told with the unit, on average."""

    def halves(self) -> tuple["Samples", "Samples"]:
        """Runs to choose with, and runs to test on; a classifier is fitted to the first ones and added to both."""
        half = len(self.without) // 2
        first = Samples(self.names, self.without[:half], self.with_unit[:half])
        rest = Samples(self.names, self.without[half:], self.with_unit[half:])
        weights = _classifier(first)
        return first._classified(weights), rest._classified(weights)

    def _classified(self, weights: Floats) -> "Samples":
        sides = [np.column_stack([side, side @ weights]) for side in (self.without, self.with_unit)]
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
    """Weights of what is seen from outside, by least squares; answers, and numbers that never vary, get none."""
    seen = np.concatenate([first.without, first.with_unit])
    label = np.repeat([-1.0, 1.0], [len(first.without), len(first.with_unit)])
    spread = seen.std(axis=0)
    used = (spread > 0) & np.array([name != ANSWERS for name in first.names])
    found = np.zeros(spread.size)
    scaled = (seen[:, used] - seen[:, used].mean(axis=0)) / spread[used]
    found[used] = np.linalg.lstsq(scaled, label, rcond=None)[0] / spread[used]
    return found


@dataclass(frozen=True, slots=True)
class Finding:
    """A bound, the event that shows it, and what more runs would show if the event stayed as frequent."""

    bound: float
    event: Event
    expected: tuple[tuple[int, float], ...]


def findings(samples: Samples, account: ClaimedAccount, confidence: float) -> tuple[Finding, Finding | None]:
    """The bound on (ε, δ) itself and that on the account, if there is one, which share the allowed error."""
    each = 1 - (1 - confidence) / 2 if account.shares_error else confidence
    chosen, tested = samples.halves()

    def found(bound: Any) -> Finding:
        place, event = max(chosen.events(), key=lambda option: bound(option[1].rates(each)))
        seen = tested.event(place, event.cut)
        shown = bound(seen.rates(each))
        most = max(shown, account.epsilon)  # rates of few runs promise more than a claim that holds lets any show
        more = tuple((2 * seen.runs * times, min(bound(seen.rates(each, times)), most)) for times in _MORE)
        return Finding(shown, seen, more)

    direct = found(lambda rates: rates.epsilon_lower(account.delta))
    by_account = found(account.bound) if account.is_known else None
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
    """By (ε, δ) as defined, and by the account behind the claim, if it is one of several prices."""
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
        """The bound by the account behind the claim; None where there is none, or a single price."""
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
                f"Bound on (ε, δ) as defined: {self.direct.bound:.4g}; bound by the account of all answers: "
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


def played(game: Game, pair: WorstPair, runs: int, progress: Progress) -> tuple[Samples, ClaimedAccount]:
    """As many runs on either table, in turns, and the account that all of them have."""
    sides: tuple[list[Told], list[Told]] = ([], [])
    for run in range(runs):
        for side, rows in enumerate(sides):
            rows.append(game.told(pair, side))
        progress.stage("measure", (run + 1) / runs)
    shares: dict[str, float] = defaultdict(float)
    for told in sides[1]:
        for name, part in told.shares.items():
            shares[name] += part / runs
    account = sides[0][0].account
    if any(told.account != account for rows in sides for told in rows):  # prices that depend on answers
        account = VaryingAccount(account.epsilon, account.delta)
    without, with_unit = (np.array([told.numbers for told in rows]) for rows in sides)
    ordered = dict(sorted(shares.items(), key=lambda one: -abs(one[1])))
    return Samples(game.names, without, with_unit, ordered), account


def most_telling(game: Game, runs: int) -> WorstPair:
    """The designed pair of tables whose sides are farthest apart in short trials."""
    trials = max(4, runs // _TRIAL_SHARE)
    return max(worst_pairs(game.schema), key=lambda pair: _apart(played(game, pair, trials, silent)[0]))


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
    method: str | Sequence[str],
    schema: Schema | str | Path | None = None,
    *,
    epsilon: float = 3.0,
    delta: float | None = None,
    runs: int = RUNS,
    options: Mapping[str, object] | None = None,
    copies: int = 1,
    copies_mode: str = "resample",
    public: object | None = None,
    choose: float | None = None,
    interrupt: bool = False,
    confidence: float = CONFIDENCE,
    progress: Progress | None = None,
) -> Audit:
    """An empirical lower bound on the ε of a method, from real runs on neighbouring tables made from the schema.

    Reads no private data and charges no ledger of yours.

    Args:
        method: name of a method; with `choose` several, each with its options as in "steps layers=2".
        schema: what tables may contain; three columns of two labels when not given.
        epsilon: the budget's ε; a larger one needs fewer runs to show a given share of the claim.
        delta: the budget's δ; 0 for methods that know pure ε alone and 1e-6 for others when not given.
        runs: runs on either table; half of them choose the event, the other half test it.
        options: options of the method.
        copies, copies_mode: as for `synthesize`.
        public: as for `synthesize`; a public table is invented if the method needs one.
        choose: audits the private choice among these methods, at this ε for the choice alone.
        interrupt: interrupts every run at a random moment and resumes it; for methods that train.
        confidence: with which the bound holds.
        progress: called with how much is done.

    Raises:
        UsageError, SchemaError: for settings under which there is no run.
        Leak: if a method asks other queries of neighbouring tables given the same answers.
    """
    _check(runs, confidence)
    schema = default_schema() if schema is None else Schema.of(schema)
    names = (method,) if isinstance(method, str) else tuple(method)
    budget = Budget(epsilon, _usual_delta(names, options) if delta is None else delta)
    if choose is not None:
        _check_alone(options=options, copies=copies != 1, public=public, interrupt=interrupt)
        game: Game = Choosing(schema, " or ".join(names), budget, {}, methods=names, choice=Budget(choose).epsilon)
    else:
        plain = (schema, _only(names), budget, options or {}, copies, copies_mode, public)
        game = _playable((Interrupted if interrupt else Game)(*plain))
    notes = () if game.public is public else ("The public table was invented from the schema as well.",)
    return replace(_audited(game, runs, confidence, progress or silent), notes=notes)


def _audited(game: Game, runs: int, confidence: float, progress: Progress) -> Audit:
    began = time.process_time()
    progress.stage("prepare", 0.0)
    with in_memory(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnderstudyWarning)  # of each run anew, about tables that nobody has
        pair = most_telling(game, runs)
        progress.stage("prepare", 1.0)
        samples, account = played(game, pair, runs, progress)
    return Audit(
        method=game.method,
        options=game.options,
        claim=(account.epsilon, account.delta),
        runs=runs,
        confidence=confidence,
        pair=pair.words,
        found=findings(samples, account, confidence),
        shares=samples.shares,
        seconds=round(time.process_time() - began, 3),
    )


def _usual_delta(methods: Sequence[str], options: Mapping[str, object] | None) -> float:
    """0 where all of these methods know pure ε alone."""
    candidates = [Candidate.read(method) for method in methods]
    known = [method_named(one.method, {**dict(one.options), **(options or {})}) for one in candidates]
    return 0.0 if all(one.currencies == ("pure",) and not one.spends_delta for one in known) else 1e-6


def _playable(game: Game) -> Game:
    """The game, with an invented public table if it cannot be played without one."""
    try:
        game.check()
    except UsageError:
        if game.public is not None or not method_named(game.method, game.options).uses_public:
            raise
        game = replace(game, public=invented_public(game.schema))
        game.check()
    return game


def _only(names: Sequence[str]) -> str:
    if len(names) != 1:
        raise UsageError(
            "methods", f"must be a single name unless the choice is audited, got {len(names)}.", "Give choose=."
        )
    return names[0]


def _check_alone(**given: object) -> None:
    """Raises if a choice is given what only a single method takes."""
    for name, value in given.items():
        if value:
            rule = "is for a single method, not for a choice among several."
            raise UsageError(name, rule, 'Give options with the name, as in "steps layers=2".')


def _check(runs: int, confidence: float) -> None:
    if type(runs) is not int or runs < LEAST_RUNS:
        raise UsageError("runs", f"must be a whole number of at least {LEAST_RUNS}, got {runs!r}.")
    if not 0.5 <= confidence < 1:
        raise UsageError("confidence", f"must be at least 0.5 and below 1, got {confidence!r}.")
