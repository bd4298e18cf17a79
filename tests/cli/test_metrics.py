"""The list of metrics, and one of them in full."""

import json

import pytest

from tests.cli.terminal import run
from understudy.cli.evaluate import NAMES
from understudy.evaluate.metric import METRICS, describe_metric


def test_every_metric_is_listed_with_its_question() -> None:
    shown = run("metrics")
    assert shown.status == 0
    assert all(f"{name} {describe_metric(name).question}" in shown.words for name in METRICS.names())


def test_the_help_of_both_commands_names_them_all() -> None:
    assert tuple(NAMES.split(", ")) == METRICS.names()
    for command in ("evaluate", "compare"):
        assert NAMES in run(command, "--help").words


@pytest.mark.parametrize("name", METRICS.names())
def test_one_metric_shows_all_that_is_known_of_it(name: str) -> None:
    shown = run("metrics", name)
    assert shown.status == 0
    metric = describe_metric(name)
    assert metric.question in shown.words
    assert all(scale.name in shown.words for scale in metric.scales)
    assert all(f"{name}.{option.name}" in shown.words for option in metric.options)
    assert "<class" not in shown.words


def test_json_for_programs() -> None:
    (metric,) = json.loads(run("metrics", "pmse", "--json").out)["metrics"]
    assert metric["scores"][0]["name"] == describe_metric("pmse").scales[0].name
    assert {option["name"] for option in metric["options"]} == {
        option.name for option in describe_metric("pmse").options
    }


def test_unknown_metric_names_the_closest() -> None:
    shown = run("metrics", "speck")
    assert (shown.status, shown.panels) == (2, 1)
    assert 'Did you mean "specks"?' in shown.words
