import datetime as dt

import pytest

from understudy.schema import (
    Boolean,
    Category,
    Column,
    Cut,
    Date,
    Derived,
    Float,
    GivenBins,
    Impossible,
    Integer,
    OpenCategory,
    PrivateBins,
    Range,
    Time,
    UniformBins,
)
from understudy.schema.checks import rule_problems

COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        Integer(name="age", lower=0, upper=99, bins=UniformBins(10), special=(999,)),
        Integer(name="year", lower=2000, upper=2009, missing=False),
        Integer(name="secret", lower=0, upper=99, bins=PrivateBins(4)),
        Float(name="share", lower=0.0, upper=1.0, bins=UniformBins(10), missing=False),
        Date(name="day", lower=dt.date(2020, 1, 1), upper=dt.date(2020, 12, 31), bins=UniformBins(2)),
        Time(name="hour", bins=GivenBins((dt.time(0), dt.time(12), dt.time(23, 59, 59)))),
        Category(name="sex", labels=("F", "M"), other="X", missing=False),
        Category(name="town", labels=("Rome", "Oslo"), rare="private"),
        Boolean(name="voted"),
        OpenCategory(name="job"),
        Derived(name="band", formula=Cut("age", (0, 99), ("a",))),
    )
}


def messages(rule: object) -> list[str]:
    return [str(problem) for problem in rule_problems(rule, 0, COLUMNS)]


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        ({}, "at least one condition"),
        ({"sx": ("F",)}, "column 'sx' is not in the schema"),
        ({"band": ("a",)}, "is a derived column"),
        ({"job": (None,)}, "is an open category"),
        ({"town": ("Rome",)}, "its rare labels may share one code"),
        ({"sex": ("D",)}, "'D' is not a label of this column. Known: F, M, X"),
        ({"sex": (None,)}, "the column says missing: false"),
        ({"sex": ("F", "F")}, "'F' appears twice"),
        ({"voted": (None, None)}, "names missing twice"),
        ({"sex": (3,)}, "3 must be text"),
        ({"sex": ()}, "must be a list of labels or a range"),
        ({"sex": "F"}, "must be a list of labels or a range"),
        ({"sex": Range(0, 1)}, "a range needs a number"),
        ({"voted": ("yes",)}, "Known: false, true"),
        ({"age": ("17",)}, "'17' is not a label of this column. For values use a range"),
        ({"age": Range()}, "neither from nor to"),
        ({"age": Range("0", 9)}, "rules[0].age.from: '0' must be a whole number"),
        ({"age": Range(0, 9.0)}, "rules[0].age.to: 9.0 must be a whole number"),
        ({"age": Range(20, 9)}, "holds no value"),
        ({"age": Range(100, 120)}, "holds no value"),
        ({"age": Range(0, 17)}, "cuts a bin in two. What fits nearest: from: 0, to: 9, to: 19."),
        ({"share": Range(0.0, 0.25)}, "to: 0.2, to: 0.3"),
        ({"day": Range(None, dt.date(2020, 3, 1))}, "to: 2020-07-01"),
        ({"hour": Range(dt.time(9), None)}, "from: 00:00:00, from: 12:00:00"),
        ({"secret": Range(0, 9)}, "chooses them privately"),
        ({"share": Range(0.1, 0.1)}, "holds no bin"),
        ({"sex": ("F", "M", "X")}, "excludes every possible record"),
        ({"year": Range(2000, None)}, "excludes every possible record"),
        ({"year": Range(1990, 2020), "sex": ("X", "F", "M")}, "excludes every possible record"),
    ],
)
def test_each_rule_is_checked(when: dict[str, object], reason: str) -> None:
    found = messages(Impossible(when))
    assert len(found) == 1, found
    assert reason in found[0]


@pytest.mark.parametrize(
    "when",
    [
        {"sex": ("F", "M")},
        {"sex": ("X",), "voted": ("true", None)},
        {"age": ("999", None), "sex": ("F",)},
        {"age": Range(-5, 19), "voted": ("false",)},
        {"year": Range(2003, 2003)},
        {"share": Range(0.3, 0.7)},
        {"day": Range(dt.date(2020, 7, 2), None)},
        {"hour": Range(None, dt.time(11, 59, 59))},
        {"age": Range(0, 99)},
    ],
)
def test_sound_rules_pass(when: dict[str, object]) -> None:
    assert messages(Impossible(when)) == []


def test_other_things_are_not_rules() -> None:
    assert "is not a rule" in messages("never")[0]
    assert "note: 3 must be text" in messages(Impossible({"sex": ("F",)}, 3))[0]
