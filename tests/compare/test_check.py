from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.compare.tables import SCHEMA, table
from understudy.compare import compare
from understudy.compare.runs import ProcessLimits
from understudy.compare.study import Candidate, StudySettings, Tables, check_place, check_study
from understudy.errors import ResourceError, SchemaError, UsageError
from understudy.schema import Category, OpenCategory

LIMITS = ProcessLimits(600.0, 2**34)
RIGHT: Any = {"methods": ["independent"], "epsilons": [1.0]}
LARGE = replace(
    SCHEMA,
    columns=tuple(Category(name=f"c{place}", labels=tuple(map(str, range(40)))) for place in range(9)),
)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"methods": "independent"}, "must be a list"),
        ({"methods": ["mst"]}, "needs δ above 0"),
        ({"methods": ["independent", "dpwgan"]}, "needs δ above 0"),
        ({"methods": ["steps layers=0"]}, "layers"),
        ({"methods": ["steps sequence=nobody"]}, "nobody"),
        ({"epsilons": 1.0}, "must be a list"),
        ({"epsilons": ["1"]}, "must be numbers"),
        ({"epsilons": [1.0, 1e-12]}, "independent at ε = 1e-12"),
        ({"delta": 2.0}, "delta"),
        ({"copies_mode": "again"}, "copies_mode"),
        ({"copies": 5000}, "copies"),
        ({"rows": -1}, "rows"),
        ({"rows": 0}, "rows"),
        ({"public": "nowhere.csv"}, "none of these methods"),
        ({"methods": ["aim"], "delta": 1e-9, "public": "nowhere.csv"}, "no such file"),
        ({"metrics": ["marginals"], "options": {"specks": {"terms": "main"}}}, "not requested"),
        ({"options": {"marginals": {"way": 2}}}, "not an option"),
        ({"options": {"marginals": {"ways": object()}}}, "must be text"),
        ({"formula": "age ~ sex"}, "regression"),
        ({"metrics": ["regression"], "formula": "age ~ nobody"}, "nobody"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_left(wrong: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        compare(table(20), SCHEMA, **(RIGHT | wrong), out=tmp_path / "study")
    assert list(tmp_path.iterdir()) == []


def test_tables_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("sex,region,age\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing more")
    (tmp_path / "other.csv").write_text("sex,region\nf,north\n")
    rows: list[object] = ["none.csv", "empty.csv", "header.csv", "broken.parquet", "other.csv", "."]
    for data in [*(tmp_path / str(name) for name in rows), table(0), pa.table({"a": [1]}), 7]:
        with pytest.raises((UsageError, SchemaError)):
            compare(data, SCHEMA, **RIGHT, out=tmp_path / "study")
        assert not (tmp_path / "study").exists()


def test_a_public_table_without_the_columns_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "public.parquet")
    public = str(tmp_path / "public.parquet")
    with pytest.raises(SchemaError):
        compare(table(20), SCHEMA, methods=["aim"], epsilons=[1.0], delta=1e-9, public=public, out=tmp_path / "study")
    assert not (tmp_path / "study").exists()


def _settings(*methods: str, delta: float = 0.0) -> StudySettings:
    return StudySettings(tuple(map(Candidate.read, methods)), (1.0, 2.0), delta)


def test_a_method_too_large_stays_in_the_study_if_another_can_run() -> None:
    rows = pa.table({column.name: ["0", "1"] for column in LARGE.columns})
    check_study(Tables(rows), LARGE, _settings("universal_histogram", "independent"), LIMITS)
    with pytest.raises(ResourceError):
        check_study(Tables(rows), LARGE, _settings("universal_histogram"), LIMITS)


def test_an_error_says_which_method_at_which_epsilon() -> None:
    with pytest.raises(UsageError, match=r"^mst at ε = 1 needs δ"):
        check_study(Tables(table(20)), SCHEMA, _settings("independent", "mst"), LIMITS)


def test_open_labels_are_discovered_under_delta_whatever_the_method() -> None:
    schema = replace(SCHEMA, columns=(*SCHEMA.columns[:1], OpenCategory(name="region", most_labels=5)))
    with pytest.raises(UsageError, match="δ above 0"):
        compare(table(40), schema, methods=["laplace"], epsilons=[1.0])
    settings = replace(_settings("laplace", delta=1e-6), open_labels=True)
    check_study(Tables(table(40)), schema, settings, LIMITS)


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for place in ("file", "file/below", "link"):
        with pytest.raises(UsageError, match="file"):
            check_place(tmp_path / place)
        with pytest.raises(UsageError):
            compare(table(20), SCHEMA, **RIGHT, out=tmp_path / place)
    check_place(tmp_path)
    check_place(tmp_path / "new" / "deep")
    assert (tmp_path / "file").read_text() == "mine"
