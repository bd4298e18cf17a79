"""Tests of `understudy.schema.columns`."""

import dataclasses
import datetime as dt
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema.strategies import columns
from understudy.schema import (
    Boolean,
    Category,
    Column,
    Cut,
    Date,
    Datetime,
    Derived,
    Float,
    GivenBins,
    Integer,
    LinearSum,
    Lookup,
    OpenCategory,
    PrivateBins,
    Time,
    UniformBins,
)
from understudy.schema.checks import column_problems, derived_problems
from understudy.schema.columns import STORAGE, NumberColumn, bin_starts, number_of, step_of, values_between

ODD_NAMES = {"double": pa.float64(), "float": pa.float32(), "date32": pa.date32()}


def test_lists_become_tuples_so_that_equal_declarations_are_equal() -> None:
    assert Category(name="c", labels=["a"]) == Category(name="c", labels=("a",))
    assert Integer(name="n", lower=0, upper=1, special=[9]).special == (9,)
    assert Float(name="n", lower=0, upper=1, special=[9.0]).special == (9.0,)
    assert GivenBins([0, 1]) == GivenBins((0, 1))
    assert Cut("a", [0, 1], ["x"]) == Cut("a", (0, 1), ("x",))
    assert Category(name="c", labels="abc").labels == "abc", "text is no list; the check refuses it"


def test_columns_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Category(name="c", labels=("a",)).name = "d"  # type: ignore[misc]


@pytest.mark.parametrize("name", sorted({name for names in STORAGE.values() for name in names}))
def test_every_storage_is_an_arrow_type(name: str) -> None:
    known = ODD_NAMES.get(name) or pa.type_for_alias(name)
    assert isinstance(known, pa.DataType)
    assert str(known).startswith(name)


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
    (integer(17, 0), "columns.n.upper (0) must be above lower (17)"),
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
    (integer(bins=PrivateBins(4, "quantile")), "bins.by: 'quantile' is not a way to choose bins. Did you mean"),
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


COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        Integer(name="age", lower=0, upper=99),
        Float(name="income", lower=0.0, upper=1e6),
        Category(name="sex", labels=("F", "M"), other="X"),
        Boolean(name="voted"),
        Derived(name="band", formula=Cut("age", (0, 99), ("a",))),
    )
}


def messages(formula: object) -> list[str]:
    return [str(problem) for problem in derived_problems(Derived(name="d", formula=formula), COLUMNS)]


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        (LinearSum({}), "columns.d.sum.weights must give a weight"),
        (LinearSum({"aeg": 1.0}), 'Did you mean "age"?'),
        (LinearSum({"band": 1.0}), "column 'band' is derived itself"),
        (LinearSum({"sex": 1.0}), "must be an integer or float column, not category"),
        (LinearSum({"age": float("nan")}), "must be finite"),
        (LinearSum({"age": 1.0}, float("inf")), "columns.d.sum.constant"),
        (Lookup("age", {"1": "x"}), "must be a closed category or boolean column, not integer"),
        (Lookup("sexe", {"F": "x"}), "column 'sexe' is not in the schema"),
        (Lookup("sex", {}), "must have at least one entry"),
        (Lookup("sex", {"D": "x"}), "'D' is not a label of column 'sex'"),
        (Lookup("sex", {"F": 1}), "1 must be text"),
        (Lookup("sex", {"F": "x"}, 3), "columns.d.lookup.otherwise: 3 must be text"),
        (Cut("sex", (0, 1), ("a",)), "must be an integer or float"),
        (Cut("age", (0,), ()), "at least two edges"),
        (Cut("age", (0, 0), ("a",)), "must increase"),
        (Cut("age", (0, "1"), ("a",)), "'1' must be a number"),
        (Cut("age", (0, 1, 2), ("a",)), "must list 2 labels"),
        (Cut("age", (0, 1), (1,)), "1 must be text"),
        ("age * 2", "is not a formula"),
    ],
)
def test_derived_each_rule_is_checked(formula: object, reason: str) -> None:
    found = messages(formula)
    assert len(found) == 1, found
    assert reason in found[0]


def test_sound_formulas_pass() -> None:
    assert messages(LinearSum({"age": 2, "income": -0.5}, 3)) == []
    assert messages(Lookup("sex", {"F": "x", "X": ""}, "rest")) == []
    assert messages(Lookup("voted", {"true": "x"})) == []
    assert messages(Cut("income", (0, 10.5, 99), ("low", "high"))) == []


def test_dates_are_no_numbers_to_add() -> None:
    import datetime as dt

    columns: dict[str, Column] = {"d": Date(name="d", lower=dt.date(2020, 1, 1), upper=dt.date(2021, 1, 1))}
    found = list(derived_problems(Derived(name="x", formula=LinearSum({"d": 1.0})), columns))
    assert "not date" in str(found[0])


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (Category(name="c", labels=()), "columns.c.labels must list at least one label"),
        (Category(name="c", labels="abc"), "must list at least one label"),
        (Category(name="c", labels=("a", "b", "a")), "'a' appears twice"),
        (Category(name="c", labels=("a", 1)), "1 must be text"),
        (Category(name="c", labels=("a", None)), "None must be text"),
        (Category(name="c", labels=("\udfff",)), "surrogate"),
        (Category(name="c", labels=("é" * 513,)), "longer than 1,024 bytes"),
        (Category(name="c", labels=("a",), other="a"), "columns.c.other: 'a' is also a label"),
        (Category(name="c", labels=("a",), other=3), "3 must be text"),
        (Category(name="c", labels=("a",), groups={"b": "x"}), "'b' is not a label"),
        (Category(name="c", labels=("a",), groups={"a": 1}), "1 must be text"),
        (Category(name="c", labels=("a",), groups=("a",)), "must map labels"),
        (Category(name="c", labels=("a",), within="d"), "needs groups"),
        (Category(name="c", labels=("a",), rare="pool"), "columns.c.rare: 'pool' is not known"),
        (Category(name="c", labels=("a",), groups={"a": "x"}, rare="private"), "groups of labels would be split"),
        (Category(name="c", labels=("1", "x"), storage="int64"), "'x' cannot be written as int64"),
        (Category(name="c", labels=("07",), storage="int64"), "'07' cannot be written"),
        (Category(name="c", labels=("-0",), storage="int64"), "'-0' cannot be written"),
        (Category(name="c", labels=("300",), storage="uint8"), "'300' cannot be written as uint8"),
        (Category(name="c", labels=("-1",), storage="uint8"), "'-1' cannot be written as uint8"),
        (Category(name="c", labels=("1",), other="rest", storage="int8"), "'rest' cannot be written"),
        (Category(name="c", labels=("a",), storage="bool"), "'bool' does not suit this kind"),
        (OpenCategory(name="c", most_labels=0), "most_labels: 0 must be between"),
        (OpenCategory(name="c", most_labels=1.5), "1.5 must be a whole number"),
        (OpenCategory(name="c", other=None), "None must be text"),
        (OpenCategory(name="c", storage="int64"), "does not suit"),
        (Boolean(name="c", storage="int8"), "does not suit"),
        (Boolean(name="c", missing="no"), "'no' must be true or false"),
        (Boolean(name="c", note=3), "columns.c.note: 3 must be text"),
        (Integer(name="c", lower=0, upper=1, storage="int63"), 'Did you mean "int64"?'),
        (Float(name="c", lower=0, upper=1, storage="decimal"), "does not suit"),
        (Derived(name="c", formula=LinearSum({"x": 1.0}), storage="string"), "does not suit"),
        (Derived(name="c", formula=Lookup("x", {"a": "b"}), storage="double"), "does not suit"),
        (3, "3 is not a column"),
    ],
)
def test_checks_column_each_rule_is_checked(column: object, reason: str) -> None:
    found = [str(problem) for problem in column_problems(column)]
    assert len(found) == 1, found
    assert reason in found[0]


@pytest.mark.parametrize(
    "column",
    [
        Category(name="c", labels=("",)),
        Category(name="c", labels=("-128", "0", "127"), other="5", storage="int8"),
        Category(name="c", labels=("18446744073709551615",), storage="uint64"),
        Category(name="c", labels=("a",), groups={"a": "x"}),
        Category(name="c", labels=("a", "b"), other="c", rare="private"),
        Derived(name="c", formula=LinearSum({"x": 1.0}), storage="int32"),
    ],
)
def test_checks_column_sound_columns_pass(column: object) -> None:
    assert list(column_problems(column)) == []
