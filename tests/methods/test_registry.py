from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest

from tests.methods.door import VOTERS, epsilon, rho
from understudy.domain import Domain
from understudy.errors import UsageError
from understudy.methods.ensemble import MixtureEnsemble
from understudy.methods.independent import Independent
from understudy.methods.laplace import Laplace
from understudy.methods.method import METHODS, PublicFacts, currency_for, describe_method, method_named
from understudy.privacy.cost import Budget
from understudy.schema import OpenCategory, Schema, Unit

VOTERS_FREE = Domain.of({"registered": 2, "voted": 2, "age": 5})
OPEN = Schema(columns=(OpenCategory(name="job"),), unit=Unit())


@dataclass(frozen=True, slots=True)
class Foreign(Independent):
    name: ClassVar[str] = "foreign"
    currencies: ClassVar[tuple[str, ...]] = ("zcdp",)  # type: ignore[assignment]
    loud: bool = False
    word: str = "w"


@pytest.fixture
def foreign(monkeypatch):
    offered = [
        EntryPoint("foreign", "tests.methods.test_registry:Foreign", METHODS.group),
        EntryPoint("laplace", "tests.methods.test_registry:Foreign", METHODS.group),
    ]
    monkeypatch.setattr("understudy.options.entry_points", lambda group: offered if group == METHODS.group else [])


def test_built_in_names():
    assert {"auto", "independent", "laplace"} <= set(METHODS.names())
    assert method_named("independent") == Independent()


@pytest.mark.parametrize("name", METHODS.names())
def test_methods_with_fixed_plans_say_so(name):
    """`verify` makes no plan of the others again."""
    options = {"marginals": "pairs"} if name in ("nist_mst", "dpsyn") else {}
    method = method_named(name, options)
    facts = PublicFacts(VOTERS_FREE, (), 1)
    try:
        fixed = [method.plan(facts, cost).fixed for cost in (epsilon(1.0), rho(0.1))]
    except UsageError:  # cannot do without a public table, or one of the costs
        return
    assert method.can_be_fixed or not any(fixed)


def test_text_options_are_read_by_type():
    options = {"threshold": "20", "total_share": "0.05", "n_policy": "estimated", "dense_cells": 1000}
    assert method_named("laplace", options) == Laplace("estimated", 0.05, threshold=20, dense_cells=1000)
    assert method_named("laplace", {"threshold": "none"}).threshold is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("laplce", {}, 'Did you mean "laplace"'),
        ("laplace", {"treshold": "1"}, 'Did you mean "threshold"'),
        ("auto", {"x": "1"}, "no options"),
        ("laplace", {"threshold": "many"}, "a whole number or none, got 'many'"),
        ("laplace", {"total_share": "x"}, "a number"),
        ("laplace", {"n_policy": "public"}, "noisy or estimated"),
        ("laplace", {"threshold": "0"}, "threshold"),
        ("laplace", {"threshold": 1.5}, "threshold"),
    ],
)
def test_wrong_names_and_values_are_explained(name, options, message):
    with pytest.raises(UsageError, match=message):
        method_named(name, options)


@pytest.mark.parametrize("name", sorted(METHODS.built_in))
def test_descriptions_are_complete(name):
    text = describe_method(name)
    assert text.name == name
    assert all([text.summary, text.guarantee, text.needs, text.limits, text.source])
    assert all(option.help and option.kind for option in text.options)
    assert method_named(name, {option.name: str(option.default) for option in text.options}) == method_named(name)


def test_other_packages_add_methods_but_cannot_replace_ours(foreign):
    assert set(METHODS.names()) == {"foreign", *METHODS.built_in}
    assert METHODS.names() == (*METHODS.built_in, "foreign")
    made = method_named("foreign", {"loud": "true", "word": "none"})
    assert made == Foreign(loud=True, word="none")
    assert method_named("laplace") == Laplace()  # type: ignore[unreachable]
    with pytest.raises(UsageError, match="true or false"):
        method_named("foreign", {"loud": "1"})


def test_auto_is_resolved_for_the_facts_of_the_plan():
    facts = PublicFacts(Domain.of({"a": 10}), (), 1)
    assert method_named("auto").plan(facts, epsilon(1)).by == Laplace(rounding="controlled")
    assert method_named("auto").plan(facts, rho(1)).by == MixtureEnsemble()
    assert Laplace(threshold=3).plan(facts, epsilon(1)).by == Laplace(threshold=3)


def test_currency(foreign):
    pure, approximate = Budget(1.0), Budget(1.0, 1e-9)
    assert currency_for(Independent(), pure) == "pure"
    assert currency_for(Independent(), approximate, VOTERS) == "zcdp"
    assert currency_for(Laplace(), pure, VOTERS) == "pure"
    assert currency_for(Laplace(), approximate, OPEN) == "pure"
    for schema in (None, VOTERS):
        with pytest.raises(UsageError, match=r"pure ε.*Drop delta="):
            currency_for(Laplace(), approximate, schema)
    with pytest.raises(UsageError, match="needs δ above 0"):
        currency_for(Foreign(), pure)
