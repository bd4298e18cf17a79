"""The chooser page: the rule of `auto`, the best method for every table by what matters, and all numbers."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from studies.chooser.measuring import MEASURES
from studies.chooser.rule import CASES, HEADER
from studies.chooser.tables import Case
from studies.runs import Record, spent_on
from studies.writing import Estimate, Form, estimate, table
from understudy import plan

__all__ = ["Grid", "write"]

CLOSE, ALIKE = 1.05, 0.002
"""Methods within this factor of the best, or this distance, are named beside it."""
MATTERS = {
    "columns": "single columns",
    "pairs": "pairs of columns",
    "triples": "three columns at a time",
    "SPECKS": "rows that cannot be told apart",
}
FEWEST = 3
"""Tables from which an interval over tables is given."""
Corner = tuple[str, float, float]


@dataclass(frozen=True)
class Grid:
    """All records, and the tables they are about."""

    records: tuple[Record, ...]
    cases: Mapping[str, Case]

    @property
    def corners(self) -> list[Corner]:
        """Every table at every ε and δ."""
        met = {(str(one["table"]), _number(one, "epsilon"), _number(one, "delta")): None for one in self.records}
        order = list(self.cases)
        return sorted(met, key=lambda corner: (-corner[2], order.index(corner[0]), corner[1]))

    def means(self, corner: Corner, measure: str) -> dict[str, float]:
        """The mean of a measure for every method that gave a table there, best first."""
        found: dict[str, list[float]] = {}
        for one in self.records:
            if (one["table"], one["epsilon"], one["delta"]) == corner and measure in one:
                found.setdefault(str(one["method"]), []).append(_number(one, measure))
        means = {method: statistics.fmean(values) for method, values in found.items()}
        return dict(sorted(means.items(), key=lambda item: item[1]))

    @cached_property
    def picks(self) -> Mapping[Corner, str]:
        """What `auto` picks, from the schema and the budget."""
        return {
            (name, epsilon, delta): plan(self.cases[name].schema, method="auto", epsilon=epsilon, delta=delta).method
            for name, epsilon, delta in self.corners
        }

    def picked(self, corner: Corner) -> str:
        return self.picks[corner]


def _number(record: Record, name: str) -> float:
    return float(str(record[name]))


def write(form: Form, grid: Grid) -> Path:
    """Writes choosing.md."""
    parts = [
        "# Which method for which table",
        "Made by `make studies DATA=FOLDER`, or alone by `python -m studies.choosing --data FOLDER --out docs`; the "
        "numbers change a little with the noise.",
    ]
    if form.smoke:
        parts.append("**Smoke form: one run of each, far too few to decide anything.**")
    parts += [*_rule(), *_chooser(grid), *_standing(grid), *_rivals(grid), *_numbers(grid)]
    form.out.mkdir(parents=True, exist_ok=True)
    target = form.out / "choosing.md"
    target.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return target


def _rule() -> list[str]:
    return [
        "## If you do not want to choose",
        '`method="auto"` picks from public facts alone: the schema, the rows of a unit, ε and δ. It never looks at a '
        "row, nor at a hint of their number, so a plan and its run always pick the same.",
        "* δ above 0: `privsyn` up to 60 columns if ρ is at least 0.3 for a unit of one row (about ε = 5 at δ = 1e-9), "
        "times the square of the rows of a unit, and no pair of columns has more than 262,144 cells; else `aim` up to "
        "60 columns, `mst` beyond.\n"
        "* Pure ε: `laplace` where the noise of the whole table, cells × rows of a unit / ε, is at most 2,000 rows; "
        "else, up to 60 columns, `privsyn` if ε is at least 6 for each row of a unit (and no pair of columns has more "
        "than 262,144 cells), or `mwem` if ε is at least 0.5 for each row of a unit; else `independent`.\n"
        "* Where the method picked refuses the size of what rules tie together: `independent`.\n"
        "* Rows are made by controlled rounding of expected counts. `laplace` and `independent`, called by name, draw "
        "rows independently unless told `rounding=controlled`; that adds an error which no ε takes away.",
        table(HEADER, [case.row for case in CASES]),
    ]


def _chooser(grid: Grid) -> list[str]:
    """For every table, δ and ε: the best method by what matters."""
    body = []
    for corner in grid.corners:
        name, epsilon, delta = corner
        best = [_best(grid.means(corner, measure)) for measure in MEASURES]
        case = grid.cases[name]
        facts = f"{name}: {case.table.num_rows:,} rows × {len(case.schema.columns)}"
        body.append([facts, "pure" if not delta else f"δ = {delta:g}", f"{epsilon:g}", *best, grid.picked(corner)])
    header = ("table", "privacy", "ε", *(MATTERS[measure] for measure in MEASURES), "auto")
    return [
        "## If you do",
        "Find the table that is most like yours, your ε, and what matters to you. In each cell stands the method "
        "nearest to the real table, and behind it those within 5 % (or 0.002) of it. Distances are mean total "
        "variations over single columns, pairs and triples; the last one is SPECKS by a classification tree.",
        table(header, body),
        *_won(grid),
    ]


def _best(means: Mapping[str, float]) -> str:
    return ", ".join(method for method, mean in means.items() if _close(mean, means))


def _close(mean: float, means: Mapping[str, float]) -> bool:
    """Whether a method is as good as the best, for all that matters."""
    lowest = min(means.values())
    return mean <= max(CLOSE * lowest, lowest + ALIKE)


def _won(grid: Grid) -> list[str]:
    """In how many tables each method is as good as the best, by δ, ε and what matters."""
    said = ["In how many tables a method is the best, or within 5 % (or 0.002) of it:"]
    body = []
    for delta, epsilon in sorted({(corner[2], corner[1]) for corner in grid.corners}, reverse=True):
        here = [corner for corner in grid.corners if (corner[2], corner[1]) == (delta, epsilon)]
        methods = dict.fromkeys(method for corner in here for method in grid.means(corner, "pairs"))
        for method in sorted(methods):
            counts = []
            for measure in MEASURES:
                means = [grid.means(corner, measure) for corner in here]
                ran = [one for one in means if method in one]
                counts.append(f"{sum(_close(one[method], one) for one in ran)} of {len(ran)}")
            body.append(["pure" if not delta else f"δ = {delta:g}", f"{epsilon:g}", method, *counts])
    return [*said, table(("privacy", "ε", "method", *(MATTERS[measure] for measure in MEASURES)), body)]


def _standing(grid: Grid) -> list[str]:
    """How much is lost by leaving the choice to auto."""
    lines = []
    for measure in ("pairs", "triples"):
        ratios, good, worse = list[float](), 0, list[tuple[float, str]]()
        for corner in grid.corners:
            means, picked = grid.means(corner, measure), grid.picked(corner)
            if picked not in means:
                continue
            best = next(iter(means))
            ratios.append(_over(means[picked], means[best]))
            if _close(means[picked], means):
                good += 1
            else:
                where = f"{corner[0]}, {'pure' if not corner[2] else 'δ above 0'}, ε {corner[1]:g}"
                worse.append((ratios[-1], f"{where}: {picked} instead of {best} ({ratios[-1]:.2f})"))
        words = "; ".join(text for _, text in sorted(worse, reverse=True)[:6])
        lines.append(
            f"* {MATTERS[measure]}: as good as the best in {good} of {len(ratios)} settings; distance over that of the "
            f"best, median {statistics.median(ratios):.2f}. Farthest off: {words or 'none'}."
        )
    return ["## What leaving the choice to `auto` costs", "\n".join(lines)]


def _rivals(grid: Grid) -> list[str]:
    """Each method's distance over that of auto's pick, by δ and ε, as a mean over tables."""
    body, better, worse = [], list[str](), list[str]()
    for delta, epsilon in sorted({(corner[2], corner[1]) for corner in grid.corners}, reverse=True):
        here = [corner for corner in grid.corners if (corner[2], corner[1]) == (delta, epsilon)]
        for method in sorted({method for corner in here for method in grid.means(corner, "pairs")}):
            ratios = {measure: _ratio(grid, here, method, measure) for measure in MEASURES}
            privacy = "pure" if not delta else f"δ = {delta:g}"
            body.append([privacy, f"{epsilon:g}", method, *map(_written, ratios.values())])
            for measure, found in ratios.items():
                if found.repeats >= FEWEST and (found.high < 0 or found.low > 0):
                    words = f"{method} in {MATTERS[measure]} ({privacy}, ε = {epsilon:g}: {_written(found)})"
                    (better if found.high < 0 else worse).append(words)
    header = ("privacy", "ε", "method", *(MATTERS[measure] for measure in MEASURES))
    return [
        "## If `auto` had picked another method",
        "Distance of a method over that of the method that `auto` picks: geometric mean over the tables where both ran "
        "and the pick is another one, with its 95 % interval over tables (Student's t of logarithms), and the number "
        "of tables. Below 1 the other method would have been better. Here and above, distances below "
        f"{ALIKE:g} count as {ALIKE:g}.",
        f"Clearly better than the pick over these tables: {'; '.join(better) or 'none'}. Clearly worse in "
        f"{len(worse)} of the cells below.",
        table(header, body),
    ]


def _ratio(grid: Grid, corners: Sequence[Corner], method: str, measure: str) -> Estimate:
    """Mean of the logarithm of the ratio, over tables."""
    logs = []
    for corner in corners:
        means, picked = grid.means(corner, measure), grid.picked(corner)
        if method in means and picked in means and method != picked:
            logs.append(math.log(_over(means[method], means[picked])))
    return estimate(logs)


def _over(distance: float, other: float) -> float:
    """One distance over another; what is too small to matter counts alike.

    >>> _over(0.0, 0.0001), _over(0.01, 0.0)
    (1.0, 5.0)
    """
    return max(distance, ALIKE) / max(other, ALIKE)


def _written(found: Estimate) -> str:
    if not found.repeats:
        return "—"
    between = f" ({math.exp(found.low):.2f}–{math.exp(found.high):.2f})" if found.repeats >= FEWEST else ""
    return f"{math.exp(found.mean):.2f}{between}, {found.repeats}"


def _numbers(grid: Grid) -> list[str]:
    body = []
    for corner in grid.corners:
        for method in sorted(grid.means(corner, "pairs")):
            mine = [one for one in grid.records if _where(one) == (*corner, method)]
            values = [f"{grid.means(corner, measure)[method]:.3f}" for measure in MEASURES]
            name, epsilon, delta = corner
            spent = statistics.fmean(_number(one, "seconds") for one in mine)
            privacy = "pure" if not delta else f"δ = {delta:g}"
            body.append([name, privacy, f"{epsilon:g}", method, *values, len(mine), f"{spent:.1f}"])
    header = ("table", "privacy", "ε", "method", *(MATTERS[measure] for measure in MEASURES), "releases", "CPU s")
    synthesis, spent = sum(_number(one, "seconds") for one in grid.records) / 60, spent_on(grid.records)
    return [
        "## All numbers",
        "Means over so many releases of each, all options at their defaults but for `rounding=controlled` of `laplace` "
        "and `independent`. `stroke` is the whole table, looked at "
        "with methods that do not fit round after round; `laplace` is tried up to ten million cells. The code lists of "
        "some tables were published with a benchmark whose author may have looked at the data: good enough to compare "
        f"methods, not for a privacy claim. Making all {len(grid.records)} releases took {synthesis:.1f} processor "
        f"minutes; with measuring them it was {spent.processor:.1f} processor minutes, {spent.elapsed:.1f} minutes in "
        f"all.",
        table(header, body),
    ]


def _where(record: Record) -> tuple[object, ...]:
    return record["table"], record["epsilon"], record["delta"], record["method"]
