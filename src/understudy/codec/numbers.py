"""Codes of numbers, dates and times: bins along the column's axis, then special values, missing, unreadable.

A number beyond the bounds falls into an end bin. What is no number, or no date in the column's format, does not.

Split columns
-------------
People round amounts: 1,500 is far more common than 1,497. A bin alone forgets that, a code per value costs too much
noise; an integer column split into its size (bin, special value or missing) and its kind keeps it. The kind of a value
is the first of the column's divisors that it is a multiple of, or none of them; special, missing and unreadable values
share one further code. Both parts are read from the same cell, and a record whose kind its bin does not hold (a value
off the column's step) gets the first kind that the bin does hold, so that every coded pair stands for a value. The
pairs that stand for none are structural zeros: no model gives them mass.

On a grid of values the kinds repeat with a period that divides the least common multiple of the divisors, so values of
a kind are counted, ranked and found by arithmetic, however long the stretch is.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.arrays import Floats, Ints
from understudy.codec.axes import Axis, CalendarAxis, Grid, Number, Values
from understudy.codec.column import CodeArray, Layout, through_dictionary
from understudy.codec.kernels import (
    LARGEST_EXACT,
    LEAST_ROWS,
    WIDEST_TABLE,
    ByEdges,
    ByFloatEdges,
    ByTable,
    OnePass,
    is_whole,
)
from understudy.codec.reading import (
    Reading,
    is_text,
    plain,
)

# Integer columns that span no more than this are coded by one look into a table.
_WIDEST_TABLE = 1 << 18


def _are_new_texts(array: pa.Array) -> bool:
    """Whether these are many texts: of such only those come here that were not met before (see `ColumnPasses`)."""
    return is_text(array.type) and len(array) >= LEAST_ROWS


class NumberCodec:
    """Numbers ⇄ codes of bins. Values beyond the bounds fall into the end bins."""

    def __init__(
        self,
        axis: Axis,
        edges: Sequence[Number],
        special: Sequence[Number],
        *,
        missing: bool,
        unreadable: bool = False,
    ) -> None:
        self.axis = axis
        self.edges = tuple(edges)
        self.special = tuple(special)
        # What no bin may give out: these are codes of their own, or no values.
        self.avoid = (*self.special, *(number for number in axis.missing.numbers if number not in self.special))
        self.layout = Layout(len(self.edges) - 1, len(self.special), missing=missing, unreadable=unreadable)
        self.arrow_type = axis.arrow_type
        kind = np.float64 if isinstance(axis.lower, float) else np.int64
        self._inner = np.asarray(self.edges[1:-1], dtype=kind)
        self._specials = np.asarray(self.special, dtype=kind)
        self._table: CodeArray | None = None
        if kind is np.int64 and axis.upper - axis.lower < _WIDEST_TABLE:
            every = np.arange(axis.lower, axis.upper + 1, dtype=np.int64)
            self._table = np.searchsorted(self._inner, every, side="right").astype(self.layout.dtype)

    def spans(self) -> tuple[Floats, Floats]:
        """Smallest and largest value of each code; NaN for codes that are no number."""
        lows, highs = (np.full(self.layout.size, np.nan) for _ in range(2))
        bins, past = self.layout.regular, 0 if isinstance(self.axis.lower, float) else 1
        lows[:bins], highs[:bins] = self.edges[:-1], np.asarray(self.edges[1:], np.float64) - past
        specials = slice(bins, bins + self.layout.special)
        lows[specials] = highs[specials] = self.special
        return lows, highs

    def by_bounds(self) -> Self:
        """The same reading with three bins: below the bounds, between them, above; for counting alone."""
        last = self.axis.upper
        past = math.nextafter(last, math.inf) if isinstance(last, float) else last + 1
        found = copy.copy(self)
        found.edges = (-math.inf, self.axis.lower, past, math.inf)
        found.layout = replace(self.layout, regular=3)
        found._inner = np.asarray([self.axis.lower, past], dtype=self._inner.dtype)
        found._table = None
        found.__dict__.pop("_search", None)
        return found

    def encode(self, array: pa.Array) -> CodeArray:
        """The code of each value."""
        array = plain(array)
        kind = array.type
        if pa.types.is_dictionary(kind) or (self.reads_by_text(kind) and not _are_new_texts(array)):
            return through_dictionary(array, self._encode_plain, self.layout)
        if pa.types.is_null(kind):
            return np.full(len(array), self.layout.absent, dtype=self.layout.dtype)
        return self._encode_plain(array)

    def reads_by_text(self, kind: pa.DataType) -> bool:
        """Whether such values are read through their text, which is worth doing once per distinct value."""
        if is_text(kind) or pa.types.is_decimal(kind) or pa.types.is_float32(kind):
            return True
        return isinstance(self.axis, CalendarAxis) and bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))

    @property
    def text_kind(self) -> pa.DataType | None:
        """As the axis says."""
        return self.axis.text_kind

    def one_pass(self, kind: pa.DataType) -> OnePass | None:
        """Numbers near each other by a table, others by a search among the edges."""
        floats = bool(pa.types.is_float64(kind))
        if isinstance(self.axis.lower, float):
            return self._by_floats() if floats or is_whole(kind) else None
        ticks = self.axis.ticks(kind)
        if ticks is None:
            exact = all(abs(number) <= LARGEST_EXACT for number in (*self._inner.tolist(), *self.avoid))
            return self._by_floats() if floats and exact and not self.reads_by_text(kind) else None
        whole = self.whole_span
        if ticks == 1 and whole is not None:
            return ByTable(whole[0], self.on_axis(np.arange(whole[0], whole[1] + 1, dtype=np.int64)))
        spans = [(int(number) * ticks, (int(number) + 1) * ticks - 1) for number in self.avoid]
        odd = self.on_axis(np.asarray(self.avoid, np.int64)).tolist()
        return ByEdges.of([edge * ticks for edge in self._inner.tolist()], spans, odd)

    def _by_floats(self) -> ByFloatEdges:
        whole = not isinstance(self.axis.lower, float)
        odd: Values = np.asarray(self.avoid, np.int64) if whole else np.asarray(self.avoid, np.float64)
        return ByFloatEdges.of(self._inner.tolist(), odd.tolist(), self.on_axis(odd).tolist())

    @property
    def whole_span(self) -> tuple[int, int] | None:
        """Two whole numbers beyond which codes do not change any more; None where they are far apart."""
        ends = [int(number) for number in (self.axis.lower, self.axis.upper, *self._inner.tolist(), *self.avoid)]
        return (min(ends) - 1, max(ends) + 1) if max(ends) - min(ends) < WIDEST_TABLE else None

    def on_axis(self, numbers: Values) -> CodeArray:
        """The codes of numbers that were read and met exactly."""
        every = np.ones(len(numbers), dtype=bool)
        everything = Reading(numbers, every, every)
        reading = self.axis.missing.without(everything)
        codes = self._codes(reading)
        codes[~reading.valid] = self.layout.absent
        return codes

    def _encode_plain(self, array: pa.Array) -> CodeArray:
        array = plain(array)
        everything = self.axis.read_all(array)
        reading = self.axis.missing.without(everything)
        codes = self._codes(reading)
        if self.layout.absent != self.layout.unknown and not reading.valid.all():
            codes[self.axis.missing.absent(array, everything)] = self.layout.absent
        return codes

    def _codes(self, reading: Reading) -> CodeArray:
        codes = self._bins(reading.values)
        self._mark_special(codes, reading)
        if not reading.valid.all():
            codes[~reading.valid] = self.layout.unknown
        return codes

    def _bins(self, numbers: Values) -> CodeArray:
        if self._table is not None:
            low, high = int(self.axis.lower), int(self.axis.upper)
            within: npt.NDArray[np.int64] = np.clip(numbers.astype(np.int64, copy=False), low, high)
            codes: CodeArray = np.take(self._table, within - low, mode="clip")
            return codes
        if len(numbers) >= LEAST_ROWS and self._search is not None:
            codes = np.empty(len(numbers), self.layout.dtype)
            self._search.code(numbers, 0, codes)
            return codes
        return np.searchsorted(self._inner, numbers, side="right").astype(self.layout.dtype)

    @cached_property
    def _search(self) -> OnePass | None:
        """The search among the edges that begins at a guess."""
        inner = self._inner.tolist()
        return ByFloatEdges.of(inner, [], []) if self._inner.dtype == np.float64 else ByEdges.of(inner, [], [])

    def _mark_special(self, codes: CodeArray, reading: Reading) -> None:
        for place, value in enumerate(self._specials):
            codes[(reading.values == value) & reading.exact] = self.layout.regular + place

    def decode(self, codes: CodeArray, rng: np.random.Generator) -> pa.Array:
        """A value evenly drawn from each bin; special values exactly; null for missing."""
        if self._lone is not None:
            return self._lone.take(pa.array(codes))
        regular = codes < self.layout.regular
        bins = np.where(regular, codes, 0).astype(np.int64)
        return self.write(codes, self.axis.support.draw(self.edges, bins, rng, self.avoid))

    @cached_property
    def _lone(self) -> pa.Array | None:
        """The value of every code, where each bin holds just one: then nothing is drawn, and a look-up does."""
        support = self.axis.support
        if not isinstance(support, Grid) or isinstance(self.edges[-1], float) or self.layout.regular > WIDEST_TABLE:
            return None
        ends = [support.first_index(edge) for edge in self.edges]
        if any(stop - first != 1 for first, stop in pairwise(ends)):
            return None
        codes = np.arange(self.layout.size, dtype=self.layout.dtype)
        bins = np.minimum(codes, self.layout.regular - 1).astype(np.int64)
        return self.write(codes, support.values(np.asarray(ends, np.int64))[bins])

    def write(self, codes: CodeArray, numbers: Values) -> pa.Array:
        """The numbers where the code is that of a bin; special values and nulls elsewhere."""
        regular = codes < self.layout.regular
        if self.special:
            place = codes.astype(np.int64) - self.layout.regular
            is_special = (place >= 0) & (place < len(self.special))
            numbers = np.where(is_special, self._specials[np.where(is_special, place, 0)], numbers)
            regular |= is_special
        return self.axis.write(numbers, regular)

    def describe(self, code: int) -> str:
        """The bin as "[20, 30)", a lone value as itself, "missing" or "unreadable"."""
        if code == self.layout.missing_code:
            return "missing"
        if code == self.layout.unreadable_code:
            return "unreadable"
        if code >= self.layout.regular:
            return self.axis.text(self.special[code - self.layout.regular])
        start, stop = self.edges[code], self.edges[code + 1]
        low, high = self._ends(code)
        if low == high:
            return self.axis.text(low)
        if code < self.layout.regular - 1:
            return f"[{self.axis.text(start)}, {self.axis.text(stop)})"
        return f"[{self.axis.text(start)}, {self.axis.text(self.axis.upper)}]"

    def _ends(self, code: int) -> tuple[Number, Number]:
        """The lowest and highest value a bin gives out."""
        start, stop = self.edges[code], self.edges[code + 1]
        support = self.axis.support
        if not isinstance(support, Grid):
            return start, stop
        if code == self.layout.regular - 1 and isinstance(stop, float):
            stop = math.nextafter(stop, math.inf)
        first, last = support.first_index(start), support.first_index(stop) - 1
        while first < last and support.value(first) in self.avoid:
            first += 1
        while first < last and support.value(last) in self.avoid:
            last -= 1
        return support.value(first), support.value(last)

    def codes_matching(self, text: str) -> npt.NDArray[np.int64]:
        """The codes that a value, "lo..hi", "missing" or "unreadable" stands for exactly; none where it cuts a bin.

        A value stands for its code if it is special or the only value of its bin. A range must begin where a bin
        begins and end where one ends; special values between the bounds belong to a range that holds them.
        """
        if text in ("missing", "unreadable"):
            code = self.layout.missing_code if text == "missing" else self.layout.unreadable_code
            return np.asarray([] if code is None else [code], dtype=np.int64)
        interval = self._interval(text)
        if interval is None or interval[0] > interval[1]:
            return np.asarray([], dtype=np.int64)
        low, high = interval
        special = [place for place, value in enumerate(self.special) if low <= value <= high]
        if low == high and special:
            return np.asarray([self.layout.regular + special[0]], dtype=np.int64)
        inside = self.codes_between(low, high)
        if len(inside) != len(self._bins_touched(low, high)) or not len(inside):
            return np.asarray([], dtype=np.int64)
        counted = [place for place in special if self.axis.lower <= self.special[place] <= self.axis.upper]
        return np.asarray([*inside, *(self.layout.regular + place for place in counted)], dtype=np.int64)

    def nearest_conditions(self, text: str) -> str:
        """The conditions next to one that cuts a bin or runs backwards, as advice; empty where it is no condition."""
        interval = self._interval(text)
        if interval is not None and interval[0] > interval[1]:
            low, _, high = text.partition("..")
            return f'The range runs backwards: ask for "{high.strip()}..{low.strip()}".'
        touched = [] if interval is None else self._bins_touched(*interval)
        if interval is None or not touched:
            return ""
        whole = self.codes_between(*interval).tolist()
        spoken = [f'"{self._range(interval, codes)}"' for codes in (whole, touched) if codes]
        beyond = interval[1] < self.axis.lower or interval[0] > self.axis.upper
        why = (
            "Values beyond the bounds count as part of the end bins" if beyond else "Its values are known in bins only"
        )
        return f"{why}: ask for {' or '.join(dict.fromkeys(spoken))}."

    def _interval(self, text: str) -> tuple[Number, Number] | None:
        """The ends of "lo..hi" (either may be left out), or one value twice."""
        low, dots, high = text.partition("..")
        if not dots:
            number = self.axis.number(text)
            return None if number is None else (number, number)
        start = self.axis.number(low) if low.strip() else -math.inf
        stop = self.axis.number(high) if high.strip() else math.inf
        return None if start is None or stop is None else (start, stop)

    def _bins_touched(self, low: Number, high: Number) -> list[int]:
        """Bins with a value in [low, high]; values beyond the bounds are in the end bins."""
        low, high = min(low, self.axis.upper), max(high, self.axis.lower)
        ends = [self._ends(code) for code in range(self.layout.regular)]
        if isinstance(self.axis.support, Grid) or low == high:
            return [code for code, (a, b) in enumerate(ends) if low <= b and a <= high][-1 if low == high else 0 :]
        # Where all floats are values a bin ends just before the next one, so to share an edge is not to overlap.
        return [code for code, (a, b) in enumerate(ends) if low < b - self._slack and a + self._slack < high]

    def _range(self, interval: tuple[Number, Number], codes: Sequence[int]) -> str:
        """These bins as a condition; an end that was asked for at or beyond the column's bounds stays as it was."""
        low, high = self._ends(codes[0])[0], self._ends(codes[-1])[1]
        if interval[0] != interval[1]:
            low = min(low, interval[0]) if codes[0] == 0 else low
            high = max(high, interval[1]) if codes[-1] == self.layout.regular - 1 else high
        if low == high:
            return self.axis.text(low)
        return "..".join("" if math.isinf(end) else self.axis.text(end) for end in (low, high))

    @property
    def _slack(self) -> float:
        """How far an end that means an edge may miss it: edges of even float bins are rounded."""
        return (self.axis.upper - self.axis.lower) * 1e-9 if isinstance(self.axis.lower, float) else 0

    def codes_between(self, low: Number, high: Number) -> npt.NDArray[np.int64]:
        """Bins all of whose values lie in [low, high]; special values are not part of a range."""
        slack = self._slack
        ends = (self._ends(code) for code in range(self.layout.regular))
        codes = [code for code, (a, b) in enumerate(ends) if low - slack <= a and b <= high + slack]
        return np.asarray(codes, dtype=np.int64)

    def special_code(self, text: str) -> int | None:
        """The code of the special value written so, if there is one."""
        number = self.axis.number(text)
        return self.layout.regular + self.special.index(number) if number in self.special else None


def kinds_of(values: Ints, divisors: Sequence[int]) -> Ints:
    """The kind of each number.

    >>> kinds_of(np.array([200, 40, 25, 7]), (100, 20, 5)).tolist()
    [0, 1, 2, 3]
    """
    kinds = np.full(len(values), len(divisors), dtype=np.int64)
    for kind in range(len(divisors) - 1, -1, -1):
        kinds[values % divisors[kind] == 0] = kind
    return kinds


@dataclass(frozen=True, slots=True, eq=False)
class Residues:
    """The kinds along a grid: `members` holds, for each kind, its indices within the first `period` of the grid."""

    grid: Grid
    divisors: tuple[int, ...]
    period: int
    members: tuple[Ints, ...]

    @classmethod
    def of(cls, grid: Grid, divisors: Sequence[int]) -> Self:
        """The kinds of a grid of whole numbers."""
        period = math.lcm(*(divisor // math.gcd(divisor, grid.step) for divisor in divisors))
        # Only remainders matter, and those of the least common multiple cannot overflow.
        all_of = math.lcm(*divisors)
        kinds = kinds_of(grid.start % all_of + np.arange(period) * (grid.step % all_of), divisors)
        members = tuple(np.flatnonzero(kinds == kind) for kind in range(len(divisors) + 1))
        return cls(grid, tuple(divisors), period, members)

    def below(self, kind: int, indices: Ints) -> Ints:
        """How many places of a kind lie before each index of the grid; differences count those in between."""
        whole, part = np.divmod(indices, self.period)
        found: Ints = whole * self.members[kind].size + np.searchsorted(self.members[kind], part)
        return found

    def counts(self, firsts: Ints, stops: Ints, avoid: Sequence[int]) -> Ints:
        """How many values of each kind lie in each stretch [first, stop) of the grid, without those at `avoid`."""
        counts = np.stack(
            [self.below(kind, stops) - self.below(kind, firsts) for kind in range(len(self.members))], axis=1
        )
        for stretch, kind, _ in self._inside(firsts, stops, avoid):
            counts[stretch, kind] -= 1
        return counts

    def draw(
        self, firsts: Ints, stops: Ints, avoid: Sequence[int], wanted: tuple[Ints, Ints], rng: np.random.Generator
    ) -> Ints:
        """One value for each wanted (stretch, kind), evenly drawn from those there are; there must be some."""
        stretches, kinds = wanted
        indices = np.zeros(len(stretches), dtype=np.int64)
        skipped = self._inside(firsts, stops, avoid)
        numbers_left = self.counts(firsts, stops, avoid)
        for kind in range(len(self.members)):
            rows = np.flatnonzero(kinds == kind)
            if not rows.size:
                continue
            where = stretches[rows]
            ranks = self.below(kind, firsts)[where] + rng.integers(0, numbers_left[where, kind])
            # Each skipped value at or below the drawn one moves it up by one rank, lowest first.
            for stretch, other, rank in skipped:
                if other == kind:
                    ranks += (where == stretch) & (ranks >= rank)
            whole, part = np.divmod(ranks, self.members[kind].size)
            indices[rows] = whole * self.period + self.members[kind][part]
        return np.asarray(self.grid.values(indices), dtype=np.int64)

    def _inside(self, firsts: Ints, stops: Ints, avoid: Sequence[int]) -> list[tuple[int, int, int]]:
        """The stretch, kind and rank of each index to avoid that lies in a stretch, in increasing order."""
        found = []
        for index in sorted(avoid):
            stretch = int(np.searchsorted(stops, index, side="right"))
            if stretch < len(firsts) and index >= firsts[stretch]:
                place = np.array([index], dtype=np.int64)
                kind = next(k for k, members in enumerate(self.members) if index % self.period in members)
                found.append((stretch, kind, int(self.below(kind, place)[0])))
        return found


_NO_NUMBER = "no number"
_NO_MULTIPLE = "multiple of none"


class SplitCodec:
    """One column ⇄ the codes of its size and of its kind."""

    def __init__(self, size: NumberCodec, divisors: tuple[int, ...]) -> None:
        assert isinstance(size.axis.support, Grid)
        self.size = size
        self.arrow_type = size.arrow_type
        grid = size.axis.support
        firsts = [grid.first_index(edge) for edge in size.edges]
        self._firsts = np.asarray(firsts[:-1], dtype=np.int64)
        self._stops = np.asarray(firsts[1:], dtype=np.int64)
        self._avoid = [index for value in size.avoid if (index := grid.index_of(value)) is not None]
        self._residues = Residues.of(grid, divisors)
        self.kind = KindCodec(size, divisors, self.possible)

    @cached_property
    def possible(self) -> npt.NDArray[np.bool_]:
        """Which kinds go with which sizes, by code: those of a bin's values; the last kind with all but bins."""
        layout = self.size.layout
        counts = self._residues.counts(self._firsts, self._stops, self._avoid)
        kinds = counts.shape[1]
        mask = np.zeros((layout.size, kinds + (layout.size > layout.regular)), dtype=bool)
        mask[: layout.regular, :kinds] = counts > 0
        mask[layout.regular :, kinds:] = True
        return mask

    def decode(self, sizes: CodeArray, kinds: CodeArray, rng: np.random.Generator) -> pa.Array:
        """A value of the kind evenly drawn from each bin; special values exactly; null for missing."""
        regular = sizes < self.size.layout.regular
        bins = np.where(regular, sizes, 0).astype(np.int64)
        wanted = (bins, agreed(self.possible, bins, kinds.astype(np.int64)))
        return self.size.write(sizes, self._residues.draw(self._firsts, self._stops, self._avoid, wanted, rng))


class KindCodec:
    """Numbers → codes of their kind."""

    def __init__(self, size: NumberCodec, divisors: tuple[int, ...], possible: npt.NDArray[np.bool_]) -> None:
        self._size = size
        self._divisors = divisors
        self._possible = possible
        self.layout = _kind_layout(len(divisors) + 1, size.layout)

    def encode(self, array: pa.Array) -> CodeArray:
        """The code of each value's kind, one that its size can have."""
        array = plain(array)
        sizes = self._size.encode(array).astype(np.int64)
        layout = Layout(self.layout.regular - 1, other=True, missing=False)  # what is no number is fixed by its size
        if pa.types.is_null(array.type):
            kinds = np.zeros(len(array), dtype=np.int64)
        elif pa.types.is_dictionary(array.type) or self._size.reads_by_text(array.type):
            kinds = through_dictionary(array, self._kinds, layout).astype(np.int64)
        else:
            kinds = self._kinds(array).astype(np.int64)
        coded = sizes < self._size.layout.size
        found = agreed(self._possible, np.where(coded, sizes, 0), kinds)
        return np.where(coded, found, self.layout.size).astype(self.layout.dtype)

    @property
    def text_kind(self) -> pa.DataType | None:
        """As the axis says."""
        return self._size.axis.text_kind

    def one_pass(self, kind: pa.DataType) -> OnePass | None:
        """Whole numbers by a table, where those that differ are few."""
        whole = self._size.whole_span if is_whole(kind) else None
        if whole is None:
            return None
        return ByTable(whole[0], self.encode(pa.array(np.arange(whole[0], whole[1] + 1, dtype=np.int64))))

    def _kinds(self, array: pa.Array) -> CodeArray:
        axis = self._size.axis
        values = np.clip(axis.read(plain(array)).values.astype(np.int64), int(axis.lower), int(axis.upper))
        return kinds_of(values, self._divisors).astype(self.layout.dtype)

    def describe(self, code: int) -> str:
        """The kind in words: "multiple of 100", "multiple of none", or "no number" for all other values."""
        if code < len(self._divisors):
            return f"multiple of {self._divisors[code]}"
        return _NO_MULTIPLE if code == len(self._divisors) else _NO_NUMBER

    def codes_matching(self, text: str) -> npt.NDArray[np.int64]:
        """The code described so."""
        return np.asarray([code for code in range(self.layout.size) if self.describe(code) == text], dtype=np.int64)

    def nearest_conditions(self, text: str) -> str:
        """For a number, its kind, which other numbers share."""
        if self._size.axis.number(text) is None:
            return ""
        (code,) = self.encode(pa.array([text], pa.string())).tolist()
        return f'Its codes stand for kinds of numbers: ask for "{self.describe(code)}".'


def _kind_layout(kinds: int, size: Layout) -> Layout:
    """The codes of the kinds, and one more for all values that are no number, if the column can hold any."""
    if size.missing:
        return Layout(kinds, missing=True)
    if size.special:
        return Layout(kinds, special=1, missing=False)
    return Layout(kinds, missing=False, unreadable=size.unreadable)


def agreed(possible: npt.NDArray[np.bool_], sizes: Ints, kinds: Ints) -> Ints:
    """The kinds, each replaced by the first one that its size can have where it cannot have it."""
    return np.where(possible[sizes, kinds], kinds, possible.argmax(axis=1)[sizes])
