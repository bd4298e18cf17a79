"""The chooser page: the rule of `auto`, a picture, the best method for every table, and what `auto` loses.

All of it follows from one list of results, which lies beside the page as a file, so that the page can be written again
without a run.
"""

import csv
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path

from studies.chooser.rule import CASES, HEADER, Listed
from studies.chooser.tables import Case
from studies.runs import Record
from studies.writing import Form, table
from understudy.charts import Lines, Series
from understudy.codec.table import TableCodec
from understudy.report import render_picture

__all__ = ["FITTED_ON", "Grid", "Result", "read_results", "results_of", "write"]

FITTED_ON = ("titanic", "voters, 5 columns", "voters", "adult", "stroke, 30 columns", "fire calls", "stroke")
"""Tables that the forecasts of `auto` were fitted to, under δ and under pure ε."""
FITTED_PURE = ("bank", "uk_census", "cps_voting")
"""Tables that they were fitted to under pure ε alone."""
CLOSE, ALIKE = 1.05, 0.002
"""Methods within this factor of the best, or this distance, are named beside it."""
MEASURES = {"pairs": "pairs of columns", "triples": "three columns at a time"}


@dataclass(frozen=True)
class Result:
    """Distances of one method on one table at one budget: means over so many releases."""

    table: str
    rows: int
    columns: str
    delta: float
    epsilon: float
    method: str
    releases: int
    single: float
    pairs: float
    triples: float

    @property
    def corner(self) -> tuple[str, float, float]:
        """Table, δ and ε."""
        return self.table, self.delta, self.epsilon

    @property
    def fitted(self) -> bool:
        """Whether the forecasts of `auto` were fitted to this table."""
        return self.table in FITTED_ON or (self.table in FITTED_PURE and not self.delta)


def results_of(records: Iterable[Record], cases: Mapping[str, Case]) -> list[Result]:
    """Means over repeats."""
    groups: dict[tuple[str, float, float, str], list[Record]] = {}
    for one in records:
        if "pairs" in one:
            key = str(one["table"]), _number(one, "delta"), _number(one, "epsilon"), str(one["method"])
            groups.setdefault(key, []).append(one)
    found = []
    for (name, delta, epsilon, method), members in groups.items():
        sizes = Counter(TableCodec.of(cases[name].schema).domain.sizes.values())
        columns = ", ".join(f"{number} of {size}" for size, number in sorted(sizes.items()))
        means = [statistics.fmean(_number(one, measure) for one in members) for measure in ("columns", *MEASURES)]
        found.append(
            Result(name, cases[name].table.num_rows, columns, delta, epsilon, method, len(members), *map(_five, means))
        )
    return found


def _number(record: Record, name: str) -> float:
    return float(str(record[name]))


def _five(value: float) -> float:
    return round(value, 5)


def read_results(file: Path) -> list[Result]:
    """The results that lie beside a page."""
    kinds = {one.name: one.type for one in fields(Result)}
    with file.open(encoding="utf-8", newline="") as lines:
        return [Result(**{name: kinds[name](value) for name, value in line.items()}) for line in csv.DictReader(lines)]


@dataclass(frozen=True)
class Grid:
    """All results, and what `auto` picks."""

    results: tuple[Result, ...]

    @cached_property
    def corners(self) -> dict[tuple[str, float, float], dict[str, Result]]:
        """By table, δ and ε: every method's result, the best over pairs first; where there are two or more."""
        found: dict[tuple[str, float, float], dict[str, Result]] = {}
        for one in sorted(self.results, key=lambda one: (-one.delta, one.epsilon, one.pairs)):
            found.setdefault(one.corner, {})[one.method] = one
        return {corner: methods for corner, methods in found.items() if len(methods) > 1}

    @cached_property
    def picks(self) -> Mapping[tuple[str, float, float], str]:
        """What `auto` picks, if the noisy number of rows is the true one."""
        found = {}
        for corner, methods in self.corners.items():
            one = next(iter(methods.values()))
            found[corner] = Listed(one.columns, 1, one.epsilon, one.delta).picked_for(one.rows)
        return found

    def lost(self, measure: str, *, fitted: bool, pure: bool) -> list[tuple[float, float, str]]:
        """By setting: distance of the pick over that of the best, how much farther off it is, and where."""
        found = []
        for corner, methods in self.corners.items():
            one, pick = next(iter(methods.values())), self.picks[corner]
            if one.fitted == fitted and (not one.delta) == pure and pick in methods:
                best = min(methods.values(), key=lambda result: float(getattr(result, measure)))
                mine, least = (float(getattr(result, measure)) for result in (methods[pick], best))
                where = f"{corner[0]} at ε = {corner[2]:g}: {pick} instead of {best.method}"
                found.append((max(mine, ALIKE) / max(least, ALIKE), mine - least, where))
        return sorted(found, reverse=True)


def write(form: Form, results: Sequence[Result]) -> Path:
    """Writes choosing.md, the picture and the file of results beside it."""
    grid = Grid(tuple(results))
    form.out.mkdir(parents=True, exist_ok=True)
    with (form.out / "choosing.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [one.name for one in fields(Result)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(one) for one in results)
    parts = [
        "# Which method for which table",
        "Made by `python -m studies.choosing --data FOLDER --out docs`; the numbers change a little with the noise.",
        *(["**Smoke form: one run of each, far too few to decide anything.**"] if form.smoke else []),
        *_rule(),
        *_pictures(form, grid),
        *_standing(grid),
        *_chooser(grid),
    ]
    target = form.out / "choosing.md"
    target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return target


def _rule() -> list[str]:
    return [
        "## If you do not want to choose",
        '`method="auto"` picks the method that is expected to have the smallest error over pairs of columns. The '
        "forecast depends on the schema, the rows of a unit, ε, δ and the number of rows. If the number of rows makes "
        "no difference, the method is picked before anything is read; otherwise 1 % of the budget buys a noisy number "
        "of rows, which decides. `--rows-hint` changes what a plan shows, never what is picked. "
        "[The page of `auto`](methods/auto.md) has the rule in full. "
        'In this table "15 of 4" stands for 15 columns of 4 codes each. Where several methods are listed, each is '
        "picked up to the number of rows at which the next begins.",
        table(HEADER, [case.row for case in CASES]),
    ]


def _pictures(form: Form, grid: Grid) -> list[str]:
    """How far each method is from the best, as a mean over tables, by ε."""
    said = []
    for pure in (False, True):
        chart = _chart(grid, pure=pure)
        file = f"choosing-{'pure' if pure else 'delta'}.svg"
        (form.out / file).write_text(render_picture(chart), encoding="utf-8")
        said.append(f"![{chart.caption}]({file})")
    return ["## How far from the best", *said]


def _chart(grid: Grid, *, pure: bool) -> Lines:
    ratios: dict[str, dict[float, list[float]]] = {}
    for corner, methods in grid.corners.items():
        if (not corner[1]) == pure:
            least = max(next(iter(methods.values())).pairs, ALIKE)
            shown = dict(methods)
            if grid.picks[corner] in methods:
                shown["auto"] = methods[grid.picks[corner]]
            for name, one in shown.items():
                ratios.setdefault(name, {}).setdefault(corner[2], []).append(max(one.pairs, ALIKE) / least)
    series = []
    for name in sorted(ratios, key=lambda name: (name != "auto", name)):
        places = sorted(ratios[name])
        heights = [math.exp(statistics.fmean(map(math.log, ratios[name][place]))) for place in places]
        series.append(Series(name, tuple(places), tuple(heights)))
    budget = "pure ε" if pure else "δ above 0"
    caption = f"Distance over pairs, over that of the best method ({budget}; mean over tables)"
    return Lines(caption, "ε", "times the best", tuple(series), logarithmic=True, yardstick=1.0, decades=True)


def _standing(grid: Grid) -> list[str]:
    """How much is lost by leaving the choice to auto."""
    lines = []
    for measure, words in MEASURES.items():
        for pure in (False, True):
            for fitted in (True, False):
                lost = grid.lost(measure, fitted=fitted, pure=pure)
                if lost:
                    good = sum(ratio <= CLOSE or more <= ALIKE for ratio, more, _ in lost)
                    budget, which = "pure ε" if pure else "δ above 0", "fitted to" if fitted else "held out"
                    worst = "; ".join(f"{where} ({ratio:.2f})" for ratio, _, where in lost[:3] if ratio > CLOSE)
                    lines.append((words, budget, which, f"{good} of {len(lost)}", f"{lost[0][0]:.2f}", worst or "–"))
    header = ("over", "privacy", "tables", "as good as the best", "at most times the best", "farthest off")
    return [
        "## What leaving the choice to `auto` costs",
        f'"As good" means within {CLOSE - 1:.0%} of the best method that ran, or within {ALIKE:g}; distances below '
        f"{ALIKE:g} count as {ALIKE:g}. The forecasts were fitted to {', '.join(FITTED_ON)}; under pure ε also to "
        f"{', '.join(FITTED_PURE)}. All other tables are held out.",
        table(header, lines),
    ]


def _chooser(grid: Grid) -> list[str]:
    """For every table, δ and ε: the methods that are as good as the best."""
    body = []
    for (name, delta, epsilon), methods in grid.corners.items():
        best = [_best({one.method: float(getattr(one, measure)) for one in methods.values()}) for measure in MEASURES]
        one = next(iter(methods.values()))
        number = sum(int(part.split(" of ")[0]) for part in one.columns.split(", "))
        facts, privacy = f"{name}: {one.rows:,} rows × {number}", f"δ = {delta:g}" if delta else "pure"
        body.append([facts, privacy, f"{epsilon:g}", *best, grid.picks[name, delta, epsilon]])
    return [
        "## If you want to choose",
        f"Find the table that is most like yours and your ε. Each cell lists the method nearest to the real table, "
        f"then those within {CLOSE - 1:.0%} (or {ALIKE:g}) of it. Distances are mean total variations. All numbers are "
        "in `choosing.csv` beside this page, with the number of releases behind each mean. They are not all from one "
        "version: `ensemble` was measured last, and tables outside the study were measured by "
        "`benchmarks/frontier.py`, often once.",
        table(("table", "privacy", "ε", *MEASURES.values(), "auto"), body),
    ]


def _best(distances: Mapping[str, float]) -> str:
    lowest = min(distances.values())
    ranked = sorted(distances.items(), key=lambda item: item[1])
    return ", ".join(name for name, value in ranked if value <= max(CLOSE * lowest, lowest + ALIKE))
