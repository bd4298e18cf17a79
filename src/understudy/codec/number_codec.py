"""Codes of numbers, dates and times: bins along the column's axis, then special values, missing, unreadable.

A number beyond the bounds falls into an end bin. What is no number, or no date in the column's format, does not.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.codec.axis import Axis, CalendarAxis
from understudy.codec.column_codec import CodeArray, Layout, through_dictionary
from understudy.codec.reading import Reading
from understudy.codec.support import Grid, Number, Values
from understudy.codec.text import is_absent, is_text, plain

__all__ = ["NumberCodec"]

# Integer columns that span no more than this are coded by one look into a table.
_WIDEST_TABLE = 1 << 18


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
        self.layout = Layout(len(self.edges) - 1, len(self.special), missing=missing, unreadable=unreadable)
        self.arrow_type = axis.arrow_type
        kind = np.float64 if isinstance(axis.lower, float) else np.int64
        self._inner = np.asarray(self.edges[1:-1], dtype=kind)
        self._specials = np.asarray(self.special, dtype=kind)
        self._table: CodeArray | None = None
        if kind is np.int64 and axis.upper - axis.lower < _WIDEST_TABLE:
            every = np.arange(axis.lower, axis.upper + 1, dtype=np.int64)
            self._table = np.searchsorted(self._inner, every, side="right").astype(self.layout.dtype)

    def encode(self, array: pa.Array) -> CodeArray:
        """The code of each value."""
        array = plain(array)
        kind = array.type
        if pa.types.is_dictionary(kind) or self.reads_by_text(kind):
            return through_dictionary(array, self._encode_plain, self.layout)
        if pa.types.is_null(kind):
            return np.full(len(array), self.layout.absent, dtype=self.layout.dtype)
        return self._encode_plain(array)

    def reads_by_text(self, kind: pa.DataType) -> bool:
        """Whether such values are read through their text, which is worth doing once per distinct value."""
        if is_text(kind) or pa.types.is_decimal(kind) or pa.types.is_float32(kind):
            return True
        return isinstance(self.axis, CalendarAxis) and bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))

    def _encode_plain(self, array: pa.Array) -> CodeArray:
        array = plain(array)
        reading = self.axis.read(array)
        codes = self._codes(reading)
        if self.layout.absent != self.layout.unknown and not reading.valid.all():
            codes[is_absent(array)] = self.layout.absent
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
        return np.searchsorted(self._inner, numbers, side="right").astype(self.layout.dtype)

    def _mark_special(self, codes: CodeArray, reading: Reading) -> None:
        for place, value in enumerate(self._specials):
            codes[(reading.values == value) & reading.exact] = self.layout.regular + place

    def decode(self, codes: CodeArray, rng: np.random.Generator) -> pa.Array:
        """A value evenly drawn from each bin; special values exactly; null for missing."""
        regular = codes < self.layout.regular
        bins = np.where(regular, codes, 0).astype(np.int64)
        return self.write(codes, self.axis.support.draw(self.edges, bins, rng, self.special))

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
        while first < last and support.value(first) in self.special:
            first += 1
        while first < last and support.value(last) in self.special:
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
        asked = self._asked(text)
        if asked is None:
            return np.asarray([], dtype=np.int64)
        low, high = asked
        special = [place for place, value in enumerate(self.special) if low <= value <= high]
        if low == high and special:
            return np.asarray([self.layout.regular + special[0]], dtype=np.int64)
        inside = self.codes_between(low, high)
        if len(inside) != len(self._bins_touched(low, high)) or not len(inside):
            return np.asarray([], dtype=np.int64)
        counted = [place for place in special if self.axis.lower <= self.special[place] <= self.axis.upper]
        return np.asarray([*inside, *(self.layout.regular + place for place in counted)], dtype=np.int64)

    def nearest_conditions(self, text: str) -> str:
        """The conditions next to one that cuts a bin, as advice; empty where the text is no condition at all."""
        asked = self._asked(text)
        touched = [] if asked is None else self._bins_touched(*asked)
        if asked is None or not touched:
            return ""
        whole = self.codes_between(*asked).tolist()
        spoken = [f'"{self._range(asked, codes)}"' for codes in (whole, touched) if codes]
        return f"Its values are known in bins only: ask for {' or '.join(dict.fromkeys(spoken))}."

    def _asked(self, text: str) -> tuple[Number, Number] | None:
        """The ends of "lo..hi" (either may be left out), or one value twice."""
        low, dots, high = text.partition("..")
        if not dots:
            number = self.axis.number(text)
            return None if number is None else (number, number)
        start = self.axis.number(low) if low.strip() else -math.inf
        stop = self.axis.number(high) if high.strip() else math.inf
        return None if start is None or stop is None or start > stop else (start, stop)  # backwards: no condition

    def _bins_touched(self, low: Number, high: Number) -> list[int]:
        """Bins with a value in [low, high]; values beyond the bounds are in the end bins."""
        low, high = min(low, self.axis.upper), max(high, self.axis.lower)
        ends = [self._ends(code) for code in range(self.layout.regular)]
        if isinstance(self.axis.support, Grid) or low == high:
            return [code for code, (a, b) in enumerate(ends) if low <= b and a <= high][-1 if low == high else 0 :]
        # Where all floats are values a bin ends just before the next one, so to share an edge is not to overlap.
        return [code for code, (a, b) in enumerate(ends) if low < b - self._slack and a + self._slack < high]

    def _range(self, asked: tuple[Number, Number], codes: Sequence[int]) -> str:
        """These bins as a condition; an end that was asked for at or beyond the column's bounds stays as it was."""
        low, high = self._ends(codes[0])[0], self._ends(codes[-1])[1]
        if asked[0] != asked[1]:
            low = min(low, asked[0]) if codes[0] == 0 else low
            high = max(high, asked[1]) if codes[-1] == self.layout.regular - 1 else high
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
