"""SplitCodec: an integer column as two code columns, its size (bin, special value or missing) and its kind.

People round amounts: 1,500 is far more common than 1,497. A bin alone forgets that, a code per value costs too much
noise; size and kind together keep it. The kind of a value is the first of the column's divisors that it is a multiple
of, or none of them; special, missing and unreadable values share one further code. Both parts are read from the same
cell, and a record whose kind its bin does not hold (a value off the column's step) gets the first kind that the bin
does hold, so that every coded pair stands for a value. The pairs that stand for none are forbidden cells: no model
gives them mass.
"""

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.codec.column_codec import CodeArray, Layout, through_dictionary
from understudy.codec.number_codec import NumberCodec
from understudy.codec.split.residues import Residues, kinds_of
from understudy.codec.support import Grid
from understudy.codec.text import plain

__all__ = ["KindCodec", "SplitCodec", "agreed"]

Ints = npt.NDArray[np.int64]

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
        self._avoid = [index for value in size.special if (index := grid.index_of(value)) is not None]
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
        layout = Layout(self.layout.regular - 1, other=True, missing=False)  # what is no number is settled by its size
        if pa.types.is_null(array.type):
            kinds = np.zeros(len(array), dtype=np.int64)
        elif pa.types.is_dictionary(array.type) or self._size.reads_by_text(array.type):
            kinds = through_dictionary(array, self._kinds, layout).astype(np.int64)
        else:
            kinds = self._kinds(array).astype(np.int64)
        coded = sizes < self._size.layout.size
        found = agreed(self._possible, np.where(coded, sizes, 0), kinds)
        return np.where(coded, found, self.layout.size).astype(self.layout.dtype)

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
        return f'It holds kinds of numbers: ask for "{self.describe(code)}".'


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
