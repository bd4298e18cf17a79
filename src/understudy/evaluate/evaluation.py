"""Evaluation: everything a comparison found, as plain frozen values. Confidential: it was computed from real rows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa

from understudy.errors import UsageError, nearest
from understudy.evaluate.data.unread import Unread
from understudy.evaluate.score import Result, Score

__all__ = ["NOTICE", "YARDSTICK", "Evaluation"]

NOTICE = "NOT FOR RELEASE. Computed from the private table; no privacy guarantee covers these numbers."
YARDSTICK = (
    "The yardstick of a score is the same score for two random halves of the real table: what chance alone does to "
    "tables of half the size. A stand-in that scores as well as its yardstick cannot be told from fresh real rows by "
    "this score. Where the halves themselves score close to the worst value, the score cannot judge any stand-in."
)
FORMAT = "understudy evaluation, format 1"
JSON_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of all metrics, in the order they were asked for.

    `left_out` are metrics that nobody asked for and that lack something here, with the reason; `unread` says which
    columns hold values that the schema cannot read as they are. `seconds` is how long each metric took; it is no part
    of the findings, so it is neither compared nor written.
    """

    title: str
    method: str
    promise: str
    real_rows: int
    synthetic_rows: tuple[int, ...]
    columns: tuple[str, ...]
    seed: int
    results: tuple[Result, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)

    def __getitem__(self, metric: str) -> Result:
        for result in self.results:
            if result.metric == metric:
                return result
        raise UsageError(f"metric {metric!r}", "was not computed.", nearest(metric, self.metrics))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics, in order."""
        return tuple(result.metric for result in self.results)

    def frame(self) -> pa.Table:
        """Every score in one table: metric, score, value, yardstick, direction, range, and reasons for gaps."""
        rows = [_flat(result, score) for result in self.results for score in result.scores]
        return pa.Table.from_pylist(rows, schema=_SCORES)

    def tables(self) -> dict[str, pa.Table]:
        """Every detail as "metric.detail", and all scores as "scores"."""
        found = {f"{result.metric}.{detail.name}": detail.table for result in self.results for detail in result.details}
        return {"scores": self.frame()} | found

    def to_json(self, rows: int | None = JSON_ROWS) -> dict[str, object]:
        """Everything as plain values; details longer than `rows` are cut there, and say how many rows they have."""
        return {
            "notice": NOTICE,
            "format": FORMAT,
            "title": self.title,
            "method": self.method,
            "promise": self.promise,
            "real_rows": self.real_rows,
            "synthetic_rows": list(self.synthetic_rows),
            "columns": list(self.columns),
            "seed": self.seed,
            "yardstick": YARDSTICK,
            "left_out": dict(self.left_out),
            "unread": [asdict(one) for one in self.unread],
            "metrics": [_result_document(result, rows) for result in self.results],
        }

    def save(self, folder: str | Path) -> None:
        """Writes the confidential report and every number behind it (JSON, and CSV for each table).

        A name that ends in .html is the report, with the numbers in a folder beside it; any other name is a folder.

        Raises:
            UsageError: if the place exists or lies in a release folder.
        """
        from understudy.evaluate.store import save_evaluation  # the store needs this type

        save_evaluation(self, Path(folder))


_SCORES = pa.schema(
    [
        ("metric", pa.string()),
        ("score", pa.string()),
        ("value", pa.float64()),
        ("yardstick", pa.float64()),
        ("direction", pa.string()),
        ("lowest", pa.float64()),
        ("highest", pa.float64()),
        ("best", pa.float64()),
        ("meaning", pa.string()),
        ("why_not", pa.string()),
        ("why_no_yardstick", pa.string()),
    ]
)


def _flat(result: Result, score: Score) -> dict[str, object]:
    return {"metric": result.metric, "score": score.name} | _score_document(score)


def _score_document(score: Score) -> dict[str, object]:
    return {
        "name": score.name,
        "meaning": score.meaning,
        "value": score.value,
        "yardstick": score.yardstick,
        "direction": score.direction,
        "lowest": score.lowest,
        "highest": score.highest,
        "best": score.best,
        "why_not": score.why_not,
        "why_no_yardstick": score.why_no_yardstick,
    }


def _result_document(result: Result, rows: int | None) -> dict[str, object]:
    details = [
        {
            "name": detail.name,
            "caption": detail.caption,
            "rows": detail.table.num_rows,
            "columns": detail.table.column_names,
            "first": detail.records(rows),
        }
        for detail in result.details
    ]
    return {
        "metric": result.metric,
        "question": result.question,
        "scores": [_score_document(score) for score in result.scores],
        "notes": list(result.notes),
        "details": details,
    }
