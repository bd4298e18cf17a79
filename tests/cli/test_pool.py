"""`understudy pool`: pooled models and measured shares from a release folder alone."""

import json

import pytest

from tests.cli.terminal import run
from tests.cli.workspace import Workspace


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace.make(tmp_path_factory.mktemp("pool"), rows=400)
    made_release = made.synthesize(
        "--method", "independent", "--copies", 3, "--copies-mode", "remeasure", "--seed", 3, epsilon=30
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


def test_model(place: Workspace) -> None:
    found = run("pool", place.release, "--formula", "age ~ sex")
    assert found.status == 0, found.err
    assert "sex=M" in found.out
    document = json.loads(run("pool", place.release, "--formula", "age ~ sex", "--json").out)
    assert document["model"]["coefficients"]["sex=M"]["copies"] == 3


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "needs --formula or --share"),
        (("--share", "sex=F,age=20"), "no released table holds these columns"),
        (("--share", "sex"), "must be COLUMN=VALUE"),
        (("--share", "age=30..20"), 'The range runs backwards: ask for "20..30".'),
        (("--formula", "age ~ sex", "--family", "tobit"), "must be one of"),
        (("--formula", "age ~ height"), "is not a column"),
    ],
)
def test_refusals(place: Workspace, more: tuple[str, ...], words: str) -> None:
    found = run("pool", place.release, *more)
    assert found.status == 2
    assert words in found.words
    assert found.panels == 1
