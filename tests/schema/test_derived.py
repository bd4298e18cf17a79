import pytest

from understudy.schema import Boolean, Category, Column, Cut, Date, Derived, Float, Integer, LinearSum, Lookup
from understudy.schema.checks import derived_problems

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
        (LinearSum({}), "columns.d.sum.weights: must give a weight"),
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
def test_each_rule_is_checked(formula: object, reason: str) -> None:
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
