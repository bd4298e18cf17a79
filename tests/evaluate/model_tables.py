"""Coverage of intervals for coefficients: random models on random samples of a table, with noise of known size."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Literal

import numpy as np
import pyarrow as pa

from tests.evaluate.measured_tables import noise_of
from tests.release.people import release_of_simple
from understudy.codec.table import TableCodec
from understudy.domain import RESIDUAL_UNIT, Answer, Distribution, Measurement, ResidualTable, Transcript
from understudy.errors import ResourceError, UsageError
from understudy.evaluate.measured_models import MeasuredModel, measured_model
from understudy.evaluate.metric import Rows, Unavailable, open_for_comparison, read_rows
from understudy.evaluate.regression import checked_formula, code_column, fit_model, model_data, references
from understudy.models.product import BlockModel
from understudy.release import Release
from understudy.release.release import Fitted
from understudy.schema import Category, Column, Float, Integer, Schema, UniformBins, Unit

__all__ = ["PARTS", "ModelTally", "Parts", "answered", "covered_models", "made_up", "usable"]

Parts = Literal["whole", "pairs", "residuals"]
"""What was measured of the columns of a model: all together, every pair, or columns and residuals of every pair."""
PARTS: tuple[Parts, ...] = ("whole", "pairs", "residuals")
MOST_CELLS, MOST_LABELS = 6_000, 16


def answered(
    shell: Release,
    table: pa.Table,
    schema: Schema,
    noise: Distribution,
    rng: np.random.Generator | None = None,
    parts: Parts = "whole",
) -> tuple[Release, Rows]:
    """A release that measured the table of all columns, or parts of it, and the rows themselves."""
    codec = TableCodec.of(schema, unreadable=True)
    columns = tuple(codec.domain.clique(codec.domain.columns))
    rows = read_rows(open_for_comparison(table, schema), codec)
    found: list[Answer] = []
    if parts == "whole":
        found.append(_counted(codec, rows, columns, noise, rng))
    for pair in combinations(columns, 2) if parts != "whole" else ():
        found.append((_residuals if parts == "residuals" else _counted)(codec, rows, pair, noise, rng))
    for name in columns if parts == "residuals" else ():
        found.append(_counted(codec, rows, (name,), Distribution("gaussian", 4 * noise.parameter), rng))
    fitted = Fitted(codec, Transcript(found), BlockModel.uniform(codec.domain, (), 1.0))
    return dataclasses.replace(shell, schema=schema, fits=(fitted,)), rows


def _counted(
    codec: TableCodec, rows: Rows, columns: Sequence[str], noise: Distribution, rng: np.random.Generator | None
) -> Measurement:
    shape = codec.domain.shape(tuple(columns))
    flat = np.ravel_multi_index([rows.codes[name].astype(np.int64) for name in columns], shape)
    counts = np.bincount(flat, minlength=int(np.prod(shape)))
    noisy = counts if rng is None else counts + noise_of(noise, counts.size, rng)
    return Measurement(" × ".join(columns), tuple(columns), shape, noisy, noise)


def _residuals(
    codec: TableCodec, rows: Rows, columns: Sequence[str], noise: Distribution, rng: np.random.Generator | None
) -> ResidualTable:
    exact = _counted(codec, rows, columns, noise, None)
    fine = Distribution("gaussian", noise.parameter * RESIDUAL_UNIT**2)
    table = exact.table * RESIDUAL_UNIT
    if rng is not None:
        table = table + noise_of(fine, table.size, rng).reshape(table.shape)
    contrasts = table[1:, 1:] - table[1:, :1] - table[:1, 1:] + table[0, 0]
    return ResidualTable(exact.name, exact.columns, exact.shape, contrasts.ravel(), fine)


class ModelTally:
    """How often intervals held the truth, by kind of model and by what the truth is about."""

    def __init__(self) -> None:
        self.hits: dict[str, list[bool]] = defaultdict(list)
        self.models = 0

    def add(self, found: MeasuredModel, about: str, truth: dict[str, float]) -> None:
        for name, one in found.coefficients.items():
            if name in truth:
                ends = (one.table_low, one.table_high) if about == "table" else (one.low, one.high)
                tiny = 1e-6 * max(1.0, abs(truth[name]))
                self.hits[f"{found.family} {about}"].append(ends[0] - tiny <= truth[name] <= ends[1] + tiny)


def _truth(rows: Rows, found: MeasuredModel) -> dict[str, float]:
    """The coefficients of rows without the levels that the model left out."""
    codec = rows.codec
    formula = checked_formula(found.formula, found.family, codec.schema)
    kept = np.ones(rows.count, np.bool_)
    for name in (code_column(column, codec) for column in formula.columns):
        layout = codec.layout(name)
        lost = [code for code in (layout.missing_code, layout.unreadable_code) if code is not None]
        lost += [code for word in found.without.get(name, ()) for code in codec.codes_matching(name, word).tolist()]
        kept &= ~np.isin(rows.codes[name], lost)
    left = rows.take(np.flatnonzero(kept))
    fit = fit_model(model_data(formula, left, references(formula, left)), found.family)
    return {} if isinstance(fit, Unavailable) else {name: one.value for name, one in fit.estimates.items()}


def usable(schema: Schema) -> list[Column]:
    return [one for one in schema.columns if not isinstance(one, Category) or len(one.labels) <= MOST_LABELS]


def _questions(schema: Schema, rng: np.random.Generator) -> Iterator[tuple[Schema, str]]:
    """A few columns in an order, and a model of the first by the others."""
    columns = usable(schema)
    while True:
        number = int(rng.integers(2, min(4, len(columns)) + 1))
        chosen: list[Column] = [columns[place] for place in rng.choice(len(columns), number, replace=False)]
        part = Schema(tuple(chosen), Unit())
        domain = TableCodec.of(part, unreadable=True).domain
        if domain.cells(domain.clique(domain.columns)) <= MOST_CELLS and len(domain.columns) == len(chosen):
            first = chosen[0]
            event = f"[{rng.choice(first.labels)}]" if isinstance(first, Category) else ""
            yield part, f"`{first.name}`{event} ~ " + " + ".join(f"`{one.name}`" for one in chosen[1:])


def covered_models(
    tally: ModelTally, table: pa.Table, schema: Schema, samples: int, seed: int, parts: Parts = "whole"
) -> None:
    """Random models of a few columns on random samples of the table, which is the population."""
    rng, shell = np.random.default_rng(seed), release_of_simple()
    asked = _questions(schema, rng)
    for _ in range(samples):
        part, text = next(asked)
        everybody = table.select([column.name for column in part.columns])
        sample = everybody.take(rng.integers(0, table.num_rows, int(rng.choice([1_000, 5_000, 20_000]))))
        scale = Fraction(int(rng.choice([1, 4, 20])))
        laplace = rng.random() < 0.5
        noise = Distribution("laplace", scale) if laplace else Distribution("gaussian", 2 * scale**2)
        if parts == "residuals":
            noise = Distribution("gaussian", 2 * scale**2)  # as all residuals have
        release, rows = answered(shell, sample, part, noise, rng, parts)
        try:
            formula = checked_formula(text, "auto", part)
            found = measured_model(release, formula, "auto")
        except (UsageError, ResourceError):  # noise, bins or what was not measured hide it: nothing is claimed
            continue
        assert found is not None
        tally.models += 1
        tally.add(found, "table", _truth(rows, found))
        whole = read_rows(open_for_comparison(everybody, part), release.codec)
        tally.add(found, "population", _truth(whole, found))


def made_up(rows: int = 20_000) -> tuple[pa.Table, Schema]:
    """Numbers that are skewed and heaped, groups from large to tiny, and an outcome that depends on both."""
    rng = np.random.default_rng(4)
    group = rng.choice(["a", "b", "c", "d"], rows, p=[0.6, 0.3, 0.09, 0.01])
    wage = np.clip(np.round(rng.gamma(2.0, 300.0, rows), -1), 0, 3000)
    age = np.where(rng.random(rows) < 0.3, rng.integers(0, 10, rows) * 10, rng.integers(0, 100, rows))
    chance = 1 / (1 + np.exp(-(-1 + 0.02 * age + 0.8 * (group == "b"))))
    table = pa.table(
        {
            "voted": np.where(rng.random(rows) < chance, "yes", "no"),
            "group": group,
            "wage": wage + 3.0 * age,
            "age": pa.array(age, mask=rng.random(rows) < 0.1),
        }
    )
    columns = (
        Category(name="voted", labels=("no", "yes"), missing=False),
        Category(name="group", labels=("a", "b", "c", "d"), missing=False),
        Float(name="wage", lower=0.0, upper=3300.0, bins=UniformBins(30), missing=False),
        Integer(name="age", lower=0, upper=99, bins=UniformBins(20)),
    )
    return table, Schema(columns, Unit())
