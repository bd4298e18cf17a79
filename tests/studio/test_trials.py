"""Trials of methods before a run: on invented rows, or on a file that is called public, never on the table itself."""

import csv
import re
from pathlib import Path

import pytest

import understudy as us

pytest.importorskip("starlette", reason="needs the extra [studio]")

from tests.studio.client import Client
from understudy.studio.invented import invented_rows, plainly_written, write_invented
from understudy.studio.workspace import write_json

EVERY_KIND = """\
understudy: 1
unit: {column: person, rows: 2}
file: {delimiter: ";"}
columns:
  sex: {kind: category, labels: [F, M], missing: false}
  moved: {kind: boolean, missing: false}
  age: {kind: integer, lower: 1, upper: 99, step: 2, bins: 7, missing: false}
  income: {kind: float, lower: -5, upper: 1000.5, decimals: 1, decimal: ",", missing: false}
  town: {kind: open_category, missing: false}
  born: {kind: date, lower: 2000-01-01, upper: 2020-12-31, format: "%d/%m/%Y", missing: false}
  seen: {kind: datetime, lower: 2000-01-01T00:00:00, upper: 2020-12-31T00:00:00, missing: false}
  at: {kind: time, lower: 08:00:00, upper: 17:00:00, missing: false}
rules:
  - impossible: {sex: [F], moved: ["true"]}
  - impossible: {sex: [M], income: {to: 0}}
"""


@pytest.fixture
def schema(tmp_path: Path) -> us.Schema:
    (tmp_path / "schema.yaml").write_text(
        EVERY_KIND.replace("decimals: 1,", "decimals: 1, bins: [-5, 0, 1000.5],"), encoding="utf-8"
    )
    return plainly_written(us.Schema.from_yaml(tmp_path / "schema.yaml"))


@pytest.fixture
def client(tmp_path: Path) -> Client:
    rows = "".join(f"{'FM'[row % 2]},{row % 90}\n" for row in range(400))
    for name in ("people.csv", "public.csv"):
        (tmp_path / name).write_text(f"sex,age\n{rows}", encoding="utf-8")
    return Client(tmp_path).enter()


def begun(client: Client) -> str:
    draft = client.post("/tables", {"table": "people.csv"}).headers["location"].removesuffix("/schema")
    version = re.search(r'name="version" value="(\w+)"', client.get(f"{draft}/schema").text)
    assert version is not None
    text = "understudy: 1\nunit: row\ncolumns:\n  sex: {kind: category, labels: [F, M]}\n"
    text += "  age: {kind: integer, lower: 0, upper: 99, bins: 10}\n"
    assert client.post(f"{draft}/change/text", {"version": version[1], "text": text}).status == 303
    return draft


def test_invented_rows_fit_their_schema_and_its_rules(schema: us.Schema, tmp_path: Path) -> None:
    write_invented(schema, 500, tmp_path / "invented.csv")
    found = schema.check(str(tmp_path / "invented.csv"), rows=True)
    for line in str(found).splitlines():
        if line.split() and line.split()[0] in schema.names:
            assert line.split()[2:] == ["100", "%", "0", "%", "0", "%", "0", "%"], line
    with (tmp_path / "invented.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len({row["person"] for row in rows}) == len(rows) == 500
    assert not any(row["sex"] == "F" and row["moved"] == "true" for row in rows)
    assert not any(row["sex"] == "M" and float(row["income"]) <= 0 for row in rows)


def test_invented_columns_depend_on_each_other(schema: us.Schema) -> None:
    """Else every method would look as good as one that draws columns one by one."""
    rows = list(invented_rows(schema, 4000))
    share = {town: sum(row["town"] == town for row in rows) / len(rows) for town in {row["town"] for row in rows}}
    old = [row for row in rows if float(str(row["age"])) > 60]
    apart = sum(abs(sum(row["town"] == town for row in old) / len(old) - part) for town, part in share.items())
    assert apart > 0.2


def test_methods_are_tried_on_invented_rows_and_one_is_chosen(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.studio.trials.REPEATS", 1)  # each is a process of its own
    draft = begun(client)
    page = client.get(f"{draft}/methods")
    assert "5,000 invented rows" in page.words
    assert "Not so:" in page.words  # methods that need more than a schema say so
    form = {"on": "invented", "try-independent": "yes", "try-mst": "yes"}
    client.post(f"{draft}/budget", {"epsilon": "6", "delta": "4", "rows_hint": "300"})
    run = client.post(f"{draft}/methods", form).headers["location"]
    assert client.post(f"{draft}/methods", form).headers["location"] == run
    assert client.until_done(run) == "tried"
    place = client.studio.runs.find(run.rpartition("/")[2]).place
    assert (place / "invented.csv").read_text(encoding="utf-8").count("\n") == 301
    page = client.get(f"{draft}/methods")
    report = client.get(f"/trials/{run.rpartition('/')[2]}/report")
    assert report.status == 200
    assert "script" not in report.headers["content-security-policy"]
    assert "CONFIDENTIAL" not in report.words
    assert "Use independent" in page.words
    assert client.post(f"{draft}/method", {"method": "independent"}).status == 303
    assert client.post(f"{draft}/method", {"method": "<b>"}).status == 422
    assert client.studio.workspace.draft(draft.rpartition("/")[2]).choices.method == "independent"
    assert not client.studio.workspace.ledger_path.exists()
    assert run not in client.get("/").text
    assert client.post(f"{run}/forget").status == 303
    assert client.get(run).status == 404


def test_a_table_that_is_gone_does_not_shut_the_pages(client: Client, tmp_path: Path) -> None:
    draft = begun(client)
    (tmp_path / "people.csv").unlink()
    for page in ("schema", "budget", "methods", "confirm"):
        assert client.get(f"{draft}/{page}").status == 200, page


def test_a_table_that_is_not_public_is_not_tried_on(client: Client, tmp_path: Path) -> None:
    draft = begun(client)
    (tmp_path / "again.csv").hardlink_to(tmp_path / "people.csv")
    form = {"on": "file", "try-independent": "yes", "is_public": "yes"}
    for table, why in (
        ("people.csv", "private table itself"),
        ("again.csv", "private table itself"),
        ("../outside.csv", "not in the studio's folder"),
        ("", "not in the studio's folder"),
    ):
        answer = client.post(f"{draft}/methods", {**form, "table": table})
        assert (answer.status, why in answer.words.replace("&#39;", "'")) == (422, True), answer.words
    assert client.post(f"{draft}/methods", {**form, "table": "public.csv", "is_public": ""}).status == 422
    assert client.post(f"{draft}/methods", {"on": "invented"}).status == 422
    assert client.studio.runs.all() == []
    run = client.post(f"{draft}/methods", {**form, "table": "public.csv"}).headers["location"]
    assert client.studio.runs.find(run.rpartition("/")[2]).settings["table"].endswith("public.csv")
    client.post(f"{run}/cancel")
    assert client.until_done(run) in ("cancelled", "interrupted")
    assert client.get(f"/trials/{run.rpartition('/')[2]}/report").status == 404


def test_a_table_that_was_charged_for_is_never_taken_for_a_public_one(client: Client, tmp_path: Path) -> None:
    """Nor is last year's private table: the schema and the choice of a method would tell about its rows."""
    draft = begun(client)
    place = client.studio.workspace.kept / "runs" / "earlier"
    place.mkdir(parents=True)
    write_json(place / "settings.json", {"kind": "release", "name": "made", "table": str(tmp_path / "public.csv")})
    form = {"on": "file", "try-independent": "yes", "is_public": "yes", "table": "public.csv"}
    answers = [client.post(f"{draft}/methods", form)]
    answers += [client.post("/tables", {"table": "people.csv", field: "public.csv"}) for field in ("like", "codebook")]
    for answer in answers:
        assert (answer.status, "from which a release was made" in answer.words) == (422, True), answer.words


def test_two_ways_to_name_a_database_mean_the_same(client: Client) -> None:
    same = client.studio.workspace.same_file
    assert same("postgres://host/people::voters", "postgresql://host/people::voters")
    assert not same("postgres://host/people::voters", "postgresql://host/people::others")
    assert not same("postgres://host/people::voters", "people.csv")
