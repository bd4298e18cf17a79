"""One error, two voices: Python names the argument, the command line its flag."""

import inspect
from collections.abc import Callable

import pytest
import typer

import understudy
from tests.cli.terminal import run
from tests.cli.workspace import Workspace
from understudy.cli.app import app
from understudy.cli.console import FLAGS, in_flags
from understudy.compare import compare
from understudy.counts.opening import header_of
from understudy.errors import UnderstudyError
from understudy.evaluate import evaluate
from understudy.privacy.ledger import Ledger
from understudy.release import Release
from understudy.release.provenance import new_key, sign_release
from understudy.release.release import check_safe
from understudy.schema import Schema
from understudy.schema.draft import draft_schema

Call = Callable[[Workspace], object]


def _synthesize(place: Workspace, **named: object) -> object:
    request = {"epsilon": 1.0, "method": "independent", "out": place.folder / "voice"} | named
    return understudy.synthesize(place.table, Schema.from_yaml(place.schema), **request)  # type: ignore[arg-type]


def _draft(place: Workspace) -> str:
    path = place.folder / "years.csv"
    path.write_text("2019,2020\n1,2\n", encoding="utf-8")
    return draft_schema(header_of(path))


CASES: dict[str, tuple[Call, tuple[object, ...], str, str]] = {
    "delta out of range": (
        lambda place: _synthesize(place, delta=-0.5),
        ("--delta", "-0.5"),
        "delta must be a number from 0",
        "--delta must be a number from 0",
    ),
    "delta missing": (
        lambda place: _synthesize(place, method="mst"),
        ("--method", "mst"),
        "Give delta=, for example 1e-9.",
        "Give --delta, for example 1e-9.",
    ),
    "way of copies": (
        lambda place: _synthesize(place, copies_mode="reuse"),
        ("--copies-mode", "reuse"),
        "copies_mode: 'reuse' is not known.",
        "--copies-mode: 'reuse' is not known.",
    ),
    "nothing to resume": (
        lambda place: _synthesize(place, resume=True),
        ("--resume",),
        "resume: method independent keeps no checkpoints. Run it without resume=True;",
        "--resume: method independent keeps no checkpoints. Run it without --resume;",
    ),
    "list of marginals": (
        lambda place: _synthesize(place, method="nist_mst", delta=1e-9),
        ("--method", "nist_mst", "--delta", "1e-9"),
        "options={'marginals': 'pairs'}, or, for the challenge's table, options={'preset': 'match3'}; or a public "
        "table with public=,",
        "--set marginals=pairs, or, for the challenge's table, --set preset=match3; or a public table with --public,",
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace.make(tmp_path_factory.mktemp("voices"), rows=20)


@pytest.mark.parametrize("name", CASES)
def test_python_names_the_argument_and_the_command_line_its_flag(place: Workspace, name: str) -> None:
    call, words, argument, flag = CASES[name]
    with pytest.raises(UnderstudyError) as caught:
        call(place)
    assert argument in str(caught.value)
    assert "--" not in str(caught.value)
    named = ("--schema", place.schema, "--epsilon", 1, "--out", place.folder / "voice")
    method = () if "--method" in words else ("--method", "independent")
    shown = run("synthesize", place.table, *named, *method, *words)
    assert shown.status == 2
    assert flag in shown.words


def test_a_draft_speaks_in_both_voices(place: Workspace) -> None:
    with pytest.raises(UnderstudyError, match="names_are_right=True"):
        _draft(place)
    shown = run("schema", "draft", place.folder / "years.csv", "--out", place.folder / "years.yaml")
    assert "give --names-are-right" in shown.words


def test_what_a_user_wrote_is_left_as_it_is() -> None:
    quoted = ("output 'rows=3.csv' is not free.", 'column "seed=1" is twice.', "Run `x delta=1`.")
    for text in (*quoted, "my_rows=3", "Rows are drawn.", "rows"):
        assert in_flags(text) == text


def _flags_of(command: object) -> set[str]:
    parameters = getattr(command, "params", [])
    found = {flag for parameter in parameters for flag in (*parameter.opts, *parameter.secondary_opts)}
    return found.union(*map(_flags_of, getattr(command, "commands", {}).values()))


def test_every_flag_in_the_table_exists() -> None:
    assert set(FLAGS.values()) <= _flags_of(typer.main.get_command(app))


def test_every_argument_in_the_table_exists() -> None:
    callers: list[Callable[..., object]] = [understudy.synthesize, understudy.plan, compare, evaluate, understudy.pool]
    callers += [Release.sample, Release.label, Ledger.create, Ledger.verify, Schema.draft, check_safe]
    callers += [understudy.read_table, understudy.audit, understudy.verify, sign_release]
    known = set().union(*(inspect.signature(caller).parameters for caller in callers), {new_key.__name__})
    assert set(FLAGS) <= known
