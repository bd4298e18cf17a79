import datetime as dt

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema.strategies import columns
from understudy.schema import Date, Datetime, Float, GivenBins, Integer, PrivateBins, Time, UniformBins
from understudy.schema.columns import NumberColumn, bin_starts, number_of, step_of, values_between


def test_axes_count_from_their_origin() -> None:
    assert number_of(dt.date(1969, 12, 31)) == -1
    assert number_of(dt.datetime(1970, 1, 1, 1)) == 3600
    berlin = dt.timezone(dt.timedelta(hours=1))
    assert number_of(dt.datetime(1970, 1, 1, 1, tzinfo=berlin)) == 0
    assert number_of(dt.time(23, 59, 59)) == 86_399
    assert number_of(2.5) == 2.5


def test_integers_get_a_bin_each_up_to_a_hundred_and_32_beyond() -> None:
    assert bin_starts(Integer(name="n", lower=1, upper=100)) == tuple(range(1, 101))
    starts = bin_starts(Integer(name="n", lower=1, upper=101))
    assert starts is not None
    assert (len(starts), starts[:3]) == (32, (1, 4, 7))
    assert bin_starts(Integer(name="n", lower=0, upper=10, step=5)) == (0, 5, 10)
    assert bin_starts(Integer(name="n", lower=3, upper=3)) == (3,)


def test_other_kinds_get_at_most_32() -> None:
    assert len(bin_starts(Float(name="x", lower=0.0, upper=1.0)) or ()) == 32
    assert len(bin_starts(Date(name="d", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 1, 9))) or ()) == 9
    assert len(bin_starts(Time(name="t")) or ()) == 32


def test_given_bins_keep_their_edges_and_private_ones_wait() -> None:
    edges = (dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2), dt.datetime(2020, 1, 5))
    column = Datetime(name="t", lower=edges[0], upper=edges[-1], bins=GivenBins(edges))
    first = 18_262 * 86_400
    assert bin_starts(column) == (first, first + 86_400)
    assert bin_starts(Integer(name="n", lower=0, upper=9, bins=PrivateBins(3))) is None


@settings(max_examples=60, deadline=None)
@given(columns("n", ("integer", "date", "datetime", "time")), st.integers(1, 40))
def test_even_bins_hold_equally_many_values_up_to_one(column: NumberColumn, count: int) -> None:
    values, step = values_between(column), step_of(column)
    assert values is not None
    assert step is not None
    count = min(count, values)
    even = type(column)(name="n", lower=column.lower, upper=column.upper, bins=UniformBins(count), **_steps(column))
    starts = bin_starts(even)
    assert starts is not None
    assert starts[0] == number_of(column.lower)
    ends = [*starts[1:], number_of(column.lower) + values * step]
    sizes = {(end - start) // step for start, end in zip(starts, ends, strict=True)}
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1


def _steps(column: NumberColumn) -> dict[str, int]:
    return {key: getattr(column, key) for key in ("step", "resolution") if hasattr(column, key)}
