"""verify: whether a release folder is whole, consistent and valid, found out without the private table.

Checked are the manifest; the account (charges that add up to the claim, noise that matches each charge, a ledger that
agrees); the rows (types, every value inside its domain, rules and derived columns honoured); where a part of the budget
was held back for a check, the distances between rows and noisy tables, and the verdicts; and the card (no script,
no request, no element that could make one, and the policy that forbids them).

What it can show: the folder is as it was published, the statement follows from the charges, each noise from its
cost, the ledger's extract is consistent, the rows obey the schema. What it cannot show: that the noise was drawn
honestly or that the private table was the one named. Whoever can rewrite every file can forge a folder; compare the
ledger's head with the publisher's.
"""

import math
import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from understudy.codec.axes import axis_of
from understudy.codec.column import labels_as
from understudy.codec.table import TableCodec, derived_column
from understudy.domain import (
    Answer,
    Discovery,
    Grown,
    HeldBack,
    Measurement,
    NoisyScores,
    ResidualTable,
    Selection,
    Selections,
    SparseMeasurement,
    Trained,
    Transcript,
)
from understudy.errors import Problem, ReleaseError, ResourceError, SchemaError, UnderstudyError
from understudy.models.model import Model, load_model, parse_json, read_json, read_plain
from understudy.privacy.cost import (
    DELTA_UNIT,
    UNIT,
    Cost,
    Currency,
    discovery_threshold,
    distribution_for,
    growth_rule,
    residual_distribution,
    score_distribution,
    selection_rate,
)
from understudy.privacy.ledger import verify_extract
from understudy.privacy.training import course_parts, parts_epsilon
from understudy.release.check import (
    MOST_SHARE,
    Check,
    as_fraction,
    checked,
    counts_of_rows,
    held_back_tables,
    stored_tables,
)
from understudy.release.files import (
    MANIFEST,
    PACKAGES_FILE,
    SIGNATURE,
    Effort,
    check_expected,
    check_files,
    check_packages,
    finish_waiting,
)
from understudy.release.parquet import batch_rows, open_parquet
from understudy.release.provenance import read_signature
from understudy.release.release import Fitted, RunConfig, data_name, read_config
from understudy.release.statement import (
    Charge,
    Statement,
    digest_of,
    read_statement,
    statement_document,
    statement_markdown,
    total_cost,
    unit_of,
)
from understudy.release.statistics import STATISTICS_FILE, check_statistics
from understudy.release.store import (
    expected_files,
    load_codec,
    model_name,
    number_of_runs,
    read_ledger,
    read_measurements,
    read_schema,
)
from understudy.release.wording import UNREAD, charge_note, never_unreadable, odd_values
from understudy.report import POLICY
from understudy.schema import Boolean, Category, Column, Derived, OpenCategory, Schema, code_names

ALLOWED = frozenset(
    {"html", "head", "meta", "title", "style", "body", "header", "footer", "main", "nav", "section", "div"}
    | {"p", "h1", "h2", "h3", "a", "ol", "ul", "li", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    | {"figure", "figcaption", "svg", "text", "rect", "line", "path", "desc", "h3", "details", "summary"}
    | {"pre", "code", "span"}
)
_NUMBERS = re.compile(r"data:text/csv;base64,[A-Za-z0-9+/]*={0,2}")
"""A table as a file to save, in the page itself: nothing that a browser would run or ask for."""
# Every repetition is bounded or ended by a character that it cannot hold, so no text makes the match slow.
_TAG = re.compile(r"!DOCTYPE html|/?[a-z][a-z0-9]{0,20}(?:\s{1,9}[a-zA-Z0-9:-]{1,30}(?:=\"[^\"]*\")?)*\s{0,9}/?")
_REQUEST = re.compile(r"(?i)@import|url\s*\(|expression\s*\(")


class _FolderReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.strange: set[str] = set()
        self.policies: list[str] = []
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what an element could do."""
        self._style = tag == "style"
        values = dict(attrs)
        # A list of what may be there, not of what may not: the next dangerous element need not be known.
        if tag not in ALLOWED:
            self.strange.add(f"element <{tag}>")
        for name, value in attrs:
            local = name in ("href", "xlink:href") and (value or "").startswith("#")
            local = local or (tag == "a" and name == "href" and _NUMBERS.fullmatch(value or "") is not None)
            if name.startswith("on") or (name in ("src", "href", "xlink:href", "srcset", "action") and not local):
                self.strange.add(f"attribute {name}")
            if name == "style" and _REQUEST.search(value or ""):
                self.strange.add("a request in a style")
        if tag == "meta" and "http-equiv" in values:
            if (values["http-equiv"] or "").lower() == "content-security-policy":
                self.policies.append(values.get("content") or "")
            else:
                self.strange.add("attribute http-equiv")

    def handle_data(self, data: str) -> None:
        """Notes requests made by the style sheet."""
        if self._style and _REQUEST.search(data):
            self.strange.add("a request in the style sheet")

    def handle_endtag(self, tag: str) -> None:
        """Leaves the style sheet."""
        self._style = self._style and tag != "style"


def check_page(name: str, text: str) -> list[Problem]:
    """Findings about a page that must open offline and run nothing."""
    fix = "Do not open or publish it; write the release again."
    if not _is_well_formed(text):
        return [Problem(name, "is not a plain page, as every card is.", fix)]
    reader = _FolderReader()
    reader.feed(text)
    reader.close()
    found = [Problem(name, f"holds {thing}, which no card may hold.", fix) for thing in sorted(reader.strange)]
    # Just this one policy: a page with another was not written by a release.
    if reader.policies != [POLICY]:
        found.append(Problem(name, "lacks its content security policy.", fix))
    return found


def _is_well_formed(text: str) -> bool:
    """Whether every tag is closed and plainly written. The parser's time grows with the square of what is not."""
    tags = (piece.partition(">") for piece in text.split("<")[1:])
    return all(closed and _TAG.fullmatch(tag) for tag, closed, _ in tags)


BATCH_TEXT_BYTES = 2**26
LONGEST_NUMBER = 64
ROWS = "does not have the number of rows that config.yaml says."
FIX = "The file was not written by this release; draw the rows again from model/."


def check_rows(
    path: Path,
    codec: TableCodec,
    rows: int,
    run: str,
    effort: Effort | None = None,
    *,
    never_empty: Set[str] = frozenset(),
) -> list[Problem]:
    """Findings about a file of synthetic rows, read in bounded pieces; of too many rows some, drawn at random.

    `never_empty` names the columns whose unreadable values, which become empty, are not drawn.
    """
    try:
        with open_parquet(path) as stored:
            found = _form(path.name, stored, codec, rows, run)
        if any(problem.where == f"{path.name}: columns" or problem.rule == ROWS for problem in found):
            return found
        texts = [field.name for field in codec.arrow_schema if _is_text(field.type)]
        content = partial(_content, codec=codec, never_empty=never_empty)
        with open_parquet(path, texts, known=True) as stored:
            wrong = _all_content(stored, codec, path.name, effort or Effort(), content)
    except ReleaseError as error:
        return [Problem(problem.where, problem.rule, FIX) for problem in error.problems]
    return found + [Problem(f"{path.name}: {where}", rule, FIX) for where, rule in sorted(wrong)]


def _all_content(
    stored: pq.ParquetFile,
    codec: TableCodec,
    name: str,
    effort: Effort,
    content: Callable[[pa.Table], set[tuple[str, str]]],
) -> set[tuple[str, str]]:
    """What is wrong with the rows of as many row groups as the effort allows."""
    columns, longest = len(codec.arrow_schema), _longest_label(codec)
    at_once = max(1, min(batch_rows(columns), BATCH_TEXT_BYTES // longest))
    wrong: set[tuple[str, str]] = set()
    checked = 0
    groups = list(range(stored.num_row_groups))
    if stored.metadata.num_rows * columns > effort.cells:
        # A part that nobody can foresee, or whoever blows up a folder would hide the bad rows in what is left out.
        np.random.default_rng().shuffle(groups)
    for group in groups:
        for batch in stored.iter_batches(at_once, row_groups=[group]):
            if effort.cells < batch.num_rows * columns:
                left = stored.metadata.num_rows - checked
                effort.unchecked.append(f"{left:,} of {stored.metadata.num_rows:,} rows of {name}")
                return wrong
            effort.cells -= batch.num_rows * columns
            checked += batch.num_rows
            # Looked at before it is cast: one text of a gigabyte, named by every row, would fill memory.
            table = _plain(batch, codec, longest)
            if table is None:
                return wrong | {("labels", "a text is longer than any label.")}
            wrong |= content(table)
    return wrong


def _plain(batch: pa.RecordBatch, codec: TableCodec, longest: int) -> pa.Table | None:
    """The rows in the types of the schema; None if a text is longer than any label, and so may be without bound."""
    for column in batch.columns:
        texts = column.dictionary if pa.types.is_dictionary(column.type) else column.slice(0, 0)
        if len(texts) and (pc.max(pc.binary_length(texts)).as_py() or 0) > longest:
            return None
    return pa.Table.from_batches([batch]).cast(codec.arrow_schema)


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary))


def _longest_label(codec: TableCodec) -> int:
    """Bytes of the longest text that a column may hold."""
    texts = [text for labels in codec.labels.values() for text in labels]
    for column in codec.schema.columns:
        texts += [*getattr(column, "labels", ()), getattr(column, "other", None) or ""]
        if isinstance(column, Derived):
            texts += [*getattr(column.formula, "labels", ()), *getattr(column.formula, "entries", {}).values()]
    return max([LONGEST_NUMBER, *(len(text.encode("utf-8", "replace")) for text in texts)])


def _form(name: str, stored: pq.ParquetFile, codec: TableCodec, rows: int, run: str) -> list[Problem]:
    found = []
    metadata = stored.schema_arrow.metadata or {}
    if metadata.get(b"understudy.synthetic") != b"true":
        found.append(Problem(name, "is not marked as synthetic.", FIX))
    if metadata.get(b"understudy.run") != run.encode():
        found.append(Problem(name, "belongs to another run.", FIX))
    if not stored.schema_arrow.equals(codec.arrow_schema, check_metadata=False):
        found.append(Problem(f"{name}: columns", "names, order or types are not those of the schema.", FIX))
    if stored.metadata.num_rows != rows:
        found.append(Problem(name, ROWS, FIX))
    return found


def _content(table: pa.Table, codec: TableCodec, never_empty: Set[str]) -> set[tuple[str, str]]:
    wrong = set()
    for column in codec.schema.columns:
        values = table[column.name].combine_chunks()
        if isinstance(column, Derived):
            continue
        name = code_names(column)[0]
        empty = column.missing or (codec.unreadable_code(name) is not None and name not in never_empty)
        if values.null_count and not empty:
            wrong.add((f"column {column.name!r}", "holds missing values, which the schema does not allow."))
        if not _inside(column, values.drop_null(), codec):
            wrong.add((f"column {column.name!r}", "holds a value outside its domain."))
    return wrong | _rules(table, codec) | _derived(table, codec)


def _inside(column: Column, values: pa.Array, codec: TableCodec) -> bool:
    """Whether every value is one that the column's declaration allows."""
    if isinstance(column, Boolean | Derived) or not len(values):
        return True
    if isinstance(column, Category | OpenCategory):
        labels: Sequence[str] = column.labels if isinstance(column, Category) else codec.labels[column.name]
        allowed = [*labels, column.other] if column.other is not None else labels
        return bool(pc.all(pc.is_in(values, value_set=labels_as(allowed, values.type))).as_py())
    axis = axis_of(column)
    reading = axis.read(values)
    inside = reading.valid & (reading.values >= axis.lower) & (reading.values <= axis.upper)
    special = getattr(column, "special", ())
    if special:
        inside |= np.isin(reading.values, np.asarray(special)) & reading.exact
    return bool(inside.all())


def _rules(table: pa.Table, codec: TableCodec) -> set[tuple[str, str]]:
    wrong = set()
    for rule in codec.structural_zeros:
        cells = np.zeros(table.num_rows, dtype=np.int64)
        for name in rule.clique:
            size = codec.domain.sizes[name]
            cells = cells * size + np.minimum(codec.encode(name, table[codec.origin(name)]), size - 1)
        if rule.mask[cells].any():
            wrong.add((f"columns {', '.join(rule.clique)}", "hold a combination that a rule excludes."))
    return wrong


def _derived(table: pa.Table, codec: TableCodec) -> set[tuple[str, str]]:
    arrays = {name: table[name].combine_chunks() for name in table.column_names}
    wrong = set()
    for column in codec.schema.columns:
        if isinstance(column, Derived):
            expected = derived_column(column, codec.schema, arrays)
            if not expected.equals(arrays[column.name]):
                wrong.add((f"column {column.name!r}", "is not what its formula gives."))
    return wrong


NAME = "statement.json"
DISTRUST = "Do not rely on this folder; ask its publisher for the original."


def check_statement(folder: Path) -> tuple[Statement, list[Problem]]:
    """The statement, with everything in it that does not follow from its own charges."""
    document = read_json(folder / NAME)
    statement = read_statement(document)
    found = []
    if statement.refused:
        found.append(Problem(NAME, f"{statement.refused}. The folder makes no privacy claim.", "Do not publish it."))
    if not statement.spent.fits(statement.granted):
        found.append(Problem(NAME, "the charges add up to more than was granted.", DISTRUST))
    try:
        # The stored claim is never believed: it is computed again from the charges, as the release computed it.
        derived = statement_document(statement)
        text = statement_markdown(statement)
        claim = statement.claim
    except UnderstudyError:
        return statement, [*found, Problem(NAME, "the charges do not yield a claim under this budget.", DISTRUST)]
    stored = document if isinstance(document, dict) else {}
    wrong = sorted(key for key in {*derived, *stored} if derived.get(key) != stored.get(key) or key not in stored)
    found += [Problem(f"{NAME}: {key}", "does not follow from the charges and facts given.", DISTRUST) for key in wrong]
    if claim and (claim[0] > statement.budget.epsilon or claim[1] > statement.budget.delta):
        found.append(Problem(NAME, "the charges cost more than the budget that was granted.", DISTRUST))
    if read_plain(folder / "statement.md").decode("utf-8", errors="replace") != text:
        found.append(Problem("statement.md", "does not say what statement.json says.", DISTRUST))
    return statement, found


def check_charges(statement: Statement, transcripts: Sequence[Transcript]) -> list[Problem]:
    """Whether every answer was paid for, with the noise that its cost buys."""
    found = []
    for run, transcript in enumerate(transcripts, start=1):
        charges = [charge for charge in statement.charges if charge.run == run]
        if len(charges) != len(transcript):
            rule = f"run {run} has {len(charges)} charges for {len(transcript)} answers."
            found.append(Problem("measurements.parquet", rule, DISTRUST))
            continue
        for position, (charge, answer) in enumerate(zip(charges, transcript, strict=True)):
            where = f"run {run}, answer {position}"
            charged = _noise_of(charge) == _noise_of(answer) and not _other_options(charge, answer)
            if not charged or answer.name not in charge.step:
                found.append(Problem(where, "the answer's noise is not the noise that was charged.", DISTRUST))
            found += _answer_paid(where, charge, answer, statement.unit.sensitivity, statement.currency)
            if isinstance(answer, SparseMeasurement) and answer.values.size and answer.values.min() < answer.threshold:
                found.append(Problem(where, "a kept cell lies below the threshold.", DISTRUST))
    if any(not 1 <= charge.run <= len(transcripts) for charge in statement.charges):
        found.append(Problem(NAME, "a charge belongs to no run.", DISTRUST))
    return found


def _noise_of(one: Charge | Answer) -> tuple[object, ...]:
    """What a charge, or an answer, says about its noise."""
    if isinstance(one, Charge):
        return one.distribution, one.rate, one.sensitivity, one.monotone, one.unit
    if isinstance(one, Selection | Selections):
        return None, one.rate, one.sensitivity, one.monotone, unit_of(one)
    return one.distribution, None, None, False, unit_of(one)


def _other_options(charge: Charge, answer: Answer) -> bool:
    """Whether the charge of a choice states another number of options; the first format stated none."""
    stated = charge.options
    return stated is not None and (not isinstance(answer, Selection | Selections) or answer.options != stated)


def _answer_paid(where: str, charge: Charge, answer: Answer, unit_rows: int, currency: Currency) -> list[Problem]:
    """Whether the noise of an answer follows from its cost and from what the answer states about itself."""
    if currency == "gaussian" and not isinstance(answer, Measurement | HeldBack | ResidualTable | NoisyScores):
        return [Problem(where, "has no Gaussian noise, in a run accounted as Gaussian.", DISTRUST)]
    match answer:
        case Selection() | Selections():
            return _choice_paid(where, charge, answer)
        case NoisyScores() | Grown() | ResidualTable():
            return _whole_paid(where, charge, answer, unit_rows, currency)
        case Trained():
            return _training_paid(where, charge, answer)
        case Discovery():
            return _paid_for(where, charge, unit_rows, answer.threshold, currency)
        case _:
            return _paid_for(where, charge, unit_rows, None, currency)


def _whole_paid(
    where: str, charge: Charge, answer: NoisyScores | Grown | ResidualTable, unit_rows: int, currency: Currency
) -> list[Problem]:
    """Whether the noise of scores or residuals, or noise and bias of a tree, follow from the cost."""
    try:
        if isinstance(answer, NoisyScores):
            fits = charge.distribution == score_distribution(
                charge.cost, answer.values.size, answer.sensitivity, charge.step, currency=currency
            )
        elif isinstance(answer, ResidualTable):
            fits = charge.distribution == residual_distribution(
                charge.cost, answer.shape, unit_rows, charge.step, currency=currency
            )
        else:
            distribution, bias = growth_rule(charge.cost, unit_rows, answer.decay, charge.step)
            fits = charge.distribution == distribution and answer.bias == bias
    except UnderstudyError:
        return [Problem(where, "its cost allows no noise that protects.", DISTRUST)]
    return [] if fits else [Problem(where, "its noise is smaller or larger than its cost allows.", DISTRUST)]


def _training_paid(where: str, charge: Charge, answer: Trained) -> list[Problem]:
    """Whether a training with that noise costs no more than its cost."""
    course = answer.course
    if (answer.first_distribution is None) != (course.first_share == 0):
        return [Problem(where, "the noise of its first look is missing or was not planned.", DISTRUST)]
    try:
        paid = parts_epsilon(
            course_parts(course, answer.first_distribution, answer.distribution), charge.cost.delta / DELTA_UNIT
        )
    except (UnderstudyError, ValueError, OverflowError, ZeroDivisionError):
        return [Problem(where, "its cost allows no such training.", DISTRUST)]
    cost = charge.cost.epsilon / UNIT
    if charge.cost.rho or paid > cost + 2e-9:  # what another machine may round otherwise; the bound holds 1e-9 in hand
        return [Problem(where, "its noise is smaller than its cost allows.", DISTRUST)]
    return []


def _paid_for(where: str, charge: Charge, unit_rows: int, threshold: int | None, currency: Currency) -> list[Problem]:
    """Whether the distribution of the noise follows from the cost."""
    try:
        distribution = distribution_for(
            charge.cost, unit_rows, charge.step, laplace=threshold is not None, currency=currency
        )
        needed = (
            None if threshold is None else discovery_threshold(distribution, unit_rows, charge.cost.delta, charge.step)
        )
    except UnderstudyError:
        return [Problem(where, "its cost allows no noise that protects.", DISTRUST)]
    # More noise than was paid for is a fault as well: charge and answer would not belong together.
    if charge.distribution != distribution or (needed is not None and threshold is not None and threshold < needed):
        return [Problem(where, "its noise is smaller or larger than its cost allows.", DISTRUST)]
    return []


def _choice_paid(where: str, charge: Charge, answer: Selection | Selections) -> list[Problem]:
    """Whether the rate of a choice follows from its cost and the stated sensitivity of its scores."""
    try:
        rate = selection_rate(charge.cost, answer.sensitivity, charge.step, monotone=answer.monotone)
    except UnderstudyError:
        return [Problem(where, "its cost allows no choice.", DISTRUST)]
    return [] if answer.rate == rate else [Problem(where, "its rate does not follow from its cost.", DISTRUST)]


def check_settings(statement: Statement, config: RunConfig, schema: Schema) -> list[Problem]:
    """Whether settings and schema are those of the statement."""
    pairs = {
        "config.yaml: method": (config.method, statement.method),
        "config.yaml: epsilon": (config.epsilon, statement.budget.epsilon),
        "config.yaml: delta": (config.delta, statement.budget.delta),
        "config.yaml: copies": (config.copies, statement.copies),
        "config.yaml: copies_mode": (config.copies_mode, statement.copies_mode),
        "schema.yaml: unit": (schema.unit, statement.unit),
        "schema.yaml: title": (schema.title, statement.title),
        "schema.yaml: titles of columns": (schema.titles, dict(statement.titles)),
        "schema.yaml: unreadable": (schema.unreadable == "drop", statement.drops_unreadable),
        "schema.yaml": (digest_of(schema), statement.schema_digest),
    }
    differs = [where for where, (given, stated) in pairs.items() if given != stated]
    found = [Problem(where, "is not what the statement says.", DISTRUST) for where in differs]
    if statement.currency == "pure" and any(charge.cost.rho for charge in statement.charges):
        found.append(Problem(NAME, "a pure run has a charge in ρ.", DISTRUST))
    return found


def _check_planned(
    statement: Statement, planned: Callable[[Statement], Sequence[Cost] | None], effort: Effort
) -> list[Problem]:
    """Whether a run that says so asked what its plan fixes, at just these costs."""
    # Without this anybody could call a run planned afterwards, whose costs followed from noisy answers.
    costs = planned(statement)
    if costs is None:
        effort.believed.append("that the run kept to its plan, which another version or a public table made")
        return []
    if list(costs) == [charge.cost for charge in statement.charges]:
        return []
    rule = "is not true: the plan of this method, schema and budget does not fix these queries at these costs."
    return [Problem(f"{NAME}: as_planned", rule, DISTRUST)]


def check_odd(statement: Statement, fitted: Fitted) -> list[Problem]:
    """Whether what is said about unreadable values follows from answers and model; the first format said nothing."""
    if not fitted.codec.unreadable and not statement.drops_unreadable:
        return []
    derived = {(one.column, one.meaning): one for one in odd_values(fitted.codec, fitted.transcript, fitted.model)}
    stated = {(one.column, one.meaning): one for one in statement.odd}
    # Another machine may round a share otherwise in its last digit. Of crowded bins earlier versions said nothing.
    needed = {key for key in derived if key[1] in UNREAD}
    close = needed <= stated.keys() <= derived.keys() and all(
        abs(one.share - derived[key].share) < 0.002
        and (one.labelled, one.bin) == (derived[key].labelled, derived[key].bin)
        for key, one in stated.items()
    )
    return [] if close else [Problem(f"{NAME}: odd_values", "does not follow from the noisy answers.", DISTRUST)]


def check_held_back(statement: Statement, transcripts: Sequence[Transcript]) -> list[Problem]:
    """Whether held-back answers and what the statement says of a check go together, and cost no more than its share."""
    held = [(run, one) for run, answers in enumerate(transcripts, start=1) for one in answers.of(HeldBack)]
    if (statement.check is not None) != bool(held) or any(run != 1 for run, _ in held):
        return [Problem(f"{NAME}: check", "does not go with the answers that were held back.", DISTRUST)]
    if statement.check is None:
        return []
    found = []
    answers = transcripts[0].answers
    # Answers in front of the method's own could have been seen by it, and then they check nothing.
    if any(isinstance(one, HeldBack) for one in answers[: len(answers) - len(held)]):
        found.append(Problem("measurements.parquet", "a method was asked after the check's answers.", DISTRUST))
    charges = [charge for charge in statement.charges if charge.run == 1][len(answers) - len(held) :]
    share = statement.check.share
    if not 0 < share <= MOST_SHARE or not total_cost(charge.cost for charge in charges).fits(
        statement.granted.share(as_fraction(share))
    ):
        found.append(Problem(f"{NAME}: check", "cost more than its share of the budget.", DISTRUST))
    return found


MOST_JUDGEMENTS = 20_000
"""Distances that are computed again unless everything is asked for."""
MOST_SUMMED = 100_000
"""Most work on quantiles of summed noise, unless everything is asked for: each takes time as the root of its cells."""
CLOSE = 2e-6
"""How far a bound computed on another machine may be off; bounds are rounded to a millionth."""


def check_check(statement: Statement, again: Check) -> list[Problem]:
    """Whether what the statement says of the rows follows from the rows and the held-back answers."""
    stated = statement.check
    assert stated is not None
    bounds = [
        [((one.copy, one.columns, one.cells), one.lower, one.upper) for one in side.distances]
        + [((one.criterion, one.decided_by), one.lower, one.upper) for one in side.verdicts]
        for side in (stated, again)
    ]
    same = len(bounds[0]) == len(bounds[1]) and all(
        said == found and abs(low - lower) <= CLOSE and abs(high - upper) <= CLOSE
        for (said, low, high), (found, lower, upper) in zip(*bounds, strict=True)
    )
    return [] if same else [Problem(f"{NAME}: check", "does not follow from rows and noisy answers.", DISTRUST)]


def _checked_again(folder: Path, codec: TableCodec, transcript: Transcript, config: RunConfig, check: Check) -> Check:
    """The check, with the same criteria, computed from the rows in the folder."""
    cliques = list(held_back_tables(transcript, codec.domain))
    paths = [folder / data_name(copy, config.copies) for copy in range(1, config.copies + 1)]
    copies = (counts_of_rows(stored_tables(path, codec), codec, cliques) for path in paths)
    return checked(check, transcript, codec, copies, number=len(paths))


def check_ledger(statement: Statement, lines: Sequence[str]) -> list[Problem]:
    """Whether the extract is consistent and ends with the charge of this run."""
    name = "ledger.jsonl"
    try:
        entries = [parse_json(line.encode("utf-8", "replace"), name) for line in lines]
    except ReleaseError:
        return [Problem(name, "is not a list of JSON lines.", DISTRUST)]
    listed = [entry for entry in entries if isinstance(entry, dict)]
    if not listed or len(listed) != len(entries):
        return [Problem(name, "holds no entry.", DISTRUST)]
    found = list(verify_extract(listed, name))
    last = listed[-1]
    cost = tuple(last.get(f"cost_{part}") for part in ("epsilon", "rho", "delta"))
    granted = statement.granted
    budget = (last.get("budget_epsilon"), last.get("budget_delta"))
    facts = {
        "kind": (last.get("kind"), "charge"),
        "run": (last.get("run"), statement.run),
        "hash": (last.get("hash"), statement.ledger.head),
        "releases": (last.get("releases"), statement.ledger.releases),
        "method": (last.get("method"), statement.method),
        "note": (last.get("note"), charge_note(statement.schema_digest)),
        "cost": (cost, (granted.epsilon, granted.rho, granted.delta)),
        "budget": (budget, (statement.budget.epsilon_units, statement.budget.delta_units)),
    }
    if statement.ledger.dataset is not None:
        facts["dataset"] = (last.get("dataset"), statement.ledger.dataset)
    wrong = [key for key, (given, stated) in facts.items() if given != stated]
    return found + [Problem(f"{name}: {key}", "is not what the statement says.", DISTRUST) for key in wrong]


MOST_PROBLEMS = 200

Content = TypeVar("Content")


@dataclass(slots=True)
class _Findings:
    """Problems so far; a check that cannot even read its file becomes a problem, not a crash."""

    problems: list[Problem] = field(default_factory=list)

    def read(self, where: str, read: Callable[[], Content]) -> Content | None:
        """What `read` returns, or None and a problem."""
        try:
            return read()
        except (ReleaseError, SchemaError) as error:
            self.problems += error.problems
        except UnderstudyError as error:
            self.problems.append(Problem(where, f"cannot be used: {error}"))
        # The kind of error alone: its text may quote what a stranger wrote.
        except Exception as error:  # noqa: BLE001 - whatever a damaged file leads to is a finding
            self.problems.append(Problem(where, f"cannot be read ({type(error).__name__})."))
        return None

    def add(self, where: str, check: Callable[[], list[Problem]]) -> None:
        """Adds what a check finds."""
        self.problems += self.read(where, check) or []


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is wrong with a folder, what was too much to look at, and what nobody can check from it."""

    problems: tuple[Problem, ...]
    unchecked: tuple[str, ...] = ()
    believed: tuple[str, ...] = ()


def verify_release(folder: str | Path, *, everything: bool = False) -> list[Problem]:
    """Everything wrong with a release folder; an empty list means that nothing was found.

    Of folders with more than about 100 million values a part is checked, drawn at random, unless `everything` is
    asked for; `inspect_release` says what was left out.
    """
    return list(inspect_release(folder, everything=everything).problems)


Replan = Callable[[Schema, RunConfig, Statement], Sequence[Cost] | None]
"""The costs that a run's plan fixes, made again without data; none if it fixes none, None where nobody can tell."""


def inspect_release(folder: str | Path, *, everything: bool = False, replan: Replan | None = None) -> Inspection:
    """What is wrong with a release folder and what was not checked.

    Without `replan` the statement is believed that its run kept to a plan (`synthesizer/verifying.py` has it). The
    folder may come from a stranger: unless `everything` is asked for, it takes at most a minute and a GiB of
    memory, whatever the folder holds.
    """
    place = Path(folder)
    if not place.is_dir() and not finish_waiting(place):
        return Inspection((Problem(str(folder), "is not a folder.", "Name the folder that synthesize wrote."),))
    if not (place / MANIFEST).is_file() and not (place / "statement.json").is_file():
        rule = f"is not a release folder: no {MANIFEST}."
        return Inspection((Problem(str(folder), rule, "Name the folder that synthesize wrote."),))
    effort = Effort() if everything else Effort.limited()
    findings = _Findings()
    findings.add("folder", lambda: check_files(place, effort))
    schema = findings.read("schema.yaml", lambda: read_schema(place))
    config = findings.read("config.yaml", lambda: read_config(place / "config.yaml"))
    stated = findings.read("statement.json", lambda: check_statement(place))
    findings.add("card.html", lambda: check_page("card.html", read_plain(place / "card.html").decode("utf-8")))
    if stated:
        findings.problems += stated[1]
        findings.add("ledger.jsonl", lambda: check_ledger(stated[0], read_ledger(place)))
    findings.add(PACKAGES_FILE, lambda: check_packages(place))
    if (place / SIGNATURE).exists():  # of the right form; whose it is, a key must tell
        findings.read(SIGNATURE, lambda: read_signature(place))
    if config:
        findings.add("folder", lambda: check_expected(place, expected_files(config), (STATISTICS_FILE, PACKAGES_FILE)))
    if config and stated and schema:
        findings.add("config.yaml", lambda: check_settings(stated[0], config, schema))
        if replan is not None and stated[0].as_planned:
            if len(schema.columns) <= effort.columns:
                planned = partial(replan, schema, config)
                findings.add("statement.json", partial(_check_planned, stated[0], planned, effort))
            else:
                effort.unchecked.append("whether the run kept to its plan, for that many columns")
        _check_runs(findings, place, schema, config, (stated[0], effort))
    return Inspection(_shown(findings.problems), tuple(effort.unchecked), tuple(effort.believed))


def _shown(problems: list[Problem]) -> tuple[Problem, ...]:
    """Each problem once, and no more of them than somebody reads."""
    each = tuple(dict.fromkeys(problems))
    if len(each) <= MOST_PROBLEMS:
        return each
    return (*each[:MOST_PROBLEMS], Problem("folder", f"has {len(each) - MOST_PROBLEMS:,} more findings."))


def _check_runs(
    findings: _Findings, folder: Path, schema: Schema, config: RunConfig, stated: tuple[Statement, Effort]
) -> None:
    """Answers, models and rows of every run."""
    statement, effort = stated
    runs = number_of_runs(config)
    path = folder / "measurements.parquet"
    transcripts = findings.read(path.name, lambda: _answers(path, runs, effort))
    if transcripts:
        findings.add(path.name, lambda: check_charges(statement, transcripts))
        findings.add("statement.json", lambda: check_held_back(statement, transcripts))
    loaded = [_checked_model(findings, folder, schema, run, effort) for run in range(1, runs + 1)]
    for copy in range(1, config.copies + 1):
        run = copy if runs > 1 else 1
        codec, model = loaded[run - 1]
        if codec is None:
            continue
        never_empty: frozenset[str] | None = None
        if model is not None and transcripts:
            fitted = Fitted(codec, transcripts[run - 1], model)
            never_empty = findings.read(model_name(run), partial(never_unreadable, codec, fitted.transcript, model))
            if copy == 1:
                findings.add("statement.json", partial(check_odd, statement, fitted))
        name, rows = data_name(copy, config.copies), config.rows[copy - 1]
        check = partial(check_rows, folder / name, codec, rows, statement.run, effort)
        findings.add(name, partial(check, never_empty=never_empty or frozenset()))
    if (folder / STATISTICS_FILE).is_file() and transcripts:
        pairs = zip(loaded, transcripts, strict=True)
        fits = [Fitted(codec, answers, model) for (codec, model), answers in pairs if codec and model]
        if len(fits) == runs:
            findings.add(STATISTICS_FILE, partial(_checked_statistics, folder / STATISTICS_FILE, fits, effort))
    codec = loaded[0][0]
    if statement.check is not None and transcripts and codec and not findings.problems:
        again = partial(_recheck, statement, folder, codec, transcripts[0], config)
        values = sum(config.rows) * len(codec.arrow_schema)
        limited = effort.noisy_values is not None
        if effort.cells < values or (limited and _takes_long(transcripts[0].of(HeldBack), statement.check, config)):
            effort.unchecked.append("the distances of the check")
        else:
            findings.add("statement.json", again)


def _takes_long(held: Sequence[HeldBack], check: Check, config: RunConfig) -> bool:
    """Whether the distances may take a minute or more; tables of one size and noise share their quantiles."""
    times = 1 + len(check.criteria)
    sums = {(one.distribution, one.values.size) for one in held}
    summed = times * sum(math.sqrt(cells) for _, cells in sums)
    return len(held) * config.copies * times > MOST_JUDGEMENTS or summed > MOST_SUMMED


def _recheck(
    statement: Statement, folder: Path, codec: TableCodec, transcript: Transcript, config: RunConfig
) -> list[Problem]:
    assert statement.check is not None
    return check_check(statement, _checked_again(folder, codec, transcript, config, statement.check))


def _checked_statistics(path: Path, fits: Sequence[Fitted], effort: Effort) -> list[Problem]:
    found, unchecked = check_statistics(path, fits, everything=effort.noisy_values is None)
    effort.unchecked += [unchecked] if unchecked else []
    return found


def _answers(path: Path, runs: int, effort: Effort) -> list[Transcript]:
    """The noisy answers of every run; none if there are more than may be read."""
    try:
        return read_measurements(path, runs, effort.noisy_values)
    except ResourceError:
        effort.unchecked.append(f"the answers in {path.name}")
        return []


def _checked_model(
    findings: _Findings, folder: Path, schema: Schema, run: int, effort: Effort
) -> tuple[TableCodec | None, Model | None]:
    """Codes and model of a run, as far as they can be read; the model must be about the same codes."""
    codec = findings.read(f"codes of run {run}", lambda: load_codec(schema, folder, run))
    place = folder / model_name(run)
    size = findings.read(model_name(run), lambda: sum(entry.lstat().st_size for entry in place.iterdir())) or 0
    if size > effort.model_bytes:
        effort.unchecked.append(f"the numbers in {model_name(run)}")
        return codec, None
    model = findings.read(model_name(run), lambda: load_model(place))
    if codec and model and dict(model.domain.sizes) != dict(codec.domain.sizes):
        findings.problems.append(Problem(model_name(run), "has other codes than the schema."))
        return codec, None
    return codec, model
