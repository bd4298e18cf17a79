"""measurements.parquet: tidy for people, and every answer comes back exactly."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.release.people import simple
from understudy.codec.table import TableCodec
from understudy.domain import (
    Answer,
    Discovery,
    Distribution,
    Grown,
    Measurement,
    NoisyScores,
    ResidualTable,
    Selection,
    Selections,
    SparseMeasurement,
    Transcript,
)
from understudy.errors import ReleaseError
from understudy.release.statistics import unravelled
from understudy.release.store import METADATA_KEY, read_measurements, write_measurements

LAPLACE, GAUSSIAN = Distribution("laplace", Fraction(7, 3)), Distribution("gaussian", Fraction(22, 7))


def _ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def _answers() -> list[Answer]:
    return [
        Discovery("discover job", "job", ("<b>", "é"), _ints(5, 9), LAPLACE, 4),
        Measurement("sex", ("sex",), (2,), _ints(-3, 12), GAUSSIAN),
        Measurement("sex × age", ("sex", "age"), (2, 5), np.arange(10, dtype=np.int64), LAPLACE),
        Measurement("total", (), (), _ints(4), LAPLACE),
        Measurement("leaves", ("sex", "age"), (3,), _ints(1, 2, 3), LAPLACE),
        SparseMeasurement("sex × age", ("sex", "age"), (2, 5), _ints(1, 7), _ints(8, 9), LAPLACE, 8),
        SparseMeasurement("age × voted", ("age", "voted"), (5, 2), _ints(), _ints(), LAPLACE, 8),
        Selection("first pair", 17, 4, Fraction(1, 3)),
        Discovery("discover town", "town", (), _ints(), LAPLACE, 4),
        Selections("split", 3, _ints(2, 0, 1, 0), Fraction(1, 7), Fraction(2**20), monotone=True),
        NoisyScores("pairs", _ints(-(2**40), 12, 2**50), GAUSSIAN, Fraction(2**21)),
        Grown("halves of age", (1, 2, 0), _ints(1, 0, 1), LAPLACE, 2130, -3, Fraction(5, 2)),
        Grown("nothing", (), _ints(), LAPLACE, 2130, 0, Fraction(2)),
        ResidualTable("sex × age", ("sex", "age"), (2, 5), _ints(-64, 0, 3, 2**40), GAUSSIAN),
        ResidualTable("age, coarse", ("age",), (3,), _ints(7, -9), GAUSSIAN),
    ]


def _same(first: Answer, second: Answer) -> bool:
    names = list(type(first).__dataclass_fields__)
    return type(first) is type(second) and all(
        np.array_equal(getattr(first, name), getattr(second, name)) for name in names
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    codec = TableCodec.of(simple(), unreadable=False)  # two sexes and five bins, as the answers have them
    write_measurements(tmp_path / "m.parquet", [Transcript(_answers()), Transcript(_answers()[1:3])], [codec, codec])
    return tmp_path / "m.parquet"


def test_every_answer_comes_back_exactly(path: Path) -> None:
    first, second = read_measurements(path, 2)
    assert all(_same(a, b) for a, b in zip(first, _answers(), strict=True))
    assert all(_same(a, b) for a, b in zip(second, _answers()[1:3], strict=True))


def test_rows_are_tidy_and_in_words(path: Path) -> None:
    rows = [row for row in pq.read_table(path).to_pylist() if row["run"] == 1]
    one_way = [row for row in rows if row["answer"] == 1]
    assert [(row["label"], row["value"]) for row in one_way] == [("F", -3), ("M", 12)]
    assert {row["noise"] for row in one_way} == {"gaussian"}
    assert one_way[0]["scale"] == pytest.approx((22 / 7) ** 0.5)
    joint = [row for row in rows if row["answer"] == 2]
    assert joint[6]["label"] == "M × [10, 20)"
    assert [row["label"] for row in rows if row["kind"] == "discovery"] == ["<b>", "é"]
    assert [row["label"] for row in rows if row["question"] == "leaves"] == ["cell 0", "cell 1", "cell 2"]
    assert [(row["cell"], row["label"]) for row in rows if row["answer"] == 5] == [
        (1, "F × [10, 20)"),
        (7, "M × [20, 30)"),
    ]


def test_choices_scores_and_trees_in_words(path: Path) -> None:
    rows = [row for row in pq.read_table(path).to_pylist() if row["run"] == 1]
    whole = {
        kind: [(row["label"], row["value"]) for row in rows if row["kind"] == kind] for kind in ("selections", "tree")
    }
    assert whole["selections"][:2] == [("option chosen in cell 0", 2), ("option chosen in cell 1", 0)]
    assert whole["tree"] == [("split in layer 0", 1), ("split in layer 1", 0), ("split in layer 1", 1)]
    assert [row["label"] for row in rows if row["kind"] == "scores"] == ["option 0", "option 1", "option 2"]


@pytest.mark.parametrize(
    ("position", "change"),
    [
        (9, {"options": 2}),
        (9, {"kind": "selection"}),
        (10, {"kind": "tree"}),
        (11, {"layers": [1, 1]}),
        (11, {"layers": [4, -1]}),
        (11, {"bias": "many"}),
    ],
)
def test_headers_of_choices_and_trees_that_do_not_fit_are_refused(
    path: Path, position: int, change: dict[str, object]
) -> None:
    table = pq.read_table(path)
    headers = json.loads(table.schema.metadata[METADATA_KEY])
    headers[position] |= change
    _rewritten(path, table, headers)
    with pytest.raises(ReleaseError):
        read_measurements(path, 2)


def test_cells_beyond_a_pointer_are_taken_apart() -> None:
    shape = (10**6, 10**6, 10**6)
    cell = (123_456 * 10**6 + 7) * 10**6 + 999_999
    assert [int(code[0]) for code in unravelled(_ints(cell), shape)] == [123_456, 7, 999_999]


def _rewritten(path: Path, table: pa.Table, headers: list[dict]) -> None:
    pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(headers).encode()}), path)


@pytest.mark.parametrize(
    "change",
    [
        {"run": 3},
        {"rows": 9},
        {"rows": -1},
        {"kind": "guess"},
        {"law": ["normal", "1"]},
        {"law": ["laplace", "1/0"]},
        {"law": ["laplace", "1"]},
        {"answer": 5},
        {"shape": "x"},
    ],
)
def test_headers_that_do_not_fit_are_refused(path: Path, change: dict[str, object]) -> None:
    table = pq.read_table(path)
    headers = json.loads(table.schema.metadata[METADATA_KEY])
    headers[2] |= change
    _rewritten(path, table, headers)
    with pytest.raises(ReleaseError):
        read_measurements(path, 2)


def test_other_files_are_refused(path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(ReleaseError):
        read_measurements(path, 1)
    path.write_bytes(b"PAR1 nothing")
    with pytest.raises(ReleaseError):
        read_measurements(path, 1)
