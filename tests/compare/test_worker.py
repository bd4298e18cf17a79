from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from tests.compare.tables import SCHEMA, table
from understudy.compare.runs import Job
from understudy.compare.worker import run_job


def job(place: Path, method: str, options: dict[str, str] | None = None, epsilon: float = 1.0) -> Job:
    pq.write_table(table(), place / "people.parquet")
    SCHEMA.to_yaml(place / "schema.yaml")
    return Job(
        table=str(place / "people.parquet"),
        schema=str(place / "schema.yaml"),
        run={
            "method": method,
            "options": options or {},
            "epsilon": epsilon,
            "copies": 2,
            "copies_mode": "remeasure",
            "seed": 1,
        },
        scoring={"metrics": ["marginals"], "seed": 1},
    )


def test_a_run_is_scored_over_all_its_copies(tmp_path: Path) -> None:
    outcome = run_job(job(tmp_path, "laplace", epsilon=1000.0))
    assert outcome.status == "done"
    first = outcome.scores[0]
    assert first.metric == "marginals"
    assert first.value is not None
    assert first.value < 0.1
    assert outcome.peak_bytes > 2**20


def test_our_own_refusals_become_outcomes_with_their_reason(tmp_path: Path) -> None:
    outcome = run_job(job(tmp_path, "aim"))
    assert outcome.status == "failed"
    assert "delta" in outcome.reason or "δ" in outcome.reason
    assert outcome.scores == ()


def test_options_of_metrics_reach_the_scores(tmp_path: Path) -> None:
    queries = job(tmp_path, "independent")
    queries = replace(queries, scoring=dict(queries.scoring) | {"options": {"marginals": {"ways": 1}}})
    values = {score.score: score.value for score in run_job(queries).scores}
    assert values["one_way_mean"] is not None
    assert values["two_way_mean"] is None
