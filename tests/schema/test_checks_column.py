import pytest

from understudy.schema import Boolean, Category, Derived, Float, Integer, LinearSum, Lookup, OpenCategory
from understudy.schema.checks import column_problems


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (Category(name="c", labels=()), "columns.c.labels: must list at least one label"),
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
        (Category(name="c", labels=("a",), groups={"a": "x"}, rare="private"), "groups of labels would be torn apart"),
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
def test_each_rule_is_checked(column: object, reason: str) -> None:
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
def test_sound_columns_pass(column: object) -> None:
    assert list(column_problems(column)) == []
