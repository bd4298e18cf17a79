"""Statistics: tables of a release cell by cell in words, with the error of every noisy count. Post-processing: free.

Everything here is computed from the noisy answers, the fitted model and the codes, all of which are released. So
nothing more is learned about any unit, and nothing is charged.

What is measured
----------------
A measured table holds y = x + z with x the counts of the private table and z independent integer noise of known
variance v. The sum of k of its cells has the standard error √(k·v). So every table whose columns are among those of a
measured one follows from it with a known error; where several measured tables hold the columns, their sums are averaged
with weights inverse to their variances. Each is unbiased. Where a method decided by earlier answers what to measure
next, errors are those of each answer given what came before it, as everywhere in this package.

Residuals
---------
A method may measure of a pair what its columns do not tell: its residuals R, counts less the means of rows and columns,
with noise of variance σ² from which the same means are taken off (`privacy/gaussian.py`). With r and c the noisy counts
of the two columns, of a and b codes, each measured by itself with variances v_r and v_c,

    y_ij = R_ij + r_i/b + (c_j − mean of c)/a

is an unbiased count of the cell, for that is how counts are made up of residuals and means. The noise of its cells is
not independent, but for all weights w, with P taking off means along an axis,

    variance of Σ w·y = σ²·|P w P|² + v_r·Σ_i (Σ_j w_ij/b)² + v_c·Σ_j (mean over i of w_ij, less its mean)²
                      ≤ (σ² + v_r/b + v_c/a)·Σ w²,

since P shortens and (Σ_j w_ij)² ≤ b·Σ_j w_ij². So for sums such a table counts as one with independent noise of that
variance: errors are never too small. The error of a single cell is given as it is. The three kinds of noise are
independent; a pair whose residuals were measured several times is averaged before its columns are added.

`estimate` is what the fitted model makes of the same cell: never negative, and consistent between tables. It has no
standard error of its own, for nothing known here bounds how far a model is off in one cell. Tables that were never
measured have the estimate alone, and say so (`basis`).

Of a table of which only large noisy counts were kept, those are listed. That they were kept says that their noise was
rather positive, so their standard error is that of all cells and not of these. Such tables are not summed. Tables whose
cells follow a rule of their own (merged labels, leaves of trees) are listed with the number of the cell.

Tables that were held back for the check of the rows are listed as such. No noisy count that is averaged here takes part
of them, so that whoever compares an answer with the check compares two independent ones.

statistics.parquet
------------------
One row for each cell of every measured table, up to `MOST_WRITTEN` cells in all and `MOST_OF_TABLE` of one table; what
was left out is named in the metadata. It says nothing that the other files do not say, so `verify` computes it again.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from understudy.arrays import Floats, Ints
from understudy.codec.table import TableCodec
from understudy.domain import (
    RESIDUAL_UNIT,
    Distribution,
    Domain,
    HeldBack,
    Measurement,
    ResidualTable,
    SparseMeasurement,
)
from understudy.errors import Problem, ResourceError, UsageError, nearest
from understudy.models.model import Model
from understudy.release.parquet import batch_rows, open_parquet
from understudy.release.wording import is_table
from understudy.schema import code_names

if TYPE_CHECKING:
    from understudy.release.release import Fitted

STATISTICS_FILE = "statistics.parquet"
STATISTICS_KEY = b"understudy.statistics"
STATISTICS_FORMAT = "understudy statistics, format 1"
MOST_WRITTEN = 2**20
MOST_OF_TABLE = 2**17
MOST_ASKED = 2**22
"""Cells of a table that is asked for at most."""
MOST_CHECKED = 500
"""Tables whose estimates `verify` computes again unless everything is asked for."""
_NAMED = 3
_TEXTS = ("table", "kind", "label")
_WORDS = pa.dictionary(pa.int32(), pa.string())
CELLS = pa.schema(
    [
        ("run", pa.int32()),
        ("answer", pa.int32()),
        ("table", _WORDS),
        ("kind", _WORDS),
        ("cell", pa.int64()),
        ("label", pa.string()),
        ("noisy_count", pa.int64()),
        ("standard_error", pa.float64()),
        ("estimate", pa.float64()),
    ]
)
MEASURED, MODELLED = "measured", "model"
"""Bases of a table: measured as it is; or never measured, so that only the model speaks."""
RESIDUALS = "residuals of "
_ROUNDING = 1 / 12
"""Variance that rounding to whole rows adds."""


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """Counts of a pair, put together from its residuals and the noisy tables of its two columns."""

    name: str
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    counts: Floats
    """Row-major, not rounded."""
    noise: Distribution
    """Noise of the residuals (the first, if they were measured several times), in units of their lattice."""
    variance: float
    """Bound for sums: that of Σ w·counts is at most this, times Σ w²."""
    cell_variance: float
    """Variance of a single count."""

    @property
    def values(self) -> Ints:
        """The counts as whole rows."""
        return np.rint(self.counts).astype(np.int64)

    @classmethod
    def of(cls, residuals: Sequence[ResidualTable], first: "_ColumnTable", second: "_ColumnTable") -> "PairTable":
        """The table of a pair of which at least these residuals were measured."""
        weights = np.array([1.0 / one.variance for one in residuals])
        found = np.tensordot(weights / weights.sum(), np.stack([one.residuals for one in residuals]), 1)
        variance, (rows, columns) = 1.0 / float(weights.sum()), residuals[0].shape
        counts = found + first.counts[:, None] / columns + (second.counts - second.counts.mean()) / rows
        bound = variance + first.variance / columns + second.variance / rows
        cell = variance * (1 - 1 / rows) * (1 - 1 / columns)
        cell += first.variance / columns**2 + second.variance * (1 - 1 / columns) / rows**2
        one = residuals[0]
        return cls(one.name, one.columns, one.shape, counts.ravel(), one.distribution, bound, cell)

    def misplaced(self, model_counts: Floats, confidence: float) -> float:
        """Largest share of records that the model puts in a wrong cell of this table, with that confidence.

        Half the L1 distance, as for tables that were measured as they are. What noise adds to it: Σ|z| over m cells has
        the mean m·√(2·cell_variance/π), and z is a linear image of independent Gaussian noise that stretches nothing by
        more than √variance. So Σ|z|, which moves by at most √m times as much, passes its mean by t with probability
        e^(−t²/(2·m·variance)) or less (concentration of Gaussian measure).
        """
        total = float(model_counts.sum())
        if total <= 0:
            return 1.0
        cells = self.counts.size
        noise = cells * math.sqrt(2 * self.cell_variance / math.pi)
        noise += math.sqrt(-2 * cells * self.variance * math.log(1 - confidence))
        return min(1.0, (float(np.abs(self.counts - model_counts.ravel()).sum()) + noise) / (2 * total))


@dataclass(frozen=True, slots=True, eq=False)
class _ColumnTable:
    """Noisy counts of one column by itself."""

    counts: Floats
    variance: float


Table = Measurement | HeldBack | SparseMeasurement | PairTable


class CellWords:
    """The codes of each column in words, looked up once."""

    def __init__(self, codec: TableCodec) -> None:
        self._codec = codec
        self._known: dict[str, pa.Array] = {}

    def of_cells(self, columns: Sequence[str], shape: Sequence[int], cells: Ints) -> pa.Array:
        """The words of flat cell numbers; cells of a rule of its own (a partition) are numbered."""
        sizes = self._codec.domain.sizes
        if tuple(sizes.get(name) for name in columns) != tuple(shape):
            return numbered("cell", cells)
        if not columns:
            return pa.array(["total"] * cells.size, pa.string())
        parts = self.of_columns(columns, shape, cells)
        return pc.binary_join_element_wise(*parts, " × ") if len(parts) > 1 else parts[0]

    def of_columns(self, columns: Sequence[str], shape: Sequence[int], cells: Ints) -> list[pa.Array]:
        """The words of flat cell numbers, column by column."""
        codes = unravelled(cells, shape)
        return [self._of_column(name).take(pa.array(code)) for name, code in zip(columns, codes, strict=True)]

    def _of_column(self, name: str) -> pa.Array:
        if name not in self._known:
            size = self._codec.domain.sizes[name]
            texts = [self._codec.describe(name, code) for code in range(size)]
            self._known[name] = pa.array([storable(text) for text in texts], pa.string())
        return self._known[name]


def unravelled(cells: Ints, shape: Sequence[int]) -> list[Ints]:
    """The codes of flat cell numbers, column by column."""
    # numpy.unravel_index refuses shapes whose product it cannot hold in a pointer; plain division has no such limit
    codes, rest = [], cells
    for size in reversed(shape):
        codes.append(rest % size)
        rest = rest // size
    return codes[::-1]


def storable(text: str) -> str:
    """The text without what UTF-8 cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def numbered(text: str, numbers: Ints) -> pa.Array:
    """Words such as "cell 7"."""
    return pc.binary_join_element_wise(text, pc.cast(pa.array(numbers), pa.string()), " ")


def repeated(text: str | None, rows: int) -> pa.Array:
    """The same text in every row, as one entry of a dictionary."""
    indices = pa.array(np.zeros(rows, np.int32)) if text is not None else pa.nulls(rows, pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array([text or ""], pa.string()))


def tables_of(fitted: "Fitted") -> list[tuple[int, Table]]:
    """Every answer that holds counts of cells, with its position; kinds that hold none are passed over.

    Pairs that were measured by their residuals stand at the position of the first of these.
    """
    found: list[tuple[int, Table]] = []
    pairs = _pair_tables(fitted)
    for place, one in enumerate(fitted.transcript):
        if isinstance(one, Measurement | HeldBack | SparseMeasurement):
            found.append((place, one))
        elif isinstance(one, ResidualTable) and one.columns in pairs:
            found.append((place, pairs.pop(one.columns)))
    return found


def _pair_tables(fitted: "Fitted", only: Sequence[str] | None = None) -> dict[tuple[str, ...], PairTable]:
    """The pairs (or that one) whose residuals and columns were measured, in the codes of the release."""
    domain = fitted.codec.domain
    columns = _column_tables(fitted)
    by_pair: dict[tuple[str, ...], list[ResidualTable]] = {}
    for one in fitted.transcript.of(ResidualTable):
        wanted = only is None or one.columns == tuple(only)
        if wanted and _is_pair(one, domain) and columns.keys() >= set(one.columns):
            by_pair.setdefault(one.columns, []).append(one)
    return {pair: PairTable.of(residuals, columns[pair[0]], columns[pair[1]]) for pair, residuals in by_pair.items()}


def _is_pair(answer: ResidualTable, domain: Domain) -> bool:
    known = len(answer.columns) == 2 and set(answer.columns) <= domain.sizes.keys()
    return known and answer.shape == domain.shape(answer.columns)


def _column_tables(fitted: "Fitted") -> dict[str, _ColumnTable]:
    """Columns that were measured by themselves; no sums of larger tables, which two columns could have in common."""
    by_column: dict[str, list[Measurement]] = {}
    for answer in fitted.transcript.of(Measurement):
        if len(answer.columns) == 1 and is_table(answer, fitted.codec.domain):
            by_column.setdefault(answer.columns[0], []).append(answer)
    found = {}
    for name, answers in by_column.items():
        weights = np.array([1.0 / max(one.distribution.variance, 1e-200) for one in answers])
        counts = np.tensordot(weights / weights.sum(), np.stack([one.values for one in answers]), 1)
        found[name] = _ColumnTable(counts, 1.0 / float(weights.sum()))
    return found


def kind_of(answer: Table, codec: TableCodec) -> str:
    """What sort of table an answer is, in words."""
    if isinstance(answer, SparseMeasurement):
        return "large cells only"
    if isinstance(answer, PairTable):
        return "residuals and columns"
    if isinstance(answer, HeldBack):
        return "held back for the check"
    return "table" if is_table(answer, codec.domain) else "cells of its own"


def model_counts(model: Model, columns: Sequence[str]) -> Floats | None:
    """What the model makes of the table of these columns, in rows; None where it is too tangled to say."""
    try:
        return np.asarray(model.marginal(model.domain.clique(columns)), np.float64) * model.total
    except ResourceError:
        return None


def overview(fits: Sequence["Fitted"]) -> pa.Table:
    """One row for every table that was measured: which, in how many cells, with which noise."""
    lines = []
    for run, fitted in enumerate(fits, start=1):
        for _, one in tables_of(fitted):
            noise = one.noise if isinstance(one, PairTable) else one.distribution
            lines.append(
                {
                    "run": run,
                    "table": storable(one.name),
                    "kind": kind_of(one, fitted.codec),
                    "cells": min(math.prod(one.shape), 2**63 - 1),
                    "noise": noise.kind,
                    "scale": noise.scale / (RESIDUAL_UNIT if isinstance(one, PairTable) else 1),
                    "standard_error": _error_of(one),
                }
            )
    types = [("run", pa.int32()), ("table", pa.string()), ("kind", pa.string()), ("cells", pa.int64())]
    types += [("noise", pa.string()), ("scale", pa.float64()), ("standard_error", pa.float64())]
    return pa.Table.from_pylist(lines, schema=pa.schema(types))


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Noisy counts of a table, with the same noise in each, and the measured tables they were summed from."""

    counts: Floats
    error: float
    """Standard deviation to reckon with in sums of cells, as if the noise in each were independent."""
    sources: tuple[str, ...]
    kurtosis: float = 0.0
    """Excess kurtosis of the noise in a cell: 0 for Gaussian noise, up to 3 and more for a single Laplace value."""
    cell_error: float | None = None
    """Standard error of a single cell, where that is less than `error`."""


def noisy_sums(fits: Sequence["Fitted"], columns: Sequence[str]) -> Sums | None:
    """The counts of a table from every measured one that holds its columns; None if there is none.

    Runs measured the same rows with noise of their own, so their answers are averaged as those of one run are.
    """
    parts = [part for fitted in fits for part in (*_summed(fitted, columns), *_put_together(fitted, columns))]
    if not parts:
        return None
    weights = np.asarray([1.0 / max(part.variance, 1e-200) for part in parts])
    shares = weights / math.fsum(weights)
    # With weights inverse to variances, each part brings its share of the variance: κ = Σ share²·κ_i.
    kurtosis = float(shares**2 @ np.asarray([part.kurtosis for part in parts]))
    single = math.fsum((shares**2 * [part.cell_variance for part in parts]).tolist())
    error = math.sqrt(1.0 / math.fsum(weights))
    sources = tuple(dict.fromkeys(part.source for part in parts))
    return Sums(shares @ np.stack([part.counts for part in parts]), error, sources, kurtosis, math.sqrt(single))


@dataclass(frozen=True, slots=True, eq=False)
class _NoisyPart:
    """Noisy counts of a table from one answer, or from residuals and columns."""

    counts: Floats
    variance: float
    cell_variance: float
    kurtosis: float
    source: str


def _summed(fitted: "Fitted", columns: Sequence[str]) -> Iterator[_NoisyPart]:
    """The sums of every measured table that holds the columns."""
    for answer in fitted.transcript.of(Measurement):
        if not set(columns) <= set(answer.columns) or not is_table(answer, fitted.codec.domain):
            continue
        others = tuple(axis for axis, name in enumerate(answer.columns) if name not in columns)
        summed = answer.table.sum(axis=others).astype(np.float64).ravel()
        cells = answer.values.size / summed.size
        variance = cells * answer.distribution.variance
        yield _NoisyPart(summed, variance, variance, answer.distribution.excess_kurtosis / cells, answer.name)


def _put_together(fitted: "Fitted", columns: Sequence[str]) -> Iterator[_NoisyPart]:
    """The pair of these columns from its residuals, if it was measured so: with Gaussian noise, as all residuals."""
    for pair in _pair_tables(fitted, columns).values():
        yield _NoisyPart(pair.counts, pair.variance, pair.cell_variance, 0.0, f"{RESIDUALS}{pair.name}")


def table_statistics(fits: Sequence["Fitted"], asked: Sequence[str]) -> pa.Table:
    """One table cell by cell: words of each column, `noisy_count`, `standard_error`, `estimate`, `basis`.

    Raises:
        UsageError: if a column is unknown, or if runs number their labels differently.
        ResourceError: if the table has more than `MOST_ASKED` cells, or neither answers nor model can say anything.
    """
    codec = fits[0].codec
    columns = codec.domain.clique(_coded(codec, name) for name in asked)
    require_same_codes(fits, columns)
    sparse = _kept_cells(fits, columns)
    sums = noisy_sums(fits, columns) if codec.domain.cells(columns) <= MOST_ASKED else None
    if sums is None and sparse is not None:
        return sparse
    cells = codec.domain.cells(columns)
    if cells > MOST_ASKED:
        where = f"table {' × '.join(columns)}"
        raise ResourceError(where, cells * 8, MOST_ASKED * 8, "Ask about fewer columns.")
    known = [model_counts(fitted.model, columns) for fitted in fits]
    estimates = [one for one in known if one is not None]
    if sums is None and len(estimates) < len(known):
        rule = "was not measured, and the model has too many connected columns to compute it."
        raise UsageError(f"table {' × '.join(columns)}", rule, "Count it in the rows, without an error bar.")
    estimate = np.mean(estimates, axis=0) if len(estimates) == len(known) else None
    return _table(codec, columns, (np.arange(cells), sums, estimate), _basis(sums, " × ".join(columns)))


def _coded(codec: TableCodec, name: str) -> str:
    """The column of codes that a name stands for; for a column with codes in two parts, how large its numbers are."""
    if name in codec.domain.sizes:
        return name
    for column in codec.schema.modelled:
        if column.name == name:
            return code_names(column)[0]
    known = nearest(name, codec.domain.columns)
    raise UsageError(f"column {name!r}", "is not a modelled column of this release.", known)


def require_same_codes(fits: Sequence["Fitted"], columns: Sequence[str]) -> None:
    """Runs discover the labels of open columns anew: then their cells are not the same."""
    words = [
        [[one.codec.describe(name, code) for code in range(one.codec.domain.sizes[name])] for name in columns]
        for one in fits[: 1 if len(fits) == 1 else None]
    ]
    if any(one != words[0] for one in words):
        rule = "has other labels in each copy, for every copy was measured anew."
        raise UsageError(f"table {' × '.join(columns)}", rule, "Ask about one copy with copy=.")


def _basis(sums: Sums | None, name: str) -> str:
    if sums is None:
        return MODELLED
    ways = [MEASURED] if name in sums.sources else []
    ways += ["residuals and columns"] if f"{RESIDUALS}{name}" in sums.sources else []
    others = [source for source in sums.sources if source not in (name, f"{RESIDUALS}{name}")]
    if others:
        more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
        ways.append(f"sums of {'; '.join(others[:_NAMED])}{more}")
    return storable(", and ".join(ways))


def _error_of(answer: Table) -> float:
    """The standard error of one cell."""
    variance = answer.cell_variance if isinstance(answer, PairTable) else answer.distribution.variance
    return math.sqrt(variance)


def _kept_cells(fits: Sequence["Fitted"], columns: Sequence[str]) -> pa.Table | None:
    """The cells of a table of which only large noisy counts were kept; None if there is no such table."""
    found = [one for fitted in fits for one in fitted.transcript.of(SparseMeasurement) if one.columns == tuple(columns)]
    codec = fits[0].codec
    if not found or found[0].shape != codec.domain.shape(columns):
        return None
    first = found[0]
    sums = Sums(first.values.astype(np.float64), math.sqrt(first.distribution.variance), (first.name,))
    known = model_counts(fits[0].model, columns) if codec.domain.cells(columns) <= MOST_ASKED else None
    estimate = None if known is None else known[first.indices]
    basis = f"{MEASURED}; cells with a noisy count of {first.threshold:,} or more were kept"
    return _table(codec, columns, (first.indices, sums, estimate), basis)


def _table(
    codec: TableCodec, columns: Sequence[str], content: tuple[Ints, Sums | None, Floats | None], basis: str
) -> pa.Table:
    cells, sums, estimate = content
    words = CellWords(codec).of_columns(columns, codec.domain.shape(columns), cells)
    rows = len(cells)
    nothing = pa.nulls(rows, pa.float64())
    arrays: dict[str, pa.Array] = dict(zip(columns, words, strict=True))
    numbers = {
        "noisy_count": nothing if sums is None else pa.array(sums.counts),
        "standard_error": nothing
        if sums is None
        else pa.array(np.full(rows, sums.error if sums.cell_error is None else sums.cell_error)),
        "estimate": nothing if estimate is None else pa.array(estimate),
        "basis": pa.array([basis] * rows, pa.string()),
    }
    return pa.table(arrays | {name if name not in arrays else f"{name} (statistic)": numbers[name] for name in numbers})


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which answers a file holds, in order, and which it leaves out because they have too many cells."""

    written: tuple[tuple[int, int, Table], ...]
    left_out: tuple[Mapping[str, object], ...]


def _chosen(fits: Sequence["Fitted"]) -> _Choice:
    """By public sizes alone: how many cells a table has, or, where only large ones were kept, how many were."""
    written, left_out, cells = [], [], 0
    for run, fitted in enumerate(fits, start=1):
        for place, answer in tables_of(fitted):
            rows = _rows_of(answer)
            if rows > MOST_OF_TABLE or cells + rows > MOST_WRITTEN:
                left_out.append({"run": run, "answer": place, "table": storable(answer.name), "cells": rows})
                continue
            cells += rows
            written.append((run, place, answer))
    return _Choice(tuple(written), tuple(left_out))


def _rows_of(answer: Table) -> int:
    """Cells that are listed: of a sparse table those that were kept."""
    return int(answer.values.size)


def write_statistics_file(path: Path, fits: Sequence["Fitted"]) -> None:
    """Writes the cells of every measured table, as far as they are not too many."""
    choice = _chosen(fits)
    said = {"format": STATISTICS_FORMAT, "left_out": list(choice.left_out)}
    schema = CELLS.with_metadata({STATISTICS_KEY: json.dumps(said, ensure_ascii=True).encode()})
    table = pa.Table.from_batches(_batches(fits, choice, len(choice.written)), CELLS).unify_dictionaries()
    pq.write_table(table.cast(schema), path, compression="zstd")


def _batches(fits: Sequence["Fitted"], choice: _Choice, most_estimates: int) -> Iterator[pa.RecordBatch]:
    """The cells of each table; of the first so many with what the model makes of them."""
    words = [CellWords(fitted.codec) for fitted in fits]
    for number, (run, place, answer) in enumerate(choice.written):
        fitted = fits[run - 1]
        kind = kind_of(answer, fitted.codec)
        estimate = None
        if number < most_estimates and set(answer.columns) <= set(fitted.codec.domain.columns):
            whole = answer.shape == fitted.codec.domain.shape(answer.columns) and kind != "cells of its own"
            estimate = model_counts(fitted.model, answer.columns) if whole else None
        yield _batch((run, place, kind), answer, words[run - 1], estimate)


def _batch(place: tuple[int, int, str], answer: Table, words: CellWords, estimate: Floats | None) -> pa.RecordBatch:
    run, position, kind = place
    rows = _rows_of(answer)
    rounding = _ROUNDING if isinstance(answer, PairTable) else 0.0
    cells = answer.indices if isinstance(answer, SparseMeasurement) else np.arange(rows, dtype=np.int64)
    own = kind == "cells of its own"
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(rows, run, np.int32)),
            pa.array(np.full(rows, position, np.int32)),
            repeated(storable(answer.name), rows),
            repeated(kind, rows),
            pa.array(cells),
            numbered("cell", cells) if own else words.of_cells(answer.columns, answer.shape, cells),
            pa.array(answer.values, pa.int64()),
            pa.array(np.full(rows, math.sqrt(_error_of(answer) ** 2 + rounding) if rounding else _error_of(answer))),
            pa.nulls(rows, pa.float64()) if estimate is None else pa.array(estimate[cells]),
        ],
        schema=CELLS,
    )


CLOSE = 1e-6
"""How far an estimate computed elsewhere may be off, relative to the rows of the table."""


def check_statistics(path: Path, fits: Sequence["Fitted"], *, everything: bool = False) -> tuple[list[Problem], str]:
    """Findings about a file of statistics, which must follow from answers and models; and what was not checked."""
    choice = _chosen(fits)
    computed = len(choice.written) if everything else min(MOST_CHECKED, len(choice.written))
    wrong = Problem(path.name, "does not follow from the answers and the model.", "Restore the folder.")
    with open_parquet(path, _TEXTS) as stored:
        said = json.loads((stored.schema_arrow.metadata or {})[STATISTICS_KEY])
        expected = {"format": STATISTICS_FORMAT, "left_out": list(choice.left_out)}
        rows = sum(_rows_of(answer) for _, _, answer in choice.written)
        if said != expected or stored.schema_arrow.names != CELLS.names or stored.metadata.num_rows != rows:
            return [wrong], ""
        found = pa.Table.from_batches(stored.iter_batches(batch_rows(len(CELLS))), stored.schema_arrow)
    sure = sum(_rows_of(answer) for _, _, answer in choice.written[:computed])
    again = pa.Table.from_batches(_batches(fits, choice, computed), CELLS)
    whole = [name for name in CELLS.names if name not in (*_TEXTS, "estimate", "standard_error")]
    agree = all(found[name].cast(CELLS.field(name).type).equals(again[name]) for name in whole)
    agree = agree and all(_same_words(found[name], again[name]) for name in _TEXTS)
    agree = agree and _close(found["standard_error"], again["standard_error"], 0.0)
    most = max((fitted.model.total for fitted in fits), default=1.0)
    agree = agree and _close(found["estimate"][:sure], again["estimate"][:sure], CLOSE * max(most, 1.0))
    left = len(choice.written) - computed
    return ([] if agree else [wrong]), (f"the model's estimates of {left:,} tables in {path.name}" if left else "")


def _same_words(found: pa.ChunkedArray, again: pa.ChunkedArray) -> bool:
    """Whether two columns hold the same texts; those found are never written out, for a stranger's may be long."""
    known = pa.chunked_array((chunk.cast(pa.string()) for chunk in again.chunks), pa.string())
    entries = pc.unique(known)
    places = []
    for chunk in found.chunks:
        of_entry = pc.index_in(chunk.dictionary, value_set=entries)
        places.append(of_entry.take(chunk.indices))
    expected = pc.index_in(known, value_set=entries)
    return bool(pa.chunked_array(places, pa.int32()).equals(expected))


def _close(one: pa.ChunkedArray, other: pa.ChunkedArray, within: float) -> bool:
    if not pc.is_null(one).equals(pc.is_null(other)):
        return False
    first, second = (np.asarray(side.fill_null(0.0), dtype=np.float64) for side in (one, other))
    return bool(np.allclose(first, second, rtol=1e-9, atol=within))
