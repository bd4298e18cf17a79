"""A report as one page: plain data in, one HTML file out, which opens offline, without scripts or requests.

A `Page` is plain data: no markup is stored in it, so nothing can smuggle any in. Charts are geometry that the template
writes as inline SVG. Markup is written by the templates alone, whose engine escapes every text, and a content security
policy in the page itself forbids whatever a label might try all the same. Nothing private is computed here.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Literal

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from understudy.charts import (
    Between,
    Chart,
    Cloud,
    Drawing,
    Graph,
    Lines,
    Points,
    draw,
    draw_lines,
    draw_points,
)
from understudy.errors import UsageError

Light = Literal["good", "fair", "poor", "unknown"]
OPEN_ON_NARROW = 6
WIDE = 350
"""Pixels of a chart that does not fit beside others."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of text; `strong` sets it off as the sentence to remember, `anchor` is a place to jump to."""

    text: str
    strong: bool = False
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class BulletList:
    """A bulleted list of short texts."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A file beside the page, or in it as data."""

    text: str
    target: str


@dataclass(frozen=True, slots=True)
class Code:
    """Lines to copy into a program, and in which language."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows of text under a header. Columns named in `numeric` are set flush right.

    `lights` colours cells by what they mean; the text must say it too. "" leaves a cell plain.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    numeric: frozenset[str] = frozenset()
    lights: tuple[tuple[Light | Literal[""], ...], ...] = ()
    whole: bool = False
    """Whether every cell stays on one line."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A plain question, its answer in a word and a sentence, where the score lies, and where to read on."""

    question: str
    light: Light
    answer: str
    sentence: str
    scale: Between | None = None
    more: str = ""
    subject: str = ""
    """What it is about, in a word or two."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Questions with their answers, one card each."""

    cards: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its place to jump to, a remark below it, and the file beside the page that holds its numbers."""

    chart: Chart
    anchor: str = ""
    remark: str = ""
    numbers: str = ""


@dataclass(frozen=True, slots=True)
class Gallery:
    """Small figures side by side, as many as there is room for."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """A few facts that everybody asks for first, each a number or word in large type under its name."""

    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """Parts side by side where there is room, one below the other where there is not."""

    parts: tuple[tuple["Block", ...], ...]


@dataclass(frozen=True, slots=True)
class FoldedBlocks:
    """Blocks that are shown when their title is opened."""

    title: str
    blocks: tuple["Block", ...]
    narrow: bool = False
    """Whether they are folded on narrow screens alone; wider ones, and paper, show them without the title."""


Block = (
    Paragraph | BulletList | Link | Code | TextTable | Verdicts | Figure | Gallery | KeyFacts | Beside | FoldedBlocks
    | Lines | Points
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, the question it answers, and its blocks in order."""

    title: str
    question: str
    blocks: tuple[Block, ...]
    anchor: str = ""
    """To jump to; by its number if empty."""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report: a banner that says what may be done with it, then the sections."""

    title: str
    banner: str
    sections: Sequence[Section]
    footer: str = ""
    confidential: bool = False
    """Whether it compares with the private table: then the banner is set in a warning colour."""


POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
SIGNS = {"good": "✓", "fair": "◐", "poor": "✕", "unknown": "?"}


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("understudy", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["prose"] = prose
    environment.globals |= {"draw": draw, "draw_lines": draw_lines, "draw_points": draw_points, "signs": SIGNS}
    return environment.get_template(name)


_POWER = re.compile(r"(?<![\w.])(\d(?:\.\d+)?)e([+-])0*(\d+)(?![\w.]*\w)")
_HELD = re.compile(r"(?<=\d) (?=%)|(?<=[εδρσ]) (?==)|(?<=[εδρσ] =) (?=\d)")
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def prose(text: str) -> str:
    """A sentence as it is printed: powers of ten raised, and no line break between a number and its sign.

    >>> prose("with δ = 1e-09, and 2.5e+12 of 5 %").replace("\u00a0", "_")
    'with δ_=_10⁻⁹, and 2.5 · 10¹² of 5_%'
    """
    return _HELD.sub("\u00a0", _POWER.sub(_raised, text))


def _raised(found: re.Match[str]) -> str:
    power = f"10{(found[2].removeprefix('+') + found[3]).translate(_RAISED)}"
    return power if found[1] == "1" else f"{found[1]} · {power}"


def render_page(page: Page) -> str:
    """The page as HTML text. Characters that may not stand in a file (lone surrogates, NUL) are shown escaped."""
    return _written(_template("page.html").render(page=page, policy=POLICY))


def render_blocks(blocks: Sequence[Block]) -> str:
    """Some blocks as a piece of HTML, for a page that has `style_text` for its style; every text is escaped."""
    return _written(_template("fragment.html").render(blocks=blocks))


@cache
def style_text() -> str:
    """The style of all pages."""
    return _template("style.css").render()


def render_picture(chart: Chart | Lines | Points) -> str:
    """One chart as an SVG file of its own: light, nothing to load, every text escaped."""
    if isinstance(chart, Points):
        cloud = draw_points(chart)
        return _svg("points", cloud.graph, cloud=cloud)
    if isinstance(chart, Lines):
        return _svg("lines", draw_lines(chart))
    return _svg("drawing", draw(chart))


def _svg(kind: str, graph: Drawing | Graph, **more: object) -> str:
    text = _template("picture.svg").render(kind=kind, graph=graph, styles=_light_styles(), **more)
    return _written(text).lstrip()


def render_panels(title: str, rows: Sequence[Sequence[Chart | Points]]) -> str:
    """Charts in rows below a title, as one SVG file."""
    drawn = [[draw_points(one) if isinstance(one, Points) else draw(one) for one in row] for row in rows]
    panels, top, right = [], TITLE_ROOM, 0
    for row in drawn:
        left = 0
        for one in row:
            graph = one.graph if isinstance(one, Cloud) else one
            panels.append((left, top, graph, one))
            left += graph.width + GAP
        top += max(graph.height for _, at, graph, _ in panels if at == top) + TITLE_ROOM
        right = max(right, left)
    facts = {"title": title, "panels": panels, "width": right, "height": top, "styles": _light_styles()}
    return _written(_template("panels.svg").render(facts)).lstrip()


TITLE_ROOM, GAP = 30, 16


@cache
def _light_colours() -> dict[str, str]:
    """The colours of a light page by the names of their variables."""
    return dict(re.findall(r"--([a-z-]+): ([^;]+);", _template("style.css").render().split("@media")[0]))


@cache
def _light_styles() -> Markup:
    """The rules for charts with the colours of a light page written out: not every program knows variables."""
    colours = _light_colours()
    return Markup(re.sub(r"var\(--([a-z-]+)\)", lambda found: colours[found[1]], _template("charts.css").render()))


PRIVATE_CHARTS = "NOT FOR RELEASE: this compares with the private table."
MOST_SHOWN = 24
"""Charts that a notebook shows at most; hundreds would make its file too large to open."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """Charts to look at in a notebook and to keep: what `plot()` gives.

    `charts` are plain data, from which they can be drawn in another way.
    """

    figures: tuple[Figure, ...]
    confidential: bool = False

    @property
    def charts(self) -> tuple[Chart, ...]:
        """What is shown, without remarks."""
        return tuple(figure.chart for figure in self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def __repr__(self) -> str:
        names = ", ".join(chart.caption for chart in self.charts[:3])
        more = ", …" if len(self) > 3 else ""
        return f"<{len(self):,} chart{'' if len(self) == 1 else 's'}: {names}{more}{self._kept}>"

    @property
    def _kept(self) -> str:
        return "; CONFIDENTIAL" if self.confidential else ""

    def _repr_html_(self) -> str:
        """For notebooks: images with their texts; they bring no styles that others could take on."""
        shown = "".join(_in_notebook(one) for one in self.figures[:MOST_SHOWN])
        grid = "display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:14px 20px;max-width:1100px"
        parts = [f"<p><strong>{PRIVATE_CHARTS}</strong></p>"] if self.confidential else []
        parts.append(f'<div style="{grid}">{shown}</div>')
        if len(self) > MOST_SHOWN:
            parts.append(f"<p>… and {len(self) - MOST_SHOWN:,} more; save() writes all of them as a page.</p>")
        return "".join(parts)

    def save(self, path: str | Path) -> Path:
        """Writes one chart as .svg, or any number as a page, .html.

        Raises:
            UsageError: for another suffix, several charts in one .svg, or a file that is there already.
        """
        target = Path(path)
        if target.suffix not in (".svg", ".html") or (target.suffix == ".svg" and len(self) != 1):
            fix = "Use .html for a page of charts, or .svg for one chart."
            raise UsageError(f"file {str(path)!r}", f"cannot hold {len(self)} charts in the form of its name.", fix)
        if target.suffix == ".svg":
            text = render_picture(self.charts[0])
        else:
            banner = PRIVATE_CHARTS if self.confidential else ""
            section = Section("Charts", "What was looked at?", (Gallery(self.figures),))
            text = render_page(Page("Charts", banner, (section,), confidential=self.confidential))
        try:
            with target.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise UsageError(f"file {str(path)!r}", "exists already.", "Give a new name.") from None
        return target


def _in_notebook(figure: Figure) -> str:
    """One chart as an image below its name and the key of its colours; a wide one has a line for itself."""
    drawing, colours = draw(figure.chart), _light_colours()
    keys = "".join(
        f' <span style="color:{colours["real" if style == "key-real" else "made"]}">■</span> {escape(name)}'
        for style, name in drawing.names
    )
    line = ";grid-column:1/-1" if drawing.width > WIDE else ""
    image = b64encode(render_picture(figure.chart).encode()).decode()
    return (
        f'<figure style="margin:0{line}"><figcaption><strong>{escape(drawing.caption)}</strong>{keys}</figcaption>'
        f'<img alt="{escape(drawing.summary)}" src="data:image/svg+xml;base64,{image}">'
        f"{f'<p>{escape(figure.remark)}</p>' if figure.remark else ''}</figure>"
    )


def long_gallery(figures: Sequence[Figure]) -> tuple[Block, ...]:
    """One figure for each column: on narrow screens all but the first few are folded.

    Both parts look like one where they are not folded, so the first one fills rows of two and of three.
    """
    if len(figures) <= OPEN_ON_NARROW + 2:
        return (Gallery(tuple(figures)),)
    rest = Gallery(tuple(figures[OPEN_ON_NARROW:]))
    title = f"{len(rest.figures):,} more columns"
    return Gallery(tuple(figures[:OPEN_ON_NARROW])), FoldedBlocks(title, (rest,), narrow=True)


def figures_of(blocks: Iterable[Block]) -> Iterator[Figure]:
    """Every figure among these blocks, in galleries and in folded blocks too."""
    for block in blocks:
        if isinstance(block, Figure):
            yield block
        elif isinstance(block, Gallery):
            yield from block.figures
        elif isinstance(block, FoldedBlocks):
            yield from figures_of(block.blocks)
        elif isinstance(block, Beside):
            for part in block.parts:
                yield from figures_of(part)


def section_pictures(page: Page, what: str, *, missing: str = "") -> Pictures:
    """The charts of one section of a page, by the section's name to jump to.

    Raises:
        UsageError: for a section that is not there or has no chart, with those that have.
    """
    found = {one.anchor: tuple(figures_of(one.blocks)) for one in page.sections}
    if not found.get(what):
        known = ", ".join(f'"{name}"' for name, figures in found.items() if name and figures)
        raise UsageError(f"plot {what!r}", "is not among the charts.", f"Known: {known or 'none'}. {missing}".strip())
    return Pictures(found[what], page.confidential)


def _written(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")
