"""The sentences of a privacy statement, each in one place, so that label, card and command line say the same.

Plain words for people who sign: no sentence here depends on anything but public facts and the claim itself.

Values that could not be read
-----------------------------
How much of each column could not be read is estimated from noisy answers, and decides how rows are drawn. Everything
about it is computed from the transcript, the fitted model and the codes. All three are released, so nothing
more is learned about any unit and nothing is paid: this is post-processing, and a loaded folder gives the same answers.

A code that no record has still gets a little noise. Its count is estimated from every measured table that holds its
column: the noisy cells of the code's slice are added up, and the sums are combined with weights inverse to their
variances (cells of the slice × variance of the noise). A count is clear when it lies 4 standard errors above 0, for
Laplace noise 4 standard errors and 4 times the weighted scale: with either distribution a code that no record has is
taken for clear with a probability of about 3·10⁻⁵. The first look of a training holds a table of every column, with one
scale for all counts. Where only cells of other partitions were counted (the leaves of trees), the model's own share
must exceed 5 % and what noise can put into the code: an even part of the cells, each with the mean of the positive half
of its noise, and 4 standard errors on top. The same holds for tables of which only large cells were kept, for four such
cells. Label trees add up the counts of a label over their leaves; of a column that they do not label, the share must
also exceed the even one of leaves that do not split on it. A column that nothing was asked about has no clear code.

Rows are drawn given that every column can be read whose unreadable count is not clear; elsewhere the code is drawn and
becomes an empty value.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from understudy.arrays import Integers
from understudy.codec.table import TableCodec
from understudy.domain import Domain, Measurement, SparseMeasurement, Trained, Transcript
from understudy.errors import ResourceError, UsageError
from understudy.models.model import Codes, Draws, Model
from understudy.schema import Boolean, Category, Column, Date, Datetime, Derived, OpenCategory, Time, Unit, code_names

NEIGHBOURS = "Tables that differ by all rows of one unit, added or removed."
TRUST = "Central: the data holder sees the rows; noise is added before anything leaves."
TEST_DOUBLE = "NOT PRIVATE: test double"


@dataclass(frozen=True, slots=True)
class Sentences:
    """What the formats of a statement word differently: a folder is checked in the words of the format it has."""

    odds: str
    zcdp: str
    no_ledger: str
    schema: str
    choices: str
    spent: str
    most_listed: int | None = None
    """How many charges, columns and remarks statement.md lists one by one; None for all of them."""
    failing: str = "{delta:.3g} (δ)"
    """How δ is said in the sentence on odds."""


SENTENCES = {
    1: Sentences(
        odds="Whatever anybody may conclude from this folder, its odds differ by a factor of at most {factor:.4g} "
        "(e^ε) from the odds if one unit's rows had been left out. A suspicion of 1 in 100 can become at most"
        " 1 in {one_in:.3g} because of that unit.",
        zcdp="(ε, δ)-differential privacy, priced in ρ (zero-concentrated differential privacy)",
        no_ledger="No lasting ledger was named: this run was charged to a ledger of its own. Earlier or later releases "
        "of the same data are not counted here; their costs add to this one.",
        schema="The schema: names, types, bounds, labels and rules are public. If they were read off the rows, "
        "nothing holds.",
        choices="A choice draws an option with a probability proportional to exp(rate · its score). It costs ε = 2 · "
        "rate · sensitivity, half of that where all scores move one way; a cost in ρ is ε²/8. The sensitivity"
        " is the most that one protected unit can move a score, in the same units of score as the rate.",
        spent="Spent by the questions",
    ),
    2: Sentences(
        odds="For any conclusion drawn from this release, the odds would change by a factor of at most "
        "{factor:.4g} (e^ε) if one unit's rows had been left out. Someone 1 % sure that a unit is in the "
        "table could become at most {percent:g} % sure.",
        zcdp="(ε, δ)-differential privacy, accounted in ρ (zero-concentrated differential privacy, zCDP)",
        no_ledger="No ledger was given: this run was charged to a ledger of its own. Earlier and later releases of the "
        "same data are not counted here; their costs add to this one.",
        schema="The schema: names, types, bounds, labels and rules are public. If they were read off the rows, the "
        "guarantee is void.",
        choices="A choice draws an option with a probability proportional to exp(rate · its score). It costs ε = 2 · "
        "rate · sensitivity, half of that where all scores move in the same direction; a cost in ρ is ε²/8. "
        "The sensitivity is the most that one protected unit can change a score. statement.json gives both "
        "for every choice.",
        spent="Spent by the queries",
    ),
    3: Sentences(
        odds="For any conclusion drawn from this release, the odds would change by a factor of at most "
        "{factor:.4g} (e^ε) if one unit's rows had been left out. Someone 1 % sure that {who} is in the data could "
        "become at most {percent:g} % sure.",
        zcdp="(ε, δ)-differential privacy, accounted in ρ (zero-concentrated differential privacy, zCDP)",
        no_ledger="No ledger was given: this run was charged to a ledger of its own. Earlier and later releases of the "
        "same data are not counted here; their costs add to this one.",
        schema="The schema: names, types, bounds, labels and rules are public. If they were read off the rows, the "
        "guarantee is void.",
        choices="A choice draws an option with a probability proportional to exp(rate · its score). It costs ε = 2 · "
        "rate · sensitivity, half of that where all scores move in the same direction; a cost in ρ is ε²/8. "
        "The sensitivity is the most that one protected unit can change a score. statement.json gives both "
        "for every choice.",
        spent="Spent by the queries",
        most_listed=12,
        failing="1 in {inverse:,.0f} (δ)",
    ),
}
"""Format of a statement's file → its sentences. An earlier format never changes: its folders must still verify."""
GAUSSIAN = "(ε, δ)-differential privacy, accounted as Gaussian differential privacy (μ = √(2ρ)) of integer noise"
NEWEST_FORMAT = max(SENTENCES)
_NEWEST = SENTENCES[NEWEST_FORMAT]
MOST_READABLE_EPSILON = 30.0
_MARKUP = re.compile(r"([\\`*_{}\[\]|~$^@])")
_LEADING = re.compile(r"^(\s*)([-+](?!\d)|[#=])|^(\s*\d+)([.)])(?=\s|$)")
"""What would begin a list, a heading or a rule; a number stays as it is."""
_LINK = re.compile(r"(?i)(https?|ftp|mailto|www)([:.])")


def variant_text(currency: str, delta: float | None, *, pure_steps: bool = False, words: Sentences = _NEWEST) -> str:
    """Which definition of differential privacy the claim is made in."""
    if currency == "zcdp":
        beside = "; some steps in pure ε, which adds up with the rest" if pure_steps else ""
        return f"{words.zcdp}{beside}"
    if currency == "gaussian":
        return GAUSSIAN
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


def odds_text(epsilon: float | None, delta: float | None, words: Sentences = _NEWEST, unit: Unit | None = None) -> str:
    """What ε means, as odds: the largest factor, and what a probability of 1 % may become (rounded up).

    >>> odds_text(1.0, 0.0, unit=Unit()).split(". ")[1]
    'Someone 1 % sure that a certain row is in the data could become at most 2.7 % sure.'
    """
    if epsilon is None or delta is None:
        return "There is no bound on what this folder may reveal about a single unit."
    if epsilon > MOST_READABLE_EPSILON:
        return f"With ε = {epsilon:.6g} the worst-case bound on the odds is too large to protect anybody."
    factor = math.exp(epsilon)
    after = (99.0 + factor) / factor
    who = "a certain protected unit" if unit is None or unit.column is not None else "a certain row"
    text = words.odds.format(factor=factor, one_in=after, percent=math.ceil(1000.0 / after) / 10.0, who=who)
    if delta:
        chance = words.failing.format(delta=delta, inverse=int(1 / Fraction(repr(delta))))
        text += f" With a probability of at most {chance} this bound may not hold."
    return text


def not_protected(unit: Unit, method: str, words: Sentences = _NEWEST) -> tuple[str, ...]:
    """What the promise does not cover: the list of PRIVACY.md."""
    people = (
        "A person with several rows: the unit is one row."
        if unit.column is None
        else "Groups of units: the protection of a group of g units is g times weaker in ε."
    )
    return (
        words.schema,
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


def odd_text(column: str, meaning: str, share: float, *, labelled: bool, formless: bool = False) -> str:
    """That strikingly much of a column is unreadable, missing or outside its list.

    >>> odd_text("vote", "missing", 0.998, labelled=True)
    'vote: about 100 % of its values are missing or could not be read; are its labels spelled as in the file?'
    >>> odd_text("born", "unreadable", 0.5, labelled=False, formless=True)
    'born: about 50 % of its values are empty or could not be read; text in another form than ISO needs a `format`.'
    """
    what = {
        "unreadable": "are empty or could not be read",
        "missing": "are missing or could not be read",
        "other": "are not in its list of labels",
    }[meaning]
    written = "is it written in the file as the schema says (`format`, `decimal`, `thousands`)?"
    question = "are its labels spelled as in the file?" if labelled else written
    if formless:
        question = "text in another form than ISO needs a `format`."
    return f"{column}: about {100 * share:.0f} % of its values {what}; {question}"


def crowded_text(column: str, meaning: str, share: float, bin_text: str) -> str:
    """That nearly all of a column lies in one end bin, or in the labels too rare to be told apart.

    >>> crowded_text("year", "lowest", 0.998, "1900")
    'year: about 100 % of its values are in its lowest bin, 1900; are its bounds right?'
    """
    start = f"{column}: about {100 * share:.0f} % of its values"
    if meaning == "rare":
        return f"{start} are {bin_text}: other labels were too rare to stand out of the noise."
    if bin_text.startswith("["):
        return (
            f"{start} are in its {meaning} bin, {bin_text}; are its bounds right? A value that most rows share, "
            "such as 0, can be made a code of its own (`special`)."
        )
    return f"{start} are in its {meaning} bin, {bin_text}; are its bounds right?"


NO_ROWS = (
    "A synthetic table of this release has no rows: their number was measured with noise and came out as 0 or less, as "
    "may happen to a small table. The model is there all the same: draw any number of rows from it "
    "with `understudy sample` or `release.sample`, free of charge."
)
"""Said where the noisy number of rows left nothing to draw."""
DROPPED = (
    "Rows with a value that cannot be read, in a column with neither missing nor other, are left out of every count. "
    "Whether a row is left out depends on that row alone, so the promise holds for it as for any other."
)
"""What `unreadable: drop` in a schema means for the release."""


def choice_text(rate: Fraction, sensitivity: Fraction | None, *, monotone: bool, options: int | None = None) -> str:
    """Among how many options a choice was made, and its ε; where that was not written down, its rate and sensitivity.

    >>> choice_text(Fraction(1, 4), Fraction(2), monotone=True, options=105)
    'chose 1 of 105, ε = 0.5'
    >>> choice_text(Fraction(1, 4), Fraction(2), monotone=True)
    'rate = 0.25 per unit of score, sensitivity = 2 units of score, all one way'
    """
    if options is not None and sensitivity is not None:
        epsilon = float((1 if monotone else 2) * rate * sensitivity)
        return f"chose 1 of {options:,}, ε = {epsilon:.6g}"
    text = f"rate = {float(rate):.6g} per unit of score"
    if sensitivity is None:
        return text
    return f"{text}, sensitivity = {float(sensitivity):.6g} units of score{', all one way' if monotone else ''}"


def ledger_text(dataset: str | None, words: Sentences = _NEWEST) -> str:
    """What the ledger says about other releases."""
    if dataset is None:
        return words.no_ledger
    return f"Charged to the ledger of dataset {dataset!r}; its total covers every release that ledger lists."


def charge_note(schema_digest: str) -> str:
    """What the ledger notes with a charge: the schema it was made under."""
    return f"schema sha256 {schema_digest}"


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no link, no line of its own, control characters spelled out.

    >>> escape_markdown("<b>*x*</b>\\n# y")
    '&lt;b&gt;\\\\*x\\\\*&lt;/b&gt;\\\\\\\\n# y'
    """
    shown = text if text.isprintable() else "".join(map(_shown, text))
    escaped = _LINK.sub(r"\1\\\2", _LEADING.sub(r"\1\3\\\2\4", _MARKUP.sub(r"\\\1", shown)))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _shown(char: str) -> str:
    hidden = unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    return char.encode("unicode_escape").decode() if hidden else char


Conditions = Mapping[str, Integers]

CLEAR = 4.0
CLEAR_SHARE = 0.05
LEAST_UNREADABLE = 0.01
LEAST_ODD = 0.5
LEAST_CROWDED = 0.9
"""Share of an end bin that holds one value alone from which it is remarked; a bin of many values from LEAST_ODD on."""
UNREAD, CROWDED = ("unreadable", "missing", "other"), ("lowest", "highest", "rare")
"""What an odd share may be: values that were not read as they are, or one code that holds nearly all."""
MOST_REDRAWS = 20
_MOST_SHARE = 1.25  # a bin that seems to hold still more than all rows says that their noisy number is of no use
_FEW_BINS = 4  # fewer are a person's own cut, of which one may well hold nearly all
_POSITIVE_HALF = 1.0 / math.sqrt(2.0 * math.pi)
"""Mean of the positive half of noise of standard deviation 1, for Gaussian noise; less for Laplace noise."""


@dataclass(frozen=True, slots=True)
class Odd:
    """A column of which strikingly much is unreadable, missing, outside the list or in one bin, with the share."""

    column: str
    meaning: str
    """One of UNREAD or CROWDED."""
    share: float
    labelled: bool
    """Whether values are read by comparing them with labels."""
    formless: bool = False
    """Whether it holds dates or times and its schema states no format for them."""
    bin: str = ""
    """The one code that holds nearly all, in words."""

    @property
    def text(self) -> str:
        """The finding as a sentence."""
        if self.meaning in CROWDED:
            return crowded_text(self.column, self.meaning, self.share, self.bin)
        return odd_text(self.column, self.meaning, self.share, labelled=self.labelled, formless=self.formless)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """The estimated share of a code, and the share above which noise does not explain it."""

    share: float
    clear: float

    @property
    def is_clear(self) -> bool:
        return self.share > self.clear


def odd_values(codec: TableCodec, transcript: Transcript, model: Model) -> tuple[Odd, ...]:
    """Columns of which clearly more than 1 % could not be read, half and more is missing, outside the list, or in an
    end bin of several values, or of which nearly all is in a single bin."""
    found: list[Odd] = []
    for column in codec.schema.modelled:
        name = code_names(column)[0]
        labelled = isinstance(column, Category | OpenCategory | Boolean)
        codes = {"unreadable": codec.unreadable_code(name), "missing": codec.missing_code(name)}
        if not isinstance(column, OpenCategory):  # where every label is rare, nearly all values may be other
            codes["other"] = codec.other_code(name)
        for meaning, code in codes.items():
            if code is None:
                continue
            estimate = _estimate(codec, transcript, model, name, code)
            if estimate.is_clear and estimate.share >= (LEAST_UNREADABLE if meaning == "unreadable" else LEAST_ODD):
                formless = isinstance(column, Date | Datetime | Time) and column.format is None
                found.append(Odd(column.name, meaning, round(min(estimate.share, 1.0), 3), labelled, formless))
        for meaning, code in _end_codes(codec, column):
            estimate, bin_text = _estimate(codec, transcript, model, name, code), codec.describe(name, code)
            least = LEAST_ODD if meaning == "rare" or bin_text.startswith("[") else LEAST_CROWDED
            if (meaning, bin_text) == ("lowest", "0"):
                continue  # counts that are mostly 0 are nothing unusual
            if estimate.is_clear and least <= estimate.share <= _MOST_SHARE:
                share = round(min(estimate.share, 1.0), 3)
                found.append(Odd(column.name, meaning, share, labelled, bin=bin_text))
    return tuple(found)


def _end_codes(codec: TableCodec, column: Column) -> list[tuple[str, int]]:
    """The codes in which values pile up that a schema does not foresee: both ends of numbers, and rare labels."""
    name = code_names(column)[0]
    if isinstance(column, OpenCategory):
        other = codec.other_code(name)
        return [] if other is None else [("rare", other)]
    bins = codec.layout(name).regular
    if isinstance(column, Category | Boolean | Derived) or bins < _FEW_BINS:
        return []
    return [("lowest", 0), ("highest", bins - 1)]


def readable_codes(codec: TableCodec, transcript: Transcript, model: Model) -> dict[str, Integers]:
    """The readable codes of every column whose count of unreadable values is not clear."""
    found: dict[str, Integers] = {}
    for column in codec.schema.modelled:
        name = code_names(column)[0]
        code = codec.unreadable_code(name)
        if code is not None and not _estimate(codec, transcript, model, name, code).is_clear:
            found[name] = np.delete(np.arange(codec.domain.sizes[name]), code)
    return found


def never_unreadable(codec: TableCodec, transcript: Transcript, model: Model) -> frozenset[str]:
    """The columns of codes whose unreadable values are surely not drawn."""
    readable = readable_codes(codec, transcript, model)
    try:
        _ = model.condition(readable) if readable else None
    except (UsageError, ResourceError):
        return frozenset()
    return frozenset(readable)


def _estimate(codec: TableCodec, transcript: Transcript, model: Model, name: str, code: int) -> _Estimate:
    measured = _measured(codec, transcript, name, code)
    if measured is not None:
        total = max(model.total, 1.0)
        return _Estimate(measured[0] / total, measured[1] / total)
    looked = _looked(codec.domain, transcript, name, code)
    if looked is not None:
        return looked
    even = 0.0
    if model.kind == "labels":
        labelled = _in_leaves(transcript, name, codec.domain.sizes[name], code, max(model.total, 1.0))
        if labelled is not None:
            return labelled
        even = 1.0 / codec.domain.sizes[name]  # what an unlabelled column has where its trees do not split on it
    try:
        share = float(model.marginal(codec.domain.clique([name]))[code])
    except ResourceError:  # a network too tangled for exact sums; its tables are measured, so this is no loss
        share = 0.0
    explained = _explained(transcript, name, codec.domain.sizes[name]) / max(model.total, 1.0)
    return _Estimate(share, max(CLEAR_SHARE, explained + even))


def _in_leaves(transcript: Transcript, name: str, size: int, code: int, total: float) -> _Estimate | None:
    """From the noisy counts of a label in all leaves of every tree, added up: each tree counts every record once.

    The model's own shares will not do: they hold the clipped noise of many small leaves, and leaves with nothing
    positive are uniform. None for a column that was not labelled: it has no such counts.
    """
    leaves = re.compile(rf"leaves of tree \d+ for {re.escape(name)}")
    trees = [answer for answer in transcript.of(Measurement) if leaves.fullmatch(answer.name)]
    counts = [answer.values.reshape(-1, size)[:, code] for answer in trees if answer.values.size % size == 0]
    if not counts or len(counts) < len(trees):
        return None
    noise = math.fsum(part.size * answer.distribution.variance for part, answer in zip(counts, trees, strict=True))
    spike = max(answer.distribution.scale for answer in trees)
    clear = CLEAR * (math.sqrt(noise) + spike) / len(trees)
    return _Estimate(float(np.mean([part.sum() for part in counts])) / total, clear / total)


def _looked(domain: Domain, transcript: Transcript, name: str, code: int) -> _Estimate | None:
    """By the first look of a training, which counts every code of every column on one scale."""
    start = sum(domain.sizes[other] for other in domain.columns[: domain.columns.index(name)])
    for answer in transcript.of(Trained):
        if answer.first_distribution is not None and answer.values.size == sum(domain.sizes.values()):
            counts = answer.values[start : start + domain.sizes[name]].astype(np.float64)
            total = max(float(counts.sum()), 1.0)
            return _Estimate(float(counts[code]) / total, CLEAR * math.sqrt(answer.first_distribution.variance) / total)
    return None


def _explained(transcript: Transcript, name: str, size: int) -> float:
    """Rows that noise may put into one of the codes of a column, by the finest partition that looks at it."""
    sparse = [CLEAR * answer.threshold for answer in transcript.of(SparseMeasurement) if name in answer.columns]
    dense = [answer for answer in transcript.of(Measurement) if name in answer.columns]
    if not dense:
        return max(sparse, default=math.inf)
    finest = max(dense, key=lambda answer: answer.values.size)
    cells = max(1.0, finest.values.size / size)
    return math.sqrt(finest.distribution.variance) * (_POSITIVE_HALF * cells + CLEAR * math.sqrt(cells))


def _measured(codec: TableCodec, transcript: Transcript, name: str, code: int) -> tuple[float, float] | None:
    """The estimated count of a code and what it must exceed to be clear; None if no measured table holds it."""
    domain = codec.domain
    rows, weights, spikes = 0.0, 0.0, [0.0]
    for answer in transcript.of(Measurement):
        if name not in answer.columns or not is_table(answer, domain):
            continue
        part = answer.table.take(code, axis=answer.columns.index(name))
        weight = 1.0 / max(part.size * answer.distribution.variance, 1e-200)
        rows += weight * float(part.sum())
        weights += weight
        spikes += [weight * answer.distribution.scale] if answer.distribution.kind == "laplace" else []
    if not weights:
        return None
    return rows / weights, CLEAR * (math.sqrt(1.0 / weights) + max(spikes) / weights)


def is_table(answer: Measurement, domain: Domain) -> bool:
    """Whether the answer is a table of these columns with the codes of this domain, and no other partition."""
    named = answer.name == " × ".join(answer.columns) and set(answer.columns) <= domain.sizes.keys()
    return named and answer.shape == domain.shape(answer.columns)


def given_readable(model: Model, readable: Conditions, where: Conditions) -> Draws:
    """The model given the conditions and, for columns they do not name, that the values can be read.

    Where a model cannot be conditioned exactly, rows with unreadable values are drawn again. If it holds nothing that
    could be read, rows are drawn as they are.

    Raises:
        UsageError, ResourceError: if the conditions of `where` themselves cannot be met.
    """
    given = model.condition(where) if where else model
    rest = {name: codes for name, codes in readable.items() if name not in where}
    if not rest:
        return given
    try:
        return model.condition({**where, **rest})
    except UsageError:
        return given
    except ResourceError:
        return _Redrawn(given, rest)


@dataclass(frozen=True, slots=True)
class _Redrawn:
    """A model whose rows are drawn again while they hold codes that are not wanted, a bounded number of times."""

    model: Model
    wanted: Conditions

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """Rows, nearly all of which hold wanted codes only."""
        codes = {name: np.array(column) for name, column in self.model.draw(rows, rng).items()}
        for _ in range(MOST_REDRAWS):
            unwanted = [~np.isin(codes[name], wanted) for name, wanted in self.wanted.items()]
            again = np.flatnonzero(np.logical_or.reduce(unwanted))
            if not again.size:
                break
            for name, column in self.model.draw(again.size, rng).items():
                codes[name][again] = column
        return codes
