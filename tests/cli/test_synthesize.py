"""The main command from a person's side: what it prints, copies, seeds, sources, silence."""

import json
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import run
from tests.cli.test_console import Watched
from tests.cli.workspace import Workspace, people
from understudy.release import Release


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace.make(tmp_path_factory.mktemp("synthesize"))


def test_prints_the_promise_and_what_to_do_next(place: Workspace) -> None:
    out = place.folder / "printed"
    shown = place.synthesize("--out", out)
    assert shown.status == 0
    statement = json.loads((out / "statement.json").read_text(encoding="utf-8"))
    assert statement["promise"] in shown.words
    assert statement["odds"] in shown.words
    assert f"understudy verify {out}" in shown.err
    rows = pq.read_metadata(out / "data.parquet").num_rows
    assert f"({rows:,} synthetic rows, method" in shown.out
    assert run("verify", out).status == 0


@pytest.mark.parametrize(
    ("budget", "said"), [(("--delta", "1e-9"), "more than 99.9 % sure"), (("--delta", "0.01"), "δ = 0.01 is large")]
)
def test_a_budget_that_protects_hardly_anybody_must_be_meant(
    place: Workspace, budget: tuple[str, str], said: str
) -> None:
    out, before = place.folder / f"meant-{budget[1]}", place.balance()
    epsilon = 25 if "sure" in said else 1
    shown = place.synthesize("--out", out, "--method", "independent", *budget, epsilon=epsilon)
    assert shown.status == 2
    assert said in shown.words
    assert "give --yes" in shown.words
    assert not out.exists()
    assert place.balance() == before, "nothing was charged"


@pytest.mark.parametrize(("epsilon", "words"), [(0.0000001, ()), (0.01, ("--rows-hint", 100))])
def test_a_budget_that_leaves_nothing_must_be_meant(
    place: Workspace, epsilon: float, words: tuple[object, ...]
) -> None:
    out, before = place.folder / f"drowned-{epsilon}", place.balance()
    shown = place.synthesize("--out", out, "--method", "independent", *words, epsilon=epsilon)
    assert shown.status == 2
    assert "The noise hides the table" in shown.words
    assert "give --yes" in shown.words
    assert not out.exists()
    assert place.balance() == before, "nothing was charged"


def test_noise_is_judged_by_a_large_table_where_nobody_says_how_many_rows_there_are(tmp_path: Path) -> None:
    place = Workspace.make(tmp_path)
    assert place.synthesize("--method", "independent", epsilon=0.01).status == 0


def test_a_large_budget_that_is_meant_is_spent(tmp_path: Path) -> None:
    place = Workspace.make(tmp_path)
    assert place.synthesize("--yes", "--method", "independent", epsilon=25).status == 0


def test_quiet_prints_no_notes(place: Workspace) -> None:
    shown = place.synthesize("--out", place.folder / "quiet", "--quiet")
    assert (shown.status, shown.err) == (0, "")


def test_columns_left_out_are_named(place: Workspace) -> None:
    table = place.folder / "wide.csv"
    table.write_text("name,region,sex,age,income,visited\nx,north,F,30,1,2020-01-01\n", encoding="utf-8")
    shown = place.synthesize("--out", place.folder / "wide", table=table)
    assert "Not in the schema, so left out: name." in shown.err


def test_without_ledger_says_so(place: Workspace) -> None:
    out = place.folder / "alone"
    shown = run("synthesize", place.table, "--schema", place.schema, "--epsilon", 1, "--out", out)
    assert shown.status == 0
    assert "No ledger given" in shown.err


def test_the_dataset_that_was_charged_is_named(place: Workspace, tmp_path: Path) -> None:
    ledger = tmp_path / "led.db"
    assert run("ledger", "init", ledger, "--dataset", "voters", "--epsilon", 3, "--delta", "1e-6").status == 0
    words = ("--schema", place.schema, "--epsilon", 1, "--delta", "1e-9", "--ledger", ledger)
    shown = run("synthesize", place.table, *words, "--out", tmp_path / "out", "--method", "independent")
    assert f"Charged to 'voters' in {ledger}: ε = 1, δ = 1e-09; left: ε = 2, δ = 9.99e-07." in shown.words


def test_rows_copies_and_seed_reach_the_release(place: Workspace) -> None:
    out = place.folder / "copies"
    words = ("--rows", 50, "--copies", 2, "--copies-mode", "remeasure", "--seed", 9, "--delta", "1e-9")
    assert place.synthesize("--out", out, *words, "--method", "independent").status == 0
    assert [pq.read_metadata(out / f"data-{copy}.parquet").num_rows for copy in (1, 2)] == [50, 50]
    assert "seed: 9" in (out / "config.yaml").read_text(encoding="utf-8")
    assert json.loads((out / "statement.json").read_text(encoding="utf-8"))["delta"] == 1e-9


def test_options_of_the_method_reach_the_release(place: Workspace) -> None:
    out = place.folder / "options"
    assert place.synthesize("--out", out, "--method", "independent", "--set", "negatives=norm_cut").status == 0
    assert "negatives: norm_cut" in (out / "config.yaml").read_text(encoding="utf-8")


def test_reads_patterns_and_databases(place: Workspace) -> None:
    source = place.folder / "people.parquet"
    for part in (1, 2):
        (place.folder / f"part-{part}.parquet").write_bytes(source.read_bytes())
    assert place.synthesize("--out", place.folder / "parts", table=place.folder / "part-*.parquet").status == 0
    database = place.folder / "town.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM read_parquet(?)", [str(source)])
    assert place.synthesize("--out", place.folder / "base", table=f"{database}::people").status == 0


def test_progress_from_the_first_moment_on_a_terminal(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Watched()
    monkeypatch.setenv("TERM", "xterm")
    out = place.folder / "watched"
    words = ["synthesize", place.table, "--schema", place.schema, "--epsilon", 1, "--out", out]
    from understudy.cli.app import main

    monkeypatch.setattr(sys, "stderr", stream)
    assert main([str(word) for word in words]) == 0
    shown = stream.getvalue()
    assert "check" in shown
    assert "s left" in shown
    assert "%" in shown


def test_a_public_table_names_the_tables_to_measure(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the run is watched and its time is planned beforehand."""
    public = place.folder / "public.parquet"
    pq.write_table(people(400), public)
    words = ("--method", "nist_mst", "--delta", 1e-9, "--public", public, "--set", "together=region, sex")
    out = place.folder / "by-public"
    monkeypatch.setattr(sys, "stderr", Watched())
    monkeypatch.setenv("TERM", "xterm")
    from understudy.cli.app import main

    said = ["synthesize", place.table, "--schema", place.schema, "--epsilon", 1, "--out", out, *words]
    assert main([str(word) for word in said]) == 0
    assert "region×sex" in str(Release.load(out).config.options["marginals"])


def test_folder_with_a_strange_name(place: Workspace) -> None:
    out = place.folder / "résumé [red] of 'ε'"
    shown = place.synthesize("--out", out)
    assert shown.status == 0
    assert str(out) in shown.out
    assert Path(out / "data.parquet").exists()


def test_a_large_delta_is_warned_of_before_the_charge(place: Workspace, tmp_path: Path) -> None:
    queries = ("--method", "independent", "--delta")
    before = place.balance()
    refused = place.synthesize(
        "--yes", "--out", tmp_path / "refused", *queries, 0.01
    )  # more δ than the ledger has left
    assert refused.status == 3
    assert place.balance() == before
    assert "Warning: δ = 0.01 is large" in refused.err
    assert "picks about 1 % of the rows at random and publishes them as they are" in refused.words
    words = ("synthesize", place.table, "--schema", place.schema, "--epsilon", 1, "--out")
    shown = run(*words, tmp_path / "large", *queries, 0.01, "--yes")
    assert shown.status == 0
    assert shown.err.index("Warning: δ") < shown.err.index("No ledger given")
    assert "is large" not in (tmp_path / "large" / "statement.md").read_text(encoding="utf-8")
    assert run("verify", tmp_path / "large").status == 0
    assert "is large" not in run(*words, tmp_path / "small", *queries, 1e-6).words
    assert "is large" not in run(*words, tmp_path / "still", *queries, 0.01, "--quiet", "--yes").words


@pytest.mark.parametrize("column", ["patient_id", "Person", "email"])
def test_rows_are_protected_where_a_column_names_people(column: str, place: Workspace, tmp_path: Path) -> None:
    table, schema = tmp_path / "visits.csv", tmp_path / "schema.yaml"
    table.write_text(f"{column},region,sex,age,income,visited\nx,north,F,30,1,2020-01-01\n", encoding="utf-8")
    for words in (
        ("schema", "check", place.schema, table),
        ("synthesize", table, "--schema", place.schema, "--epsilon", 1, "--out", tmp_path / "rows"),
    ):
        shown = run(*words)
        assert shown.status == 0
        assert f"column '{column}' looks like an identifier of people, but the unit of protection" in shown.words
    text = place.schema.read_text(encoding="utf-8")
    schema.write_text(text.replace("unit: row", f"unit: {{column: {column}, rows: 2}}"), encoding="utf-8")
    assert "identifier" not in run("schema", "check", schema, table).words
    words = ("synthesize", table, "--schema", schema, "--epsilon", 1, "--out", tmp_path / "people")
    assert "identifier" not in run(*words).words


def test_an_ordinary_header_gives_no_warning(place: Workspace, tmp_path: Path) -> None:
    assert "Please check" not in run("schema", "check", place.schema, place.table).words
    assert "Warning" not in place.synthesize("--out", tmp_path / "plain", "--rows", 5).words


def test_a_release_without_rows_says_why_and_what_can_be_done(tmp_path: Path) -> None:
    table, schema = tmp_path / "none.csv", tmp_path / "schema.yaml"
    table.write_text("sex\n", encoding="utf-8")
    text = "understudy: 1\nunit: row\ncolumns:\n  sex: {kind: category, labels: [F, M]}\n"
    schema.write_text(text, encoding="utf-8")
    words = ("synthesize", table, "--schema", schema, "--epsilon", 1, "--method", "laplace", "--out")
    for number in range(60):  # the noisy total of no rows is 0 or less in half of all runs
        out = tmp_path / str(number)
        shown = run(*words, out)
        assert shown.status == 0
        if "(0 synthetic rows" in shown.out:
            break
        assert "has no rows" not in shown.words + (out / "card.html").read_text(encoding="utf-8")
    assert "Warning: A synthetic table of this release has no rows: their number was measured with noise" in shown.words
    assert "A synthetic table of this release has no rows" in (out / "card.html").read_text(encoding="utf-8")
    assert run("verify", out).status == 0
    drawn = run("sample", out, "-o", tmp_path / "all.csv")
    assert (drawn.status, "has no rows" in drawn.words) == (0, True)
    drawn = run("sample", out, "--rows", 5, "-o", tmp_path / "five.csv")
    assert (drawn.status, "has no rows" in drawn.words) == (0, False)
    queries = run(*words, tmp_path / "asked", "--rows", 0)
    assert (queries.status, "has no rows" in queries.words) == (0, False)
