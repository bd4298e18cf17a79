import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from understudy.schema import Date, Datetime, Float, GivenBins, Integer, PrivateBins, Time, UniformBins
from understudy.schema.checks import column_problems
from understudy.schema.columns import NumberColumn

DAY = dt.date(2020, 1, 1)
LATER = dt.date(2020, 12, 31)
MOMENT = dt.datetime(2020, 1, 1)
AWARE = MOMENT.replace(tzinfo=dt.UTC)


def integer(lower: object = 0, upper: object = 9, **more: object) -> Integer:
    return Integer(name="n", lower=lower, upper=upper, **more)


def real(lower: object = 0.0, upper: object = 1.0, **more: object) -> Float:
    return Float(name="n", lower=lower, upper=upper, **more)


def day(lower: object = DAY, upper: object = LATER, **more: object) -> Date:
    return Date(name="n", lower=lower, upper=upper, **more)


def moment(lower: object = MOMENT, upper: object = dt.datetime(2021, 1, 1), **more: object) -> Datetime:
    return Datetime(name="n", lower=lower, upper=upper, **more)


def zoned(zone: object = "UTC", **more: object) -> Datetime:
    return moment(AWARE, dt.datetime(2021, 1, 1, tzinfo=dt.UTC), zone=zone, **more)


AMBIGUOUS = dt.datetime(2020, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))

WRONG = [
    (integer(17, 0), "columns.n.upper: (0) must be above lower (17)"),
    (integer("0", 9), "'0' must be a whole number"),
    (integer(split=5), "columns.n.split: 5 must be a list of at most 100 divisors"),
    (integer(split=(100, 1)), "columns.n.split: 1 must be a whole number above 1"),
    (integer(split=(2.5,)), "columns.n.split: 2.5 must be a whole number above 1"),
    (integer(split=(5, 20)), "columns.n.split: multiples of 20 are multiples of 5, which comes first"),
    (integer(split=(5, 5)), "columns.n.split: multiples of 5 are multiples of 5"),
    (integer(split=(997, 1009)), "columns.n.split: the least common multiple of the divisors must not exceed"),
    (integer(False, 9), "False must be a whole number"),
    (integer(0.0, 9), "0.0 must be a whole number"),
    (integer(0, 10**5000), "must fit in 64 bits"),
    (integer(0, 2**63 - 1), "must lie within ±2^62"),
    (integer(0, 300, storage="uint8"), "300 does not fit in uint8"),
    (integer(-1, 9, storage="uint64"), "-1 does not fit in uint64"),
    (integer(0, 2**60, storage="double"), "does not fit in double"),
    (integer(special=(999,), storage="int8"), "columns.n.special: 999 does not fit in int8"),
    (integer(special=(1, 2, 1)), "1 appears twice"),
    (integer(special=(1.5,)), "1.5 must be a whole number"),
    (integer(special="12"), "must be a list of numbers"),
    (integer(step=0), "step: 0 must be between 1"),
    (integer(step=1.0), "1.0 must be a whole number"),
    (integer(step=10), "(10) must not exceed upper - lower (9)"),
    (integer(bins=UniformBins(0)), "bins: 0 must be between 1 and 1,000,000"),
    (integer(0, 10**9, bins=UniformBins(1_000_001)), "must be between 1 and 1,000,000"),
    (integer(bins=PrivateBins(0)), "must be between"),
    (integer(bins=PrivateBins(4, "quantile")), "bins.by: 'quantile' is no way to choose bins. Did you mean"),
    (integer(bins=UniformBins(11)), "11 bins are more than the 10 values"),
    (integer(step=3, bins=UniformBins(5)), "5 bins are more than the 4 values"),
    (integer(bins=4), "must be UniformBins"),
    (integer(bins=GivenBins((0,))), "between 2 and"),
    (integer(bins=GivenBins((0, 5, 5, 9))), "edge 5 must be above the one before it (5)"),
    (integer(bins=GivenBins((0, 5.5, 9))), "5.5 must be a whole number"),
    (integer(bins=GivenBins((1, 9))), "the first edge (1) must equal lower (0)"),
    (integer(bins=GivenBins((0, 8))), "the last edge (8) must equal upper (9)"),
    (integer(0, 100, step=10, bins=GivenBins((0, 3, 7, 100))), "no value lies in the bin from 3 to 7"),
    (real(1.0, 1.0), "(1.0) must be above lower (1.0)"),
    (real(float("nan")), "must be finite"),
    (real(0, float("inf")), "must be finite"),
    (real(0, 10**400), "must be finite"),
    (real(0, 2**53 + 1), "exact in double"),
    (real(-1e308, 1e308), "is too far from lower"),
    (real("0"), "'0' must be a number"),
    (real(decimals=13), "13 must be a whole number from 0 to 12"),
    (real(decimals=-1), "-1 must be a whole number"),
    (real(decimals=1.0), "1.0 must be a whole number"),
    (real(special=(float("nan"),)), "must be finite"),
    (real(special=(1, 1.0)), "1.0 appears twice"),
    (real(0, 1e39, storage="float"), "does not fit in float"),
    (real(bins=GivenBins((0.0, 0.5))), "the last edge (0.5)"),
    (day(LATER, DAY), "(2020-01-01) must be above lower (2020-12-31)"),
    (day(MOMENT), "must be a date"),
    (day("2020-01-01"), "must be a date"),
    (day(bins=GivenBins((DAY, MOMENT, LATER))), "must be a date"),
    (day(bins=UniformBins(400)), "400 bins are more than the 366 values"),
    (day(format="%d.%m"), "does not give back every value"),
    (day(format="day"), "does not give back"),
    (day(format="%Y%Y"), "does not give back"),
    (day(format="%Q"), "does not give back"),
    (day(format="%"), "does not give back"),
    (day(dt.date(1920, 5, 1), format="%d/%m/%y"), "does not give back"),
    (day(format=3), "3 must be text"),
    (moment(DAY), "must be a date and time"),
    (moment(MOMENT.replace(microsecond=1)), "whole seconds"),
    (moment(AWARE, AWARE), "has an offset, but the column has no zone"),
    (moment(MOMENT, MOMENT, zone="UTC"), "must say its offset"),
    (moment(AMBIGUOUS, AMBIGUOUS, zone="UTC"), "is ambiguous"),
    (zoned("Europe/Berlim"), 'Did you mean "Europe/Berlin"?'),
    (zoned("Europe"), "not a known time zone"),
    (zoned("../etc/passwd"), "not a known time zone"),
    (zoned(""), "not a known time zone"),
    (zoned(3), "3 must be text"),
    (moment(resolution=0), "resolution: 0 must be between"),
    (moment(format="%Y-%m-%d %H:%M"), "does not give back"),
    (moment(format="%Y-%m-%d %H:%M:%S %z"), "does not give back"),
    (moment(dt.datetime(1500, 1, 1), storage="timestamp[ns]"), "does not fit in timestamp[ns]"),
    (moment(storage="date32"), "does not suit"),
    (Time(name="n", lower=dt.time(9), upper=dt.time(8)), "(08:00:00) must be above lower (09:00:00)"),
    (Time(name="n", lower=dt.time(9, tzinfo=dt.UTC)), "without zone"),
    (Time(name="n", lower=dt.time(9, 0, 0, 5)), "whole seconds"),
    (Time(name="n", resolution=0), "resolution: 0"),
    (Time(name="n", format="%H:%M"), "does not give back"),
]


@pytest.mark.parametrize(("column", "reason"), WRONG)
def test_each_rule_is_checked(column: NumberColumn, reason: str) -> None:
    found = [str(problem) for problem in column_problems(column)]
    assert found, "accepted"
    assert any(reason in message for message in found), found
    assert all(len(message) < 300 for message in found)


@pytest.mark.parametrize(
    "column",
    [
        integer(5, 5),
        integer(-(2**62), 2**62),
        integer(special=(0, 999), bins=GivenBins((0, 9))),
        integer(0, 100, step=10, bins=GivenBins((0, 1, 11, 100))),
        integer(0, 255, storage="uint8"),
        real(0, 1, decimals=0),
        day(DAY, DAY),
        day(format="%d/%m/%y"),
        moment(resolution=60, format="%Y-%m-%d %H:%M"),
        zoned(format="%Y-%m-%dT%H:%M:%S%z", resolution=3600),
        zoned("Europe/Berlin", format="%d.%m.%Y %H:%M:%S"),
        zoned(bins=GivenBins((AWARE, dt.datetime(2021, 1, 1, tzinfo=dt.UTC)))),
        Time(name="n", resolution=60, format="%H:%M", storage="string"),
        Time(name="n", lower=dt.time(8), upper=dt.time(8)),
    ],
)
def test_sound_columns_pass(column: NumberColumn) -> None:
    assert list(column_problems(column)) == []
