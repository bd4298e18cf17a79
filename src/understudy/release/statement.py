"""Statement: the privacy label of a release, as data.

The claim is computed from what ran (the sum of the charges), never from what was asked for. A run whose noise did not
come from the secure generator gets no claim at all.
"""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from understudy.marginals.answer import (
    GROWTH_UNIT,
    SCORE_UNIT,
    Answer,
    Grown,
    Law,
    NoisyScores,
    Selection,
    Selections,
    Trained,
)
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost, Currency
from understudy.privacy.exact.composition import tight_epsilon
from understudy.release import wording
from understudy.release.unread import Odd
from understudy.schema import Schema, Unit
from understudy.schema.document import schema_to_text

__all__ = ["Charge", "LedgerFacts", "Statement", "charges_of", "digest_of", "fraction_of", "total_cost", "unit_of"]

_FRACTION = re.compile(r"-?[0-9]{1,1000}(/[0-9]{1,1000})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Charge:
    """One question: the run it belongs to, its price, and the noise that the price bought.

    The noise is in units of 1/`unit` rows (or of a score): 1 for counts, more for scores and growing trees; for a
    training it is in units of 1/`unit` of the most that one protected unit may contribute to a step. A choice states
    its rate, the most that a protected unit moves a score (`sensitivity`), and whether all scores move the same way.
    """

    run: int
    step: str
    cost: Cost
    law: Law | None = None
    rate: Fraction | None = None
    unit: int = 1
    sensitivity: Fraction | None = None
    monotone: bool = False

    @property
    def noise(self) -> str:
        """The law of the noise in words."""
        if self.law is not None:
            return f"discrete {self.law.kind.capitalize()}"
        return "exponential mechanism"

    @property
    def scale(self) -> str:
        """Scale of the noise (b or σ, in rows or whole scores), or rate and sensitivity of a choice."""
        if self.law is not None:
            return f"{'b' if self.law.kind == 'laplace' else 'σ'} = {self.law.scale / self.unit:.6g}"
        return wording.choice_text(self.rate or Fraction(0), self.sensitivity, monotone=self.monotone)


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
    """Whether the plan fixed every price, and so every scale, before any row was read, and the run kept to it."""
    left_out: tuple[str, ...] = ()
    refused: str = ""
    labels: tuple[str, ...] = ()
    """Private columns of a method that labels public records: then the cost of changing them is stated as well."""
    versions: Mapping[str, str] = field(default_factory=dict)
    drops_unreadable: bool = False
    """Whether the schema has rows left out that hold a value that cannot be read."""
    odd: tuple[Odd, ...] = ()
    """Columns of which strikingly much could not be read, is missing or lies outside the list, by noisy answers."""

    @property
    def spent(self) -> Cost:
        """The sum of the charges."""
        return total_cost(charge.cost for charge in self.charges)

    @property
    def claim(self) -> tuple[float, float] | None:
        """(ε, δ) that holds for what ran; None when no claim is made.

        Where prices were not fixed beforehand, what was spent may depend on noisy answers (a method that stopped
        early). A smaller ε named after the fact is no differential privacy: then the claim is what was granted.
        """
        if self.refused:
            return None
        by_price = self.budget.claim(self.spent if self.as_planned else self.granted)
        return min(by_price[0], self._by_exact_law(by_price[0])), by_price[1]

    def _by_exact_law(self, otherwise: float) -> float:
        """ε by summing the exact laws, where every answer has Gaussian noise of a scale fixed beforehand.

        Answers paid in pure ε count with that ε (proof in `privacy/cost.py`).
        """
        in_rho = [charge for charge in self.charges if charge.cost.rho]
        gaussian = [charge.law.parameter for charge in in_rho if charge.law and charge.law.kind == "gaussian"]
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

        One unit leaves and another enters. A histogram moves by 2k in L1 and by √2·k in L2: twice the price in ε and,
        for Gaussian noise, in ρ. Anything else in ρ is a mechanism applied to two neighbours in turn: four times ρ.
        What was granted and not spent counts as well, at the higher rate, unless prices were fixed beforehand.
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
        return wording.variant_text(self.currency, self.delta, pure_steps=both)

    @property
    def promise(self) -> str:
        """The claim as a sentence."""
        return wording.promise_text(self.epsilon, self.delta, self.refused)

    @property
    def odds(self) -> str:
        """The claim in terms of odds."""
        return wording.odds_text(self.epsilon, self.delta)

    @property
    def not_protected(self) -> tuple[str, ...]:
        """What the promise does not cover."""
        return wording.not_protected(self.unit, self.method)

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
            ("Spent by the questions", str(self.spent)),
            ("Ledger", wording.ledger_text(self.ledger.dataset)),
            ("Spending in that ledger", f"{total}, charges: {self.ledger.releases:,}"),
            ("Ledger head", self.ledger.head),
            ("Copies", wording.copies_text(self.copies, self.copies_mode)),
            ("Run", self.run),
            ("Date", self.date),
            ("Versions", ", ".join(f"{name} {version}" for name, version in self.versions.items())),
        )

    def markdown(self) -> str:
        """The label as Markdown; every text that a person chose is escaped."""
        from understudy.release.label import statement_markdown  # the label needs this type

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
            listed.append(Charge(run, step, cost, None, answer.rate, sensitivity=moved, monotone=same))
        else:
            listed.append(Charge(run, step, cost, answer.law, unit=unit_of(answer)))
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
    return charge.law is not None and charge.law.kind == "gaussian" and charge.unit == 1


def unit_of(answer: Answer) -> int:
    """How many units of an answer's noise make one row, one whole score, or the most a unit may contribute."""
    if isinstance(answer, Trained):
        return answer.course.clip
    return SCORE_UNIT if isinstance(answer, NoisyScores) else GROWTH_UNIT if isinstance(answer, Grown) else 1
