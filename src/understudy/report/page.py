"""Page: what a report shows, as plain data. No markup is stored here, so nothing here can smuggle any in."""

from collections.abc import Sequence
from dataclasses import dataclass


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
class TextTable:
    """Rows of text under a header. Columns named in `numeric` are set flush right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    numeric: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Bars:
    """A horizontal bar for each label, with an optional half-width of the error around its end."""

    caption: str
    labels: tuple[str, ...]
    values: tuple[float, ...]
    half_widths: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """One curve: a value for each place, with the ends of its interval where there is one."""

    name: str
    places: tuple[float, ...]
    values: tuple[float, ...]
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """Curves over one axis; `yardstick` draws a level to hold them against, `decades` makes heights logarithmic."""

    caption: str
    across: str
    upward: str
    series: tuple[Series, ...]
    logarithmic: bool = False
    yardstick: float | None = None
    decades: bool = False


@dataclass(frozen=True, slots=True)
class Points:
    """A point for each pair of numbers, with the diagonal on which both are equal."""

    caption: str
    across: str
    upward: str
    points: tuple[tuple[float, float], ...]


Block = Paragraph | BulletList | TextTable | Bars | Lines | Points


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, the question it answers, and its blocks in order."""

    title: str
    question: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report: a banner that says what may be done with it, then the sections."""

    title: str
    banner: str
    sections: Sequence[Section]
    footer: str = ""
    confidential: bool = False
    """Whether it compares with the private table: then the banner is set in a warning colour."""
