"""What every study writes: a Markdown page with its figures, its numbers, and a row for each printed statement."""

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scipy import stats

from studies.runs import Spent
from understudy.charts import Lines, Points
from understudy.report import render_picture

__all__ = ["Estimate", "Finding", "Form", "StudyPage", "estimate", "run_as_script", "table"]

DOCS = Path(__file__).parent.parent / "docs" / "studies"


@dataclass(frozen=True)
class Form:
    """How much is run: the smoke form shows that a study works, the full form is what the page reports."""

    smoke: bool
    out: Path
    data: Path | None
    jobs: int = 0
    """Processes at work at the same time; 0: all in this one."""
    keep: Path | None = None
    """Folder for finished runs, from which a stopped study goes on."""
    repeats: int = 0
    """Repeats of the full form, where a study takes their number from here; 0: as many as the study wants."""
    earlier: str = ""
    """The page of an earlier edition, against which the verdicts are held."""

    def pick(self, smoke: int, full: int) -> int:
        return smoke if self.smoke else full


@dataclass(frozen=True)
class Finding:
    """A statement as the source prints it, what came out here, and the verdict."""

    printed: str
    ours: str
    verdict: str


@dataclass(frozen=True)
class Estimate:
    """A mean over repeats with its 95 % interval."""

    mean: float
    half: float
    repeats: int

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half

    def __str__(self) -> str:
        return (
            f"{self.mean:,.0f} ± {self.half:,.0f}" if abs(self.mean) >= 1000 else f"{self.mean:.4g} ± {self.half:.2g}"
        )


def estimate(values: Sequence[float]) -> Estimate:
    """Mean and interval of independent repeats, by Student's t."""
    if len(values) < 2:
        return Estimate(values[0] if values else math.nan, math.inf, len(values))
    spread = statistics.stdev(values) / math.sqrt(len(values))
    return Estimate(statistics.fmean(values), float(stats.t.ppf(0.975, len(values) - 1)) * spread, len(values))


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; vertical bars inside cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


@dataclass
class StudyPage:
    """A page under way: text in order, figures written beside it, findings at the end."""

    name: str
    title: str
    form: Form
    parts: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    """What stands behind the statements."""
    spent: Spent | None = None
    begun: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        self.parts.append(text)

    def figure(self, stem: str, chart: Lines | Points) -> None:
        self.form.out.mkdir(parents=True, exist_ok=True)
        file = f"{self.name}-{stem}.svg"
        (self.form.out / file).write_text(render_picture(chart), encoding="utf-8")
        self.say(f"![{chart.caption}]({file})\n\n*{chart.caption}*")

    def find(self, printed: str, ours: str, verdict: str) -> None:
        self.findings.append(Finding(printed, ours, verdict))

    def write(self) -> Path:
        self.form.out.mkdir(parents=True, exist_ok=True)
        head = [
            f"# {self.title}",
            f"Made by `make studies DATA=FOLDER`, or alone by `python -m studies.{self.name} --data FOLDER`; the "
            "numbers change a little with the noise.",
        ]
        if self.form.smoke:
            head.append("**Smoke form: far too few repeats to decide anything.**")
        rows = [(finding.printed, finding.ours, finding.verdict) for finding in self.findings]
        last = ["## Statement by statement", table(("printed", "ours", "verdict"), rows)] if rows else []
        tail = [self._time()] if self.spent else []
        target = self.form.out / f"{self.name}.md"
        target.write_text("\n\n".join([*head, *self.parts, *last, *self.after, *tail]) + "\n", encoding="utf-8")
        return target

    def _time(self) -> str:
        assert self.spent is not None
        at_once = f"{self.form.jobs} at a time" if self.form.jobs else "one after another"
        days, commits = self.spent.days, self.spent.commits
        when = f", made {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
        code = f" by the code of commit {' and '.join(commits)}" if commits else ""
        return (
            f"The {self.spent.runs:,} runs{when}{code}, took {self.spent.elapsed:.1f} minutes, {at_once}, and "
            f"{self.spent.processor:.1f} processor minutes."
        )


def run_as_script(study: Callable[[Form], Path], description: str) -> None:
    """The command line of a study."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--smoke", action="store_true", help="a few runs, to see that it works")
    parser.add_argument("--out", type=Path, default=DOCS, help="where the page and its figures go")
    parser.add_argument("--data", type=Path, default=None, help="folder with the real tables, where a study uses one")
    parser.add_argument("--jobs", type=int, default=2, help="processes at the same time (0: all in this one)")
    parser.add_argument("--repeats", type=int, default=0, help="fewer or more repeats than the study wants")
    parser.add_argument("--earlier", type=Path, default=None, help="page of an earlier edition: what changed is said")
    parser.add_argument("--keep", type=Path, default=None, help="folder for finished runs: a stopped study goes on")
    given = parser.parse_args()
    earlier = given.earlier.read_text(encoding="utf-8") if given.earlier else ""
    jobs = 0 if given.smoke else given.jobs
    form = Form(given.smoke, given.out, given.data, jobs, given.keep, given.repeats, earlier)
    began, before = time.monotonic(), _processor()
    target = study(form)
    minutes, processor = (time.monotonic() - began) / 60, (_processor() - before) / 60
    print(f"{target}: {minutes:.1f} minutes, {processor:.1f} processor minutes in this sitting", flush=True)


def _processor() -> float:
    """Seconds of processors by this process and those it started and waited for."""
    return sum(os.times()[:4])
