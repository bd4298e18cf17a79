"""One exhibit from its raw file to a verified release, and the same analysis on the release and on the real rows.

The truth beside the release may be shown because these tables are public. With a private table, everything that
`evaluate` says would be confidential.
"""

import os
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import understudy as us
from studies.gallery.exhibits import Exhibit
from understudy.charts import Chart
from understudy.evaluate.measured import MeasuredNumber
from understudy.evaluate.measured_models import MeasuredModel
from understudy.evaluate.metric import Score
from understudy.schema import Category

CHARTED = 4
"""Columns whose distributions a page shows."""


@dataclass(frozen=True)
class Group:
    """One row of the cross-tabulation: what the release says, and the share in the raw file."""

    label: str
    said: MeasuredNumber
    true: float
    rows: int

    @property
    def covered(self) -> bool:
        return self.said.table_low <= self.true <= self.said.table_high


@dataclass(frozen=True)
class Coefficient:
    """One coefficient with its interval: from the raw file, from the release, from rows read as if they were real."""

    name: str
    real: tuple[float, float, float]
    pooled: tuple[float, float, float] | None
    naive: tuple[float, float, float] | None

    @property
    def covered(self) -> bool:
        return self.pooled is not None and self.pooled[1] <= self.real[0] <= self.pooled[2]

    @property
    def naively_covered(self) -> bool:
        return self.naive is not None and self.naive[1] <= self.real[0] <= self.naive[2]

    @property
    def overlap(self) -> bool:
        return self.pooled is not None and self.pooled[1] <= self.real[2] and self.real[1] <= self.pooled[2]

    @property
    def same_sign(self) -> bool:
        return self.pooled is not None and self.pooled[0] * self.real[0] > 0

    @property
    def clear(self) -> bool:
        """Whether the real interval leaves zero out, so that an analyst would report a sign."""
        return self.real[1] > 0 or self.real[2] < 0


@dataclass(frozen=True)
class Finding:
    """What one exhibit came to."""

    exhibit: Exhibit
    rows: int
    columns: int
    total: int
    statement: str
    scores: tuple[tuple[str, Score], ...]
    groups: tuple[Group, ...]
    coefficients: tuple[Coefficient, ...]
    harder: tuple[Coefficient, ...]
    refused: str
    """Why the release does not answer the model; empty if it does."""
    harder_refused: str
    """The same of the harder model."""
    notes: tuple[str, ...]
    charts: tuple[Chart, ...]
    seconds: float


def run(exhibit: Exhibit, data: Path) -> Finding:
    """Releases the table, verifies the folder, and analyses release and raw file."""
    path = data / exhibit.file
    raw = pq.read_table(path)
    schema = us.Schema.from_yaml(exhibit.schema)
    began = sum(os.times()[:4])
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(place) / "release"
        release = us.synthesize(
            path,
            schema,
            method=exhibit.method,
            options=dict(exhibit.options),
            epsilon=exhibit.epsilon,
            delta=exhibit.delta,
            copies=exhibit.copies,
            copies_mode="remeasure" if exhibit.copies > 1 else "resample",
            out=folder,
        )
        seconds = sum(os.times()[:4]) - began
        problems = us.verify(folder)
        evaluation = us.evaluate(path, release, metrics=("marginals",))
        model, notes, refused = _asked(path, release, exhibit.formula)
        harder, _, harder_refused = _asked(path, release, exhibit.harder)
        numbers = us.pool(release, rate=exhibit.rate.label, by=exhibit.rate.by)
    assert not problems, problems
    assert isinstance(numbers, tuple)
    return Finding(
        exhibit,
        raw.num_rows,
        raw.num_columns,
        release.table.num_rows,
        str(release.statement),
        tuple((score.meaning, score) for score in evaluation["marginals"].scores),
        _groups(exhibit, raw, schema, numbers),
        model,
        harder,
        refused,
        harder_refused,
        notes,
        evaluation.plot("columns").charts[:CHARTED],
        seconds,
    )


def _groups(
    exhibit: Exhibit, raw: pa.Table, schema: us.Schema, numbers: tuple[MeasuredNumber, ...]
) -> tuple[Group, ...]:
    """The measured shares beside those of the raw file; groups that the raw file does not have are left out."""
    ((outcome, label),) = exhibit.rate.label.items()
    groups, outcomes = (_texts(raw, name) for name in (exhibit.rate.by, outcome))
    rows = Counter(groups)
    hits = Counter(group for group, value in zip(groups, outcomes, strict=True) if value == label)
    column = schema.column(exhibit.rate.by)
    meanings = dict(column.meanings) if isinstance(column, Category) else {}
    found = []
    for said in numbers:
        name = said.where[exhibit.rate.by]
        if rows[name]:
            found.append(Group(meanings.get(name, name), said, hits[name] / rows[name], rows[name]))
    return tuple(found)


def _texts(raw: pa.Table, name: str) -> list[str]:
    column = raw.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return [str(value) for value in pc.fill_null(column.cast(pa.string()), "missing").to_pylist()]


def _model(path: Path, release: us.Release, formula: str) -> tuple[tuple[Coefficient, ...], tuple[str, ...]]:
    """The model on the raw file, by the release, and on the rows of its first copy as if they were real."""
    if len(release.tables) == 1:
        return _model_from_noisy_tables(path, release, formula)
    many = us.evaluate(path, release, metrics=("regression",), formula=formula, pictures=False)
    alone = us.evaluate(
        path, release.tables[0], release.schema, metrics=("regression",), formula=formula, pictures=False
    )
    one = _table(alone)
    made = [
        Coefficient(_in_words(name, release.schema), _ends(row, "real"), _side(row), _side(one[name]))
        for name, row in _table(many).items()
    ]
    return tuple(sorted(made, key=lambda each: each.name)), many["regression"].notes


def _model_from_noisy_tables(
    path: Path, release: us.Release, formula: str
) -> tuple[tuple[Coefficient, ...], tuple[str, ...]]:
    """The same with the interval that follows from the noisy answers; they answer no model that they do not hold."""
    said = us.pool(release, formula=formula)
    assert isinstance(said, MeasuredModel)
    alone = us.evaluate(path, release, metrics=("regression",), formula=formula, pictures=False)
    made = []
    for name, row in _table(alone).items():
        found = said.coefficients.get(name)
        interval = None if found is None else (found.estimate, found.table_low, found.table_high)
        made.append(Coefficient(_in_words(name, release.schema), _ends(row, "real"), interval, _side(row)))
    return tuple(sorted(made, key=lambda each: each.name)), (*alone["regression"].notes, *said.notes)


def _asked(path: Path, release: us.Release, formula: str) -> tuple[tuple[Coefficient, ...], tuple[str, ...], str]:
    """A model, if there is one to ask for, or why the release does not answer it."""
    if not formula:
        return (), (), ""
    try:
        return *_model(path, release, formula), ""
    except us.errors.UsageError as refused:
        return (), (), str(refused)


def _in_words(name: str, schema: us.Schema) -> str:
    """The name of a coefficient with the meaning of its label in place of a code."""
    column, sign, label = name.partition("=")
    declared = schema.column(column) if sign else None
    meanings = dict(declared.meanings) if isinstance(declared, Category) else {}
    return f"{column}: {meanings.get(label, label)}" if sign else name


def _table(evaluation: us.Evaluation) -> dict[str, dict[str, float | None]]:
    (detail,) = [one for one in evaluation["regression"].details if one.name == "coefficients"]
    return {str(row["coefficient"]): row for row in detail.table.to_pylist()}


def _ends(row: dict[str, float | None], side: str) -> tuple[float, float, float]:
    value, low, high = (row[f"{side}_{what}"] for what in ("value", "low", "high"))
    assert value is not None
    assert low is not None
    assert high is not None
    return value, low, high


def _side(row: dict[str, float | None]) -> tuple[float, float, float] | None:
    return None if row["synthetic_value"] is None else _ends(row, "synthetic")
