"""Which library should draw a report? The charts of a table of 50 columns by ours, by Altair and by matplotlib.

    python -m benchmarks.charts own
    SCRATCH/bin/python benchmarks/charts.py altair      # in a scratch environment: altair vl-convert-python
    SCRATCH/bin/python benchmarks/charts.py matplotlib  # in another one: matplotlib

Drawn are 50 columns in two tables, the distances of all 1,225 pairs, three matrices of associations, twelve
coefficients with their intervals and two maps of 1,000 points: 57 charts as SVG, without scripts. Printed are CPU
seconds (loading the library and drawing, then drawing again), the size of the SVG together, how many marks tell
something to a pointer and how many charts say in words what they show; and what the environment takes on disk beyond
numpy and pip.
"""

import argparse
import io
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

COLUMNS, POINTS = 50, 1000
ANYHOW = ("numpy", "pip", "setuptools", "_distutils_hack")


def shares_of() -> list[tuple[list[str], list[float], list[float]]]:
    """Labels and shares of every column in both tables."""
    rng, found = np.random.default_rng(0), []
    for place in range(COLUMNS):
        size = 24 if place % 3 == 0 else int(rng.integers(2, 13))
        real = rng.dirichlet(np.ones(size) * 2)
        made = rng.dirichlet(real * 200 + 0.1)
        labels = [f"[{5 * code}, {5 * code + 5})" if place % 3 == 0 else f"label {code}" for code in range(size)]
        found.append((labels, real.tolist(), made.tolist()))
    return found


def pairs_of(seed: int) -> list[tuple[int, int, float]]:
    """A value for each pair of columns."""
    rng = np.random.default_rng(seed)
    return [(row, column, float(rng.beta(1, 6))) for row in range(COLUMNS) for column in range(row)]


def intervals_of() -> list[tuple[str, float, float]]:
    """Coefficients in both tables; intervals reach 0.3 to either side."""
    values = np.random.default_rng(2).normal(size=12).tolist()
    return [(f"coefficient {place}", value, value + 0.1) for place, value in enumerate(values)]


def points_of(seed: int) -> list[tuple[float, float]]:
    """Points of one map."""
    return [(float(x), float(y)) for x, y in np.random.default_rng(seed).normal(size=(POINTS, 2))]


def by_own() -> list[str]:
    """Ours: plain data in, inline SVG out."""
    from understudy.charts import (
        Amounts,
        Chart,
        Forest,
        IntervalRow,
        Matrix,
        MatrixCell,
        PointMap,
        SharesChart,
        Side,
    )
    from understudy.report import Figure, Page, Section, render_page

    charts: list[Chart] = []
    for place, (labels, real, made) in enumerate(shares_of()):
        amounts = (Amounts("real", "real", tuple(real)), Amounts("made", "synthetic", tuple(made)))
        charts.append(SharesChart(f"column {place}", tuple(labels), amounts, len(labels) if place % 3 == 0 else 0))
    names = tuple(f"column {place}" for place in range(COLUMNS))
    for seed in range(4):
        hints = seed == 0  # the matrix of all pairs; those of associations are small
        cells = tuple(MatrixCell(row, column, value, f"{value:.3g}" * hints) for row, column, value in pairs_of(seed))
        charts.append(Matrix(f"matrix {seed}", names, names, cells, 0.6, signed=seed > 0, small=seed > 0))
    rows = tuple(
        IntervalRow(name, (one, one - 0.3, one + 0.3), (other, other - 0.3, other + 0.3))
        for name, one, other in intervals_of()
    )
    charts.append(Forest("coefficients", rows))
    sides: tuple[Side, Side] = ("real", "made")
    charts += [
        PointMap(side, side, "first", "second", tuple(points_of(seed)), (-3, 3, -3, 3))
        for seed, side in enumerate(sides)
    ]
    blank = len(render_page(Page("", "", ())))
    text = render_page(Page("", "", (Section("", "", tuple(map(Figure, charts))),)))
    return [text[blank - len("</main></body></html>") :]]


def by_altair() -> list[str]:
    """Vega-Lite descriptions, drawn by a converter in Rust."""
    import altair as alt
    import vl_convert as vlc

    def svg(chart: object) -> str:
        return str(vlc.vegalite_to_svg(chart.to_dict()))  # type: ignore[attr-defined]

    found = []
    for labels, real, made in shares_of():
        rows = [
            {"label": label, "share": share, "table": name}
            for name, shares in (("real", real), ("synthetic", made))
            for label, share in zip(labels, shares, strict=True)
        ]
        bars = alt.Chart(alt.Data(values=rows)).mark_bar()
        shown = bars.encode(x="share:Q", y=alt.Y("label:N", sort=None), yOffset="table:N", color="table:N")
        found.append(svg(shown.properties(width=180)))
    for seed in range(4):
        cells = [{"row": row, "column": column, "value": value} for row, column, value in pairs_of(seed)]
        shown = alt.Chart(alt.Data(values=cells)).mark_rect().encode(x="column:O", y="row:O", color="value:Q")
        found.append(svg(shown))
    rows = [
        {"name": name, "value": value, "low": value - 0.3, "high": value + 0.3, "table": table}
        for name, one, other in intervals_of()
        for table, value in (("real", one), ("synthetic", other))
    ]
    shown = alt.Chart(alt.Data(values=rows)).mark_rule()
    found.append(svg(shown.encode(x="low:Q", x2="high:Q", y="name:N", yOffset="table:N", color="table:N")))
    for seed in range(2):
        rows = [{"x": x, "y": y} for x, y in points_of(seed)]
        found.append(svg(alt.Chart(alt.Data(values=rows)).mark_circle().encode(x="x:Q", y="y:Q")))
    return found


def by_matplotlib() -> list[str]:
    """Figures written by its SVG backend, text as text."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.fonttype"] = "none"
    found = []

    def svg(figure: object) -> None:
        file = io.StringIO()
        figure.savefig(file, format="svg")  # type: ignore[attr-defined]
        plt.close(figure)  # type: ignore[arg-type]
        found.append(file.getvalue())

    for labels, real, made in shares_of():
        figure, axes = plt.subplots(figsize=(3.4, 0.4 + 0.25 * len(labels)))
        places = np.arange(len(labels))
        axes.barh(places - 0.2, real, 0.38, color="#8b96a3")
        axes.barh(places + 0.2, made, 0.38, color="#0b66a8")
        axes.set_yticks(places, labels)
        svg(figure)
    for seed in range(4):
        figure, axes = plt.subplots(figsize=(9, 9))
        square = np.full((COLUMNS, COLUMNS), np.nan)
        for row, column, value in pairs_of(seed):
            square[row, column] = value
        axes.pcolormesh(square)
        svg(figure)
    figure, axes = plt.subplots(figsize=(6, 4))
    for place, (_, one, other) in enumerate(intervals_of()):
        axes.errorbar([one, other], [place, place + 0.3], xerr=0.3, fmt="o")
    svg(figure)
    for seed in range(2):
        figure, axes = plt.subplots(figsize=(3.4, 3))
        axes.scatter(*zip(*points_of(seed), strict=True), s=4)
        svg(figure)
    return found


LIBRARIES: dict[str, Callable[[], list[str]]] = {"own": by_own, "altair": by_altair, "matplotlib": by_matplotlib}


def installed_bytes() -> int:
    """What the environment holds beyond what every installation has."""
    place = Path(sysconfig.get_paths()["purelib"])
    kept = [one for one in place.iterdir() if not one.name.lower().startswith(ANYHOW)]
    return sum(path.stat().st_size for one in kept for path in [one, *one.rglob("*")] if path.is_file())


def main() -> None:
    """Draws twice, so that the cost of loading a library stands apart, and prints one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("--keep", type=Path, help="folder for the charts of other libraries, to look at them")
    given = parser.parse_args()
    library = given.library
    spent = []
    for _ in range(2):
        began = time.process_time()
        drawn = LIBRARIES[library]()
        spent.append(time.process_time() - began)
    whole = "".join(drawn)
    print(
        f"{library}: first {spent[0]:.2f} CPU s, then {spent[1]:.2f}; {len(whole.encode()) / 1e6:.2f} MB; "
        f"<title> {whole.count('<title>')}, <desc> {whole.count('<desc>')}, aria-label {whole.count('aria-label=')}; "
        f"environment {'–' if library == 'own' else f'{installed_bytes() / 1e6:.0f} MB'}"
    )
    for place, chart in enumerate(drawn if given.keep else ()):
        (given.keep / f"{library}-{place}.svg").write_text(chart, encoding="utf-8")


if __name__ == "__main__":
    main()
