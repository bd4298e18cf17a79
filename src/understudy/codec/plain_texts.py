"""Codes of numbers, dates and moments straight from text, in the forms that nearly all of them are written in.

The forms: `12`, `-7`, `3.25`, `2024-05-10`, `2024-05-10 18:16:53.25`, the last two with `T` and `Z` as well. A text in
one of them means a number, a day or a second, and has the code that a column of that storage type gives it
(`ColumnPasses` asks the codec which type that is). Whatever is written otherwise is left to the general way, which says
what any text means; the forms here are some of those that it reads, and the tests hold both against each other. So a
code depends on its text alone, whichever way it was found.

Digits are read eight at a time. A number of up to 15 digits is a whole number over a power of ten, both of which a
float holds exactly, so one division rounds it as it should be. With up to 18 digits that division may be off by
2⁻⁵¹ of the number: it is coded here only if a number twice as far off on either side has the same code, and else left
to the general way, which reads it exactly.
"""

import numpy as np
import pyarrow as pa

from understudy.arrays import Floats, Ints, Unsigned
from understudy.codec.kernels import (
    NO_BITS,
    ByFloatEdges,
    OnePass,
    bin_of,
    bytes_of,
    mark_gaps,
    tens,
    word_of,
)
from understudy.compiled import compiled, lowest_bit, within_kernels

_EXACT_DIGITS, _MOST_DIGITS, _WORD_DIGITS, _MOST_DECIMALS = 15, 18, 8, 22
_NEAR = 2.0**-50
MINUS, PLUS, POINT = 45, 43, 46
_ZEROS = np.uint64(0x3030303030303030)
_TOP_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_ABOVE_NINE = np.uint64(0x7676767676767676)  # added to 0 … 9 it leaves the top bit of a byte alone
# The same for words of two numbers and more with a mark between them, which must be met exactly.
_DATE, _DATE_FORM = np.uint64(0x2D30302D30303030), np.uint64(0x7F76767F76767676)  # 0000-00-
_CLOCK, _CLOCK_FORM = np.uint64(0x30303A30303A3030), np.uint64(0x76767F76767F7676)  # 00:00:00
_TENS: Floats = tens()
_WHOLE_TENS: Ints = np.array([10**power for power in range(_MOST_DIGITS + 1)], np.int64)


def code_plain_texts(kind: pa.DataType, way: OnePass, texts: pa.Array, absent: int, codes: Unsigned) -> Ints:
    """Fills the codes of texts in a plain form and of nulls, and gives the places of all others.

    Args:
        kind: the storage type that the texts are read as: int64, float64, date32 or timestamp in seconds.
        way: codes of values of that type.
        texts: text of any kind.
        absent: the code of nulls.
        codes: where codes go; at the places of others nothing that matters is written.
    """
    bits = texts.buffers()[0]
    valid = NO_BITS if bits is None or not texts.null_count else np.frombuffer(bits, np.uint8)
    others = np.empty(len(texts), np.int64)
    given = (*bytes_of(texts), valid, texts.offset)
    if isinstance(way, ByFloatEdges):
        search = (way.edges, way.guesses, way.per_unit, way.odd, way.odd_codes)
        count = _code_reals(*given, _TENS, _WHOLE_TENS, *search, codes, others)
    else:
        numbers = np.empty(len(texts), np.int64)
        if pa.types.is_integer(kind):
            count = _wholes(*given, _WHOLE_TENS, numbers, others)
        else:
            per_day, per_second = (1, 0) if pa.types.is_date(kind) else (86_400, 1)
            count = _moments(*given, per_day, per_second, numbers, others)
        way.code(numbers, absent, codes)
    mark_gaps(texts, absent, codes)
    return others[:count]


@within_kernels()  # pragma: no cover
def _is_null(bits, place):  # type: ignore[no-untyped-def]
    return bits.size and not (bits[place >> 3] >> np.uint8(place & 7)) & 1


@within_kernels()  # pragma: no cover
def _is_sign(byte):  # type: ignore[no-untyped-def]
    return (byte == MINUS) | (byte == PLUS)


@within_kernels()  # pragma: no cover
def _short_number(word, size):  # type: ignore[no-untyped-def]
    """The number that one to eight digits in a word say; −1 if they are not all digits."""
    zeros = np.uint64(64 - 8 * size)
    digits = ((word << zeros) | (_ZEROS & ((np.uint64(1) << zeros) - np.uint64(1)))) ^ _ZEROS
    if (digits | (digits + _ABOVE_NINE)) & _TOP_BITS:
        return np.int64(-1)
    # Neighbours are joined to two digits, four, then eight.
    digits = digits * np.uint64(10) + (digits >> np.uint64(8))
    first = (digits & np.uint64(0x000000FF000000FF)) * np.uint64(0x000F424000000064)
    second = ((digits >> np.uint64(16)) & np.uint64(0x000000FF000000FF)) * np.uint64(0x0000271000000001)
    return np.int64(((first + second) >> np.uint64(32)) & np.uint64(0xFFFFFFFF))


@within_kernels()  # pragma: no cover
def _number_at(data, start, stop, powers):  # type: ignore[no-untyped-def]
    """The number that one to eighteen digits say; −1 if they are not all digits."""
    number = np.int64(0)
    while stop - start > _WORD_DIGITS:
        part = _short_number(word_of(data, start, start + _WORD_DIGITS), _WORD_DIGITS)
        if part < 0:
            return part
        number = number * 100_000_000 + part
        start += _WORD_DIGITS
    part = _short_number(word_of(data, start, stop), stop - start)
    return number * powers[stop - start] + part if part >= 0 else part


@compiled(allocates=False)  # pragma: no cover
def _wholes(data, offsets, bits, begin, powers, numbers, others):  # type: ignore[no-untyped-def]
    """Whole numbers of up to 18 digits. Returns how many texts are others."""
    count = 0
    for row in range(numbers.size):
        numbers[row] = 0
        if _is_null(bits, begin + row):
            continue
        start, stop = offsets[row], offsets[row + 1]
        number = np.int64(-1)
        if start < stop:
            sign = data[start]
            first = start + _is_sign(sign)
            if 1 <= stop - first <= _MOST_DIGITS:
                number = _number_at(data, first, stop, powers)
                numbers[row] = -number if sign == MINUS else number
        if number < 0:
            others[count] = row
            count += 1
    return count


@within_kernels()  # pragma: no cover
def _points(word):  # type: ignore[no-untyped-def]
    """The top bit of each byte of a word that is a point."""
    odd = word ^ np.uint64(0x2E2E2E2E2E2E2E2E)
    return ~(((odd & _LOW_BITS) + _LOW_BITS) | odd | _LOW_BITS)


@within_kernels()  # pragma: no cover
def _short_decimal(word, size):  # type: ignore[no-untyped-def]
    """One to eight bytes in a word as a whole number and how many of its digits are decimals; −1 if they are none."""
    points = _points(word)
    if not points:
        return _short_number(word, size), np.int64(0)
    point = lowest_bit(points) >> 3
    if point == 0 or size == 1:
        return np.int64(-1), np.int64(0)
    before = (np.uint64(1) << np.uint64(8 * point)) - np.uint64(1)
    return _short_number((word & before) | ((word >> np.uint64(8)) & ~before), size - 1), size - 1 - point


@within_kernels()  # pragma: no cover
def _small_part(data, start, point, stop, powers):  # type: ignore[no-untyped-def]
    """Decimals behind a lone 0 that begin with zeros enough to be a number of 18 digits; −1 if that is not so.

    Floats near 0 are written like that.
    """
    first = point + 1
    if point != start + 1 or data[start] != 48 or not _MOST_DIGITS <= stop - first <= _MOST_DECIMALS:
        return np.int64(-1)
    leading = _short_number(word_of(data, first, first + _WORD_DIGITS), np.int64(_WORD_DIGITS))
    if not 0 <= leading < powers[_MOST_DIGITS + _WORD_DIGITS - (stop - first)]:
        return np.int64(-1)
    return _number_at(data, first, stop, powers)


@within_kernels()  # pragma: no cover
def _decimal(data, start, stop, powers):  # type: ignore[no-untyped-def]
    """A decimal number as a whole one (−1 if it is none), how many of its digits are decimals, and of how many."""
    if stop - start <= _WORD_DIGITS:
        number, decimals = _short_decimal(word_of(data, start, stop), stop - start)
        return number, decimals, np.int64(_WORD_DIGITS)
    point, last = start, min(stop, start + _MOST_DIGITS + 1)
    while point < last and data[point] != POINT:
        end = min(last, point + _WORD_DIGITS)
        points = _points(word_of(data, point, end))
        point = point + (lowest_bit(points) >> 3) if points else end
    decimals = max(stop - point - 1, 0)
    digits = point - start + decimals
    if point == start or digits > _MOST_DIGITS:
        return _small_part(data, start, point, stop, powers), decimals, digits
    number = _number_at(data, start, point, powers)
    part = _number_at(data, point + 1, stop, powers) if decimals else np.int64(0)
    whole = number * powers[decimals] + part if number >= 0 and part >= 0 else np.int64(-1)
    return whole, decimals, digits


@within_kernels()  # pragma: no cover
def _is_certain(real, found, edges, odd):  # type: ignore[no-untyped-def]
    """Whether numbers that are nearly this one have its code too."""
    margin = abs(real) * _NEAR
    if found > 0 and real - margin < edges[found - 1]:
        return False
    if found < edges.size and real + margin >= edges[found]:
        return False
    near = False
    for other in range(odd.size):
        near |= abs(real - odd[other]) <= margin
    return not near


@compiled(allocates=False)  # pragma: no cover
def _code_reals(data, offsets, bits, begin, reals, powers, edges, guesses, per_unit, odd, odd_codes, codes, others):  # type: ignore[no-untyped-def]
    """Codes of decimal numbers without an exponent. Returns how many texts are others."""
    count = 0
    for row in range(codes.size):
        if _is_null(bits, begin + row):
            continue
        start, stop = offsets[row], offsets[row + 1]
        met = False
        if start < stop:
            sign = data[start]
            first = start + _is_sign(sign)
            if first < stop:
                number, decimals, digits = _decimal(data, first, stop, powers)
                if number >= 0:
                    real = np.float64(number) / reals[decimals]
                    real = -real if sign == MINUS else real
                    found = bin_of(real, edges, guesses, per_unit)
                    met = digits <= _EXACT_DIGITS or _is_certain(real, found, edges, odd)
                    for other in range(odd.size):
                        if real == odd[other]:
                            found = odd_codes[other]
                    codes[row] = found
        if not met:
            others[count] = row
            count += 1
    return count


@within_kernels()  # pragma: no cover
def _digit(word, place):  # type: ignore[no-untyped-def]
    return np.int64((word >> np.uint64(8 * place)) & np.uint64(0xFF))


@within_kernels()  # pragma: no cover
def _days(data, start):  # type: ignore[no-untyped-def]
    """Days since 1970 of the ten bytes from there on, `NO_DAY` if they are no date; years begin in March."""
    word = word_of(data, start, start + 8) ^ _DATE
    tens_of, ones = np.int64(data[start + 8]) - 48, np.int64(data[start + 9]) - 48
    if (word | (word + _DATE_FORM)) & _TOP_BITS or not (0 <= tens_of <= 9 and 0 <= ones <= 9):
        return np.int64(NO_DAY)
    year = 1000 * _digit(word, 0) + 100 * _digit(word, 1) + 10 * _digit(word, 2) + _digit(word, 3)
    month, day = 10 * _digit(word, 5) + _digit(word, 6), 10 * tens_of + ones
    leap = year & 3 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = 31 - (month == 4 or month == 6 or month == 9 or month == 11) - (3 - leap) * (month == 2)
    if not (1 <= month <= 12 and 1 <= day <= longest):
        return np.int64(NO_DAY)
    # 400 years more, which are 146,097 days, so that nothing here is below 0.
    years = np.uint64(year + 400 - (month <= 2))
    of_year = np.uint64(153 * (month + (9 if month <= 2 else -3)) + 2) // np.uint64(5) + np.uint64(day - 1)
    leaps = (years >> np.uint64(2)) - years // np.uint64(100) + years // np.uint64(400)
    return np.int64(years * np.uint64(365) + leaps + of_year) - 146_097 - 719_468


NO_DAY = 1 << 40


@within_kernels()  # pragma: no cover
def _second(data, start, stop):  # type: ignore[no-untyped-def]
    """The second of the day that the rest of a text says, from behind the date on; −1 if it says none."""
    if stop - start < 9:
        return np.int64(-1)
    mark = data[start]
    word = word_of(data, start + 1, start + 9) ^ _CLOCK
    if (word | (word + _CLOCK_FORM)) & _TOP_BITS or not (mark == 84 or mark == 116 or mark == 32):
        return np.int64(-1)
    hour = 10 * _digit(word, 0) + _digit(word, 1)
    minute, second = 10 * _digit(word, 3) + _digit(word, 4), 10 * _digit(word, 6) + _digit(word, 7)
    place = start + 9
    if data[stop - 1] == 90 or data[stop - 1] == 122:
        stop -= 1
    if place < stop and (data[place] != POINT or not 2 <= stop - place <= 9):
        return np.int64(-1)
    if place < stop and _short_number(word_of(data, place + 1, stop), stop - place - 1) < 0:
        return np.int64(-1)
    return 3_600 * hour + 60 * minute + second if hour <= 23 and minute <= 59 and second <= 59 else np.int64(-1)


@compiled(allocates=False)  # pragma: no cover
def _moments(data, offsets, bits, begin, per_day, per_second, numbers, others):  # type: ignore[no-untyped-def]
    """Days or seconds since 1970 by the text's own clock. Returns how many texts are others."""
    count = 0
    for row in range(numbers.size):
        numbers[row] = 0
        if _is_null(bits, begin + row):
            continue
        start, stop = offsets[row], offsets[row + 1]
        days, second = np.int64(NO_DAY), np.int64(0)
        if stop - start >= 10:
            days = _days(data, start)
            if stop - start > 10:
                second = _second(data, start + 10, stop)
        if days < NO_DAY and second >= 0:
            numbers[row] = days * per_day + second * per_second
        else:
            others[count] = row
            count += 1
    return count
