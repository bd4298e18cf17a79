"""`understudy pool`: pooled models and measured shares from a release folder alone."""

import json

import pytest

from tests.cli.terminal import run
from tests.cli.workspace import Workspace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace.make(tmp_path_factory.mktemp("pool"), rows=400)
    made_release = made.synthesize(
        "--method", "independent", "--copies", 3, "--copies-mode", "remeasure", "--seed", 3, "--yes", epsilon=30
    )
    assert made_release.status == 0, made_release.err
    return made


def test_shares(place: Workspace) -> None:
    found = run("pool", place.release, "--share", "sex=F", "--share", "region=north")
    assert found.status == 0, found.err
    assert "in the population" in found.words
    document = json.loads(run("pool", place.release, "--share", "sex=F", "--json").out)
    (share,) = document["shares"]
    assert share["population_low"] < share["table_low"] < share["estimate"] < share["table_high"]
    assert share["runs"] == 3


def test_one_question_that_cannot_be_answered_does_not_hide_the_answers_to_others(place: Workspace) -> None:
    asked = ("--share", "sex=F", "--share", "sex=F,age=20", "--mean", "income")
    found = run("pool", place.release, *asked)
    assert (found.status, found.panels) == (2, 1)
    assert "share of sex=F" in found.out
    assert "mean of income" in found.out
    assert "no released table holds these columns" in " ".join(found.err.split())
    document = json.loads(run("pool", place.release, *asked, "--json").out)
    assert (len(document["shares"]), len(document["means"]), len(document["refused"])) == (1, 1, 1)
    both = run("pool", place.release, "--share", "sex=F,age=20", "--share", "height=1", "--formula", "age ~ sex")
    assert (both.status, both.panels) == (2, 1)
    for words in ("no answer to 3 of the questions", "no released table", "height", "never measured together"):
        assert words in both.words


def test_model(place: Workspace) -> None:
    found = run("pool", place.release, "--formula", "age ~ sex", "--from-copies")
    assert found.status == 0, found.err
    assert "sex=M" in found.out
    document = json.loads(run("pool", place.release, "--formula", "age ~ sex", "--from-copies", "--json").out)
    assert document["model"]["coefficients"]["sex=M"]["copies"] == 3


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "needs --formula, --share"),
        (("--share", "sex=F,age=20"), "no released table holds these columns"),
        (("--share", "sex"), "must be COLUMN=VALUE"),
        (("--share", "age=30..20"), 'The range runs backwards: ask for "20..30".'),
        (("--formula", "age ~ sex", "--family", "tobit"), "must be one of"),
        (("--formula", "age ~ sex"), "were never measured together"),
        (("--formula", "age ~ height"), "is not a column"),
    ],
)
def test_refusals(place: Workspace, more: tuple[str, ...], words: str) -> None:
    found = run("pool", place.release, *more)
    assert found.status == 2
    assert words in found.words
    assert found.panels == 1


def test_rates_means_and_quantiles(place: Workspace) -> None:
    asked = ("--mean", "income", "--quantile", "age=0.5", "--rate", "sex=F")
    found = run("pool", place.release, *asked, "--json")
    assert found.status == 0, found.err
    document = json.loads(found.out)
    assert {key: len(document[key]) for key in ("means", "quantiles", "rates")} == dict.fromkeys(
        ("means", "quantiles", "rates"), 1
    )
    mean = document["means"][0]
    assert mean["within_bins"] > 0
    ends = [mean[key] for key in ("population_low", "table_low", "estimate", "table_high", "population_high")]
    assert ends == sorted(ends)
    shown = run("pool", place.release, *asked)
    assert "from the bins" in shown.words
    assert "quantile 0.5 of" in shown.words


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--share", "sex=F", "--where", "sex=F"), "needs --rate, --mean or --quantile. For a share among some rows"),
        (("--where", "sex=F"), "needs --rate, --mean or --quantile"),
        (("--by", "sex"), "needs --rate, --mean or --quantile"),
        (("--quantile", "age"), "must be COLUMN=SHARE"),
        (("--quantile", "age=half"), "must be COLUMN=SHARE"),
        (("--quantile", "age=2"), "must lie between 0 and 1"),
        (("--mean", "sex"), "holds no numbers"),
        (("--mean", "age", "--by", "sex"), "no released table holds these columns"),
    ],
)
def test_refusals_of_numbers(place: Workspace, more: tuple[str, ...], words: str) -> None:
    found = run("pool", place.release, *more)
    assert (found.status, found.panels) == (2, 1)
    assert words in found.words
