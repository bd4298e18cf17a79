"""Statement: the privacy label of a release, as data, as JSON for programs and as Markdown for people.

The claim is computed from what ran (the sum of the charges), never from what was asked for. A run whose noise did not
come from the secure generator gets no claim at all.

Both written forms are made from the same data. Their format decides some of their words (`wording.SENTENCES`), so that
a folder of an earlier format is read, and checked, in the words it was written in.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from fractions import Fraction
from typing import Any

from understudy.domain import (
    GROWTH_UNIT,
    RESIDUAL_UNIT,
    SCORE_UNIT,
    Answer,
    Distribution,
    Grown,
    NoisyScores,
    ResidualTable,
    Selection,
    Selections,
    Trained,
)
from understudy.errors import Problem, ReleaseError
from understudy.models.model import read_as
from understudy.notebook import counted, shown_as_html
from understudy.privacy.composition import tight_epsilon
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost, Currency
from understudy.release import wording
from understudy.release.check import CONFIDENCE, MOST_SHARE, Check, Distance, Judged
from understudy.release.criteria import MOST_CRITERIA, Criterion
from understudy.release.wording import Odd, escape_markdown
from understudy.schema import Schema, Unit
from understudy.schema.yaml_text import schema_to_text


@dataclass(frozen=True, slots=True)
class Charge:
    """One query: the run it belongs to, its cost, and the noise that the cost bought.

    The noise is in units of 1/`unit` rows (or of a score): 1 for counts, more for scores and growing trees; for a
    training it is in units of 1/`unit` of the most that one protected unit may contribute to a step. A choice states
    its rate, the most that a protected unit moves a score (`sensitivity`), and whether all scores move the same way.
    """

    run: int
    step: str
    cost: Cost
    distribution: Distribution | None = None
    rate: Fraction | None = None
    unit: int = 1
    sensitivity: Fraction | None = None
    monotone: bool = False
    options: int | None = None
    """Among how many options a choice was made; the first format of statements did not say."""

    @property
    def noise(self) -> str:
        """The distribution of the noise in words."""
        if self.distribution is not None:
            return f"discrete {self.distribution.kind.capitalize()}"
        return "exponential mechanism"

    @property
    def scale(self) -> str:
        """Scale of the noise (b or σ, in rows or whole scores), or the options and ε of a choice."""
        if self.distribution is not None:
            return f"{'b' if self.distribution.kind == 'laplace' else 'σ'} = {self.distribution.scale / self.unit:.6g}"
        rate = self.rate or Fraction(0)
        return wording.choice_text(rate, self.sensitivity, monotone=self.monotone, options=self.options)


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """Where the run was charged: the dataset's name (None: a ledger of its own), head hash and cumulative spending."""

    dataset: str | None
    head: str
    releases: int
    epsilon: float | None
    delta: float | None


def promise_text(epsilon: float | None, delta: float | None, refused: str) -> str:
    """The claim as one sentence, or the sentence that refuses to make one."""
    if epsilon is None or delta is None:
        return f"{refused or wording.TEST_DOUBLE}. No privacy claim is made. Do not publish this folder."
    tail = f" and δ = {delta:.6g}" if delta else ""
    return (
        f"Everything in this folder together satisfies differential privacy with ε = {epsilon:.6g}{tail} "
        "for adding or removing one protected unit."
    )


@dataclass(frozen=True, slots=True)
class Statement:
    """Everything a steward signs and an auditor checks. `epsilon` is None when no claim is made."""

    run: str
    date: str
    title: str
    method: str
    currency: Currency
    budget: Budget
    unit: Unit
    schema_digest: str
    charges: tuple[Charge, ...]
    granted: Cost
    ledger: LedgerFacts
    copies: int = 1
    copies_mode: str = "resample"
    as_planned: bool = False
    """Whether the plan fixed every cost, and so every scale, before any row was read, and the run kept to it."""
    left_out: tuple[str, ...] = ()
    refused: str = ""
    labels: tuple[str, ...] = ()
    """Private columns of a method that labels public records: then the cost of changing them is stated as well."""
    versions: Mapping[str, str] = field(default_factory=dict)
    drops_unreadable: bool = False
    """Whether the schema has rows left out that hold a value that cannot be read."""
    odd: tuple[Odd, ...] = ()
    """Columns of which strikingly much could not be read, is missing or lies outside the list, by noisy answers."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """What the schema calls columns, and what their numbers are measured in, where it says so."""
    check: Check | None = None
    """How far the rows are from the table, by a part of the budget that was held back for that; None if none was."""
    format: int = wording.NEWEST_FORMAT
    """Format of the file that holds it, which decides some of its words."""

    @property
    def words(self) -> wording.Sentences:
        """The sentences of its format."""
        return wording.SENTENCES[self.format]

    @property
    def spent(self) -> Cost:
        """The sum of the charges."""
        return total_cost(charge.cost for charge in self.charges)

    @property
    def claim(self) -> tuple[float, float] | None:
        """(ε, δ) that holds for what ran; None when no claim is made.

        Where costs were not fixed beforehand, what was spent may depend on noisy answers (a method that stopped
        early). A smaller ε named after the fact is no differential privacy: then the claim is what was granted.
        """
        if self.refused:
            return None
        by_cost = self.budget.claim(self.spent if self.as_planned else self.granted, self.currency)
        return min(by_cost[0], self._by_exact_distribution(by_cost[0])), by_cost[1]

    def _by_exact_distribution(self, otherwise: float) -> float:
        """ε by summing the exact distributions, where every answer has Gaussian noise of a scale fixed beforehand.

        Answers paid in pure ε count with that ε (proof in `privacy/cost.py`).
        """
        in_rho = [charge for charge in self.charges if charge.cost.rho]
        gaussian = [
            charge.distribution.parameter
            for charge in in_rho
            if charge.distribution and charge.distribution.kind == "gaussian"
        ]
        counted = all(charge.unit == 1 for charge in in_rho)  # the sum is about histograms, not about scores
        if not self.as_planned or self.unit.rows != 1 or self.spent.delta or len(gaussian) < len(in_rho) or not counted:
            return otherwise
        tight = tight_epsilon(tuple(sorted(gaussian)), Fraction(self.budget.delta_units, DELTA_UNIT))
        if tight is None:
            return otherwise
        epsilon = math.nextafter(tight + self.spent.epsilon / UNIT, math.inf) if self.spent.epsilon else tight
        granted = self.budget.epsilon
        return granted if 0.99 * granted < epsilon <= granted else epsilon  # rounded up to what was granted

    @property
    def label_claim(self) -> tuple[float, float] | None:
        """(ε, δ) for tables that differ in the `labels` of one unit alone; None where nothing can be said.

        One unit leaves and another enters. A histogram moves by 2k in L1 and by √2·k in L2: twice the cost in ε and,
        for Gaussian noise, in ρ. Anything else in ρ is a mechanism applied to two neighbours in turn: four times ρ.
        What was granted and not spent counts as well, at the higher rate, unless costs were fixed beforehand.
        """
        if self.refused or not self.labels or self.spent.delta:
            return None
        times = [2 if _is_gaussian(charge) else 4 for charge in self.charges]
        rho = sum(factor * charge.cost.rho for factor, charge in zip(times, self.charges, strict=True))
        if self.as_planned:
            return self.budget.claim(Cost(2 * self.spent.epsilon, rho))
        return self.budget.claim(Cost(2 * self.granted.epsilon, rho + 4 * (self.granted.rho - self.spent.rho)))

    @property
    def epsilon(self) -> float | None:
        """ε of the claim."""
        return self.claim[0] if self.claim else None

    @property
    def delta(self) -> float | None:
        """δ of the claim."""
        return self.claim[1] if self.claim else None

    @property
    def variant(self) -> str:
        """Which definition the claim is made in."""
        both = bool(self.granted.epsilon and self.granted.rho)
        return wording.variant_text(self.currency, self.delta, pure_steps=both, words=self.words)

    @property
    def promise(self) -> str:
        """The claim as a sentence."""
        return promise_text(self.epsilon, self.delta, self.refused)

    @property
    def odds(self) -> str:
        """The claim in terms of odds."""
        return wording.odds_text(self.epsilon, self.delta, self.words, self.unit)

    @property
    def not_protected(self) -> tuple[str, ...]:
        """What the promise does not cover."""
        return wording.not_protected(self.unit, self.method, self.words)

    def facts(self) -> tuple[tuple[str, str], ...]:
        """The label's lines: name and text."""
        return tuple((fact.named(self), fact.text(self)) for fact in FACTS if fact.line and fact.is_said(self))

    def markdown(self) -> str:
        """The label as Markdown; every text that a person chose is escaped."""

        return statement_markdown(self)

    def __str__(self) -> str:
        return self.markdown()

    def __repr__(self) -> str:
        claim = self.claim
        delta = f", δ = {claim[1]:g}" if claim and claim[1] else ""
        said = "no privacy claim" if claim is None else f"ε = {claim[0]:.6g}{delta}"
        charged = counted(len(self.charges), "charge")
        return f"<Statement: {self.method}, {said}, {charged}, run {self.run[:8]}>"

    def _repr_html_(self) -> str:
        facts = [("what it means", self.odds), *self.facts()]
        return shown_as_html(self.title or "Privacy statement", facts, note=self.promise)

    def _repr_markdown_(self) -> str:
        return self.markdown()


def digest_of(schema: Schema) -> str:
    """SHA-256 of the schema's written form: ties statement and ledger to one schema."""
    return hashlib.sha256(schema_to_text(schema).encode("utf-8", "surrogatepass")).hexdigest()


def total_cost(costs: Iterable[Cost]) -> Cost:
    """The sum of costs, component by component."""
    total = Cost()
    for cost in costs:
        total = total + cost
    return total


def charges_of(run: int, charges: Sequence[tuple[str, Cost]], answers: Sequence[Answer]) -> list[Charge]:
    """The curator's account beside the noise of each answer; the two lists grow in step."""
    listed = []
    for (step, cost), answer in zip(charges, answers, strict=True):
        if isinstance(answer, Selection | Selections):
            moved, same = answer.sensitivity, answer.monotone
            choice = Charge(run, step, cost, None, answer.rate, 1, moved, same, answer.options)
            listed.append(choice)
        else:
            listed.append(Charge(run, step, cost, answer.distribution, unit=unit_of(answer)))
    return listed


def _is_gaussian(charge: Charge) -> bool:
    return charge.distribution is not None and charge.distribution.kind == "gaussian" and charge.unit == 1


def unit_of(answer: Answer) -> int:
    """How many units of an answer's noise make one row, one whole score, or the most a unit may contribute."""
    if isinstance(answer, Trained):
        return answer.course.clip
    units = {NoisyScores: SCORE_UNIT, ResidualTable: RESIDUAL_UNIT, Grown: GROWTH_UNIT}
    return units.get(type(answer), 1)


COMPARED = (
    "The rows of this folder are compared with noisy tables that were paid for and that no method saw. The distance of "
    "a table (total variation) is the share of rows that would have to move to another cell. Each interval holds with "
    "95 % confidence by itself."
)
_FORMAT = "understudy statement, format {}"


@dataclass(frozen=True, slots=True)
class _FormatKeys:
    """Words of a statement's file that its formats spell differently."""

    zcdp: str
    distribution: str


_KEYS = {
    1: _FormatKeys("concentrated", "law"),
    2: _FormatKeys("zcdp", "distribution"),
    3: _FormatKeys("zcdp", "distribution"),
}
_CURRENCIES: dict[str, Currency] = {
    "pure": "pure",
    "gaussian": "gaussian",
    **{keys.zcdp: "zcdp" for keys in _KEYS.values()},
}
Document = Mapping[str, Any]
_FIRST_KEYS = (
    *("format", "promise", "refused", "run", "date", "title", "method", "variant", "currency", "epsilon", "delta"),
    *("odds", "schema_sha256", "unit", "neighbours", "contribution_bound", "budget", "units", "granted", "spent"),
    *("as_planned", "charges", "ledger", "copies", "left_out", "not_protected", "versions"),
)
"""The order in which statement.json always had its keys; any others follow."""


def _empty(_: Statement) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of a statement, declared once: what statement.json holds of it, and its line on label and card.

    A fact without `read` follows from the others; it is written for readers and computed again, never trusted.
    """

    key: str = ""
    """In statement.json; empty for what stands on label and card only."""
    written: Callable[[Statement], object] = _empty
    line: str | Callable[[Statement], str] = ""
    """Name of its line on label and card, by format where formats differ; empty for what has none."""
    text: Callable[[Statement], str] = _empty
    read: Callable[[Any], Mapping[str, object]] | None = None
    """The fields of the statement that follow from what was written."""
    where: Callable[[Statement], bool] | None = None
    """Which statements have this fact; None for all of them."""

    def named(self, statement: Statement) -> str:
        """The name of its line in the words of the statement's format."""
        return self.line if isinstance(self.line, str) else self.line(statement)

    def is_said(self, statement: Statement) -> bool:
        """Whether the statement has this fact."""
        return self.where is None or self.where(statement)


def _field(
    name: str, form: Any = str, line: str = "", text: Callable[[Statement], str] | None = None, **more: Any
) -> Fact:
    """A fact that is a field of the statement: written as it is, with `worded` also in words; `key` if not its name."""
    key, worded = more.get("key", name), more.get("worded", False)

    def written(statement: Statement) -> object:
        value = getattr(statement, name)
        if is_dataclass(form):
            return asdict(value) | ({"text": shown(statement)} if worded else {})
        return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value

    shown = text or (lambda its: str(getattr(its, name)))
    return Fact(key, written, line, shown, lambda value: {name: read_as(form, value)})


def _of_format(value: object) -> Mapping[str, object]:
    return {"format": {_FORMAT.format(number): number for number in wording.SENTENCES}[read_as(str, value)]}


def _number_text(value: float | None) -> str:
    return "none" if value is None else f"{value:.9g}"


def _spending_text(spent: LedgerFacts) -> str:
    total = "no claim" if spent.epsilon is None else f"ε = {spent.epsilon:.6g}, δ = {spent.delta or 0:.6g}"
    return f"{total}, charges: {spent.releases:,}"


def _copies(statement: Statement) -> str:
    return wording.copies_text(statement.copies, statement.copies_mode)


def _label_document(statement: Statement) -> dict[str, object]:
    """The second relation of a method that labels public records."""
    epsilon, delta = statement.label_claim or (None, None)
    text = wording.label_text(statement.labels, statement.label_claim)
    return {"columns": list(statement.labels), "epsilon": epsilon, "delta": delta, "text": text}


FACTS = (
    Fact("format", lambda its: _FORMAT.format(its.format), read=_of_format),
    Fact("promise", lambda its: its.promise),
    Fact("odds", lambda its: its.odds),
    Fact("variant", lambda its: its.variant, "Variant", lambda its: its.variant if its.claim else its.refused),
    Fact("epsilon", lambda its: its.epsilon, "ε", lambda its: _number_text(its.epsilon)),
    Fact("delta", lambda its: its.delta, "δ", lambda its: _number_text(its.delta)),
    _field("unit", Unit, "Unit of protection", lambda its: wording.unit_text(its.unit), worded=True),
    Fact("neighbours", lambda _: wording.NEIGHBOURS, "Neighbouring tables", lambda _: wording.NEIGHBOURS),
    Fact(
        "label_change",
        _label_document,
        "Change of labels",
        lambda its: wording.label_text(its.labels, its.label_claim),
        read=lambda value: {"labels": read_as(tuple[str, ...], value["columns"])},
        where=lambda its: bool(its.labels),
    ),
    Fact(line="Trust model", text=lambda _: wording.TRUST),
    Fact(
        "contribution_bound",
        lambda its: its.unit.rows,
        "Contribution bound",
        lambda its: f"{its.unit.rows:,} row{'' if its.unit.rows == 1 else 's'} per unit",
    ),
    Fact(
        "rows_left_out",
        lambda _: wording.DROPPED,
        "Rows left out",
        lambda _: wording.DROPPED,
        read=lambda _: {"drops_unreadable": True},
        where=lambda its: its.drops_unreadable,
    ),
    _field("method", line="Method"),
    _field("schema_digest", line="Schema (SHA-256)", key="schema_sha256"),
    _field("budget", Budget, "Granted", lambda its: f"ε = {its.budget.epsilon:.9g}, δ = {its.budget.delta:.9g}"),
    Fact(
        "granted",
        lambda its: _cost_document(its.granted),
        "Charged to the ledger",
        lambda its: str(its.granted),
        read=lambda value: {"granted": _read_cost(value)},
    ),
    Fact("spent", lambda its: _cost_document(its.spent), lambda its: its.words.spent, lambda its: str(its.spent)),
    _field(
        "ledger", LedgerFacts, "Ledger", lambda its: wording.ledger_text(its.ledger.dataset, its.words), worded=True
    ),
    Fact(line="Spending in that ledger", text=lambda its: _spending_text(its.ledger)),
    Fact(line="Ledger head", text=lambda its: its.ledger.head),
    Fact(
        "copies",
        lambda its: {"count": its.copies, "mode": its.copies_mode, "text": _copies(its)},
        "Copies",
        _copies,
        read=lambda value: {"copies": read_as(int, value["count"]), "copies_mode": read_as(str, value["mode"])},
    ),
    Fact(
        "check",
        lambda its: _check_document(its.check) if its.check else None,
        "Held back for the check",
        lambda its: f"{100 * its.check.share:.4g} % of the budget, that no method saw" if its.check else "",
        read=lambda value: {"check": _read_check(value)},
        where=lambda its: its.check is not None,
    ),
    _field("run", line="Run"),
    _field("date", line="Date"),
    _field("versions", Mapping[str, str], "Versions", lambda its: ", ".join(map(" ".join, its.versions.items()))),
    _field("refused"),
    _field("title"),
    Fact(
        "currency",
        lambda its: _KEYS[its.format].zcdp if its.currency == "zcdp" else its.currency,
        read=lambda value: {"currency": _CURRENCIES[value]},
    ),
    Fact("units", lambda _: {"epsilon": f"1/{UNIT}", "rho": f"1/{UNIT}", "delta": f"1/{DELTA_UNIT}"}),
    _field("as_planned", bool),
    Fact(
        "charges",
        lambda its: [_charge_document(charge, _KEYS[its.format]) for charge in its.charges],
        read=lambda value: {"charges": tuple(_read_charge(one) for one in read_as(tuple[Any, ...], value))},
    ),
    _field("left_out", tuple[str, ...]),
    Fact(
        "titles",
        lambda its: dict(its.titles),
        read=lambda value: {"titles": read_as(Mapping[str, str], value)},
        where=lambda its: bool(its.titles),
    ),
    Fact("not_protected", lambda its: list(its.not_protected)),
    Fact(
        "odd_values",
        lambda its: [_written_odd(one) for one in its.odd],
        read=lambda value: {"odd": tuple(map(_read_odd, read_as(tuple[Any, ...], value)))},
        where=lambda its: bool(its.odd),
    ),
)
"""Every fact of a statement; those with a line in the order in which label and card show them."""


def statement_document(statement: Statement) -> dict[str, object]:
    """The statement as JSON values; `read_statement` gives the same statement back."""
    document = {fact.key: fact.written(statement) for fact in FACTS if fact.key and fact.is_said(statement)}
    return {key: document[key] for key in (*_FIRST_KEYS, *(key for key in document if key not in _FIRST_KEYS))}


def _written_odd(odd: Odd) -> dict[str, object]:
    """As JSON; that there is no format is said of dates and times only, as earlier versions said nothing of it."""
    known = asdict(odd)
    said, in_words = known.pop("formless"), known.pop("bin")
    return known | ({"formless": True} if said else {}) | ({"bin": in_words} if in_words else {}) | {"text": odd.text}


def _read_odd(value: object) -> Odd:
    odd: Odd = read_as(Odd, {"formless": False, "bin": "", **value} if isinstance(value, dict) else value)
    if not 0.0 <= odd.share <= 1.0 or odd.meaning not in (*wording.UNREAD, *wording.CROWDED):
        raise ValueError("odd values")
    return odd


def _check_document(check: Check) -> dict[str, object]:
    """As JSON; what is said in words follows from the rest."""
    return {
        "share": check.share,
        "confidence": CONFIDENCE,
        "compared": COMPARED,
        "distances": [_in_lists(one) for one in check.distances],
        "criteria": [_in_lists(one) | {"text": one.text} for one in check.criteria],
        "verdicts": [verdict_document(one) for one in check.verdicts],
    }


def verdict_document(verdict: Judged) -> dict[str, object]:
    """A verdict as JSON."""
    return _in_lists(verdict) | {"criterion": verdict.criterion.text, "outcome": verdict.outcome}


def _in_lists(one: Criterion | Distance | Judged) -> dict[str, object]:
    """The fields as JSON gives them back: tuples are lists there."""
    return {name: _listed_values(value) for name, value in asdict(one).items()}


def _listed_values(value: object) -> object:
    return [_listed_values(part) for part in value] if isinstance(value, tuple) else value


def _read_check(value: Any) -> Check:
    criteria = tuple(read_as(Criterion, one) for one in read_as(tuple[Any, ...], value["criteria"]))
    distances = tuple(read_as(Distance, one) for one in read_as(tuple[Any, ...], value["distances"]))
    judged = read_as(tuple[Any, ...], value["verdicts"])
    verdicts = tuple(
        Judged(criterion, read_as(float, one["lower"]), read_as(float, one["upper"]), read_as(str, one["decided_by"]))
        for criterion, one in zip(criteria, judged, strict=False)
    )
    check = Check(read_as(float, value["share"]), criteria, distances, verdicts)
    if not 0 < check.share <= MOST_SHARE or len(criteria) > MOST_CRITERIA or len(judged) not in (0, len(criteria)):
        raise ValueError("check")
    return check


def read_statement(document: object) -> Statement:
    """The statement a JSON document holds; what is derived (claim, sentences) is recomputed, not trusted.

    Raises:
        ReleaseError: when a field is missing or has the wrong form.
    """
    try:
        found = read_as(Mapping[str, Any], document)
        stored = [fact for fact in FACTS if fact.read and (fact.where is None or fact.key in found)]
        fields: dict[str, Any] = {}
        for fact in stored:
            fields |= fact.read(found[fact.key]) if fact.read else {}
        return Statement(**fields)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        problem = Problem("statement.json", "does not have the form of a statement.", "Restore the folder.")
        raise ReleaseError([problem]) from error


def statement_markdown(statement: Statement) -> str:
    """The statement as Markdown: promise, odds, facts, charges, limits."""
    lines = [f"# Privacy statement: {escape_markdown(statement.title or 'untitled table')}", ""]
    lines += [f"**{statement.promise}**", "", statement.odds, ""]
    lines += [
        "This folder holds synthetic data. Its rows are drawn from a fitted model, not copied from the private table.",
        "",
    ]
    lines += ["| Fact | Value |", "|---|---|"]
    lines += [f"| {name} | {escape_markdown(text)} |" for name, text in statement.facts()]
    for heading, meanings in (("Values that could not be read", wording.UNREAD), ("Crowded bins", wording.CROWDED)):
        told = [one for one in statement.odd if one.meaning in meanings]
        if told:
            lines += ["", f"## {heading}", "", "Estimated from the noisy answers:", ""]
            lines += _listed(statement, [one.text for one in told])
    if statement.check is not None:
        lines += ["", "## How far the rows are from the private table", "", *_check_lines(statement, statement.check)]
    lines += ["", "## Charges", "", *_charge_lines(statement)]
    if any(charge.rate is not None for charge in statement.charges):
        lines += ["", escape_markdown(statement.words.choices)]
    lines += ["", "## Not protected, or outside the promise", ""]
    lines += [f"- {escape_markdown(text)}" for text in statement.not_protected]
    if statement.titles:
        lines += ["", "## What columns hold", "", "By the schema, which is public:", ""]
        lines += _listed(statement, [f"{name}: {title}" for name, title in statement.titles.items()])
    lines += ["", "## Columns left out", ""]
    if statement.left_out:
        lines += _listed(statement, [f"{name} (not declared in the schema)" for name in statement.left_out])
    else:
        lines += ["None: every column of the table is declared in the schema."]
    return "\n".join(lines) + "\n"


def _check_lines(statement: Statement, check: Check) -> list[str]:
    """Verdicts first, then the distances, cut as all lists are."""
    lines = [escape_markdown(COMPARED), ""]
    if check.verdicts:
        lines += [*_listed(statement, [one.text for one in check.verdicts]), ""]
    several = statement.copies > 1
    shown = check.distances[: statement.words.most_listed]
    lines += ["| Table | At least | At most |", "|---|---|---|"]
    for one in shown:
        name = " × ".join(one.columns) + (f", copy {one.copy}" if several else "")
        lines.append(f"| {escape_markdown(name)} | {one.lower:.3f} | {one.upper:.3f} |")
    if len(shown) < len(check.distances):
        lines += ["", f"Each of the {len(check.distances):,} distances stands in statement.json."]
    return lines


def _listed(statement: Statement, texts: Sequence[str]) -> list[str]:
    """A list of texts, cut where the format of the statement says so."""
    most = statement.words.most_listed
    shown = texts if most is None else texts[:most]
    more = [f"- and {len(texts) - len(shown):,} more, in statement.json"] if len(shown) < len(texts) else []
    return [f"- {escape_markdown(text)}" for text in shown] + more


def _charge_lines(statement: Statement) -> list[str]:
    """Every charge, or where there are too many for a page, those of a kind together."""
    most = statement.words.most_listed
    if most is None or len(statement.charges) <= most:
        header, rows = ("Run", "Step", "Cost", "Noise", "Scale"), charge_rows(statement)
    else:
        header, rows = ("Queries", "Number", "Cost together", "Noise", "Scale"), charges_of_a_kind(statement)
    lines = [f"| {' | '.join(header)} |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(map(escape_markdown, row))} |" for row in rows]
    if len(rows) < len(statement.charges):
        lines += ["", f"Each of the {len(statement.charges):,} charges stands in statement.json."]
    return lines


def charges_of_a_kind(statement: Statement) -> list[tuple[str, str, str, str, str]]:
    """Charges summed up by what was done and with which noise: what, how many, cost, noise, span of scales."""
    kinds: dict[tuple[str, str], list[Charge]] = {}
    for charge in statement.charges:
        kinds.setdefault((charge.step.split(" ")[0], charge.noise), []).append(charge)
    return [
        (verb, f"{len(found):,}", str(total_cost(charge.cost for charge in found)), noise, _span(found))
        for (verb, noise), found in kinds.items()
    ]


def _span(charges: Sequence[Charge]) -> str:
    """From which to which scale, or among how many options."""
    scales = [charge.distribution.scale / charge.unit for charge in charges if charge.distribution]
    if scales:
        letter = charges[0].scale.split(" ")[0]
        return f"{letter} = {min(scales):.6g}" + (f" to {max(scales):.6g}" if max(scales) > min(scales) else "")
    options = [charge.options for charge in charges if charge.options is not None]
    if len(options) < len(charges):
        return "one choice each"
    few, many = min(options), max(options)
    return f"chose 1 of {few:,}" + (f" to {many:,}" if many > few else "") + " each time"


def charge_rows(statement: Statement) -> list[tuple[str, str, str, str, str]]:
    """The charges as texts: run, step, cost, noise, scale."""
    return [
        (str(charge.run), charge.step, str(charge.cost), charge.noise, charge.scale) for charge in statement.charges
    ]


def _cost_document(cost: Cost) -> dict[str, object]:
    return {"epsilon_units": cost.epsilon, "rho_units": cost.rho, "delta_units": cost.delta, "text": str(cost)}


def _read_cost(document: Document) -> Cost:
    return Cost(*(read_as(int, document[f"{name}_units"]) for name in ("epsilon", "rho", "delta")))


def _charge_document(charge: Charge, keys: _FormatKeys) -> dict[str, object]:
    distribution = charge.distribution
    # Charges of plain counts are written as they always were, so that older folders still verify.
    more: dict[str, object] = {} if charge.unit == 1 else {"unit": charge.unit}
    if charge.sensitivity is not None:
        more |= {"sensitivity": str(charge.sensitivity), "monotone": charge.monotone}
    if charge.options is not None:
        more["options"] = charge.options
    return more | {
        "run": charge.run,
        "step": charge.step,
        "cost": _cost_document(charge.cost),
        keys.distribution: None
        if distribution is None
        else {"kind": distribution.kind, "parameter": str(distribution.parameter), "scale": distribution.scale}
        | ({} if distribution.grid == 1 else {"grid": distribution.grid}),
        "rate": None if charge.rate is None else str(charge.rate),
    }


def _read_charge(document: Document) -> Charge:
    keys = next(keys for keys in _KEYS.values() if keys.distribution in document)
    noise = document[keys.distribution]
    distribution = read_as(Distribution | None, {"grid": 1, **noise} if isinstance(noise, dict) else noise)
    unit = read_as(int, document.get("unit", 1))
    if unit < 1:
        raise ValueError("unit")
    return Charge(
        read_as(int, document["run"]),
        read_as(str, document["step"]),
        _read_cost(document["cost"]),
        distribution,
        read_as(Fraction | None, document["rate"]),
        unit,
        read_as(Fraction | None, document.get("sensitivity")),
        read_as(bool, document.get("monotone", False)),
        read_as(int | None, document.get("options")),
    )
