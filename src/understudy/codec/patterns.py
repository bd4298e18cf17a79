"""Texts of whole numbers, of short decimal numbers and of ISO moments, told apart by compiled loops.

Each loop decides just what a regular expression in `reading` decides, for one text at a time and at a tenth of its
time. Short arrays are left to the regular expressions, which need no compiled kernel.
"""

import numpy as np
import pyarrow as pa

from understudy.arrays import Bools, Bytes, Ints
from understudy.compiled import compiled

MATCHED, YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, OFFSET, HAS_OFFSET = range(9)
"""Places in the line of numbers that `iso_moments` finds for a text; zeros where there is no match."""


def whole_numbers(texts: pa.Array) -> Bools:
    """Which texts are [+-]?[0-9]{1,18}."""
    found = np.zeros(len(texts), np.bool_)
    _whole_numbers(*_bytes_of(texts), found)
    return _but_nulls(found, texts)


def short_reals(texts: pa.Array) -> Bools:
    """Which texts are [+-]?[0-9]{1,18}(.[0-9]{0,20})?([eE][+-]?[0-9]{1,2})?, the point taken as a point."""
    found = np.zeros(len(texts), np.bool_)
    _short_reals(*_bytes_of(texts), found)
    return _but_nulls(found, texts)


def iso_moments(texts: pa.Array) -> Ints:
    """Year, month, day, and where it is told hour, minute, second and offset from UTC in seconds, of each text."""
    found = np.zeros((len(texts), 9), np.int64)
    _iso_moments(*_bytes_of(texts), found)
    if texts.null_count:
        found[texts.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def _bytes_of(texts: pa.Array) -> tuple[Bytes, Ints]:
    """The bytes of all texts, and where each begins and ends."""
    _, places, data = texts.buffers()
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    offsets = np.frombuffer(places, kind)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"", np.uint8), offsets.astype(np.int64, copy=False)


def _but_nulls(found: Bools, texts: pa.Array) -> Bools:
    return found & texts.is_valid().to_numpy(zero_copy_only=False) if texts.null_count else found


@compiled()  # pragma: no cover
def _digits(data, place, stop):  # type: ignore[no-untyped-def]
    """Where the digits end that begin at a place."""
    while place < stop and 48 <= data[place] <= 57:
        place += 1
    return place


@compiled()  # pragma: no cover
def _signed(data, place, stop):  # type: ignore[no-untyped-def]
    """Behind a sign, if there is one."""
    return place + 1 if place < stop and (data[place] == 43 or data[place] == 45) else place


@compiled()  # pragma: no cover
def _whole_numbers(data, offsets, found):  # type: ignore[no-untyped-def]
    for row in range(found.size):
        stop = offsets[row + 1]
        place = _signed(data, offsets[row], stop)
        found[row] = 1 <= stop - place <= 18 and _digits(data, place, stop) == stop


@compiled()  # pragma: no cover
def _short_reals(data, offsets, found):  # type: ignore[no-untyped-def]
    for row in range(found.size):
        stop = offsets[row + 1]
        place = _signed(data, offsets[row], stop)
        end = _digits(data, place, stop)
        fits = 1 <= end - place <= 18
        if end < stop and data[end] == 46:
            place = end + 1
            end = _digits(data, place, stop)
            fits &= end - place <= 20
        if end < stop and (data[end] == 101 or data[end] == 69):
            place = _signed(data, end + 1, stop)
            end = _digits(data, place, stop)
            fits &= 1 <= end - place <= 2
        found[row] = fits and end == stop


@compiled()  # pragma: no cover
def _number(data, place, stop, least, most):  # type: ignore[no-untyped-def]
    """The number that begins at a place and where it ends; −1 unless it has a right number of digits."""
    end = _digits(data, place, min(stop, place + most))
    number = np.int64(0)
    for digit in range(place, end):
        number = number * 10 + np.int64(data[digit]) - 48
    return (number, end) if end - place >= least else (np.int64(-1), end)


@compiled()  # pragma: no cover
def _is(data, place, stop, sign):  # type: ignore[no-untyped-def]
    return place < stop and data[place] == sign


@compiled()  # pragma: no cover
def _clock(data, place, stop, line):  # type: ignore[no-untyped-def]
    """Hour, minute and perhaps second and offset, up to the end of the text; False if they are not all there is."""
    line[HOUR], place = _number(data, place, stop, 1, 2)
    if line[HOUR] < 0 or not _is(data, place, stop, 58):
        return False
    line[MINUTE], place = _number(data, place + 1, stop, 2, 2)
    if line[MINUTE] < 0:
        return False
    if _is(data, place, stop, 58):
        line[SECOND], place = _number(data, place + 1, stop, 2, 2)
        if line[SECOND] < 0:
            return False
        if _is(data, place, stop, 46):
            end = _digits(data, place + 1, stop)
            if end == place + 1:
                return False
            place = end
    if _is(data, place, stop, 32):
        place += 1
    if place == stop:
        return True
    line[HAS_OFFSET] = 1
    if data[place] == 90 or data[place] == 122:
        return place + 1 == stop
    if data[place] != 43 and data[place] != 45:
        return False
    west = data[place] == 45
    hours, place = _number(data, place + 1, stop, 2, 2)
    if hours < 0:
        return False
    if _is(data, place, stop, 58):
        place += 1
    minutes, place = _number(data, place, stop, 2, 2)
    line[OFFSET] = (hours * 3600 + minutes * 60) * (-1 if west else 1)
    return minutes >= 0 and place == stop


@compiled()  # pragma: no cover
def _iso_moments(data, offsets, found):  # type: ignore[no-untyped-def]
    for row in range(found.shape[0]):
        line = found[row]
        place, stop = offsets[row], offsets[row + 1]
        line[YEAR], place = _number(data, place, stop, 4, 4)
        fits = line[YEAR] >= 0 and _is(data, place, stop, 45)
        if fits:
            line[MONTH], place = _number(data, place + 1, stop, 1, 2)
            fits = line[MONTH] >= 0 and _is(data, place, stop, 45)
        if fits:
            line[DAY], place = _number(data, place + 1, stop, 1, 2)
            fits = line[DAY] >= 0
        if fits and place < stop:
            begins = data[place] == 84 or data[place] == 116 or data[place] == 32
            fits = begins and _clock(data, place + 1, stop, line)
        if fits:
            line[MATCHED] = 1
        else:
            line[:] = 0
