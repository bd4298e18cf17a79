"""Release: everything that may be shared about a run, in memory or as a folder, and the rows drawn from it.

A release holds public facts and noisy answers only. Drawing rows from it is post-processing: free, and without a way
back to the private table. Synthetic rows follow from the fitted model, the number of rows and the seed, whatever the
output, so they are drawn when asked for and streamed to disk when saved. The seed is for drawing rows; noise has none.

Spreadsheets run cells that start with =, +, -, @, a tab or a line break. Labels and column names come from people, so
a released CSV could carry such a cell; an apostrophe in front makes it text. Numbers and dates are left as they are.
"""

import os
import platform
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import yaml

from understudy.codec.table import TableCodec
from understudy.domain import Transcript
from understudy.errors import Problem, ReleaseError, UsageError, nearest
from understudy.models.model import Chunk, Model, draw_chunks, read_as, read_plain
from understudy.notebook import shown_as_html
from understudy.progress import Progress, silent
from understudy.release.check import Judged, checked, counts_of_rows, held_back_tables, stored_tables
from understudy.release.criteria import Criterion, read_criteria
from understudy.release.files import STATISTICS, check_bytes, check_frame, check_free, check_room
from understudy.release.frames import Frame, as_it_came, require_writer, to_frame, write_statistics, write_workbook
from understudy.release.parquet import batch_rows, open_parquet, write_parquet
from understudy.release.statement import Statement, charges_of_a_kind
from understudy.release.wording import NO_ROWS, given_readable, readable_codes
from understudy.schema import Schema, code_names
from understudy.schema.yaml_text import Entries, Tree, YamlList, parse_yaml

if TYPE_CHECKING:
    from understudy.counts.source import ColumnType
    from understudy.report import Pictures

FORMAT = "understudy config, format 1"
COPIES_MODES = ("resample", "remeasure")
"""How several copies are made: all from one model, or each from answers of its own."""
_RENAMED_MODES = {"resanitize": "remeasure"}


def mode_remark(mode: object) -> str:
    """That a way to make copies has a new name; empty for the present names."""
    new = _RENAMED_MODES.get(str(mode), "")
    return new and f"copies_mode {str(mode)!r} is now called {new!r}; the old name is still understood."


def present_mode(mode: str) -> str:
    """The present name of a way to make copies; files and commands of earlier versions say `resanitize`."""
    return _RENAMED_MODES.get(mode, mode)


MOST_BYTES = 2**18
MOST_COPIES = 1_000
LARGEST_SEED = 2**127
NOISY_TOTAL = "noisy total"


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The settings of a run. `rows` holds the number of rows of each copy, `rows_from` where they come from."""

    method: str
    options: Mapping[str, object]
    epsilon: float
    delta: float
    rows: tuple[int, ...]
    rows_from: str
    copies_mode: str
    seed: int
    versions: Mapping[str, str]

    @property
    def copies(self) -> int:
        """Number of synthetic tables."""
        return len(self.rows)

    @property
    def remark(self) -> str:
        """That a table is empty because of noise on its number of rows, in words; empty otherwise."""
        return NO_ROWS if self.rows_from == NOISY_TOTAL and 0 in self.rows else ""


def installed_versions() -> dict[str, str]:
    """Versions of what made the release."""
    packages = ("understudy", "numpy", "pyarrow")
    try:
        return {name: _version(name) for name in packages} | {"python": platform.python_version()}
    except PackageNotFoundError as error:
        rule = "is on the path but not installed, so that a release could not say its version."
        raise UsageError(f"package {error.name}", rule, "Install it, with `pip install .` from its sources.") from None


_version = cache(version)  # the metadata of a package is a file, read and parsed anew each time


def write_config(config: RunConfig, path: Path) -> None:
    """Writes the settings as YAML."""
    plain = {"options": {name: _plain(value) for name, value in config.options.items()}, "rows": list(config.rows)}
    document = {"format": FORMAT, **asdict(config), **plain, "copies": config.copies}
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def read_config(path: Path) -> RunConfig:
    """The settings that `write_config` wrote.

    Raises:
        ReleaseError: when the file does not have that form.
    """
    content = read_plain(path, MOST_BYTES)
    try:
        return _read(_value(parse_yaml(content.decode("utf-8"), path.name)))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        problem = Problem(path.name, "does not have the form of a run's settings.", "Restore the folder.")
        raise ReleaseError([problem]) from error


def _value(tree: Tree) -> object:
    """What `write_config` wrote: text that would read as something else has quotes."""
    if isinstance(tree, YamlList):
        return [_value(item) for item in tree.values]
    if isinstance(tree, Entries):
        return {key.text: _value(value) for key, value in tree.pairs}
    if tree.null:
        return None
    for read in (tree.boolean, tree.whole, tree.real):
        if read is not None:
            return read
    return tree.text


def _read(document: object) -> RunConfig:
    if not isinstance(document, dict) or document["format"] != FORMAT:
        raise ValueError("format")
    config: RunConfig = read_as(RunConfig, document)
    if (
        not 0 < config.copies <= MOST_COPIES
        or config.copies != document["copies"]
        or min(*config.rows, config.seed) < 0
    ):
        raise ValueError("rows, copies or seed")
    if present_mode(config.copies_mode) not in COPIES_MODES:
        raise ValueError("copies_mode")
    return config


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return str(value)


FORMATS = {
    **{".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "tsv", ".arrow": "arrow", ".feather": "arrow"},
    **{".dta": "stata", ".sav": "spss", ".xlsx": "excel"},
}

Condition = str | int | float | bool | None
Where = Mapping[str, Condition | Sequence[Condition]]


@dataclass(frozen=True, slots=True)
class Fitted:
    """One run through the curator: its fixed codes, its answers, and the model fitted to them."""

    codec: TableCodec
    transcript: Transcript
    model: Model


def draw_tables(
    fitted: Fitted, rows: int, *, seed: int, copy: int = 1, where: Where | None = None, entries: bool = False
) -> Iterator[pa.Table]:
    """`rows` synthetic rows as a stream of tables; `where` conditions the model exactly, without rejection.

    With `entries` texts may come as entries of a dictionary, for a file that is written in that way.

    Values that cannot be read are drawn only for columns that clearly hold some (see `release/wording.py`).
    """
    _check(rows, seed)
    readable = readable_codes(fitted.codec, fitted.transcript, fitted.model)
    wanted = _codes(fitted.codec, where or {})
    _check_shown(fitted.codec, wanted, readable)
    model = given_readable(fitted.model, readable, wanted)
    return _decoded(fitted.codec, draw_chunks(model, rows, _copy_seed(seed, copy)), entries)


def _decoded(codec: TableCodec, chunks: Iterator[Chunk], entries: bool) -> Iterator[pa.Table]:
    """Tables of the chunks; of codes and tables only those of one chunk are held at a time."""
    while (chunk := next(chunks, None)) is not None:
        table = codec.decode(chunk.codes, chunk.rng, entries=entries)
        del chunk
        yield table
        del table


def _copy_seed(seed: int, copy: int) -> int:
    """The seed itself for the first copy, an unrelated one for each further copy."""
    if copy == 1:
        return seed
    state = np.random.SeedSequence(seed, spawn_key=(copy,)).generate_state(4)
    return sum(int(word) << (32 * place) for place, word in enumerate(state))


def one_table(codec: TableCodec, pieces: Iterable[pa.Table]) -> pa.Table:
    """The pieces as one table, with the schema's types also when there are none."""
    return pa.concat_tables([codec.arrow_schema.empty_table(), *pieces])


def stored_rows(path: Path, codec: TableCodec, rows: int) -> pa.Table:
    """The rows in a file of a release, which must be as many as its settings say and fit in memory.

    Raises:
        ReleaseError: if the file holds other columns or another number of rows.
    """
    check_frame(codec.schema, rows)
    with open_parquet(path) as stored:
        if stored.metadata.num_rows != rows or stored.schema_arrow.names != codec.arrow_schema.names:
            rule = "does not have the columns or the number of rows that the settings say."
            raise ReleaseError([Problem(path.name, rule, "Run `understudy verify` on the folder.")])
        pieces = [pa.Table.from_batches([batch]) for batch in stored.iter_batches(batch_rows(len(codec.arrow_schema)))]
        return one_table(codec, (piece.cast(codec.arrow_schema) for piece in pieces))


def write_rows(path: Path, schema: pa.Schema, pieces: Iterable[pa.Table], marks: Mapping[str, str]) -> None:
    """Writes the pieces as they come, in the format that the suffix names; the file appears when it is complete.

    Args:
        path: the file to make; it must not exist.
        schema: the types of every piece.
        pieces: tables, consumed one at a time; Stata and SPSS files are written at once, from memory.
        marks: file metadata that says what the rows are (Parquet, Arrow, workbooks; others have no place for it).
    """
    form = _form_of(path)
    check_free(path)
    partial = path.absolute().parent / f".{path.name}.{secrets.token_hex(6)}.partial"
    try:
        if form == "parquet":
            write_parquet(partial, schema.with_metadata(dict(marks)), pieces)
        elif form == "arrow":
            _write_arrow(partial, schema.with_metadata(dict(marks)), pieces)
        elif form == "excel":
            write_workbook(partial, schema, pieces, marks)
        elif path.suffix.lower() in STATISTICS:
            write_statistics(partial, schema, pieces, form)
        else:
            _write_text(partial, schema, pieces, "," if form == "csv" else "\t")
        os.rename(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _form_of(path: Path) -> str:
    if path.suffix.lower() not in FORMATS:
        rule = "needs a suffix that names its format."
        raise UsageError(f"output {path.name!r}", rule, nearest(path.suffix, FORMATS))
    return FORMATS[path.suffix.lower()]


def check_rows_file(path: Path, schema: Schema, rows: int) -> None:
    """Raises unless a new file of so many rows of this schema can be written there, in the form of its suffix."""
    _form_of(path)
    check_free(path)
    require_writer(path.suffix, [column.name for column in schema.columns], rows)
    check_room(schema, [rows], path.absolute().parent, path.suffix)
    if path.suffix.lower() in STATISTICS:
        check_frame(schema, rows)


def is_parquet(path: Path) -> bool:
    """Whether the suffix names Parquet, whose texts are written as entries of a dictionary."""
    return FORMATS.get(path.suffix.lower()) == "parquet"


def _write_arrow(path: Path, schema: pa.Schema, pieces: Iterable[pa.Table]) -> None:
    """A file of Arrow, which is also what Feather has become, compressed in the way that all readers know."""
    with pa.ipc.new_file(path, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        for piece in pieces:
            writer.write_table(piece.cast(schema))
            del piece


def _write_text(path: Path, schema: pa.Schema, pieces: Iterable[pa.Table], delimiter: str) -> None:
    plain = pa.schema([_plain_field(field) for field in schema])
    options = pacsv.WriteOptions(delimiter=delimiter)
    with pacsv.CSVWriter(path, plain, write_options=options) as writer:
        for piece in pieces:
            for batch in piece.cast(plain).replace_schema_metadata(None).to_batches():
                if batch.num_rows:  # an empty one first makes Arrow before version 23 write the header again
                    writer.write_batch(batch)
            del piece


def _plain_field(field: pa.Field) -> pa.Field:
    """CSV writes neither dictionaries nor large text; both become plain text."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return pa.field(field.name, pa.string() if pa.types.is_large_string(kind) else kind)


def _check(rows: int, seed: int) -> None:
    if type(rows) is not int or rows < 0:
        raise UsageError("rows", f"must be a whole number, 0 or more, got {rows!r}.")
    if type(seed) is not int or seed < 0:
        raise UsageError("seed", f"must be a whole number, 0 or more, got {seed!r}.")


def _codes(codec: TableCodec, where: Where) -> dict[str, npt.NDArray[np.integer]]:
    found: dict[str, npt.NDArray[np.integer]] = {}
    for given, wanted in where.items():
        name = _coded(codec, given)
        options = list(wanted) if isinstance(wanted, Sequence) and not isinstance(wanted, str) else [wanted]
        codes = [codec.codes_matching(name, _condition_text(option)) for option in options]
        chosen = np.unique(np.concatenate(codes)) if codes else np.zeros(0, np.int64)
        found[name] = np.intersect1d(found[name], chosen) if name in found else chosen
        if not found[name].size:
            raise UsageError(
                f"condition on {given!r}", f"no code of the column matches {wanted!r}.", "See schema.yaml."
            )
    return found


def _check_shown(
    codec: TableCodec, wanted: Mapping[str, npt.NDArray[np.integer]], readable: Mapping[str, npt.NDArray[np.integer]]
) -> None:
    """Raises where a condition asks for unreadable values of a column that shows none beyond the noise."""
    for name, codes in wanted.items():
        if name in readable and not np.isin(codes, readable[name]).all():
            rule = "asks for values that could not be read, and the noisy answers show none beyond their noise."
            raise UsageError(f"condition on {codec.origin(name)!r}", rule, "Leave that condition out.")


def _coded(codec: TableCodec, name: str) -> str:
    """The column of codes that a condition is about; for a split column named as a whole, its size."""
    if name in codec.domain.sizes:
        return name
    for column in codec.schema.modelled:
        if column.name == name:
            return code_names(column)[0]
    known = nearest(name, codec.domain.columns)
    raise UsageError(f"column {name!r}", "is not a modelled column of this release.", known)


def _condition_text(option: Condition) -> str:
    if option is None:
        return "missing"
    return str(option).lower() if isinstance(option, bool) else str(option)


NOTICE = "SYNTHETIC DATA. Rows are drawn from a model, not copied from people."


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A finished run: schema, noisy answers, fitted models, statement, settings and the extract of the ledger.

    Several copies drawn from one model share the only element of `fits`; copies that were measured anew have one each.
    """

    schema: Schema
    fits: tuple[Fitted, ...]
    statement: Statement
    config: RunConfig
    ledger: tuple[str, ...]
    frame_kind: str = "arrow"
    folder: Path | None = None
    frame_types: Mapping[str, "ColumnType"] = field(default_factory=dict)
    """How the columns of the private frame were stored, so that rows come back alike; empty for files."""

    def __repr__(self) -> str:
        rows = ", ".join(f"{count:,}" for count in self.config.rows)
        made = f"{rows} synthetic rows of {len(self.schema.columns)} columns by {self.config.method}"
        claimed = "no privacy claim" if self.statement.epsilon is None else f"ε = {self.statement.epsilon:g}"
        delta = f", δ = {self.statement.delta:g}" if self.statement.delta else ""
        return f"<Release: {made}, {claimed}{delta}{'' if self.folder is None else f', in {self.folder}'}>"

    def _repr_html_(self) -> str:
        """For notebooks: what it is, its promise, and what was measured."""
        rows = ", ".join(f"{count:,}" for count in self.config.rows)
        facts = [
            ("rows", rows),
            ("columns", ", ".join(self.schema.names[:40]) + (" …" if len(self.schema.names) > 40 else "")),
            ("method", self.config.method),
            ("folder", "not saved" if self.folder is None else str(self.folder)),
        ]
        title = f"Synthetic stand-in: {self.schema.title or 'untitled table'}"
        header = ("queries", "number", "cost together", "noise", "scale")
        return shown_as_html(title, facts, header, charges_of_a_kind(self.statement), self.statement.promise)

    def plot(self, what: str = "columns") -> "Pictures":
        """Charts of the card: "columns" with error bars, or "relations": which pairs were measured, and how well.

        Made from noisy answers alone, so they cost nothing.
        """
        from understudy.release.card import card_pictures

        return card_pictures(self, what)

    @property
    def codec(self) -> TableCodec:
        """The codes of the first copy."""
        return self.fits[0].codec

    @property
    def transcript(self) -> Transcript:
        """The noisy answers of the first copy."""
        return self.fits[0].transcript

    @property
    def model(self) -> Model:
        """The fitted model of the first copy."""
        return self.fits[0].model

    @property
    def table(self) -> Frame:
        """The synthetic rows of the first copy, as the kind of frame the data came in."""
        return self.tables[0]

    @cached_property
    def tables(self) -> tuple[Frame, ...]:
        """The synthetic rows of every copy."""
        return tuple(self._table(copy) for copy in range(1, self.config.copies + 1))

    def fitted(self, copy: int) -> Fitted:
        """Codes, answers and model behind a copy (counted from 1)."""
        if type(copy) is not int or not 1 <= copy <= self.config.copies:
            raise UsageError("copy", f"must be a whole number from 1 to {self.config.copies}, got {copy!r}.")
        return self.fits[copy - 1] if len(self.fits) > 1 else self.fits[0]

    def sample(
        self, rows: int | None = None, *, seed: int | None = None, where: Where | None = None, copy: int = 1
    ) -> Frame:
        """Fresh synthetic rows, free of charge.

        Args:
            rows: how many; as many as the copy holds when not given.
            seed: gives the same rows again; taken from the operating system when not given.
            where: column → value (or list of values) that every row must have, for example {"sex": "F"}.
            copy: whose model to draw from when copies were measured anew.
        """
        fitted = self.fitted(copy)
        wanted = self.config.rows[copy - 1] if rows is None else rows
        pieces = draw_tables(fitted, wanted, seed=_seed(seed), copy=copy, where=where)
        check_frame(self.schema, wanted)
        return self._as_it_came(one_table(fitted.codec, pieces), fitted.codec)

    def sample_to(
        self,
        path: str | Path,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: Where | None = None,
        copy: int = 1,
    ) -> None:
        """Writes fresh synthetic rows to a file in the form of its suffix, without holding them in memory.

        Parquet, CSV and TSV, Arrow and Feather; a workbook (`.xlsx`) needs the extra `[excel]`, files of Stata (`.dta`)
        and SPSS (`.sav`) need `[stats]` and memory for all rows.
        """
        fitted = self.fitted(copy)
        wanted = self.config.rows[copy - 1] if rows is None else rows
        entries = is_parquet(Path(path))
        pieces = draw_tables(fitted, wanted, seed=_seed(seed), copy=copy, where=where, entries=entries)
        self.check_file(Path(path), wanted)
        write_rows(Path(path), fitted.codec.arrow_schema, pieces, self.marks())

    def check_file(self, path: Path, rows: int) -> None:
        """Raises unless a new file of so many rows can be written at that path."""
        check_rows_file(path, self.schema, rows)

    def stats(self, table: str | Sequence[str] | None = None, *, copy: int | None = None) -> Frame:
        """Counts of a table with their errors, from noisy answers and model alone: post-processing, free of charge.

        Args:
            table: columns, as "sex,age" or ["sex", "age"]; without it, a list of what was measured.
            copy: only the answers of that copy, where copies were measured anew; those of all by default.

        Returns:
            For a table one row for each cell: a column of words for each column, `noisy_count` and its
            `standard_error` (empty where nothing that was measured holds the columns), `estimate` (what the model
            makes of the cell: consistent with other tables, without an error of its own) and `basis`.

        Raises:
            UsageError: if a column is unknown.
            ResourceError: if the table is too large.
        """
        from understudy.release.statistics import overview, table_statistics  # it needs what is declared here

        fits = self.fits if copy is None else (self.fitted(copy),)
        names = [name.strip() for name in table.split(",")] if isinstance(table, str) else table
        return to_frame(overview(fits) if names is None else table_statistics(fits, names), self.frame_kind)

    def judge(self, criteria: str | Path | Sequence[Criterion]) -> tuple[Judged, ...]:
        """A verdict for each criterion, from the rows and the answers held back for a check: free of charge.

        Args:
            criteria: a file of limits (docs/check.md), or those read from one; about tables that were held back.

        Raises:
            UsageError: if nothing was held back.
            SchemaError: with every criterion that is about unknown columns or values, or about other tables.
        """
        check = self.statement.check
        if check is None:
            fix = "Make a release with check_share=, and give the criteria before the run."
            raise UsageError("criteria", "this release has no check, so nothing can be judged.", fix)
        read = read_criteria(criteria) if isinstance(criteria, str | Path) else tuple(criteria)
        asked = replace(self, statement=replace(self.statement, check=replace(check, criteria=read)))
        found = checked_release(asked, None if self.folder is None else partial(_stored, self)).statement.check
        return () if found is None else found.verdicts

    def label(self, records: object, *, seed: int | None = None, copy: int = 1, keep: Sequence[str] = ()) -> Frame:
        """The records with their private columns filled in by the model (method `rdt`), free of charge.

        Args:
            records: a frame with the public columns; private ones it holds are replaced.
            keep: other columns of the frame to pass on as they are, for example a record's number.
            seed: gives the same labels again; taken from the operating system when not given.
            copy: whose model to use when copies were measured anew.
        """
        from understudy.release.labelling import labelled_frame  # brings the readers of frames and files

        return labelled_frame(self.fitted(copy), records, _seed(seed), keep)

    def label_to(
        self,
        path: str | Path,
        records: str | Path,
        *,
        seed: int | None = None,
        copy: int = 1,
        keep: Sequence[str] = (),
    ) -> None:
        """Writes a file of records with labels to a Parquet or CSV file (by suffix), chunk by chunk."""
        from understudy.release.labelling import label_marks, labelled_bytes, labelled_file

        fitted = self.fitted(copy)
        schema, pieces = labelled_file(fitted, records, _seed(seed), keep)
        check_free(Path(path))
        check_bytes(
            "writing the labelled records to disk",
            labelled_bytes(fitted, records, Path(path)),
            Path(path).absolute().parent,
        )
        write_rows(Path(path), schema, pieces, self.marks() | label_marks(fitted))

    def marks(self) -> dict[str, str]:
        """What a synthetic file says about itself."""
        claim = self.statement.claim
        return {
            "understudy.synthetic": "true",
            "understudy.notice": NOTICE,
            "understudy.run": self.statement.run,
            "understudy.epsilon": "none" if claim is None else repr(claim[0]),
            "understudy.delta": "none" if claim is None else repr(claim[1]),
        }

    def save(self, folder: str | Path, *, progress: Progress = silent) -> None:
        """Writes the release folder: complete, synced and renamed into place, or not at all.

        Raises:
            UsageError: if the folder exists already.
            ResourceError: if its rows would not fit on the disk.
        """
        from understudy.release.store import save_release  # the store needs this type

        check_free(Path(folder))
        check_room(self.schema, self.config.rows, Path(folder).absolute().parent)

        save_release(self, Path(folder), progress)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        frame_kind: str = "arrow",
        frame_types: Mapping[str, "ColumnType"] | None = None,
    ) -> Self:
        """The release saved in a folder, whose rows come as that kind of frame.

        Raises:
            ReleaseError: with all findings, if the folder is incomplete or altered.
        """
        from understudy.release.store import load_release

        loaded = load_release(Path(folder))
        content = (loaded.schema, loaded.fits, loaded.statement, loaded.config, loaded.ledger)
        return cls(*content, frame_kind, loaded.folder, frame_types or {})

    def _table(self, copy: int) -> Frame:
        codec = self.fitted(copy).codec
        if self.folder is not None:
            path = self.folder / data_name(copy, self.config.copies)
            rows = stored_rows(path, codec, self.config.rows[copy - 1])
            return self._as_it_came(rows, codec)
        check_frame(self.schema, self.config.rows[copy - 1])
        pieces = draw_tables(self.fitted(copy), self.config.rows[copy - 1], seed=self.config.seed, copy=copy)
        return self._as_it_came(one_table(codec, pieces), codec)

    def _as_it_came(self, rows: pa.Table, codec: TableCodec) -> Frame:
        if self.frame_kind == "arrow" and not self.frame_types:  # rows of a folder, or of a file
            return rows
        return as_it_came(rows, codec, self.frame_kind, self.frame_types)


def checked_release(release: Release, rows: Callable[[int], Iterable[pa.Table]] | None = None) -> Release:
    """The same release, whose statement says what the check finds; itself where nothing was held back for a check.

    Args:
        rows: the rows of a copy (counted from 1); drawn anew when not given.
    """
    check = release.statement.check
    if check is None:
        return release
    given = rows or (lambda copy: _drawn(release, copy))
    cliques, codec = list(held_back_tables(release.transcript, release.codec.domain)), release.codec
    number = release.config.copies
    copies = (counts_of_rows(given(copy), codec, cliques) for copy in range(1, number + 1))
    found = checked(check, release.transcript, codec, copies, number=number)
    return replace(release, statement=replace(release.statement, check=found))


def _stored(release: Release, copy: int) -> Iterator[pa.Table]:
    return stored_tables((release.folder or Path()) / data_name(copy, release.config.copies), release.codec)


def _drawn(release: Release, copy: int) -> Iterator[pa.Table]:
    return draw_tables(release.fitted(copy), release.config.rows[copy - 1], seed=release.config.seed, copy=copy)


def data_name(copy: int, copies: int) -> str:
    """The file of a copy's rows.

    >>> data_name(1, 1), data_name(2, 3)
    ('data.parquet', 'data-2.parquet')
    """
    return "data.parquet" if copies == 1 else f"data-{copy}.parquet"


def _seed(seed: int | None) -> int:
    return secrets.randbits(63) if seed is None else seed


_FORMULA_STARTS = r"^([=+\-@\t\r\n＝＋－＠])"


def check_safe(path: Path, *, excel_safe: bool) -> None:
    """Raises UsageError where `excel_safe` is asked of a file that no spreadsheet takes for text."""
    if excel_safe and path.suffix.lower() not in (".csv", ".tsv"):
        raise UsageError("excel_safe", "is for .csv and .tsv files.", "Drop it or change the suffix.")


def safe_rows(
    schema: pa.Schema, pieces: Iterable[pa.Table], *, excel_safe: bool
) -> tuple[pa.Schema, Iterable[pa.Table]]:
    """Schema and tables to write: as they are, or with safe names and text if `excel_safe` is given."""
    return (safe_schema(schema), map(safe_table, pieces)) if excel_safe else (schema, pieces)


def safe_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with safe column names."""
    return pa.schema([field.with_name(_safe_name(field.name)) for field in schema])


def safe_table(table: pa.Table) -> pa.Table:
    """The table with safe column names and text."""
    columns = [_safe_column(table.column(place)) for place in range(table.num_columns)]
    return pa.table(columns, schema=safe_schema(table.schema))


def _safe_column(values: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = values.type
    if pa.types.is_dictionary(kind):
        if not pa.types.is_string(kind.value_type) and not pa.types.is_large_string(kind.value_type):
            return values
        return _safe_text(values.cast(kind.value_type)).cast(kind)
    return _safe_text(values) if pa.types.is_string(kind) or pa.types.is_large_string(kind) else values


def _safe_text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring_regex(values, pattern=_FORMULA_STARTS, replacement=r"'\1")


def _safe_name(name: str) -> str:
    return _safe_text(pa.chunked_array([[name]]))[0].as_py()  # type: ignore[no-any-return]
