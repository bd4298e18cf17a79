"""Statement: what was spent and promised, as numbers, as JSON and as a page for people.

Statement: the privacy label of a release, as data.

The claim is computed from what ran (the sum of the charges), never from what was asked for. A run whose noise did not
come from the secure generator gets no claim at all.

The two written forms of a statement, made from the same data: JSON for programs, Markdown for people.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from understudy.answers import (
    GROWTH_UNIT,
    SCORE_UNIT,
    Answer,
    Distribution,
    Grown,
    NoisyScores,
    Selection,
    Selections,
    Trained,
)
from understudy.errors import Problem, ReleaseError
from understudy.privacy.composition import tight_epsilon
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost, Currency
from understudy.release import wording
from understudy.release.wording import Odd, escape_markdown
from understudy.schema import Schema, Unit
from understudy.schema.yaml_text import schema_to_text

_FRACTION = re.compile(r"-?[0-9]{1,1000}(/[0-9]{1,1000})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Charge:
    """One question: the run it belongs to, its cost, and the noise that the cost bought.

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
        by_cost = self.budget.claim(self.spent if self.as_planned else self.granted)
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
        return wording.promise_text(self.epsilon, self.delta, self.refused)

    @property
    def odds(self) -> str:
        """The claim in terms of odds."""
        return wording.odds_text(self.epsilon, self.delta, self.words)

    @property
    def not_protected(self) -> tuple[str, ...]:
        """What the promise does not cover."""
        return wording.not_protected(self.unit, self.method, self.words)

    def facts(self) -> tuple[tuple[str, str], ...]:
        """The label's lines: name and text."""
        spent = self.ledger
        total = "no claim" if spent.epsilon is None else f"ε = {spent.epsilon:.6g}, δ = {spent.delta or 0:.6g}"
        return (
            ("Variant", self.variant if self.claim else self.refused),
            ("ε", "none" if self.epsilon is None else f"{self.epsilon:.9g}"),
            ("δ", "none" if self.delta is None else f"{self.delta:.9g}"),
            ("Unit of protection", wording.unit_text(self.unit)),
            ("Neighbouring tables", wording.NEIGHBOURS),
            *((("Change of labels", wording.label_text(self.labels, self.label_claim)),) if self.labels else ()),
            ("Trust model", wording.TRUST),
            ("Contribution bound", f"{self.unit.rows:,} row{'' if self.unit.rows == 1 else 's'} per unit"),
            *((("Rows left out", wording.DROPPED),) if self.drops_unreadable else ()),
            ("Method", self.method),
            ("Schema (SHA-256)", self.schema_digest),
            ("Granted", f"ε = {self.budget.epsilon:.9g}, δ = {self.budget.delta:.9g}"),
            ("Charged to the ledger", str(self.granted)),
            (self.words.spent, str(self.spent)),
            ("Ledger", wording.ledger_text(self.ledger.dataset, self.words)),
            ("Spending in that ledger", f"{total}, charges: {self.ledger.releases:,}"),
            ("Ledger head", self.ledger.head),
            ("Copies", wording.copies_text(self.copies, self.copies_mode)),
            ("Run", self.run),
            ("Date", self.date),
            ("Versions", ", ".join(f"{name} {version}" for name, version in self.versions.items())),
        )

    def markdown(self) -> str:
        """The label as Markdown; every text that a person chose is escaped."""

        return statement_markdown(self)

    def __str__(self) -> str:
        return self.markdown()

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


def fraction_of(text: object) -> Fraction:
    """The fraction that `str` wrote, and nothing else: "1e999999999" would take all memory.

    >>> fraction_of("2/3")
    Fraction(2, 3)
    """
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        raise ValueError("fraction")
    return Fraction(text)


def _is_gaussian(charge: Charge) -> bool:
    return charge.distribution is not None and charge.distribution.kind == "gaussian" and charge.unit == 1


def unit_of(answer: Answer) -> int:
    """How many units of an answer's noise make one row, one whole score, or the most a unit may contribute."""
    if isinstance(answer, Trained):
        return answer.course.clip
    return SCORE_UNIT if isinstance(answer, NoisyScores) else GROWTH_UNIT if isinstance(answer, Grown) else 1


_FORMAT = "understudy statement, format {}"


@dataclass(frozen=True, slots=True)
class _FormatKeys:
    """Words of a statement's file that its formats spell differently."""

    zcdp: str
    distribution: str


_KEYS = {1: _FormatKeys("concentrated", "law"), 2: _FormatKeys("zcdp", "distribution")}
Document = Mapping[str, object]


def statement_document(statement: Statement) -> dict[str, object]:
    """The statement as JSON values; `read_statement` gives the same statement back."""
    unit = statement.unit
    return (
        {
            "format": _FORMAT.format(statement.format),
            "promise": statement.promise,
            "refused": statement.refused,
            "run": statement.run,
            "date": statement.date,
            "title": statement.title,
            "method": statement.method,
            "variant": statement.variant,
            "currency": _KEYS[statement.format].zcdp if statement.currency == "zcdp" else statement.currency,
            "epsilon": statement.epsilon,
            "delta": statement.delta,
            "odds": statement.odds,
            "schema_sha256": statement.schema_digest,
            "unit": {"column": unit.column, "rows": unit.rows, "note": unit.note, "text": wording.unit_text(unit)},
            "neighbours": wording.NEIGHBOURS,
            "contribution_bound": unit.rows,
            "budget": {"epsilon": statement.budget.epsilon, "delta": statement.budget.delta},
            "units": {"epsilon": f"1/{UNIT}", "rho": f"1/{UNIT}", "delta": f"1/{DELTA_UNIT}"},
            "granted": _cost_document(statement.granted),
            "spent": _cost_document(statement.spent),
            "as_planned": statement.as_planned,
            "charges": [_charge_document(charge, _KEYS[statement.format]) for charge in statement.charges],
            "ledger": {
                "dataset": statement.ledger.dataset,
                "head": statement.ledger.head,
                "releases": statement.ledger.releases,
                "epsilon": statement.ledger.epsilon,
                "delta": statement.ledger.delta,
                "text": wording.ledger_text(statement.ledger.dataset, statement.words),
            },
            "copies": {
                "count": statement.copies,
                "mode": statement.copies_mode,
                "text": wording.copies_text(statement.copies, statement.copies_mode),
            },
            "left_out": list(statement.left_out),
            "not_protected": list(statement.not_protected),
            "versions": dict(statement.versions),
        }
        | _label_document(statement)
        | _odd_document(statement)
    )


def _label_document(statement: Statement) -> dict[str, object]:
    """The second relation of a method that labels public records; nothing for all others."""
    if not statement.labels:
        return {}
    claim = statement.label_claim
    document = {
        "columns": list(statement.labels),
        "epsilon": None if claim is None else claim[0],
        "delta": None if claim is None else claim[1],
        "text": wording.label_text(statement.labels, claim),
    }
    return {"label_change": document}


def _odd_document(statement: Statement) -> dict[str, object]:
    """What is said about values that cannot be read; nothing where there is nothing to say."""
    document: dict[str, object] = {"rows_left_out": wording.DROPPED} if statement.drops_unreadable else {}
    if statement.odd:
        document["odd_values"] = [
            {
                "column": one.column,
                "meaning": one.meaning,
                "share": one.share,
                "labelled": one.labelled,
                "text": one.text,
            }
            for one in statement.odd
        ]
    return document


def _read_odd(document: Document) -> Odd:
    share, meaning = _number(document["share"]), _text(document["meaning"])
    if not 0.0 <= share <= 1.0 or meaning not in ("unreadable", "missing", "other"):
        raise ValueError("odd values")
    return Odd(_text(document["column"]), meaning, share, _truth(document["labelled"]))


def read_statement(document: object) -> Statement:
    """The statement a JSON document holds; what is derived (claim, sentences) is recomputed, not trusted.

    Raises:
        ReleaseError: when a field is missing or has the wrong form.
    """
    try:
        return _read(_mapping(document))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        problem = Problem("statement.json", "does not have the form of a statement.", "Restore the folder.")
        raise ReleaseError([problem]) from error


def _read(document: Document) -> Statement:
    number = {_FORMAT.format(number): number for number in wording.SENTENCES}[_text(document["format"])]
    keys = _KEYS[number]
    unit, budget = _mapping(document["unit"]), _mapping(document["budget"])
    ledger, copies = _mapping(document["ledger"]), _mapping(document["copies"])
    words: dict[object, Currency] = {"pure": "pure", keys.zcdp: "zcdp"}
    return Statement(
        run=_text(document["run"]),
        date=_text(document["date"]),
        title=_text(document["title"]),
        method=_text(document["method"]),
        currency=words[document["currency"]],
        budget=Budget(_number(budget["epsilon"]), _number(budget["delta"])),
        unit=Unit(_text_or_none(unit["column"]), _whole(unit["rows"]), _text(unit["note"])),
        schema_digest=_text(document["schema_sha256"]),
        charges=tuple(_read_charge(_mapping(one), keys) for one in _sequence(document["charges"])),
        granted=_read_cost(_mapping(document["granted"])),
        ledger=LedgerFacts(
            _text_or_none(ledger["dataset"]),
            _text(ledger["head"]),
            _whole(ledger["releases"]),
            None if ledger["epsilon"] is None else _number(ledger["epsilon"]),
            None if ledger["delta"] is None else _number(ledger["delta"]),
        ),
        copies=_whole(copies["count"]),
        copies_mode=_text(copies["mode"]),
        as_planned=_truth(document["as_planned"]),
        left_out=tuple(_text(name) for name in _sequence(document["left_out"])),
        refused=_text(document["refused"]),
        labels=tuple(_text(name) for name in _sequence(_mapping(document.get("label_change", {})).get("columns", []))),
        versions={_text(name): _text(version) for name, version in _mapping(document["versions"]).items()},
        drops_unreadable="rows_left_out" in document,
        odd=tuple(_read_odd(_mapping(one)) for one in _sequence(document.get("odd_values", []))),
        format=number,
    )


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
    if statement.odd:
        lines += ["", "## Values that could not be read", "", "Estimated from the noisy answers:", ""]
        lines += [f"- {escape_markdown(one.text)}" for one in statement.odd]
    lines += ["", "## Charges", "", "| Run | Step | Cost | Noise | Scale |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(map(escape_markdown, row))} |" for row in charge_rows(statement)]
    if any(charge.rate is not None for charge in statement.charges):
        lines += ["", escape_markdown(statement.words.choices)]
    lines += ["", "## Not protected, or outside the promise", ""]
    lines += [f"- {escape_markdown(text)}" for text in statement.not_protected]
    lines += ["", "## Columns left out", ""]
    if statement.left_out:
        lines += [f"- {escape_markdown(name)} (not declared in the schema)" for name in statement.left_out]
    else:
        lines += ["None: every column of the table is declared in the schema."]
    return "\n".join(lines) + "\n"


def charge_rows(statement: Statement) -> list[tuple[str, str, str, str, str]]:
    """The charges as texts: run, step, cost, noise, scale."""
    return [
        (str(charge.run), charge.step, str(charge.cost), charge.noise, charge.scale) for charge in statement.charges
    ]


def _cost_document(cost: Cost) -> dict[str, object]:
    return {"epsilon_units": cost.epsilon, "rho_units": cost.rho, "delta_units": cost.delta, "text": str(cost)}


def _read_cost(document: Document) -> Cost:
    return Cost(*(_whole(document[f"{name}_units"]) for name in ("epsilon", "rho", "delta")))


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
        else {"kind": distribution.kind, "parameter": str(distribution.parameter), "scale": distribution.scale},
        "rate": None if charge.rate is None else str(charge.rate),
    }


def _read_charge(document: Document, keys: _FormatKeys) -> Charge:
    distribution = None
    if document[keys.distribution] is not None:
        stored = _mapping(document[keys.distribution])
        kind = stored["kind"]
        if kind != "laplace" and kind != "gaussian":
            raise ValueError(keys.distribution)
        distribution = Distribution("laplace" if kind == "laplace" else "gaussian", fraction_of(stored["parameter"]))
    rate = None if document["rate"] is None else fraction_of(document["rate"])
    cost = _read_cost(_mapping(document["cost"]))
    unit = _whole(document.get("unit", 1))
    if unit < 1:
        raise ValueError("unit")
    moved = None if "sensitivity" not in document else fraction_of(document["sensitivity"])
    monotone = _truth(document.get("monotone", False))
    options = _whole(document["options"]) if "options" in document else None
    run, step = _whole(document["run"]), _text(document["step"])
    return Charge(run, step, cost, distribution, rate, unit, moved, monotone, options)


def _mapping(value: object) -> Document:
    if not isinstance(value, Mapping):
        raise TypeError("mapping")
    return value


def _sequence(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise TypeError("list")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("true or false")
    return value


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError("whole number")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("number")
    return value
