"""verify: silent on what was published, and a finding for each kind of tampering, also by a careful forger."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.release.people import copied, edited_json, relisted
from understudy.release.verify import verify_release

Tamper = Callable[[Path], object]


def test_published_folders_are_accepted(full_folder: Path, plain_folder: Path) -> None:
    assert verify_release(full_folder) == []
    assert verify_release(str(plain_folder)) == []


def test_what_is_not_a_folder_is_a_finding(tmp_path: Path) -> None:
    assert verify_release(tmp_path / "nothing")[0].rule == "is not a folder."
    (problem,) = verify_release(tmp_path)
    assert problem.rule == "is not a release folder: no manifest.json."


def _statement(folder: Path, change: Callable[[dict], object]) -> None:
    path = folder / "statement.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    relisted(folder)


def _rows(folder: Path, change: Callable[[pa.Table], pa.Table], *, keep_marks: bool = True) -> None:
    path = folder / "data.parquet"
    table = pq.read_table(path)
    changed = change(table)
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata if keep_marks else None), path)
    relisted(folder)


def _set(table: pa.Table, name: str, value: object) -> pa.Table:
    place = table.column_names.index(name)
    values = table[name].to_pylist()
    values[0] = value
    return table.set_column(place, table.schema.field(name), pa.array(values, table.schema.field(name).type))


def _broken_rule(table: pa.Table) -> pa.Table:
    return _set(_set(table, "sex", "M"), "member", True)


def _measurement(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    path = folder / "measurements.parquet"
    table = pq.read_table(path)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), path)
    relisted(folder)


def _double_scale(table: pa.Table) -> pa.Table:
    place = table.column_names.index("scale")
    return table.set_column(place, "scale", pa.array(np.asarray(table["scale"]) * 2))


def _cheaper(document: dict) -> None:
    for charge in document["charges"]:
        charge["cost"]["rho_units"] //= 2


def _less_noise(document: dict) -> None:
    document["charges"][-1]["distribution"]["parameter"] = "1/100"


def _ledger(folder: Path, change: Callable[[dict], object]) -> None:
    path = folder / "ledger.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines[-1])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    relisted(folder)


def _config(folder: Path, **changes: object) -> None:
    path = folder / "config.yaml"
    document = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(document | changes))
    relisted(folder)


def _replace(folder: Path, name: str, before: str, after: str) -> None:
    text = (folder / name).read_text(encoding="utf-8")
    assert before in text
    (folder / name).write_text(text.replace(before, after, 1), encoding="utf-8")
    relisted(folder)


def _model_total(folder: Path) -> None:
    document = json.loads((folder / "model/1/model.json").read_text())
    document["domain"][0][1] += 1
    (folder / "model/1/model.json").write_text(json.dumps(document))
    relisted(folder)


def _flip(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)


TAMPERINGS: dict[str, tuple[Tamper, str]] = {
    "flipped bit in the data": (lambda f: _flip(f, "data.parquet"), "checksum"),
    "flipped bit in the card": (lambda f: _flip(f, "card.html"), "checksum"),
    "flipped bit in the model": (lambda f: _flip(f, "model/1/probabilities.npy"), "checksum"),
    "file removed": (lambda f: (f / "statement.md").unlink(), "missing"),
    "file removed and relisted": (lambda f: ((f / "statement.md").unlink(), relisted(f)), "missing"),
    "file added": (lambda f: (f / "notes.txt").write_text("hello"), "not listed"),
    "file added and relisted": (lambda f: ((f / "notes.txt").write_text("x"), relisted(f)), "does not belong"),
    "pickle added": (lambda f: ((f / "model/1/extra.npy").write_bytes(b"\x80\x04K."), relisted(f)), "pickle"),
    "link": (lambda f: ((f / "card.html").unlink(), os.symlink("/etc/hostname", f / "card.html")), "link"),
    "linked folder": (lambda f: os.symlink("/etc", f / "model/2"), "link"),
    "manifest removed": (lambda f: (f / "manifest.json").unlink(), "not complete"),
    "manifest broken": (lambda f: (f / "manifest.json").write_text("[]"), "form of a manifest"),
    "smaller ε claimed": (lambda f: edited_json(f, "statement.json", epsilon=0.1), "does not follow"),
    "smaller δ claimed": (lambda f: edited_json(f, "statement.json", delta=1e-12), "does not follow"),
    "softer odds": (lambda f: edited_json(f, "statement.json", odds="nothing to fear"), "does not follow"),
    "a limit struck out": (lambda f: edited_json(f, "statement.json", not_protected=[]), "does not follow"),
    "unknown entry": (lambda f: edited_json(f, "statement.json", approved="yes"), "does not follow"),
    "cheaper charges": (lambda f: _statement(f, _cheaper), "its cost allows"),
    "less noise stated": (lambda f: _statement(f, _less_noise), "not the noise that was charged"),
    "a charge struck out": (lambda f: _statement(f, lambda d: d["charges"].pop()), "charges for"),
    "test double": (lambda f: edited_json(f, "statement.json", refused="NOT PRIVATE: test double"), "NOT PRIVATE"),
    "statement is not JSON": (lambda f: ((f / "statement.json").write_text("{"), relisted(f)), "not a JSON"),
    "statement of another form": (lambda f: edited_json(f, "statement.json", charges=3), "form of a statement"),
    "other words in Markdown": (lambda f: _replace(f, "statement.md", "differential", "total"), "statement.json says"),
    "scales changed": (lambda f: _measurement(f, _double_scale), "expected form"),
    "answers cut": (lambda f: _measurement(f, lambda t: t.slice(0, t.num_rows - 1)), "expected form"),
    "ledger entry changed": (lambda f: _ledger(f, lambda line: line.update(cost_rho=1)), "ledger.jsonl"),
    "ledger of another run": (lambda f: _ledger(f, lambda line: line.update(run="other")), "run"),
    "ledger emptied": (lambda f: ((f / "ledger.jsonl").write_text(""), relisted(f)), "holds no entry"),
    "value outside a list": (lambda f: _rows(f, lambda t: _set(t, "sex", "X")), "outside its domain"),
    "undiscovered label": (lambda f: _rows(f, lambda t: _set(t, "job", "astronaut")), "outside its domain"),
    "value above a bound": (lambda f: _rows(f, lambda t: _set(t, "age", 150)), "outside its domain"),
    "missing where forbidden": (lambda f: _rows(f, lambda t: _set(t, "height", None)), "missing values"),
    "rule broken": (lambda f: _rows(f, _broken_rule), "rule excludes"),
    "derived column wrong": (lambda f: _rows(f, lambda t: _set(t, "tall", "maybe")), "formula"),
    "column dropped": (lambda f: _rows(f, lambda t: t.drop_columns(["age"])), "names, order or types"),
    "rows dropped": (lambda f: _rows(f, lambda t: t.slice(1)), "number of rows"),
    "no longer marked synthetic": (lambda f: _rows(f, lambda t: t, keep_marks=False), "marked as synthetic"),
    "data is not Parquet": (lambda f: ((f / "data.parquet").write_bytes(b"a,b\n"), relisted(f)), "Parquet"),
    "script in the card": (lambda f: _replace(f, "card.html", "</main>", "<script>1</script></main>"), "<script>"),
    "image from elsewhere": (lambda f: _replace(f, "card.html", "</main>", '<img src="//x"></main>'), "<img>"),
    "policy weakened": (lambda f: _replace(f, "card.html", "default-src", "script-src"), "security policy"),
    "other method in settings": (lambda f: _config(f, method="laplace"), "not what the statement says"),
    "settings broken": (lambda f: _config(f, seed="x"), "form of a run's settings"),
    "other schema": (lambda f: _replace(f, "schema.yaml", "upper: 99", "upper: 98"), "schema.yaml is not what"),
    "schema broken": (lambda f: ((f / "schema.yaml").write_text("a: [1"), relisted(f)), "schema.yaml"),
    "other codes in the model": (_model_total, "model"),
    "codes broken": (lambda f: ((f / "model/codec-1.json").write_text("[]"), relisted(f)), "fit the schema"),
}


@pytest.mark.parametrize("kind", TAMPERINGS)
def test_tampering_is_found(kind: str, full_folder: Path, tmp_path: Path) -> None:
    folder = copied(full_folder, tmp_path / "release")
    tamper, finding = TAMPERINGS[kind]
    tamper(folder)
    problems = "\n".join(map(str, verify_release(folder)))
    assert any(part in problems for part in finding.split("|")), problems
