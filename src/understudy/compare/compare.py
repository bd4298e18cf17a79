"""compare: methods × ε × repeats on one table, into a folder that can be resumed."""

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import SupportsFloat, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from understudy.compare.study import (
    Candidate,
    ProcessLimits,
    Study,
    StudyFolder,
    StudySettings,
    Tables,
    check_place,
    check_study,
    drop_left_behind,
    leaves_labels_open,
    plain_options,
    run_study,
)
from understudy.compare.summary import Recommendation, build_page, failures, recommend, tidy
from understudy.errors import UsageError
from understudy.folders import write_durably
from understudy.notebook import shown_as_html
from understudy.progress import Progress, silent
from understudy.report import render_page
from understudy.schema import Schema

METRICS = ("marginals", "specks")
SECONDS = 3600.0
MEMORY = 2**34
TEMPORARY = "understudy-study-"
"""How the folder of a study is called that is not to be kept."""

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A finished study."""

    study: Study
    folder: Path | None

    def __repr__(self) -> str:
        return repr(self.study).replace("Study", "Comparison", 1)

    def _repr_html_(self) -> str:
        """For notebooks: what to use at each ε, and why."""
        rows = [(f"{one.epsilon:g}", one.candidate or "none", one.grounds) for one in self.recommendations]
        note = "NOT FOR RELEASE: this compares with the private table." if self.study.confidential else ""
        return shown_as_html(self.study.title or "Comparison", (), ("ε", "method", "grounds"), rows, note)

    def frame(self) -> pa.Table:
        """Every score of every run, tidy."""
        return tidy(self.study)

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """A method for each ε, with its grounds."""
        return recommend(self.study)

    @property
    def failures(self) -> tuple[str, ...]:
        """Which runs have no scores, and why, in plain words."""
        return failures(self.study)


def compare(
    data: object,
    schema: Schema | str | Path,
    *,
    methods: Sequence[str],
    epsilons: Sequence[float],
    delta: float = 0.0,
    repeats: int = 3,
    copies: int = 1,
    copies_mode: str = "resample",
    metrics: Sequence[str] = METRICS,
    options: Mapping[str, Mapping[str, object]] | None = None,
    formula: str | None = None,
    rows: int | None = None,
    seed: int = 0,
    seconds: float = SECONDS,
    memory_bytes: int = MEMORY,
    public: str | Path | None = None,
    public_proxy: bool = False,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Every method at every ε, several times, scored. CONFIDENTIAL unless `public_proxy` says the table is public.

    Costs no budget because nothing may be released: neither the scores nor a choice made by them. Where the choice
    must be safe, compare on a public table of the same schema, or pay for it with `choose`. Mistakes raise at once.

    Args:
        data, schema: the table and what it may contain.
        methods: names, each with its options as in "steps layers=2".
        epsilons, delta, repeats, copies, copies_mode, rows: what is run; methods of pure ε are run without δ.
        metrics, options, formula, seed: what is scored, as `evaluate` takes it; seed of drawing rows and of scoring.
        seconds, memory_bytes: limits of one run; a run that goes past them ends as such and the study goes on.
        public: a public table, given to those methods that use one.
        public_proxy: the table itself is public, so the study is not confidential.
        out: the study's folder. One begun before under the same settings is taken up where it stopped.
    """
    known, listed = Schema.of(schema), _listed("metrics", metrics)
    settings = StudySettings(
        tuple(Candidate.read(text) for text in _listed("methods", methods)),
        tuple(_number(epsilon) for epsilon in _listed("epsilons", epsilons)),
        *(delta, repeats, copies, copies_mode, listed, rows, seed),
        plain_options(options),
        formula,
        leaves_labels_open(known),
    )
    tables = Tables(data, None if public is None else str(public), public_proxy)
    return _carried_out(
        tables, known, settings, ProcessLimits(seconds, memory_bytes), out=out, progress=progress or silent
    )


def _listed(name: str, values: Sequence[Item]) -> tuple[Item, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UsageError(name, f"must be a list, got {values!r}.", f"As in {name}=[{values!r}].")
    return tuple(values)


def _number(epsilon: object) -> float:
    """ε as one kind of number, so that 1 and 1.0 are the same run."""
    if isinstance(epsilon, str | bytes | bool) or not isinstance(epsilon, SupportsFloat):
        raise UsageError("epsilons", f"must be numbers, got {epsilon!r}.")
    return float(epsilon)


def _carried_out(
    tables: Tables,
    schema: Schema,
    settings: StudySettings,
    limits: ProcessLimits,
    *,
    out: str | Path | None,
    progress: Progress,
) -> Comparison:
    """The study under these settings, begun or taken up again; nothing is written before everything was checked."""
    progress.stage("check", 0.0)
    if out is not None:
        check_place(Path(out))
    check_study(tables, schema, settings, limits)
    if out is None:
        drop_left_behind(TEMPORARY)
    place = Path(tempfile.mkdtemp(prefix=TEMPORARY)) if out is None else Path(out)
    folder = StudyFolder(place)
    with folder.held():
        try:
            folder.open(settings, schema, tables)
            progress.stage("check", 1.0)
            if run_study(tables, schema, settings, folder, limits, progress=progress):
                folder.check_unchanged(tables, schema)
            study = folder.study(
                settings,
                confidential=not tables.is_public,
                title=schema.title,
                has_public=tables.public is not None,
            )
            if out is not None:
                _write(study, place)
        finally:
            if out is None:  # while the folder is held: what is left of a kill can be told by its lock
                shutil.rmtree(place, ignore_errors=True)
    return Comparison(study, None if out is None else place)


def _write(study: Study, place: Path) -> None:
    """The tidy table and the page; of a confidential study, for their owner alone."""
    sink = pa.BufferOutputStream()
    pq.write_table(tidy(study), sink)
    page = render_page(build_page(study)).encode()
    for name, content in (("results.parquet", sink.getvalue().to_pybytes()), ("index.html", page)):
        if study.confidential:
            write_durably(place / name, content)
        else:
            (place / name).write_bytes(content)
