"""Values that cannot be read, from a person's side: no label takes them, the release shows them, and it is said."""

import json
import random
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import Outcome, run
from understudy.cli.synthesize import READING
from understudy.report import prose

SEXES = ["F"] * 150 + ["f"] * 146 + ["M"] * 144 + ["m"] * 160
CLOSED = "{kind: category, labels: [F, M], missing: false}"
AGE = "{kind: integer, lower: 18, upper: 65, bins: 4, missing: false}"


def make(
    folder: Path, columns: dict[str, str], table: dict[str, list[str]], unreadable: str = "keep"
) -> tuple[Outcome, Path]:
    """A release of such a CSV file at a budget at which noise is a row or two, whatever is measured."""
    lines = [f"unreadable: {unreadable}", "columns:", *(f"  {name}: {said}" for name, said in columns.items())]
    (folder / "schema.yaml").write_text("\n".join(["understudy: 1", "unit: row", *lines]) + "\n")
    rows = list(zip(*table.values(), strict=True))
    random.Random(1).shuffle(rows)
    quoted = [",".join(f'"{value}"' if "," in value else value for value in row) for row in rows]
    (folder / "table.csv").write_text("\n".join([",".join(table), *quoted]) + "\n", encoding="utf-8")
    out = folder / "release"
    shown = run(
        *("synthesize", folder / "table.csv", "--schema", folder / "schema.yaml", "--out", out),
        *("--method", "mst", "--epsilon", 50, "--delta", "1e-9", "--seed", 1, "--yes"),
    )
    assert shown.status == 0, shown.err
    return shown, out


def shares(out: Path, column: str) -> dict[object, float]:
    values = pq.read_table(out / "data.parquet")[column].to_pylist()
    return {value: count / len(values) for value, count in Counter(values).items()}


def test_labels_in_another_case_are_no_women(tmp_path: Path) -> None:
    """Released as 76 % women once, because everything that matched no label took the first one."""
    ages = [str(18 + row % 40) for row in range(600)]
    shown, out = make(tmp_path, {"sex": CLOSED, "age": AGE}, {"sex": SEXES, "age": ages})
    found = shares(out, "sex")
    assert set(found) == {"F", "M", None}
    assert found["F"] == pytest.approx(0.25, abs=0.03)
    assert found["M"] == pytest.approx(0.24, abs=0.03)
    assert found[None] == pytest.approx(0.51, abs=0.03)
    assert None not in shares(out, "age")  # every age could be read, so none is empty
    told = "sex: about 51 % of its values are empty or could not be read; are its labels spelled as in the file?"
    assert told in shown.words
    assert READING in shown.words
    assert told in (out / "statement.md").read_text(encoding="utf-8")
    assert prose(told) in (out / "card.html").read_text(encoding="utf-8")
    document = json.loads((out / "statement.json").read_text(encoding="utf-8"))
    assert [one["text"] for one in document["odd_values"]] == [told]
    assert run("verify", out).status == 0
    again = run("sample", out, "--rows", 500, "--seed", 3, "--where", "sex=unreadable", "-o", tmp_path / "more.csv")
    assert again.status == 0
    assert pd.read_csv(tmp_path / "more.csv")["sex"].isna().all()


def test_a_crowded_bin_is_no_question_of_how_values_are_read(tmp_path: Path) -> None:
    shown, _ = make(tmp_path, {"age": AGE}, {"age": ["18"] * 600})
    assert "of its values are in its lowest bin" in shown.words
    assert READING not in shown.words


def test_what_is_said_must_follow_from_the_answers(tmp_path: Path) -> None:
    _, out = make(tmp_path, {"sex": CLOSED, "age": AGE}, {"sex": SEXES, "age": ["40"] * 600})
    statement = out / "statement.json"
    document = json.loads(statement.read_text(encoding="utf-8"))
    del document["odd_values"]
    statement.write_text(json.dumps(document), encoding="utf-8")
    shown = run("verify", out)
    assert shown.status != 0
    assert "odd_values" in shown.words


def test_integers_that_pandas_wrote_with_gaps_meet_their_labels(tmp_path: Path) -> None:
    frame = pd.DataFrame({"vote": [1.0, 0.0, None] * 200, "sex": ["F", "M", "F"] * 200})
    frame.to_csv(tmp_path / "pandas.csv", index=False)
    table = {name: list(column) for name, column in pd.read_csv(tmp_path / "pandas.csv", dtype=str).fillna("").items()}
    assert table["vote"][:3] == ["1.0", "0.0", ""]
    vote = '{kind: category, labels: ["0", "1"]}'
    shown, out = make(tmp_path, {"vote": vote, "sex": CLOSED}, table)
    found = shares(out, "vote")
    assert all(found[label] == pytest.approx(1 / 3, abs=0.03) for label in ("0", "1", None))
    assert "could not be read" not in shown.words


@pytest.mark.parametrize("missing", ["true", "false"])
def test_a_column_that_dies_is_named(tmp_path: Path, missing: str) -> None:
    vote = f'{{kind: category, labels: ["no", "yes"], missing: {missing}}}'
    shown, out = make(tmp_path, {"vote": vote, "sex": CLOSED}, {"vote": ["Y", "N"] * 300, "sex": ["F", "M"] * 300})
    how = "missing" if missing == "true" else "empty"
    assert f"vote: about 100 % of its values are {how} or could not be read" in shown.words
    assert shares(out, "vote")[None] > 0.98
    assert run("verify", out).status == 0


@pytest.mark.parametrize(
    ("column", "good", "bad"),
    [
        (CLOSED, "M", "NA"),
        ("{kind: integer, lower: 10, upper: 99, bins: 3, missing: false}", "50", "€ 12.00"),
        ("{kind: float, lower: 10, upper: 9999, bins: 3, missing: false}", "5000.5", "1,234.50"),
        ("{kind: integer, lower: 10, upper: 99, bins: 3, missing: false}", "50", "NA"),
        ("{kind: date, lower: 2020-01-01, upper: 2020-12-31, bins: 3, missing: false}", "2020-06-15", "31/12/2020"),
        ("{kind: boolean, missing: false}", "yes", "perhaps"),
    ],
)
@pytest.mark.parametrize("rule", ["keep", "drop"])
def test_a_half_that_cannot_be_read(tmp_path: Path, column: str, good: str, bad: str, rule: str) -> None:
    """It is empty in the release and said, or (dropped) its rows are left out; in no case is it a label or a bin."""
    table = {"x": [good, bad] * 300, "sex": ["F", "M", "M", "M"] * 150}
    shown, out = make(tmp_path, {"x": column, "sex": CLOSED}, table, rule)
    if rule == "keep":
        assert "x: about 50 % of its values are empty or could not be read" in shown.words
        assert shares(out, "x")[None] == pytest.approx(0.5, abs=0.03)
        return
    assert None not in shares(out, "x")
    assert pq.read_metadata(out / "data.parquet").num_rows == pytest.approx(300, abs=20)
    assert shares(out, "sex")["F"] == pytest.approx(0.5, abs=0.05)  # of the rows that are left
    assert "left out of every count" in (out / "statement.md").read_text(encoding="utf-8")
    assert run("verify", out).status == 0


def test_trailing_spaces_are_no_other_label(tmp_path: Path) -> None:
    shown, out = make(tmp_path, {"sex": CLOSED, "age": AGE}, {"sex": ["F ", " M"] * 300, "age": [" 30", "40 "] * 300})
    assert set(shares(out, "sex")) == {"F", "M"}
    assert "could not be read" not in shown.words
