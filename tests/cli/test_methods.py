"""The list of synthesizers, and one of them in full."""

import json

import pytest

from tests.cli.terminal import run
from understudy.cli.console import in_flags
from understudy.methods.method import METHODS, describe_method


def test_every_method_is_listed() -> None:
    shown = run("methods")
    assert shown.status == 0
    assert all(name in shown.words for name in METHODS.names())


@pytest.mark.parametrize("name", METHODS.names())
def test_one_method_shows_all_that_is_known_of_it(name: str) -> None:
    shown = run("methods", name)
    assert shown.status == 0
    method = describe_method(name)
    for text in (method.summary, method.guarantee, in_flags(method.needs), in_flags(method.limits), method.source):
        assert text in shown.words
    assert all(option.name in shown.words for option in method.options)


def test_json_for_programs() -> None:
    shown = run("methods", "laplace", "--json")
    (method,) = json.loads(shown.out)["methods"]
    assert method["name"] == "laplace"
    assert method["currencies"] == ["pure"]
    assert {option["name"] for option in method["options"]} == {
        option.name for option in describe_method("laplace").options
    }


def test_unknown_method_names_the_closest() -> None:
    shown = run("methods", "indepedent")
    assert (shown.status, shown.panels) == (2, 1)
    assert 'Did you mean "independent"?' in shown.words
