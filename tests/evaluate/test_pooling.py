"""Tests of `understudy.evaluate.pooling`."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import understudy as us
from tests.release.people import people, release_of_simple, simple
from understudy.codec.table import TableCodec
from understudy.domain import Distribution, Measurement, Transcript
from understudy.errors import UsageError
from understudy.evaluate.measured import MeasuredNumber, measured_share
from understudy.evaluate.pooling import PooledModel
from understudy.evaluate.pooling_rules import Pooled, PooledTest, pool_liu
from understudy.release.release import Release
from understudy.release.wording import Odd
from understudy.schema import Unit

# pool: numbers, models and shares; copies that share their noise are refused.


@pytest.fixture(scope="module")
def renewed() -> Release:
    """Three copies, each measured anew, in which no table holds two columns."""
    return release_of_simple(method="independent", options={}, copies=3, copies_mode="remeasure", epsilon=30.0)


def test_numbers() -> None:
    assert us.pool([0.1, 0.2], [0.01, 0.01], rule="liu") == pool_liu([0.1, 0.2], [0.01, 0.01])
    found = us.pool([5.0, 7.0], rule="chi2", degrees=3)
    assert isinstance(found, PooledTest)
    assert isinstance(us.pool([0.5, 0.3], rule="p_values", degrees=3), PooledTest)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "variance of each"),
        ({"rule": "chi2"}, "degrees"),
        ({"rule": "rubin"}, "is not known"),
        ({"variances": [1.0, 1.0], "copies_mode": "resample"}, "share its privacy noise"),
    ],
)
def test_refusals(settings: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        us.pool([0.1, 0.2], **settings)  # type: ignore[arg-type]


def test_models_are_pooled_over_copies(renewed: Release) -> None:
    found = us.pool(renewed, formula="age ~ sex + voted", from_copies=True)
    assert isinstance(found, PooledModel)
    assert found.family == "linear"
    assert list(found.coefficients) == ["(intercept)", "sex=M", "voted=true"]
    pooled = found.coefficients["sex=M"]
    assert isinstance(pooled, Pooled)
    assert pooled.copies == 3
    assert pooled.low - 2 < 0 < pooled.high + 2, "columns drawn independently"
    assert "neither what the method's model leaves out" in found.notes[-1]
    with pytest.raises(UsageError, match="never measured together: sex with age; sex with voted; age with voted"):
        us.pool(renewed, formula="age ~ sex + voted")
    with pytest.raises(UsageError, match="is about a formula"):
        us.pool(renewed, where={"sex": "F"}, from_copies=True)
    assert isinstance(us.pool(renewed, where={"sex": "F"}), MeasuredNumber)


def test_logistic_models_too(renewed: Release) -> None:
    found = us.pool(renewed, formula="voted ~ age", from_copies=True)
    assert isinstance(found, PooledModel)
    assert found.family == "logistic"


def test_more_synthetic_rows_know_no_more_about_the_population(renewed: Release) -> None:
    """Ten times the rows of the table must not make the interval as short as a table of that size would."""
    long = release_of_simple(
        method="independent", options={}, copies=3, copies_mode="remeasure", epsilon=30.0, rows=6000
    )
    found = [us.pool(one, formula="age ~ sex", from_copies=True).coefficients["sex=M"] for one in (renewed, long)]  # type: ignore[union-attr]
    assert found[1].within == pytest.approx(found[0].within, rel=0.2)  # type: ignore[union-attr]


def test_copies_of_one_model_are_refused() -> None:
    with pytest.raises(UsageError, match="single copy"):
        us.pool(release_of_simple(method="independent", options={}), formula="age ~ sex", from_copies=True)
    shared = release_of_simple(method="independent", options={}, copies=2, copies_mode="resample")
    with pytest.raises(UsageError, match="share its privacy noise"):
        us.pool(shared, formula="age ~ sex", from_copies=True)


def test_a_release_needs_one_question(plain_release: Release) -> None:
    for settings in ({}, {"formula": "age ~ sex", "where": {"sex": "F"}}):
        with pytest.raises(UsageError, match="either a formula or a condition"):
            us.pool(plain_release, **settings)  # type: ignore[arg-type]


# Shares from noisy answers: estimates, coverage that includes the noise, and refusals.


# Two codes a column, so that variances can be worked out by hand: none for what cannot be read.
CODEC = TableCodec.of(simple(), unreadable=False)


def _answers(release: Release, *measurements: Measurement) -> Release:
    answered = dataclasses.replace(release.fits[0], codec=CODEC, transcript=Transcript(list(measurements)))
    return dataclasses.replace(release, fits=(answered,))


def _noisy(distribution: Distribution, counts: list[int], rng: np.random.Generator) -> Measurement:
    exact = np.asarray(counts)
    if distribution.kind == "laplace":
        decay = np.exp(-1 / distribution.scale)
        noise = rng.geometric(1 - decay, len(exact)) - rng.geometric(1 - decay, len(exact))
    else:
        noise = np.rint(rng.normal(0, distribution.scale, len(exact))).astype(np.int64)
    return Measurement("sex", ("sex",), (2,), exact + noise, distribution)


def test_share_of_a_real_release(plain_release: Release) -> None:
    found = measured_share(plain_release, {"sex": "F"})
    # Real noise: its standard deviation is 0.002 here, so this fails less than once in 10²⁰ runs. Coverage: see below.
    assert found.estimate == pytest.approx((people()["sex"] == "F").mean(), abs=0.1)
    assert found.table_low < found.estimate < found.table_high
    assert found.population_low < found.table_low
    assert found.population_high > found.table_high
    assert found.runs == 1


def test_variance_by_hand(plain_release: Release) -> None:
    distribution = Distribution("gaussian", Fraction(100))
    release = _answers(plain_release, Measurement("sex", ("sex",), (2,), np.array([300, 700]), distribution))
    found = measured_share(release, {"sex": "F"})
    assert found.estimate == pytest.approx(0.3)
    assert found.privacy_variance == pytest.approx(100 * (0.49 + 0.09) / 1000**2)
    assert found.sampling_variance == pytest.approx(0.21 / 1000)
    half = 1.96 * np.sqrt(found.privacy_variance)
    assert (found.table_low, found.table_high) == pytest.approx((0.3 - half, 0.3 + half), rel=0.01)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_coverage_includes_the_noise(plain_release: Release, kind: str) -> None:
    distribution = (
        Distribution("laplace", Fraction(20)) if kind == "laplace" else Distribution("gaussian", Fraction(800))
    )
    rng = np.random.default_rng(3)
    hits = naive = 0
    for _ in range(150):
        counts = rng.multinomial(1000, [0.3, 0.7]).tolist()
        found = measured_share(_answers(plain_release, _noisy(distribution, counts, rng)), {"sex": "F"})
        hits += found.population_low <= 0.3 <= found.population_high
        naive += abs(found.estimate - 0.3) <= 1.96 * np.sqrt(found.sampling_variance)
    assert hits >= 135  # 95 % of 150 is 142.5; fewer than 135 has a chance below 0.3 %
    assert naive < hits - 10  # forgetting the noise shows


def test_runs_are_averaged(plain_release: Release) -> None:
    distribution = Distribution("gaussian", Fraction(100))
    fits = []  # type: ignore[var-annotated]
    for count in (300, 320):
        answer = Measurement("sex", ("sex",), (2,), np.array([count, 1000 - count]), distribution)
        fits += _answers(plain_release, answer).fits
    found = measured_share(dataclasses.replace(plain_release, fits=tuple(fits)), {"sex": "F"})
    assert found.estimate == pytest.approx(0.31)
    assert found.privacy_variance == pytest.approx(100 * (0.69**2 + 0.31**2) / 1000**2 / 2)
    assert found.sampling_variance == pytest.approx(0.31 * 0.69 / 1000)


def test_tables_are_averaged_by_precision(plain_release: Release) -> None:
    noise = Distribution("gaussian", Fraction(1))
    pair = Measurement("sex × voted", ("sex", "voted"), (2, 2), np.full(4, 250), noise)
    single = Measurement("sex", ("sex",), (2,), np.array([490, 510]), Distribution("gaussian", Fraction(9)))
    release = _answers(plain_release, single, pair)
    found = measured_share(release, {"sex": "F"})
    assert found.question == "sex; sex × voted"
    assert found.estimate == pytest.approx((490 / 9 + 500 / 2) / (1000 * (1 / 9 + 1 / 2)))
    assert measured_share(release, {"sex": "F", "voted": "true"}).estimate == pytest.approx(0.25)


def test_a_partition_is_never_taken_for_a_table(plain_release: Release) -> None:
    leaves = Measurement("leaves", ("sex",), (2,), np.array([490, 510]), Distribution("gaussian", Fraction(9)))
    with pytest.raises(UsageError, match="no released table"):
        measured_share(_answers(plain_release, leaves), {"sex": "F"})


def test_shares_refusals(plain_release: Release) -> None:
    only = _answers(
        plain_release, Measurement("sex", ("sex",), (2,), np.array([5, 7]), Distribution("gaussian", Fraction(1)))
    )
    with pytest.raises(UsageError, match="no released table holds these columns"):
        measured_share(only, {"sex": "F", "voted": "true"})
    with pytest.raises(UsageError, match="matches no code"):
        measured_share(only, {"sex": "X"})
    with pytest.raises(UsageError, match="needs a condition"):
        measured_share(only, {})
    with pytest.raises(UsageError, match="level"):
        measured_share(only, {"sex": "F"}, level=2.0)
    drowned = _answers(
        plain_release, Measurement("sex", ("sex",), (2,), np.array([5, -7]), Distribution("gaussian", Fraction(1)))
    )
    with pytest.raises(UsageError, match="noise is larger"):
        measured_share(drowned, {"sex": "F"})


def test_units_are_told() -> None:
    frame = people()
    frame["person"] = np.arange(len(frame)) // 2
    schema = dataclasses.replace(simple(), unit=Unit(column="person", rows=2))
    from understudy.synthesizer import synthesize

    release = synthesize(frame, schema, method="laplace", epsilon=2.0, seed=5)
    assert "Up to 2 rows" in measured_share(release, {"sex": "F"}).notes[0]


@pytest.mark.parametrize("text", ["0..25", "5"])
def test_a_share_of_part_of_a_bin_is_refused(full_release: Release, text: str) -> None:
    """It would be answered for whole bins, with an interval that need not hold the truth."""
    with pytest.raises(UsageError, match=r'ask for "0\.\.19"'):
        measured_share(full_release, {"age": text})
    assert measured_share(full_release, {"age": "0..19"}).question == "age"


def test_a_share_repeats_what_could_not_be_read_of_its_column(full_release: Release) -> None:
    odd = Odd("age", "unreadable", 0.25, labelled=False)
    statement = dataclasses.replace(full_release.statement, odd=(odd,))
    told = dataclasses.replace(full_release, statement=statement)
    assert odd.text in measured_share(told, {"age": "0..19"}).notes
    assert odd.text not in measured_share(told, {"sex": "F"}).notes
