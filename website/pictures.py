"""Draws the pictures of the pages: `python -m website.pictures` writes one for each method, one of what
ε means, and the picture of the README.

Colours are readable on light and dark pages: grey for what is public, blue for what is measured, orange for noise.
Lengths are made up; a picture shows how a method works, not how well.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

DOCS = Path(__file__).parents[1] / "docs"
WIDTH, HEIGHT = 420, 130
PUBLIC, MEASURED, NOISE = "#7c8591", "#3b82f6", "#e07b00"
HEIGHTS = (18, 34, 26, 44, 12, 30, 22, 38)


def text(x: float, y: float, words: str, colour: str = PUBLIC, size: int = 12) -> str:
    """Words, centred."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="middle">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str = PUBLIC, *, arrow: bool = False) -> str:
    """A straight line, with a head where it is an arrow."""
    head = ' marker-end="url(#head)"' if arrow else ""
    return f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{colour}" stroke-width="1.6" fill="none"{head}/>'


def box(x: float, y: float, width: float, height: float, colour: str, strength: float = 0.0) -> str:
    """A rectangle, filled by its strength."""
    filled = f'fill="{colour}" fill-opacity="{strength:g}"'
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" {filled} stroke="{colour}"/>'


def node(x: float, y: float, words: str, colour: str = MEASURED) -> str:
    """A column, as a circle with its name."""
    circle = f'<circle cx="{x:g}" cy="{y:g}" r="13" fill="{colour}" fill-opacity="0.18" stroke="{colour}"/>'
    return circle + text(x, y + 4, words, colour)


def bars(x: float, base: float, heights: Sequence[float], wide: float = 10) -> str:
    """A noisy table of one column: bars with the range of their noise."""
    parts = []
    for place, height in enumerate(heights):
        left = x + place * (wide + 2)
        parts.append(box(left, base - height, wide, height, MEASURED, 0.35))
        parts.append(line(left + wide / 2, base - height - 6, left + wide / 2, base - height + 6, NOISE))
    return "".join(parts)


def grid(x: float, y: float, rows: int, columns: int, side: float = 12, chosen: Sequence[int] | None = None) -> str:
    """A table of cells; all of them measured, or only those chosen."""
    parts = []
    for cell in range(rows * columns):
        measured = chosen is None or cell in chosen
        strength = (HEIGHTS[(cell * 5) % 8] / 60 if chosen is None else 0.45) if measured else 0.0
        place = x + cell % columns * side, y + cell // columns * side
        parts.append(box(*place, side, side, MEASURED if measured else PUBLIC, strength))
    return "".join(parts)


def tree(x: float, y: float, layers: Sequence[int], wide: float, deep: float = 30) -> str:
    """A tree whose layers have so many nodes each."""
    parts, above = [], [x + wide / 2]
    for depth, count in enumerate(layers, start=1):
        places = [x + wide * (place + 0.5) / count for place in range(count)]
        for place, here in enumerate(places):
            parts.append(line(above[place * len(above) // count], y + (depth - 1) * deep, here, y + depth * deep))
        above = places
        parts += [box(here - 5, y + depth * deep - 5, 10, 10, MEASURED, 0.5) for here in places]
    return "".join([box(x + wide / 2 - 5, y - 5, 10, 10, MEASURED, 0.5), *parts])


def rows(x: float, y: float, count: int = 5) -> str:
    """Synthetic rows."""
    parts = [box(x + column * 14, y + row * 11, 13, 9, PUBLIC, 0.25) for row in range(count) for column in range(4)]
    return "".join(parts)


PLACES: Mapping[str, tuple[float, float]] = {
    "a": (40, 35),
    "b": (100, 25),
    "c": (160, 45),
    "d": (60, 85),
    "e": (130, 95),
}


def graph(edges: Sequence[str], *, arrows: bool = False, shift: float = 0.0) -> str:
    """Columns, and the pairs of them that are measured."""
    parts = []
    for first, second in edges:
        (x1, y1), (x2, y2) = PLACES[first], PLACES[second]
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = (x2 - x1) / length * 14, (y2 - y1) / length * 14
        parts.append(line(x1 + dx + shift, y1 + dy, x2 - dx * 1.3 + shift, y2 - dy * 1.3, MEASURED, arrow=arrows))
    return "".join([*parts, *(node(x + shift, y, name) for name, (x, y) in PLACES.items())])


def rounds(words: str) -> str:
    """The circle of choosing, measuring and fitting again."""
    steps = ("choose the worst predicted table", "measure it with noise", "fit the model again")
    parts = [text(315, 35 + 30 * place, step, (PUBLIC, NOISE, MEASURED)[place]) for place, step in enumerate(steps)]
    parts += [line(315, 40 + 30 * place, 315, 52 + 30 * place, arrow=True) for place in range(2)]
    back = f'<path d="M240 92C196 92 186 36 206 34" stroke="{PUBLIC}" stroke-width="1.6" fill="none" '
    return "".join(parts) + back + 'marker-end="url(#head)"/>' + text(315, 122, words)


def _independent() -> str:
    parts = [bars(20 + 135 * place, 85, HEIGHTS[place : place + 6]) for place in range(3)]
    parts += [text(123 + 135 * place, 70, "×", size=20) for place in range(2)]
    return "".join([*parts, *(text(55 + 135 * place, 110, f"column {'abc'[place]}") for place in range(3))])


def _laplace() -> str:
    return grid(30, 18, 7, 14, 13) + text(315, 50, "every cell of the full table") + text(315, 72, "gets noise", NOISE)


def _universal() -> str:
    levels = tree(20, 15, (2, 4, 8), 230, 28)
    return levels + text(330, 50, "ranges of ranges,") + text(330, 70, "every level measured", MEASURED)


def _partition(words: str, colour: str) -> str:
    layers = tree(20, 15, (2, 4, 12), 230, 30)
    return (
        layers
        + text(330, 40, words, colour)
        + text(330, 75, "every layer measured,")
        + text(330, 95, "the full table below it", MEASURED)
    )


def _listed() -> str:
    words = [text(300, 35 + 24 * place, name) for place, name in enumerate(("a×b", "a×d", "b×c", "a public list"))]
    return graph(("ab", "ad", "bc")) + "".join(words)


def _privsyn() -> str:
    pairs = grid(20, 15, 6, 6, 15, (1, 6, 9, 15, 16, 22, 27, 29, 32))
    parts = [text(65, 122, "scored pairs"), line(125, 60, 165, 60, arrow=True), bars(180, 85, HEIGHTS[:5])]
    parts += [
        text(212, 122, "measured tables"),
        line(260, 60, 300, 60, arrow=True),
        rows(315, 35),
        text(345, 122, "rows moved"),
    ]
    return pairs + "".join(parts)


def _dpsyn() -> str:
    parts = [box(12, 12, 110, 46, PUBLIC), text(67, 40, "a×b, b×c"), box(12, 68, 110, 40, PUBLIC), text(67, 93, "d×e")]
    parts += [text(67, 124, "a public list in blocks"), line(130, 60, 170, 60, arrow=True), bars(185, 85, HEIGHTS[:5])]
    return "".join([*parts, line(265, 60, 305, 60, arrow=True), rows(318, 35), text(347, 122, "rows moved")])


def _ensemble() -> str:
    parts = [
        grid(18, 15, 6, 6, 15, [cell for cell in range(36) if cell * 7 % 5 < 3]),
        text(63, 122, "many noisy pairs"),
        line(120, 60, 150, 60, arrow=True),
    ]
    parts += [bars(165, 45 + 36 * place, [height / 2 for height in HEIGHTS[place : place + 6]]) for place in range(2)]
    parts += [text(205, 122, "mixtures that explain them"), line(250, 60, 300, 60, arrow=True), rows(318, 35)]
    return "".join(parts)


def _fieldgroups(threshold: bool) -> str:
    parts = []
    for place, name in enumerate(("a, b", "c, d, e", "f")):
        x = 15 + 137 * place
        parts += [box(x, 10, 115, 95, PUBLIC), bars(x + 12, 90, HEIGHTS[place : place + 8]), text(x + 57, 122, name)]
        if threshold:
            parts.append(line(x + 4, 68, x + 111, 68, NOISE))
    return "".join(parts)


def _rdt() -> str:
    parts = [text(60, 30, "public columns"), rows(30, 40, 6), line(100, 65, 135, 65, arrow=True)]
    parts += [tree(140, 20, (2, 4), 110, 34), text(195, 116, "random tree"), line(255, 65, 290, 65, arrow=True)]
    return "".join(
        [*parts, bars(305, 80, HEIGHTS[:6]), text(342, 105, "noisy label tables"), text(342, 121, "of leaves")]
    )


def _network() -> str:
    parts = [
        box(20, 40, 100, 40, MEASURED, 0.15),
        text(70, 65, "generator", MEASURED),
        box(160, 40, 100, 40, NOISE, 0.15),
    ]
    parts += [text(210, 65, "critic", NOISE), line(122, 50, 156, 50, arrow=True), line(158, 70, 124, 70, arrow=True)]
    parts += [
        text(340, 55, "private rows"),
        line(300, 62, 264, 62, arrow=True),
        text(340, 85, "clipped gradients", NOISE),
    ]
    return "".join([*parts, text(340, 101, "with noise", NOISE), text(140, 25, "rows"), text(140, 100, "score")])


def _auto() -> str:
    names = ("privsyn, aim, mst", "laplace, privsyn, mwem, independent")
    parts = [box(15, 45, 110, 40, PUBLIC), text(70, 62, "schema, unit,"), text(70, 78, "ε and δ")]
    for place, name in enumerate(names):
        parts += [line(127, 65, 165, 35 + 60 * place, arrow=True), text(292, 40 + 60 * place, name, MEASURED)]
    return "".join([*parts, text(292, 22, "δ above 0"), text(292, 82, "pure ε")])


PICTURES: Mapping[str, Callable[[], str]] = {
    "independent": _independent,
    "laplace": _laplace,
    "universal_histogram": _universal,
    "random_partition": lambda: _partition("split by columns drawn at random", PUBLIC),
    "steps": lambda: _partition("split by what matters most", NOISE),
    "mst": lambda: (
        graph(("ab", "bc", "ad", "be"))
        + text(310, 55, "all columns, and a tree of pairs")
        + text(310, 77, "chosen privately", NOISE)
    ),
    "aim": lambda: graph(("ab", "bc", "ad", "be", "de")) + rounds("until the budget is spent"),
    "mwem": lambda: graph(("ab", "bc", "ad", "de")) + rounds("a fixed number of rounds"),
    "nist_mst": _listed,
    "privbayes": lambda: (
        graph(("ab", "bc", "ad", "be", "de"), arrows=True)
        + text(310, 55, "each column with a few parents,")
        + text(310, 77, "chosen privately", NOISE)
    ),
    "privsyn": _privsyn,
    "ensemble": _ensemble,
    "dpsyn": _dpsyn,
    "fieldgroups": lambda: _fieldgroups(False),
    "pfr": lambda: _fieldgroups(True),
    "rdt": _rdt,
    "dpwgan": _network,
    "auto": _auto,
}


def picture(name: str) -> str:
    """The picture of a method as SVG."""
    return framed(PICTURES[name](), f"How {name} works", WIDTH, HEIGHT)


def framed(drawn: str, title: str, width: int, height: int) -> str:
    """A whole SVG file."""
    head = '<marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" role="img"><title>{title}</title><defs>{head}'
        f'<path d="M0 0L8 4L0 8z" fill="{PUBLIC}"/></marker></defs>{drawn}</svg>\n'
    )


EPSILONS = (1.0, 2.0, 4.0, 8.0)


def believed(prior: float, epsilon: float) -> float:
    """What a suspicion can become at most: its odds rise by a factor of e^ε."""
    return prior * math.exp(epsilon) / (1 - prior + prior * math.exp(epsilon))


def belief() -> str:
    """For each ε the curve of what a suspicion can become, as SVG."""
    left, top, wide, high = 50, 30, 300, 220
    parts = [box(left, top, wide, high, PUBLIC), line(left, top + high, left + wide, top)]
    for percent in (0, 25, 50, 75, 100):
        across, down = left + wide * percent / 100, top + high * (100 - percent) / 100
        parts += [
            text(across, top + high + 16, f"{percent} %", size=11),
            text(left - 22, down + 4, f"{percent} %", size=11),
        ]
    parts += [text(left + wide / 2, top + high + 34, "suspicion before"), text(left + 30, 18, "at most, after")]
    for epsilon in EPSILONS:
        points = [(step / 200, believed(step / 200, epsilon)) for step in range(201)]
        path = "L".join(f"{left + wide * x:.1f} {top + high * (1 - y):.1f}" for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{MEASURED}" stroke-width="1.6"/>')
        across = 1 / (1 + math.exp(epsilon / 2))  # where a curve is furthest from the diagonal
        parts.append(text(left + wide * across + 26, top + high * across + 14, f"ε = {epsilon:g}", MEASURED))
    return framed("".join(parts), "What a suspicion can become, for several values of epsilon", 390, 295)


DEPLOYMENTS = (
    ("Health types in use (Apple)", 2.0, "a user and day, on the device"),
    ("Emoji in use (Apple)", 4.0, "a user and day, on the device"),
    ("Assistive AI (Microsoft)", 4.0, "a user"),
    ("Autoplay intent (Apple)", 8.0, "a user and day, on the device"),
    ("Live births 2014 (Israel, synthetic rows)", 9.98, "a birth"),
    ("New words (Apple)", 16.0, "a user and day, on the device"),
    ("Redistricting data 2020 (US Census)", 19.61, "a person"),
    ("Audience engagement (LinkedIn)", 34.9, "a user and month"),
)
"""Published values of ε: what, ε, and what is protected. The page on ε names the registries that list them."""


def deployments() -> str:
    """Published values of ε on a logarithmic axis, as SVG."""
    left, right, top, step = 270, 560, 34, 24
    low, high = math.log(0.5), math.log(50)
    bottom = top + step * len(DEPLOYMENTS)

    def across(epsilon: float) -> float:
        return left + (right - left) * (math.log(epsilon) - low) / (high - low)

    parts = [text(left + (right - left) / 2, 16, "ε, on a logarithmic axis")]
    for mark in (0.5, 1, 2, 5, 10, 20, 50):
        parts += [
            line(across(mark), top - 8, across(mark), bottom),
            text(across(mark), bottom + 16, f"{mark:g}", size=11),
        ]
    for place, (name, epsilon, unit) in enumerate(DEPLOYMENTS):
        y = top + step * (place + 0.5)
        parts.append(f'<circle cx="{across(epsilon):g}" cy="{y:g}" r="6" fill="{MEASURED}"/>')
        parts.append(
            f'<text x="{left - 14}" y="{y + 4:g}" font-size="12" fill="{PUBLIC}" text-anchor="end">{name}</text>'
        )
        parts.append(f'<text x="{right + 12}" y="{y + 4:g}" font-size="11" fill="{PUBLIC}">{unit}</text>')
    return framed("".join(parts), "Published values of epsilon and what they protect", 760, int(bottom) + 28)


def overview() -> str:
    """What happens to a table on its way to a release, as SVG: the picture of the README."""
    parts = [text(80, 24, "private table"), rows(52, 36, 8), text(80, 146, "and a public schema", size=11)]
    parts += [line(122, 78, 196, 78, arrow=True), text(159, 68, "exact counts", size=11)]
    parts += [box(200, 30, 118, 96, NOISE, 0.12), text(259, 58, "curator", NOISE, 14)]
    parts += [text(259, 80, "adds exact noise,", NOISE, 11), text(259, 96, "charges the ledger", NOISE, 11)]
    parts += [line(322, 78, 404, 78, arrow=True), text(363, 70, "noisy answers", size=11)]
    parts += [box(408, 30, 100, 96, MEASURED, 0.1), bars(424, 92, HEIGHTS[:6]), text(458, 116, "model", MEASURED)]
    parts += [line(512, 78, 584, 78, arrow=True), box(588, 18, 184, 122, PUBLIC, 0.08)]
    parts += [text(680, 36, "release folder", size=13), rows(604, 48, 6), text(632, 132, "rows", size=11)]
    named = ("statement (ε, δ)", "noisy tables", "charges, card")
    parts += [text(718, 66 + 22 * place, words, MEASURED, 10) for place, words in enumerate(named)]
    ends = (("the steward alone sees", 159), ("everything from here on may be published", 560))
    parts += [text(x, 172, words, size=11) for words, x in ends]
    parts += [line(363, 10, 363, 56, NOISE), line(363, 88, 363, 182, NOISE)]
    return framed("".join(parts), "From a private table through the curator to a release folder", 784, 188)


def all_pictures() -> dict[str, str]:
    """Every picture by its place in the docs folder."""
    methods = {f"methods/pictures/{name}.svg": picture(name) for name in PICTURES}
    others = {"pictures/overview.svg": overview(), "explanation/pictures/belief.svg": belief()}
    others["howto/pictures/deployments.svg"] = deployments()
    return {**methods, **others}


def main(folder: Path = DOCS) -> int:
    """Writes every picture."""
    for place, drawn in all_pictures().items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
