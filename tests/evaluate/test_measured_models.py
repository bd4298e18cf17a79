"""Models from noisy answers: equal to a fit of the rows where there is no noise, refusals, and coverage."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from tests.evaluate.measured_tables import noise_of
from tests.real.shared_tables import FOLDER, schema_of
from tests.release.people import release_of_simple
from understudy.codec.table import TableCodec
from understudy.domain import Distribution, Measurement, Transcript
from understudy.errors import UsageError
from understudy.evaluate.measured_models import MeasuredModel, measured_model
from understudy.evaluate.metric import Rows, Unavailable, open_for_comparison, read_rows
from understudy.evaluate.pooling import PooledModel
from understudy.evaluate.regression import (
    checked_formula,
    code_column,
    fit_model,
    model_data,
    references,
)
from understudy.models.product import BlockModel
from understudy.release import Release
from understudy.release.release import Fitted
from understudy.schema import Category, Column, Float, Integer, Schema, UniformBins, Unit

NONE = Distribution("gaussian", Fraction(1, 10**12))
NOMINAL, LEAST = 0.95, 0.93
MOST_CELLS, MOST_LABELS = 6_000, 16


def _schema(bins: int = 50) -> Schema:
    return Schema(
        (
            Category(name="voted", labels=("no", "yes"), missing=False),
            Category(name="sex", labels=("F", "M"), missing=False),
            Category(name="area", labels=("north", "south", "abroad"), missing=False),
            Integer(name="age", lower=0, upper=49, bins=UniformBins(bins), missing=False),
        ),
        Unit(),
    )


def _table(rows: int = 4_000, abroad: float = 0.1) -> pa.Table:
    rng = np.random.default_rng(7)
    sex, age = rng.choice(["F", "M"], rows), rng.integers(0, 50, rows)
    area = rng.choice(["north", "south", "abroad"], rows, p=[0.6, 0.4 - abroad, abroad])
    chance = 1 / (1 + np.exp(-(-1.0 + 0.04 * age + 0.5 * (sex == "M"))))
    return pa.table({"voted": np.where(rng.random(rows) < chance, "yes", "no"), "sex": sex, "area": area, "age": age})


def _answered(
    shell: Release, table: pa.Table, schema: Schema, noise: Distribution, rng: np.random.Generator | None = None
) -> tuple[Release, Rows]:
    """A release that measured the table of all columns, and the rows themselves."""
    codec = TableCodec.of(schema, unreadable=True)
    domain = codec.domain
    columns = tuple(domain.clique(domain.columns))
    rows = read_rows(open_for_comparison(table, schema), codec)
    shape = domain.shape(columns)
    flat = np.ravel_multi_index([rows.codes[name].astype(np.int64) for name in columns], shape)
    counts = np.bincount(flat, minlength=int(np.prod(shape)))
    noisy = counts if rng is None else counts + noise_of(noise, counts.size, rng)
    answer = Measurement(" × ".join(columns), columns, shape, noisy, noise)
    fitted = Fitted(codec, Transcript([answer]), BlockModel.uniform(domain, (), 1.0))
    return dataclasses.replace(shell, schema=schema, fits=(fitted,)), rows


def _model(release: Release, formula: str) -> MeasuredModel:
    found = us.pool(release, formula=formula)
    assert isinstance(found, MeasuredModel)
    return found


@pytest.mark.parametrize("text", ["voted ~ age + sex", "age ~ sex + voted", "voted ~ sex * age", "age ~ sex:voted"])
def test_without_noise_it_is_the_fit_of_the_rows(plain_release: Release, text: str) -> None:
    """Bins of one value each: nothing is lost, so estimates agree, and errors up to how variances are estimated."""
    release, rows = _answered(plain_release, _table(), _schema(), NONE)
    found = _model(release, text)
    formula = checked_formula(text, "auto", release.schema)
    fit = fit_model(model_data(formula, rows, references(formula, rows)), found.family)
    assert not isinstance(fit, Unavailable)
    assert list(found.coefficients) == list(fit.estimates)
    for name, one in found.coefficients.items():
        known = fit.estimates[name]
        assert one.estimate == pytest.approx(known.value, abs=1e-6)
        assert one.sampling_variance**0.5 == pytest.approx(known.error, rel=0.1)
        assert one.within_bins == pytest.approx(0.0, abs=1e-9)
        assert one.table_high - one.table_low < 1e-3
        assert (one.low, one.high) == (one.population_low, one.population_high)


def test_wide_bins_widen_a_coefficient_until_it_is_refused(plain_release: Release) -> None:
    found = _model(_answered(plain_release, _table(), _schema(25), NONE)[0], "voted ~ age")
    wide = _model(_answered(plain_release, _table(), _schema(10), NONE)[0], "voted ~ age")
    slopes = [one.coefficients["age"] for one in (found, wide)]
    assert 0 < slopes[0].within_bins < slopes[1].within_bins
    exact = _model(_answered(plain_release, _table(), _schema(), NONE)[0], "voted ~ age").coefficients["age"]
    assert all(one.table_low < exact.estimate < one.table_high for one in slopes)
    with pytest.raises(UsageError, match="bins of its numbers are too wide"):
        _model(_answered(plain_release, _table(), _schema(3), NONE)[0], "voted ~ age")


def test_an_outcome_moves_by_half_a_bin_at_most(plain_release: Release) -> None:
    found = _model(_answered(plain_release, _table(), _schema(5), NONE)[0], "age ~ sex")
    assert found.coefficients["(intercept)"].within_bins == pytest.approx(4.5)
    assert found.coefficients["sex=M"].within_bins == pytest.approx(9.0)


def test_levels_that_noise_may_have_made_are_left_out_and_named(plain_release: Release) -> None:
    rng = np.random.default_rng(2)
    noise = Distribution("gaussian", Fraction(4))
    release, _ = _answered(plain_release, _table(abroad=0.0), _schema(10), noise, rng)
    found = _model(release, "age ~ area")
    assert set(found.without["area"]) >= {"abroad"}
    assert "area=abroad" not in found.coefficients
    assert any("Left out" in note and "abroad" in note for note in found.notes)
    assert found.question == "voted × sex × area × age"


def test_what_the_noise_hides_is_refused(plain_release: Release) -> None:
    noise = Distribution("gaussian", Fraction(10**6))
    release, _ = _answered(plain_release, _table(), _schema(10), noise, np.random.default_rng(3))
    with pytest.raises(UsageError, match="the noise is larger than the counts"):
        _model(release, "voted ~ sex")


def test_noise_widens_the_interval_for_the_table(plain_release: Release) -> None:
    """The error over 200 draws of noise is the one that is told."""
    rng, table, noise = np.random.default_rng(4), _table(), Distribution("gaussian", Fraction(25))
    found = [
        _model(_answered(plain_release, table, _schema(10), noise, rng)[0], "voted ~ sex").coefficients["sex=M"]
        for _ in range(200)
    ]
    told = float(np.mean([one.privacy_variance for one in found]))
    assert np.var([one.estimate for one in found]) == pytest.approx(told, rel=0.35)


def test_negative_counts_are_not_cut_off(plain_release: Release) -> None:
    """By hand: the means of two groups, in which an empty cell came out below 0."""
    schema = Schema(
        (
            Category(name="sex", labels=("F", "M"), missing=False),
            Integer(name="age", lower=0, upper=2, bins=UniformBins(3), missing=False),
        ),
        Unit(),
    )
    codec = TableCodec.of(schema, unreadable=False)
    counts = np.array([[200, -30, 100], [50, 100, 150]])
    answer = Measurement("sex × age", ("sex", "age"), (2, 3), counts.ravel(), Distribution("gaussian", Fraction(4)))
    fitted = Fitted(codec, Transcript([answer]), BlockModel.uniform(codec.domain, (), 1.0))
    found = _model(dataclasses.replace(plain_release, schema=schema, fits=(fitted,)), "age ~ sex")
    means = counts @ np.arange(3) / counts.sum(axis=1)
    assert found.coefficients["(intercept)"].estimate == pytest.approx(means[0])
    assert found.coefficients["sex=M"].estimate == pytest.approx(means[1] - means[0])
    # A row of the first group moves its mean by (age − mean)/rows, and noise of variance 4 lies on each of its cells.
    moved = (np.arange(3) - means[0]) / counts[0].sum()
    assert found.coefficients["(intercept)"].privacy_variance == pytest.approx(4 * float((moved**2).sum()))


def test_firth_and_columns_apart_are_left_to_copies(plain_release: Release) -> None:
    release, _ = _answered(plain_release, _table(), _schema(10), NONE)
    with pytest.raises(UsageError, match="single copy"):
        us.pool(release, formula="voted ~ sex", family="firth")
    copies = release_of_simple(method="independent", options={}, copies=2, copies_mode="remeasure", epsilon=20.0)
    assert isinstance(us.pool(copies, formula="age ~ sex"), PooledModel)


# Coverage: random models on random samples of a table, with noise of known size.


class _Tally:
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


def _usable(schema: Schema) -> list[Column]:
    return [one for one in schema.columns if not isinstance(one, Category) or len(one.labels) <= MOST_LABELS]


def _questions(schema: Schema, rng: np.random.Generator) -> Iterator[tuple[Schema, str]]:
    """A few columns in an order, and a model of the first by the others."""
    usable = _usable(schema)
    while True:
        number = int(rng.integers(2, min(4, len(usable)) + 1))
        chosen: list[Column] = [usable[place] for place in rng.choice(len(usable), number, replace=False)]
        part = Schema(tuple(chosen), Unit())
        domain = TableCodec.of(part, unreadable=True).domain
        if domain.cells(domain.clique(domain.columns)) <= MOST_CELLS and len(domain.columns) == len(chosen):
            first = chosen[0]
            event = f"[{rng.choice(first.labels)}]" if isinstance(first, Category) else ""
            yield part, f"`{first.name}`{event} ~ " + " + ".join(f"`{one.name}`" for one in chosen[1:])


def _covered(tally: _Tally, table: pa.Table, schema: Schema, samples: int, seed: int) -> None:
    rng, shell = np.random.default_rng(seed), release_of_simple()
    asked = _questions(schema, rng)
    for _ in range(samples):
        part, text = next(asked)
        everybody = table.select([column.name for column in part.columns])
        sample = everybody.take(rng.integers(0, table.num_rows, int(rng.choice([1_000, 5_000, 20_000]))))
        scale = Fraction(int(rng.choice([1, 4, 20])))
        laplace = rng.random() < 0.5
        noise = Distribution("laplace", scale) if laplace else Distribution("gaussian", 2 * scale**2)
        release, rows = _answered(shell, sample, part, noise, rng)
        try:
            formula = checked_formula(text, "auto", part)
            found = measured_model(release, formula, "auto")
        except UsageError:  # the noise or the bins hide it: nothing is claimed
            continue
        assert found is not None
        tally.models += 1
        tally.add(found, "table", _truth(rows, found))
        whole = read_rows(open_for_comparison(everybody, part), release.codec)
        tally.add(found, "population", _truth(whole, found))


def _made_up(rows: int = 20_000) -> tuple[pa.Table, Schema]:
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


def _all_cover(tally: _Tally, least: int) -> None:
    """Every kind of interval holds the truth in 93 % of the cases, which are enough to tell."""
    assert len(tally.hits) == 4
    for kind, held in tally.hits.items():
        assert len(held) >= least, kind
        assert float(np.mean(held)) >= LEAST, (kind, float(np.mean(held)), len(held))


def test_intervals_hold_the_truth_of_a_made_up_table() -> None:
    tally = _Tally()
    _covered(tally, *_made_up(), samples=100, seed=9)
    assert tally.models >= 40
    _all_cover(tally, least=40)


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="the shared tables are not here")
def test_intervals_hold_the_truth_of_real_tables() -> None:
    tally = _Tally()
    for path in sorted(FOLDER.glob("*/domain.json")):
        name = path.parent.name
        if (path.parent / "data.parquet").is_file() and len(_usable(schema_of(name))) > 1:
            table = pq.read_table(path.parent / "data.parquet")
            _covered(tally, table, schema_of(name), samples=40, seed=9)
    assert tally.models >= 200
    _all_cover(tally, least=100)
