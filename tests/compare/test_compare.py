from pathlib import Path

import pytest

from tests.compare.tables import SCHEMA, table
from understudy.compare import compare
from understudy.errors import UsageError

pytestmark = pytest.mark.usefixtures("quick_runs")


def test_runs_that_cannot_finish_end_as_such_and_the_study_goes_on(tmp_path: Path) -> None:
    found = compare(
        table(),
        SCHEMA,
        methods=["independent", "laplace dense_cells=10 threshold=5"],
        epsilons=[1.0],
        repeats=1,
        metrics=["marginals"],
        public_proxy=True,
        out=tmp_path / "study",
    )
    assert not found.study.confidential
    assert [run.outcome.status for run in found.study.runs] == ["done", "done"]
    assert found.recommendations[0].tied, "one repeat names nobody"
    rows = found.frame().to_pylist()
    assert {row["candidate"] for row in rows} == {"independent", "laplace dense_cells=10 threshold=5"}
    assert all(row["value"] is not None or row["why_not"] for row in rows)


def test_a_run_past_its_limit_of_time_is_an_outcome() -> None:
    found = compare(
        table(50), SCHEMA, methods=["independent"], epsilons=[1.0], repeats=1, metrics=["marginals"], seconds=0.001
    )
    (run,) = found.study.runs
    assert run.outcome.status == "time"
    assert found.recommendations[0].candidate == ""


@pytest.mark.parametrize(
    "wrong",
    [
        {"methods": ["aimm"]},
        {"methods": ["laplace threshold=many"]},
        {"metrics": ["spekcs"]},
        {"epsilons": [0.0]},
        {"seconds": 0.0},
        {"memory_bytes": 1},
        {"memory_bytes": float("nan")},
        {"memory_bytes": None},
        {"seconds": "5"},
        {"jobs": 0},
        {"jobs": 1.5},
        {"methods": [5]},
        {"methods": ["laplace 'threshold=5"]},
        {"options": {"marginals": 3}},
    ],
)
def test_mistakes_are_named_before_anything_runs(wrong: dict[str, object], tmp_path: Path) -> None:
    right: dict[str, object] = {"methods": ["independent"], "epsilons": [1.0]}
    with pytest.raises(UsageError):
        compare(table(20), SCHEMA, **(right | wrong), out=tmp_path / "study")  # type: ignore[arg-type]
    assert not (tmp_path / "study").exists()


def test_a_release_folder_takes_no_study(tmp_path: Path) -> None:
    (tmp_path / "statement.json").write_text("{}")
    with pytest.raises(UsageError, match="release folder"):
        compare(table(20), SCHEMA, methods=["independent"], epsilons=[1.0], out=tmp_path / "study")
