"""Models from noisy answers: equal to a fit of the rows where there is no noise, refusals, and coverage."""

import dataclasses
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from tests.evaluate.model_tables import ModelTally, answered, covered_models, made_up, usable
from tests.real.shared_tables import FOLDER, schema_of
from tests.release.people import release_of_simple
from understudy.codec.table import TableCodec
from understudy.domain import Distribution, Measurement, Transcript
from understudy.errors import UsageError
from understudy.evaluate.measured_models import MeasuredModel
from understudy.evaluate.metric import Unavailable
from understudy.evaluate.pooling import PooledModel
from understudy.evaluate.regression import (
    checked_formula,
    fit_model,
    model_data,
    references,
)
from understudy.models.product import BlockModel
from understudy.release import Release
from understudy.release.release import Fitted
from understudy.schema import Category, Integer, Schema, UniformBins, Unit

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


def _model(release: Release, formula: str) -> MeasuredModel:
    found = us.pool(release, formula=formula)
    assert isinstance(found, MeasuredModel)
    return found


@pytest.mark.parametrize("text", ["voted ~ age + sex", "age ~ sex + voted", "voted ~ sex * age", "age ~ sex:voted"])
def test_without_noise_it_is_the_fit_of_the_rows(plain_release: Release, text: str) -> None:
    """Bins of one value each: nothing is lost, so estimates agree, and errors up to how variances are estimated."""
    release, rows = answered(plain_release, _table(), _schema(), NONE)
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
    found = _model(answered(plain_release, _table(), _schema(25), NONE)[0], "voted ~ age")
    wide = _model(answered(plain_release, _table(), _schema(10), NONE)[0], "voted ~ age")
    slopes = [one.coefficients["age"] for one in (found, wide)]
    assert 0 < slopes[0].within_bins < slopes[1].within_bins
    exact = _model(answered(plain_release, _table(), _schema(), NONE)[0], "voted ~ age").coefficients["age"]
    assert all(one.table_low < exact.estimate < one.table_high for one in slopes)
    with pytest.raises(UsageError, match="bins of its numbers are too wide"):
        _model(answered(plain_release, _table(), _schema(3), NONE)[0], "voted ~ age")


def test_an_outcome_moves_by_half_a_bin_at_most(plain_release: Release) -> None:
    found = _model(answered(plain_release, _table(), _schema(5), NONE)[0], "age ~ sex")
    assert found.coefficients["(intercept)"].within_bins == pytest.approx(4.5)
    assert found.coefficients["sex=M"].within_bins == pytest.approx(9.0)


def test_levels_that_noise_may_have_made_are_left_out_and_named(plain_release: Release) -> None:
    rng = np.random.default_rng(2)
    noise = Distribution("gaussian", Fraction(4))
    release, _ = answered(plain_release, _table(abroad=0.0), _schema(10), noise, rng)
    found = _model(release, "age ~ area")
    assert set(found.without["area"]) >= {"abroad"}
    assert "area=abroad" not in found.coefficients
    assert any("Left out" in note and "abroad" in note for note in found.notes)
    assert found.question == "voted × sex × area × age"


def test_what_the_noise_hides_is_refused(plain_release: Release) -> None:
    noise = Distribution("gaussian", Fraction(10**6))
    release, _ = answered(plain_release, _table(), _schema(10), noise, np.random.default_rng(3))
    with pytest.raises(UsageError, match="the noise is larger than the counts"):
        _model(release, "voted ~ sex")


def test_noise_widens_the_interval_for_the_table(plain_release: Release) -> None:
    """The error over 200 draws of noise is the one that is told."""
    rng, table, noise = np.random.default_rng(4), _table(), Distribution("gaussian", Fraction(25))
    found = [
        _model(answered(plain_release, table, _schema(10), noise, rng)[0], "voted ~ sex").coefficients["sex=M"]
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
    release, _ = answered(plain_release, _table(), _schema(10), NONE)
    with pytest.raises(UsageError, match="Firth's penalty needs rows"):
        us.pool(release, formula="voted ~ sex", family="firth")
    copies = release_of_simple(method="independent", options={}, copies=2, copies_mode="remeasure", epsilon=20.0)
    assert isinstance(us.pool(copies, formula="age ~ sex", from_copies=True), PooledModel)
    assert isinstance(us.pool(copies, formula="voted ~ sex", family="firth", from_copies=True), PooledModel)


# Coverage: random models on random samples of a table, with noise of known size.


def _all_cover(tally: ModelTally, least: int) -> None:
    """Every kind of interval holds the truth in 93 % of the cases, which are enough to tell."""
    assert len(tally.hits) == 4
    for kind, held in tally.hits.items():
        assert len(held) >= least, kind
        assert float(np.mean(held)) >= LEAST, (kind, float(np.mean(held)), len(held))


def test_intervals_hold_the_truth_of_a_made_up_table() -> None:
    tally = ModelTally()
    covered_models(tally, *made_up(), samples=100, seed=9)
    assert tally.models >= 40
    _all_cover(tally, least=40)


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason="the shared tables are not here")
def test_intervals_hold_the_truth_of_real_tables() -> None:
    tally = ModelTally()
    for path in sorted(FOLDER.glob("*/domain.json")):
        name = path.parent.name
        if (path.parent / "data.parquet").is_file() and len(usable(schema_of(name))) > 1:
            table = pq.read_table(path.parent / "data.parquet")
            covered_models(tally, table, schema_of(name), samples=40, seed=9)
    assert tally.models >= 200
    _all_cover(tally, least=100)
