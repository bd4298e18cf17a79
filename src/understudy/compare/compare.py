"""compare: methods × ε × repeats on one table, into a folder that can be resumed."""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from understudy.compare.page import build_page
from understudy.compare.recommend import Recommendation, recommend
from understudy.compare.settings import Candidate, StudySettings
from understudy.compare.study import Study, StudyFolder, Tables, run_study
from understudy.compare.summary import tidy
from understudy.compare.watch import Limits
from understudy.errors import UsageError
from understudy.evaluate.registry import metric as metric_of
from understudy.evaluate.store import refuse_release_folder
from understudy.progress import Progress
from understudy.report.html import render_page
from understudy.schema import Schema

__all__ = ["METRICS", "Comparison", "carry_out", "compare"]

METRICS = ("marginals", "specks")
SECONDS = 3600.0
MEMORY = 2**34


@dataclass(frozen=True, slots=True)
class Comparison:
    """A finished study."""

    study: Study
    folder: Path | None

    def frame(self) -> pa.Table:
        """Every score of every run, tidy."""
        return tidy(self.study)

    @property
    def recommendations(self) -> tuple[Recommendation, ...]:
        """A method for each ε, with its grounds."""
        return recommend(self.study)


def compare(
    data: object,
    schema: Schema,
    *,
    methods: Sequence[str],
    epsilons: Sequence[float],
    delta: float = 0.0,
    repeats: int = 3,
    copies: int = 1,
    copies_mode: str = "resample",
    metrics: Sequence[str] = METRICS,
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
        metrics, seed: what is scored; seed of drawing rows and of scoring.
        seconds, memory_bytes: limits of one run; a run that goes past them ends as such and the study goes on.
        public: a public table for methods that use one.
        public_proxy: the table itself is public, so the study is not confidential.
        out: the study's folder. One begun before under the same settings is taken up where it stopped.
    """
    settings = StudySettings(
        tuple(Candidate.read(text) for text in methods),
        tuple(map(float, epsilons)),
        delta=delta,
        repeats=repeats,
        copies=copies,
        copies_mode=copies_mode,
        metrics=tuple(metrics),
        rows=rows,
        seed=seed,
    )
    tables = Tables(data, None if public is None else str(public), public_proxy)
    return carry_out(tables, schema, settings, Limits(seconds, memory_bytes), out=out, progress=progress)


def carry_out(
    tables: Tables,
    schema: Schema,
    settings: StudySettings,
    limits: Limits,
    *,
    out: str | Path | None,
    progress: Progress | None = None,
) -> Comparison:
    """The study under these settings, begun or taken up again."""
    for name in settings.metrics:
        metric_of(name)
    if not limits.seconds > 0 or limits.bytes < 2**20:
        given = f"{limits.seconds!r} s and {limits.bytes!r} bytes"
        raise UsageError("limits", f"must be above 0 s and 1 MiB, got {given}.")
    place = Path(tempfile.mkdtemp(prefix="understudy-study-")) if out is None else Path(out)
    confidential = not tables.is_public
    refuse_release_folder(place)
    folder = StudyFolder(place)
    try:
        folder.open(settings, schema, tables)
        run_study(tables, schema, settings, folder, limits, progress=progress)
        study = folder.study(settings, confidential=confidential, title=schema.title)
        if out is not None:
            _write(study, place)
    finally:
        if out is None:
            shutil.rmtree(place, ignore_errors=True)
    return Comparison(study, None if out is None else place)


def _write(study: Study, place: Path) -> None:
    pq.write_table(tidy(study), place / "results.parquet")
    (place / "index.html").write_text(render_page(build_page(study)), encoding="utf-8")
