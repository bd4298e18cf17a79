"""A report as one page: plain data in, one HTML file out, which opens offline, without scripts or requests.

A `Page` is plain data: no markup is stored in it, so nothing can smuggle any in. Charts are geometry that the template
writes as inline SVG. Markup is written by the templates alone, whose engine escapes every text, and a content security
policy in the page itself forbids whatever a label might try all the same. Nothing private is computed here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from understudy.charts import Between, Chart, Lines, Points, draw, draw_lines, draw_points

Light = Literal["good", "fair", "poor", "unknown"]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of text; `strong` sets it off as the sentence to remember."""

    text: str
    strong: bool = False


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """A plain question, its answer in a word and a sentence, where the score lies, and where to read on."""

    question: str
    light: Light
    answer: str
    sentence: str
    scale: Between | None = None
    more: str = ""


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
class FoldedBlocks:
    """Blocks that are shown when their title is opened."""

    title: str
    blocks: tuple["Block", ...]


Block = Paragraph | BulletList | Link | Code | TextTable | Verdicts | Figure | Gallery | FoldedBlocks | Lines | Points


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
    environment.globals |= {"draw": draw, "draw_lines": draw_lines, "draw_points": draw_points, "signs": SIGNS}
    return environment.get_template(name)


def render_page(page: Page) -> str:
    """The page as HTML text. Characters that may not stand in a file (lone surrogates, NUL) are shown escaped."""
    return _written(_template("page.html").render(page=page, policy=POLICY))


def render_picture(chart: Lines | Points) -> str:
    """One chart as an SVG file of its own: nothing to load, every text escaped."""
    cloud = draw_points(chart) if isinstance(chart, Points) else None
    graph = cloud.graph if cloud is not None else draw_lines(cast(Lines, chart))
    return _written(_template("picture.svg").render(graph=graph, cloud=cloud)).lstrip()


def _written(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")
