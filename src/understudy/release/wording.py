"""The sentences of a privacy statement, each in one place, so that label, card and command line say the same.

Plain words for people who sign: no sentence here depends on anything but public facts and the claim itself.
"""

import math
import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction

from understudy.schema import Unit

__all__ = [
    "CHOICES",
    "NEIGHBOURS",
    "TEST_DOUBLE",
    "TRUST",
    "charge_note",
    "choice_text",
    "copies_text",
    "escape_markdown",
    "label_text",
    "ledger_text",
    "not_protected",
    "odds_text",
    "promise_text",
    "unit_text",
    "variant_text",
]

NEIGHBOURS = "Tables that differ by all rows of one unit, added or removed."
TRUST = "Central: the data holder sees the rows; noise is added before anything leaves."
TEST_DOUBLE = "NOT PRIVATE: test double"
CHOICES = (
    "A choice draws an option with a probability proportional to exp(rate · its score). It costs ε = 2 · rate · "
    "sensitivity, half of that where all scores move one way; a cost in ρ is ε²/8. The sensitivity is the most that "
    "one protected unit can move a score, in the same units of score as the rate."
)
MOST_READABLE_EPSILON = 30.0
_MARKUP = re.compile(r"([\\`*_{}\[\]|~$^@])")
_LEADING = re.compile(r"^(\s*)([-+](?!\d)|[#=])|^(\s*\d+)([.)])(?=\s|$)")
"""What would begin a list, a heading or a rule; a number stays as it is."""
_LINK = re.compile(r"(?i)(https?|ftp|mailto|www)([:.])")


def variant_text(currency: str, delta: float | None, *, pure_steps: bool = False) -> str:
    """Which definition of differential privacy the claim is made in."""
    if currency == "concentrated":
        beside = "; some steps in pure ε, which adds up with the rest" if pure_steps else ""
        return f"(ε, δ)-differential privacy, priced in ρ (zero-concentrated differential privacy){beside}"
    return "(ε, δ)-differential privacy" if delta else "pure ε-differential privacy"


def unit_text(unit: Unit) -> str:
    """Who is protected, in words."""
    if unit.column is None:
        return "One row of the table. Somebody with several rows is protected row by row only."
    most = "1 row" if unit.rows == 1 else f"{unit.rows:,} rows"
    return f"Everybody named in column {unit.column!r}, with at most {most} each; further rows were left out."


def label_text(columns: Sequence[str], claim: tuple[float, float] | None) -> str:
    """What is promised when only private values of one unit differ and everything else is known to everybody."""
    names = ", ".join(repr(name) for name in columns)
    if claim is None:
        return f"No claim is made for tables that differ in {names} alone."
    tail = f", δ = {claim[1]:.6g}" if claim[1] else ""
    return f"Tables that differ only in {names} of one unit's rows, all other columns equal: ε = {claim[0]:.6g}{tail}."


def promise_text(epsilon: float | None, delta: float | None, refused: str) -> str:
    """The claim as one sentence, or the sentence that refuses to make one."""
    if epsilon is None or delta is None:
        return f"{refused or TEST_DOUBLE}. No privacy claim is made. Do not publish this folder."
    tail = f" and δ = {delta:.6g}" if delta else ""
    return (
        f"Everything in this folder together satisfies differential privacy with ε = {epsilon:.6g}{tail} "
        "for adding or removing one protected unit."
    )


def odds_text(epsilon: float | None, delta: float | None) -> str:
    """What ε means, as odds: the worst factor, and what a chance of 1 in 100 may become.

    >>> odds_text(1.0, 0.0).split(". ")[1]
    'A suspicion of 1 in 100 can become at most 1 in 37.4 because of that unit.'
    """
    if epsilon is None or delta is None:
        return "There is no bound on what this folder may reveal about a single unit."
    if epsilon > MOST_READABLE_EPSILON:
        return f"With ε = {epsilon:.6g} the worst-case bound on the odds is too large to protect anybody."
    factor = math.exp(epsilon)
    after = (99.0 + factor) / factor
    text = (
        "Whatever anybody may conclude from this folder, its odds differ by a factor of at most "
        f"{factor:.4g} (e^ε) from the odds if one unit's rows had been left out. "
        f"A suspicion of 1 in 100 can become at most 1 in {after:.3g} because of that unit."
    )
    if delta:
        text += f" With a probability of at most {delta:.3g} (δ) this bound may not hold."
    return text


def not_protected(unit: Unit, method: str) -> tuple[str, ...]:
    """What the promise does not cover: the list of PRIVACY.md."""
    people = (
        "A person with several rows: the unit is one row."
        if unit.column is None
        else "Groups of units: the protection of a group of g units is g times weaker in ε."
    )
    return (
        "The schema: names, types, bounds, labels and rules are public. If they were read off the rows, nothing holds.",
        "Settings: the method, its options and the budget are public.",
        people,
        f"Facts about groups and populations: what {method!r} learns about everybody holds with or without one unit.",
        "Labels of open categories that many units hold are released as they are.",
        "Earlier releases and reports that this ledger does not list; a copied ledger is a forked ledger.",
        "Timing and memory of the run, and anybody who watches the machine while it works.",
        "A malicious operator, a broken random generator of the operating system, a changed program.",
        "Comparisons with the private table: they are confidential and no part of this folder.",
    )


def copies_text(copies: int, mode: str) -> str:
    """What several copies mean for inference."""
    if copies == 1:
        return (
            "One synthetic table. Its sampling noise and its privacy noise cannot be told apart from this table alone; "
            "use the noise scales of measurements.parquet for error bars."
        )
    if mode == "resample":
        return (
            f"{copies} tables drawn from one fitted model, at no extra cost. They differ by sampling only: the spread "
            "between them does not show the privacy noise, which they share. Do not use it alone as an error bar."
        )
    return (
        f"{copies} tables, each measured anew with an equal part of the budget. The spread between them shows privacy "
        "noise and sampling together; pool estimates with a rule for differentially private synthetic copies."
    )


def odd_text(column: str, meaning: str, share: float, *, labelled: bool) -> str:
    """That strikingly much of a column is unreadable, missing or outside its list.

    >>> odd_text("vote", "missing", 0.998, labelled=True)
    'vote: about 100 % of its values are missing or could not be read; are its labels spelled as in the file?'
    """
    what = {
        "unreadable": "are empty or could not be read",
        "missing": "are missing or could not be read",
        "other": "are not in its list of labels",
    }[meaning]
    question = "are its labels spelled as in the file?" if labelled else "is it written in the file as the schema says?"
    return f"{column}: about {100 * share:.0f} % of its values {what}; {question}"


DROPPED = (
    "Rows with a value that cannot be read, in a column with neither missing nor other, are left out of every count. "
    "Whether a row is left out depends on that row alone, so the promise holds for it as for any other."
)
"""What `unreadable: drop` in a schema means for the release."""


def choice_text(rate: Fraction, sensitivity: Fraction | None, *, monotone: bool) -> str:
    """The rate of a choice and what an auditor needs to relate it to its cost.

    >>> choice_text(Fraction(1, 4), Fraction(2), monotone=True)
    'rate = 0.25 per unit of score, sensitivity = 2 units of score, all one way'
    """
    text = f"rate = {float(rate):.6g} per unit of score"
    if sensitivity is None:
        return text
    return f"{text}, sensitivity = {float(sensitivity):.6g} units of score{', all one way' if monotone else ''}"


def ledger_text(dataset: str | None) -> str:
    """What the ledger says about other releases."""
    if dataset is None:
        return (
            "No lasting ledger was named: this run was charged to a ledger of its own. "
            "Earlier or later releases of the same data are not counted here; their costs add to this one."
        )
    return f"Charged to the ledger of dataset {dataset!r}; its total covers every release that ledger lists."


def charge_note(schema_digest: str) -> str:
    """What the ledger notes with a charge: the schema it was made under."""
    return f"schema sha256 {schema_digest}"


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no link, no line of its own, control characters spelled out.

    >>> escape_markdown("<b>*x*</b>\\n# y")
    '&lt;b&gt;\\\\*x\\\\*&lt;/b&gt;\\\\\\\\n# y'
    """
    shown = "".join(char if _is_plain(char) else char.encode("unicode_escape").decode() for char in text)
    escaped = _LINK.sub(r"\1\\\2", _LEADING.sub(r"\1\3\\\2\4", _MARKUP.sub(r"\\\1", shown)))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _is_plain(char: str) -> bool:
    return unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
