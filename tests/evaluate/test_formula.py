"""Formulas: what they mean, and what is refused."""

import pytest

from tests.evaluate.examples import mixed
from understudy.errors import UsageError
from understudy.evaluate.regression import TermPart, parse_formula
from understudy.schema import Category, Integer, Schema, Unit

ODD = Schema(
    columns=(
        Integer(name="my income [in ~ +]", lower=0, upper=9),
        Category(name="a:b", labels=("x y", "[z]")),
        Category(name="c", labels=("u", "v")),
    ),
    unit=Unit(),
)


def _terms(text: str) -> list[tuple[str, ...]]:
    return [tuple(str(part) for part in term) for term in parse_formula(text, mixed()).terms]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("income ~ age", [("age",)]),
        ("income~age+sex", [("age",), ("sex",)]),
        ("income ~ age + age", [("age",)]),
        ("income ~ age:sex", [("age", "sex")]),
        ("income ~ age*sex", [("age",), ("sex",), ("age", "sex")]),
        ("income ~ age*sex*voted", [("age",), ("sex",), ("voted",), ("age", "sex"), ("age", "voted"), ("sex", "voted"),
                                    ("age", "sex", "voted")]),
        ("income ~ C(age) + sex", [("C(age)",), ("sex",)]),
        ("income ~ `age` + `sex`", [("age",), ("sex",)]),
        ("voted ~ .", [("region",), ("sex",), ("age",), ("income",), ("seen",)]),
    ],
)  # fmt: skip
def test_terms(text: str, terms: list[tuple[str, ...]]) -> None:
    found = _terms(text)
    assert sorted(map(sorted, found)) == sorted(map(sorted, terms))


def test_order_of_main_effects_is_kept() -> None:
    assert _terms("income ~ sex + age")[0] == ("sex",)


def test_events() -> None:
    assert parse_formula("voted[true] ~ age", mixed()).event == "true"
    assert parse_formula("region[east] ~ age", mixed()).event == "east"
    assert parse_formula("region[else] ~ age", mixed()).event == "else"
    assert parse_formula("income ~ age", mixed()).event is None


def test_odd_names() -> None:
    formula = parse_formula("`my income [in ~ +]` ~ `a:b` + c + `a:b`:c", ODD)
    assert formula.outcome == "my income [in ~ +]"
    assert formula.terms == ((TermPart("a:b"),), (TermPart("c"),), (TermPart("a:b"), TermPart("c")))
    assert parse_formula("c[v] ~ `a:b`", ODD).columns == ("c", "a:b")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 'needs a "~"'),
        ("income", 'needs a "~"'),
        ("income ~", "empty term"),
        ("~ age", "empty term"),
        ("income ~ age +", "empty term"),
        ("income ~ wage", "not a column"),
        ("income ~ agee", 'Did you mean "age"'),
        ("wage ~ age", "not a column"),
        ("income ~ income", "outcome"),
        ("income ~ age:income", "outcome"),
        ("region[west] ~ age", "no label 'west'"),
        ("income[5] ~ age", "holds numbers"),
        ("income ~ age - 1", "not a column"),
        ("income ~ __import__('os')", "not a column"),
    ],
)
def test_refusals(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_formula(text, mixed())
