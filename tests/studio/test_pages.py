"""The whole way through the studio, page by page, without a browser."""

import contextlib
import html
import json
import re
import shlex
import sqlite3
import subprocess
import sys
import threading
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

import understudy as us

pytest.importorskip("starlette", reason="needs the extra [studio]")

from tests.studio.client import Answer, Client, begun, changed, finished, offered, paid, text_of
from understudy.studio.workspace import Choices

HOSTILE = '"<b>x</b>","a, ""b"" \'c\'",ok\n'
SCHEMA = """\
understudy: 1
unit: row
columns:
  "<b>x</b>": {kind: category, labels: ["<script>alert(1)</script>", "a\\"b", "no", "7"]}
  "a, \\"b\\" 'c'": {kind: integer, lower: 0, upper: 9}
  ok: {kind: category, labels: [yes-it-is, "&amp;", "ünï"]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(
        "person_id,sex,age\n" + "".join(f"{row},{'FM'[row % 2]},{row % 90}\n" for row in range(400)), encoding="utf-8"
    )
    return tmp_path


@pytest.fixture
def client(folder: Path) -> Client:
    return Client(folder).enter()


def test_home_asks_for_one_thing(client: Client) -> None:
    page = client.get("/")
    assert page.status == 200
    assert "Start with a table" in page.text
    assert "There is no release in this folder yet." in page.words
    assert "Nothing has been spent yet" in client.get("/accounts").words


def test_a_table_is_begun_with_once(client: Client) -> None:
    assert begun(client) == begun(client)
    assert len(client.studio.workspace.drafts()) == 1
    assert "people.csv" not in begun(client)


def test_only_the_header_is_read(client: Client, folder: Path) -> None:
    (folder / "rows.csv").write_text("sex,age\nPRIVATEVALUE,3\n", encoding="utf-8")
    draft = begun(client, "rows.csv")
    page = client.get(f"{draft}/schema")
    assert "PRIVATEVALUE" not in page.text + text_of(client, draft)


def test_a_header_that_looks_like_a_row_is_refused_without_showing_it(client: Client, folder: Path) -> None:
    (folder / "bare.csv").write_text("19,2020-01-01,4711\n20,2020-01-02,4712\n", encoding="utf-8")
    answer = client.post("/tables", {"table": "bare.csv"})
    assert answer.status == 422
    assert "look" in answer.words
    assert "4711" not in answer.text


def test_guesses_are_marked_and_confirmed(client: Client) -> None:
    draft = begun(client)
    assert "a guess" in client.get(f"{draft}/schema").words
    assert any(one.guess for one in us.Schema.edit(text_of(client, draft)).open)
    for column in ("sex", "age", ""):
        assert changed(client, draft, "confirm", column=column).status == 303
    assert not any(one.guess for one in us.Schema.edit(text_of(client, draft)).open)


def test_a_guess_is_said_by_its_mark_and_needs_no_reason(client: Client) -> None:
    draft = begun(client)
    columns = "  sex: {kind: category, labels: [F, M]}  # guess:\n"
    assert changed(client, draft, "text", text=f"understudy: 1\nunit: row\ncolumns:\n{columns}").status == 303
    page = client.get(f"{draft}/schema")
    assert "A guess: no reason is noted" in page.words
    assert "This is right" in page.words
    assert "Delete the comment" not in page.words, "that is for who edits the file"
    assert changed(client, draft, "confirm", column="sex").status == 303
    assert "Nothing is open" in client.get(f"{draft}/schema").words


def test_what_is_open_is_an_empty_field_and_stays_open_until_it_is_filled(client: Client) -> None:
    draft = begun(client)
    columns = "  age: {kind: integer, lower: DECIDE, upper: 99, missing: true}\n"
    text = f"understudy: 1\nunit: {{column: person_id, rows: DECIDE}}\ncolumns:\n{columns}"
    assert changed(client, draft, "text", text=text).status == 303
    page = client.get(f"{draft}/schema")
    assert 'name="lower" value="" placeholder="still open"' in page.text
    assert 'value="DECIDE"' not in page.text
    assert '<option value="true" selected>yes</option>' in page.text
    assert "state the most rows that one of them may have" in page.text.partition("Keep this answer")[0]
    assert "About the whole table" not in page.words
    said = {"column": "age", "kind": "integer", "lower": "", "upper": "99", "missing": "true"}
    assert changed(client, draft, "column", **said, title="Age").status == 303
    assert "lower: DECIDE" in text_of(client, draft)
    assert changed(client, draft, "column", **(said | {"lower": "0"})).status == 303
    assert changed(client, draft, "unit", several="yes", id="person_id", rows="3").status == 303
    assert us.Schema.edit(text_of(client, draft)).problems == ()
    assert "0 to 99" in client.get(f"{draft}/schema").words


def test_problems_stand_beside_their_field_in_the_words_of_the_check(client: Client, folder: Path) -> None:
    draft = finished(client)
    assert changed(client, draft, "column", column="age", lower="0", upper="many").status == 303
    page = client.get(f"{draft}/schema")
    (folder / "same.yaml").write_text(text_of(client, draft), encoding="utf-8")
    with pytest.raises(us.errors.SchemaError) as error:
        us.Schema.from_yaml(folder / "same.yaml")
    (problem,) = error.value.problems
    beside = re.search(r'<div id="c1-upper-wrong"[^>]*><p class="wrong">(.*?)</p>', page.text)
    assert beside is not None
    assert beside[1].replace("&#39;", "'") == f"{problem.rule} {problem.fix}".strip()
    assert changed(client, draft, "column", column="age", upper="99").status == 303
    assert "Nothing is open" in client.get(f"{draft}/schema").words


def test_what_is_typed_is_tried_and_not_kept(client: Client, folder: Path) -> None:
    draft = finished(client)
    before = text_of(client, draft)
    tried = client.post(f"{draft}/try", {"column": "age", "kind": "integer", "lower": "200", "upper": "99"})
    assert re.search(r'<div id="c1-(lower|upper)-wrong" hx-swap-oob="innerHTML"><p class="wrong">', tried.text)
    assert client.post(f"{draft}/try", {"column": "age", "kind": "integer", "lower": "1", "upper": "99"}).words == ""
    assert client.post(f"{draft}/try", {"column": "gone"}).status == 200
    assert text_of(client, draft) == before


def test_another_kind_shows_its_own_fields_before_anything_is_kept(client: Client, folder: Path) -> None:
    draft = finished(client)
    before = text_of(client, draft)
    fields = client.post(f"{draft}/fields", {"column": "sex", "kind": "integer", "labels": "F\nM"})
    assert 'id="c0-lower"' in fields.text
    assert 'id="c0-labels"' not in fields.text
    assert text_of(client, draft) == before


def test_another_kind_takes_the_keys_of_the_old_one_along(client: Client, folder: Path) -> None:
    """Otherwise a key would be wrong that no field shows."""
    draft = finished(client)
    said = {"column": "age", "kind": "category", "lower": "0", "upper": "99", "labels": "young\nold"}
    assert changed(client, draft, "column", **said).status == 303
    stated = us.Schema.edit(text_of(client, draft))
    assert stated.problems == ()
    assert stated.columns[1].said == {"kind": "category", "labels": ("young", "old")}
    assert changed(client, draft, "undo").status == 303
    assert "bins: 10" in text_of(client, draft)


def test_rules_are_chosen_listed_and_taken_out(client: Client, folder: Path) -> None:
    draft = begun(client)
    text = "understudy: 1\nunit: row\ncolumns:\n  sex: {kind: category, labels: [F, M]}\n"
    text += "  '<b>x': {kind: boolean}\n"
    assert changed(client, draft, "text", text=text).status == 303
    page = client.get(f"{draft}/schema").text
    assert '<option value="1.0">&lt;b&gt;x = false</option>' in page
    for wrong in ("0.7", "9.0", "x", "", f"{'9' * 5000}.0", "-1.0", "0.0"):
        assert changed(client, draft, "rule", when_a="0.0", when_b=wrong).status == 422
    assert changed(client, draft, "rule", when_a="0.1", when_b="1.1", rule_note="a law").status == 303
    assert us.Schema.edit(text_of(client, draft)).problems == ()
    assert "sex = M together with <b>x = true (a law)" in html.unescape(client.get(f"{draft}/schema").words)
    for wrong in ("1", "x", "", "9" * 5000):
        assert changed(client, draft, "allow", rule=wrong).status == 422
    assert changed(client, draft, "allow", rule="0").status == 303
    assert text_of(client, draft) == text


def test_a_codebook_fills_in_what_is_open_and_leaves_what_was_confirmed(client: Client, folder: Path) -> None:
    (folder / "book.csv").write_text(
        "name,label,type,min,max\nage,Age in full years,integer,16,74\nsex,Sex as stated,,,\n", encoding="utf-8"
    )
    draft = begun(client)
    assert changed(client, draft, "column", column="sex", title="Mine").status == 303
    assert changed(client, draft, "confirm", column="sex").status == 303
    confirmed = us.Schema.edit(text_of(client, draft)).columns[0].said
    told = changed(client, draft, "fill", codebook="book.csv")
    assert "Filled in" in told.words
    after = us.Schema.edit(text_of(client, draft)).columns
    assert after[0].said["title"] == "Mine"
    assert after[0].said["labels"] == confirmed["labels"]
    assert (after[1].said["lower"], after[1].said["upper"]) == ("16", "74")
    assert changed(client, draft, "undo").status == 303
    assert changed(client, draft, "fill").status == 422
    assert client.post(f"{draft}/change/fill", {"codebook": "book.csv", "version": "old"}).status == 422
    assert begun(client, codebook="book.csv") == draft
    assert us.Schema.edit(text_of(client, draft)).columns[1].said["upper"] == "74"


def test_the_private_table_is_no_public_one(client: Client, folder: Path) -> None:
    """Its rows would decide what the schema says."""
    (folder / "again.csv").hardlink_to(folder / "people.csv")
    for name in ("people.csv", "again.csv"):
        for field in ("like", "codebook"):
            answer = client.post("/tables", {"table": "people.csv", field: name})
            assert (answer.status, "private table itself" in answer.words) == (422, True)
    draft = begun(client)
    for field in ("like", "codebook"):
        answer = changed(client, draft, "fill", **{field: "again.csv"})
        assert (answer.status, "private table itself" in answer.words) == (422, True)


def test_a_place_in_a_sqlite_file_can_be_chosen_and_a_ledger_cannot(client: Client, folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "people.db")) as database, database:
        database.execute("CREATE TABLE answers (sex TEXT, age INTEGER)")
        database.execute("INSERT INTO answers VALUES ('PRIVATEVALUE', 3)")
    us.Ledger.create(folder / "ledger.db", "people", us.Budget(1.0))
    assert "ledger.db" not in client.get("/tables").text
    assert client.post("/tables", {"table": "ledger.db"}).status == 422
    page = client.get(f"{begun(client, 'people.db', inner='answers')}/schema")
    assert "age" in page.words
    assert "PRIVATEVALUE" not in page.text


def test_every_change_can_be_undone(client: Client) -> None:
    draft = begun(client)
    texts = [text_of(client, draft)]
    steps: list[tuple[str, dict[str, str]]] = [
        ("column", {"column": "sex", "kind": "category", "labels": "F\nM\n\n", "title": 'Sex, as "said"'}),
        ("unit", {"several": "yes", "id": "person_id", "rows": "3"}),
        ("confirm", {"column": "age"}),
        ("rule", {"when_a": "0.0", "when_b": "0.1"}),
        ("drop", {"column": "age"}),
    ]
    for action, form in steps[:3]:
        assert changed(client, draft, action, **form).status == 303
        texts.append(text_of(client, draft))
    assert changed(client, draft, *steps[3:4][0][:1], **steps[3][1]).status == 422
    assert changed(client, draft, "drop", column="age").status == 303
    assert "age: {" not in text_of(client, draft)
    for text in reversed(texts):
        assert changed(client, draft, "undo").status == 303
        assert text_of(client, draft) == text
    assert changed(client, draft, "undo").status == 422


def test_two_tabs_do_not_overwrite_each_other(client: Client) -> None:
    draft = begun(client)
    version = re.search(r'name="version" value="(\w+)"', client.get(f"{draft}/schema").text)
    assert version is not None
    first = client.post(f"{draft}/change/confirm", {"version": version[1], "column": "age"})
    second = client.post(f"{draft}/change/confirm", {"version": version[1], "column": "sex"})
    assert (first.status, second.status) == (303, 422)
    assert "another tab" in second.words


def test_a_text_that_is_no_yaml_is_not_kept(client: Client) -> None:
    draft = begun(client)
    before = text_of(client, draft)
    answer = changed(client, draft, "text", text="columns: [")
    assert answer.status == 422
    assert "columns: [" in answer.text
    assert text_of(client, draft) == before


def test_the_way_back_of_hostile_names_is_the_same_text(client: Client, folder: Path) -> None:
    (folder / "odd.csv").write_text(HOSTILE, encoding="utf-8")
    draft = begun(client, "odd.csv", names_are_right="yes")
    assert changed(client, draft, "text", text=SCHEMA).status == 303
    page = client.get(f"{draft}/schema")
    assert "<script>alert" not in page.text
    assert "<b>x</b>" not in page.text
    labels = '<script>alert(1)</script>\na"b\nno\n7\n] }, x: {'
    assert changed(client, draft, "column", column="<b>x</b>", kind="category", labels=labels).status == 303
    schema = us.Schema.edit(text_of(client, draft))
    assert schema.problems == ()
    assert schema.columns[0].said["labels"] == tuple(labels.split("\n"))
    note = 'it\'s: {a} # "note" \\ & <i>'
    assert changed(client, draft, "column", column="<b>x</b>", note=note).status == 303
    assert us.Schema.edit(text_of(client, draft)).columns[0].said["note"] == note


def test_saving_one_field_leaves_the_others_as_they_are(client: Client, folder: Path) -> None:
    draft = begun(client)
    columns = (
        '  sex: {kind: category, labels: ["F", "two\\nlines"]}\n  age:\n    kind: category\n    labels: [" a ", b]\n'
    )
    columns += "    note: |\n      one\n      two\n"
    assert changed(client, draft, "text", text=f"understudy: 1\nunit: row\ncolumns:\n{columns}").status == 303
    before = text_of(client, draft)
    shown = {"kind": "category", "missing": "", "title": "", "description": ""}
    assert changed(client, draft, "column", column="age", labels=" a \r\nb", note="one two", **shown).status == 303
    assert text_of(client, draft) == before
    page = client.get(f"{draft}/schema").text
    assert 'id="c0-labels"' not in page
    assert 'id="c1-labels"' in page
    assert changed(client, draft, "column", column="sex", note="", **(shown | {"title": "Sex"})).status == 303
    assert us.Schema.edit(text_of(client, draft)).columns[0].said["labels"] == ("F", "two\nlines")


def test_the_name_of_another_run_is_refused(client: Client, folder: Path) -> None:
    first = paid(client, finished(client), name="same")
    assert first.status == 303
    (folder / "others.csv").write_text("sex,age\nF,3\n", encoding="utf-8")
    other = begun(client, "others.csv")
    text = "understudy: 1\nunit: row\ncolumns:\n  sex: {kind: category, labels: [F, M]}\n"
    assert changed(client, other, "text", text=text).status == 303
    second = paid(client, other, name="same")
    assert second.status == 422
    assert "another run" in second.words
    client.until_done(first.headers["location"])


def test_a_budget_is_shown_before_anybody_pays(client: Client, folder: Path) -> None:
    draft = finished(client)
    page = client.get(f"{draft}/budget")
    assert page.status == 200
    assert "Where the budget goes" in page.words
    assert "An invented column" in page.words
    assert re.search(r"measure sex .*? \d+\.\d % ", page.words), "every column has its typical error"
    low = client.post(f"{draft}/plan", {"epsilon": "0", "delta": "0", "method": "auto"})
    high = client.post(f"{draft}/plan", {"epsilon": "15", "delta": "10", "method": "auto"})
    assert "very small" in low.words
    assert "is large" in high.words
    assert "protects almost nobody" in high.words
    assert "without exception" in low.words
    exact = client.post(f"{draft}/plan", {"epsilon": "0", "delta": "0", "epsilon_exact": "1.25"})
    assert "ε = 1.25" in exact.words
    assert not (folder / "ledger.db").exists()


def test_what_matters_to_a_steward_has_its_error(client: Client, folder: Path) -> None:
    draft = finished(client)
    form = {"epsilon": "6", "delta": "0", "method": "independent", "rows_hint": "10000"}
    assert "what matters to you" not in client.post(f"{draft}/plan", form).words
    plan = us.plan(client.studio.workspace.draft(draft.rpartition("/")[2]).schema_path, method="independent", epsilon=1)
    step = next(one for one in plan.steps if one.name == "measure age")
    words = client.post(f"{draft}/plan", form | {"matter-0": "yes", "matter-1": "yes"}).words
    assert step.expected_error is not None
    percent = 100 * step.expected_error * step.cells / 10_000
    assert f"age {step.cells} {step.expected_error:,.1f} {percent:,.1f} % measured" in words
    assert "sex × age" in words
    assert "not kept: this method draws columns one by one" in words
    words = client.post(f"{draft}/plan", form | {"method": "laplace", "matter-0": "y", "matter-1": "y"}).words
    assert "at most: added up from the full table" in words
    words = client.post(f"{draft}/plan", form | {"method": "mst", "delta": "4", "matter-0": "y", "matter-1": "y"}).words
    assert "if the run chooses this pair" in words
    assert client.post(f"{draft}/budget", {**form, "matter-1": "yes"}).status == 200
    assert re.search(r'name="matter-1" value="yes" checked', client.get(f"{draft}/budget").text)


def test_whoever_leaves_the_budget_by_a_link_finds_what_was_chosen(client: Client) -> None:
    draft = finished(client)
    client.post(f"{draft}/plan", {"epsilon": "9", "delta": "0"})
    assert "ε = 3 and δ = 0" in client.get(f"{draft}/methods").words
    left = client.post(f"{draft}/budget", {"epsilon": "3", "delta": "0", "then": "schema"})
    assert left.headers["location"] == f"{draft}/schema"
    assert client.post(f"{draft}/budget", {"epsilon_exact": "x", "then": "schema"}).headers["location"]
    page = client.get(f"{draft}/budget").text
    assert re.search(r'id="epsilon-now">0.3</strong>', page)
    assert re.search(r'aria-valuetext="0.3".*? data-steps="0.05 0.1 0.2 0.3 ', page)


def test_an_exact_budget_is_named_and_charged_to_its_last_digit(client: Client, folder: Path) -> None:
    draft = finished(client)
    form = {"epsilon": "3", "delta": "0", "epsilon_exact": "0.123456789012", "method": "independent"}
    assert client.post(f"{draft}/budget", {**form, "then": "confirm"}).status == 303
    assert 'value="0.123456789012"' in client.get(f"{draft}/budget").text
    page = client.get(f"{draft}/confirm")
    assert "Charge ε = 0.123456789012 and run" in page.words
    said = offered(page.text)
    client.post(f"{draft}/budget", form | {"epsilon_exact": "0.123456789013"})
    late = client.post(f"{draft}/run", {**said, "cap_epsilon": "1"})
    assert late.status == 422
    assert "another tab" in late.words


def test_a_password_in_a_location_is_refused_and_not_kept(client: Client) -> None:
    answer = client.post("/tables", {"database": "postgresql://steward:hunter22@127.0.0.1:1/db::people"})
    assert answer.status == 422
    assert client.studio.workspace.drafts() == []
    assert "hunter22" not in answer.words


@pytest.mark.parametrize("epsilon", ["x", "nan", "inf", "-1", "0", "1e400"])
def test_a_budget_that_is_none_is_refused(client: Client, folder: Path, epsilon: str) -> None:
    draft = finished(client)
    answer = client.post(f"{draft}/budget", {"epsilon_exact": epsilon, "delta": "0", "then": "confirm"})
    assert answer.status == 422
    for rows in ("-4", "0", "9" * 400, f"{'0' * 18}1{'0' * 400}"):
        assert client.post(f"{draft}/budget", {"epsilon": "3", "delta": "4", "rows_hint": rows}).status == 422
    assert client.get(f"{draft}/budget").status == 200
    assert client.post(f"{draft}/budget", {"epsilon": "3", "delta": "4", "method": "<b>"}).status in (200, 422)


def test_an_unfinished_schema_leads_back_to_it(client: Client) -> None:
    draft = begun(client)
    assert "DECIDE" in client.get(f"{draft}/budget").words
    assert client.get(f"{draft}/confirm").status == 422


def test_a_run_is_charged_once_whoever_presses_how_often(client: Client, folder: Path) -> None:
    draft = finished(client)
    client.studio.workspace.draft(draft.rpartition("/")[2]).choose(Choices(0.5, 0.0, "independent"))
    page = client.get(f"{draft}/confirm")
    assert "Charge ε = 0.5 and run" in page.words
    said = offered(page.text)
    form = {**said, "dataset": "", "cap_epsilon": "2", "cap_delta": "0"}
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda: answers.append(client.post(f"{draft}/run", form))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {(one.status, one.headers.get("location")) for one in answers} == {(303, answers[0].headers["location"])}
    place = answers[0].headers["location"]
    assert client.until_done(place) == "released"
    assert client.post(f"{draft}/run", form).headers["location"] == place
    charges = [one for one in us.Ledger.open(folder / "ledger.db").entries() if one.kind == "charge"]
    assert len(charges) == 1
    _the_release_page(client, folder, said["name"])
    _the_ledger_page(client)
    _the_confidential_page(client)
    _a_read_only_studio(folder)


@pytest.mark.slow
def test_what_a_release_page_says_to_type_does_the_same(client: Client, folder: Path) -> None:
    """Both the command and the call, run as they stand on the page."""
    made = paid(client, finished(client), name="people's release")
    assert client.until_done(made.headers["location"]) == "released"
    (key,) = client.studio.workspace.releases()
    page = client.get(f"/releases/{key}").text
    typed = [html.unescape(one) for one in re.findall(r"<pre[^>]*><code>(.*?)</code>", page, re.DOTALL)]
    for line in typed[0].splitlines()[:2]:
        words = shlex.split(line.replace("RELEASE", "typed"))
        command = [sys.executable, "-m", *words, *(["--quiet"] if "synthesize" in words else [])]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
    code = typed[1].replace("RELEASE", "called")
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    releases = [us.Release.load(folder / name) for name in ("people's release", "typed", "called")]
    settings = [(one.config.method, one.config.options, one.config.epsilon, one.config.delta) for one in releases]
    assert settings[0] == settings[1] == settings[2]
    assert len({one.statement.schema_digest for one in releases}) == 1
    code = f"{typed[2]}; print(list(rows))"
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "['sex', 'age']", run.stderr
    reader = Client(folder, read_only=True).enter()
    assert "people.csv" not in reader.get(f"/releases/{key}").text


def _the_release_page(client: Client, folder: Path, name: str) -> None:
    (key,) = client.studio.workspace.releases()
    page = client.get(f"/releases/{key}?column=0&column=9&column=x")
    assert name in page.words
    assert "nothing wrong was found" in page.words
    assert "noisy_count" in page.words
    assert "Confidential report" not in page.words
    assert name not in page.text.partition("<body")[0]
    held = zipfile.ZipFile(BytesIO(client.get(f"/releases/{key}/download/zip").body))
    assert held.testzip() is None
    files = {path.relative_to(folder / name).as_posix() for path in (folder / name).rglob("*") if path.is_file()}
    assert {one.removeprefix("release/") for one in held.namelist()} == files
    rows = client.get(f"/releases/{key}/download/csv").body.decode().splitlines()
    assert rows[0].replace('"', "") == "sex,age"
    assert client.get(f"/releases/{key}/download/exe").status == 404
    card = client.get(f"/releases/{key}/card")
    assert "script" not in card.headers["content-security-policy"]
    damaged = folder / name / "statement.md"
    before = damaged.read_bytes()
    damaged.write_text("changed", encoding="utf-8")
    assert "does not pass its check" in client.get(f"/releases/{key}").words
    damaged.write_bytes(before)


def _the_ledger_page(client: Client) -> None:
    page = client.get("/ledger")
    assert "The chain of entries is consistent" in page.words
    assert "25 % spent, in 1 charge" in page.words
    lines = [json.loads(line) for line in client.get("/ledger/export").text.splitlines()]
    assert [line["kind"] for line in lines] == ["dataset", "charge", "finish"]


def _the_confidential_page(client: Client) -> None:
    (key,) = client.studio.workspace.releases()
    page = client.get("/confidential")
    assert "CONFIDENTIAL" in page.words
    answer = client.post(f"/releases/{key}/compare", {"how": "quick"})
    again = client.post(f"/releases/{key}/compare", {"how": "quick"})
    assert answer.headers["location"] == again.headers["location"]
    assert client.until_done(answer.headers["location"]) == "compared"
    address = re.search(r"/confidential/\w+/report", client.get("/confidential").text)
    assert address is not None
    report = client.get(address[0])
    assert report.status == 200
    assert "NOT FOR RELEASE" in report.words.upper()
    numbers = re.findall(r'href="(tables/[^"]+)"', report.text)
    assert client.get(address[0].replace("report", numbers[0])).status == 200
    assert client.get(address[0].replace("report", "tables/..")).status == 404
    assert address[0] not in client.get(f"/releases/{key}").text


def _a_read_only_studio(folder: Path) -> None:
    client = Client(folder, read_only=True).enter()
    (key,) = client.studio.workspace.releases()
    assert client.get(f"/releases/{key}").status == 200
    assert client.get(f"/releases/{key}/card").status == 200
    assert client.get(f"/releases/{key}/download/zip").status == 200
    assert client.post(f"/releases/{key}/compare").status == 403
    assert client.get("/confidential").status == 404
    assert "people.csv" not in client.get("/").text


def test_the_ledger_refuses_what_the_cap_does_not_cover(client: Client, folder: Path) -> None:
    draft = finished(client)
    us.Ledger.create(folder / "ledger.db", "people", us.Budget(0.6, 0.0))
    assert client.until_done(paid(client, draft, dataset="people").headers["location"]) == "released"
    second = paid(client, draft, dataset="people").headers["location"]
    assert client.until_done(second) == "refused"
    page = client.get(second)
    assert "The ledger refused it" in page.words
    assert "is left" in page.words
    assert len(client.studio.workspace.releases()) == 1


def test_a_draft_is_thrown_away_and_taken_back_and_its_table_stays(client: Client, folder: Path) -> None:
    draft = begun(client)
    assert client.post(f"{draft}/back").headers["location"] == f"{draft}/schema", "it was not thrown away"
    assert client.post(f"{draft}/forget").status == 303
    assert client.get(f"{draft}/schema").status == 404
    assert "Thrown away: people.csv" in client.get("/").words
    assert (folder / "people.csv").is_file()
    assert client.post(f"{draft}/back").headers["location"] == f"{draft}/schema"
    assert client.get(f"{draft}/schema").status == 200
    assert "Thrown away" not in client.get("/").words
    assert client.post("/drafts/0123456789abcdef/back").status == 404


def test_names_with_line_ends_come_back_as_browsers_send_them(client: Client, folder: Path) -> None:
    """They send every end of a line as two characters."""
    draft = begun(client)
    columns = '  "a\\nb": {kind: integer, lower: 0, upper: 9}  # guess: a number\n  "c\\rd": {kind: boolean}\n'
    assert changed(client, draft, "text", text=f"understudy: 1\nunit: row\ncolumns:\n{columns}").status == 303
    assert changed(client, draft, "column", column="c\r\nd", title="C").status == 303
    assert changed(client, draft, "confirm", column="a\r\nb").status == 303
    said = {"column": "a\r\nb", "kind": "integer", "lower": "12", "upper": "9"}
    assert 'id="c0-upper-wrong" hx-swap-oob="innerHTML"><p' in client.post(f"{draft}/try", said).text
    assert changed(client, draft, "drop", column="a\r\nb").status == 303
    (column,) = us.Schema.edit(text_of(client, draft)).columns
    assert (column.name, column.said["title"]) == ("c\rd", "C")


def test_statistics_that_are_not_shown_in_full_say_so(client: Client) -> None:
    draft = begun(client)
    columns = "".join(f"  c{number}: {{kind: integer, lower: 0, upper: 20, missing: false}}\n" for number in range(4))
    assert changed(client, draft, "text", text=f"understudy: 1\nunit: row\ncolumns:\n{columns}").status == 303
    rows = "".join(f"{row % 21},{row % 20},{row % 19},{row % 18}\n" for row in range(100))
    (client.studio.workspace.root / "people.csv").write_text(f"c0,c1,c2,c3\n{rows}", encoding="utf-8")
    client.until_done(paid(client, draft).headers["location"])
    (key,) = client.studio.workspace.releases()
    assert re.search(r"the first 200 of 4\d\d lines", client.get(f"/releases/{key}?column=0&column=1").words)
    assert "lines" not in client.get(f"/releases/{key}?column=0").words.partition("What was measured")[0]
    many = client.get(f"/releases/{key}?column=0&column=1&column=2&column=3")
    assert "At most 3 columns" in many.words
    page = client.get(f"/releases/{key}").text
    assert "--set" not in page, "options are named where they are not the usual ones"
    assert "options=" not in page


@pytest.mark.slow
def test_all_scores_can_be_had_after_the_main_ones(client: Client, folder: Path) -> None:
    client.until_done(paid(client, finished(client), name="made").headers["location"])
    (key,) = client.studio.workspace.releases()
    assert "the main scores" in client.get("/confidential").words
    first = client.post(f"/releases/{key}/compare", {"how": "quick"}).headers["location"]
    page = client.get("/confidential").words
    assert "the main scores, which" not in page
    assert "all scores, which may take minutes" in page
    second = client.post(f"/releases/{key}/compare", {"how": "all"}).headers["location"]
    assert first != second
    assert "Compare made with its table" not in client.get("/confidential").words
    for run in (first, second):
        assert client.post(f"{run}/cancel").status == 303
        client.until_done(run)
