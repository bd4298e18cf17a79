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
        """The codes of "missing" or "unreadable", of a value (its bin or special code), or of bins within "lo..hi"."""
        if text in ("missing", "unreadable"):
            code = self.layout.missing_code if text == "missing" else self.layout.unreadable_code
            return np.asarray([] if code is None else [code], dtype=np.int64)
        low, dots, high = text.partition("..")
        if dots:
            start = self.axis.number(low) if low.strip() else -math.inf
            stop = self.axis.number(high) if high.strip() else math.inf
            if start is None or stop is None:
                return np.asarray([], dtype=np.int64)
            return self.codes_between(start, stop)
        number = self.axis.number(text)
        if number is None:
            return np.asarray([], dtype=np.int64)
        one = np.ones(1, dtype=bool)
        value: Values = np.asarray([number], np.int64) if isinstance(number, int) else np.asarray([number], np.float64)
        return self._codes(Reading(value, one, one)).astype(np.int64)

    def codes_between(self, low: Number, high: Number) -> npt.NDArray[np.int64]:
        """Bins all of whose values lie in [low, high]; special values are not part of a range."""
        # Edges of even float bins are rounded, so an end that means an edge may miss it by a hair.
        slack = (self.axis.upper - self.axis.lower) * 1e-9 if isinstance(self.axis.lower, float) else 0
        ends = (self._ends(code) for code in range(self.layout.regular))
        codes = [code for code, (a, b) in enumerate(ends) if low - slack <= a and b <= high + slack]
        return np.asarray(codes, dtype=np.int64)

    def special_code(self, text: str) -> int | None:
        """The code of the special value written so, if there is one."""
        number = self.axis.number(text)
        return self.layout.regular + self.special.index(number) if number in self.special else None
