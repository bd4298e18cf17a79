"""Tests of `understudy.methods.method`."""

import time
import tracemalloc
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.methods.door import door, epsilon, letters, rho
from tests.methods.door import rows_of as table_of
from understudy.domain import Distribution, Domain
from understudy.methods import rounds as measured
from understudy.methods.aim import Aim
from understudy.methods.method import (
    _CANDIDATE_CELLS_PER_SECOND,
    _COLUMN_STEP_SECONDS,
    _MODEL_CELLS_PER_SECOND,
    _TABLE_SECONDS,
    KEPT_ROWS_BYTES,
    PublicFacts,
    Rounds,
    expected_absolute,
    noisy_step,
    pass_probability,
    raked_cells,
    seconds_for,
    seconds_of_rounds,
    with_rows,
)
from understudy.methods.mst import Mst
from understudy.methods.mwem import Mwem
from understudy.models.junction_tree import GraphicalSize
from understudy.testing.doubles import SeededRandomizer


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1), Fraction(5), Fraction(400, 3)])
def test_laplace_numbers_agree_with_summation(scale):
    distribution = Distribution("laplace", scale)
    reach = np.arange(-20_000, 20_001)
    weights = np.exp(-np.abs(reach) / float(scale))
    weights /= weights.sum()
    assert expected_absolute(distribution) == pytest.approx((np.abs(reach) * weights).sum(), rel=1e-6)
    for threshold in (1, 3, 40):
        assert pass_probability(distribution, threshold) == pytest.approx(
            weights[reach >= threshold].sum(), rel=1e-6, abs=1e-80
        )


def test_tiny_and_huge_scales_do_not_overflow():
    assert expected_absolute(Distribution("laplace", Fraction(1, 10**6))) == 0.0
    assert pass_probability(Distribution("laplace", Fraction(1, 10**6)), 1) == 0.0
    assert expected_absolute(Distribution("laplace", Fraction(10**12))) == pytest.approx(1e12)


def test_a_step_states_the_noise_it_buys():
    step = noisy_step("measure x", epsilon(0.5), 10, unit_rows=2)
    assert step.noise_scale == pytest.approx(4.0)
    step = noisy_step("measure x", rho(0.5), 10, unit_rows=2)
    assert step.noise_scale == pytest.approx(2.0)
    assert step.expected_error == pytest.approx(2.0 * np.sqrt(2 / np.pi))


def test_more_rows_and_cells_take_longer():
    facts = PublicFacts(Domain.of({"a": 2}), (), 1, rows_hint=10)
    more = PublicFacts(Domain.of({"a": 2}), (), 1, rows_hint=10**8)
    assert seconds_for(facts, 10, 1) < seconds_for(more, 10, 1) < seconds_for(more, 10**9, 1)


SIZES = {f"c{place}": size for place, size in enumerate((2, 3, 4, 6, 8, 12, 16, 5, 7, 9))}
ROWS = 5_000


def generated(seed=0):
    """Columns that follow four hidden classes."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 4, ROWS)
    return {
        name: np.where(rng.random(ROWS) < 0.6, hidden * size // 4, rng.integers(0, size, ROWS))
        for name, size in SIZES.items()
    }


TABLE = table_of(generated())
CODES = letters(SIZES)
FACTS = PublicFacts(Domain.of(SIZES), (), 1, rows_hint=ROWS)
METHODS = [Aim(), Mwem(), Mst(), Aim(workload="triples")]


def work_of(method, cost, monkeypatch):
    """Seconds by the work that a run really did: candidates scored, and steps allowed times cells of the model."""
    spent = []
    fit, expected = measured.fit, measured.Measured.expected  # type: ignore[attr-defined]

    def fit_and_count(domain, tables, structural_zeros, **named):
        cells = GraphicalSize.of(domain, [table.clique for table in tables]).cells
        step = len(domain.columns) * _COLUMN_STEP_SECONDS + cells / _MODEL_CELLS_PER_SECOND
        spent.append(named["steps"] * step)
        return fit(domain, tables, structural_zeros, **named)

    def expect_and_count(self, cliques):
        queries = list(cliques)
        cells = sum(map(self.domain.cells, queries))
        spent.append(len(queries) * _TABLE_SECONDS + cells / _CANDIDATE_CELLS_PER_SECOND)
        return expected(self, queries)

    monkeypatch.setattr(measured, "fit", fit_and_count)
    monkeypatch.setattr(measured.Measured, "expected", expect_and_count)
    method.fit(door(TABLE, CODES, cost, SeededRandomizer(1)), cost)
    return sum(spent)


NAMED = [pytest.param(method, id=name) for name, method in zip(("aim", "mwem", "mst"), METHODS, strict=False)]
TRIPLES = pytest.param(METHODS[3], id="aim triples", marks=pytest.mark.slow)  # the way of aim, with more candidates


@pytest.mark.parametrize("granted", [0.001, 0.05, 2.0])
@pytest.mark.parametrize("method", [*NAMED[:2], TRIPLES])
def test_forecast_of_rounds_agrees_with_the_work_that_was_done(method, granted, monkeypatch):
    planned = method.plan(FACTS, rho(granted)).seconds
    done = seconds_for(FACTS, 0) + work_of(method, rho(granted), monkeypatch)
    assert 1 / 8 < planned / done < 8


@pytest.mark.parametrize("method", [*NAMED, TRIPLES])
def test_forecast_is_not_a_hundred_times_off(method):
    """Wide, since processors and their load differ; forecasts from the limit of bytes alone were off by 200."""
    cost = rho(0.05)
    method.fit(door(TABLE, CODES, cost), cost)  # loads kernels
    start = time.process_time()
    method.fit(door(TABLE, CODES, cost), cost)
    assert 1 / 40 < method.plan(FACTS, cost).seconds / (time.process_time() - start) < 40


def test_raking_takes_a_pass_for_every_two_columns():
    assert raked_cells(FACTS, 100, "summed") == 100
    assert raked_cells(FACTS, 100, "raked") == 600


def test_a_span_says_both_ends():
    rounds = Rounds(2, 20, 50, 5_000, 100, 10**6, 50.0, (300, 50, 300))
    span = seconds_of_rounds(FACTS, rounds)
    assert span.least < span.likely < span.most
    assert rounds.first_cells < span.cells <= rounds.most_cells


@pytest.mark.parametrize("method", [Aim(), Mwem(), Aim(workload="triples")], ids=["aim", "mwem", "aim triples"])
def test_the_time_of_a_plan_lies_within_its_span(method):
    """Reading and writing rows are in all three."""
    for granted in (0.001, 0.05, 2.0):
        made = with_rows(method.plan(FACTS, rho(granted)), FACTS)
        assert made.span is not None
        assert made.span[0] <= made.seconds <= made.span[1]
        assert made.span[0] > with_rows(replace(made, seconds=0.0, span=None), FACTS).seconds


def test_what_noisy_answers_may_add_to_memory_is_in_the_limit_alone():
    """Few rows and much noise: the model is expected to stay small, and yet may grow to what it is allowed."""
    made = with_rows(Aim().plan(FACTS, rho(0.001)), FACTS)
    assert made.bytes < made.limit_bytes / 2
    assert made.limit_bytes > Aim().model_bytes * measured.WORKING_TABLES
    assert with_rows(Mst().plan(FACTS, rho(0.001)), FACTS).most_bytes == 0


def test_rounds_are_likely_as_many_as_the_rows_carry():
    """Little noise: all of them. Much: the fewest. In between: somewhere in between."""
    spans = [
        seconds_of_rounds(FACTS, Rounds(2, 20, 50, 5_000, 100, 10**4, noise, (300, 50, 300)))
        for noise in (0.1, 60.0, 10_000.0)
    ]
    assert spans[0].most / 2 < spans[0].likely < spans[0].most
    assert spans[1].least < spans[1].likely < spans[1].most
    assert spans[2].likely < 1.2 * spans[2].least


WIDE = PublicFacts(Domain.of({f"c{place}": 10 for place in range(200)}), (), 1, rows_hint=10**6)


def test_rows_cost_memory_up_to_a_piece_and_time_without_end():
    body = Mst().plan(WIDE, rho(0.05))
    many = with_rows(body, replace(WIDE, rows_hint=10**8))
    whole = with_rows(body, WIDE)
    assert whole.bytes - body.bytes > 200 * 2**18 * 8  # codes of a piece of new rows alone
    assert whole.bytes <= many.bytes <= whole.bytes + KEPT_ROWS_BYTES
    assert many.seconds - body.seconds > 90 * (whole.seconds - body.seconds)


def test_counting_all_pairs_is_in_the_memory_of_a_plan():
    """19,900 arrays of 100 cells, exact and expected, and the larger tables they are summed from."""
    assert Mst().plan(WIDE, rho(0.05)).bytes > 19_900 * 100 * 24 + 19_900 * 500


def test_much_noise_keeps_the_model_small():
    ends = [
        seconds_of_rounds(FACTS, Rounds(2, 60, 50, 5_000, 100, 10**6, noise, (300, 50, 300))).most
        for noise in (0.0, 100.0, 10_000.0)
    ]
    assert ends[0] > 5 * ends[1] > 5 * ends[2]


@pytest.mark.parametrize("method", [*NAMED, TRIPLES])
def test_a_run_allocates_no_more_than_its_plan_says(method):
    """With little noise the model grows; arrays are traced, the curator's own counts among them."""
    cost = rho(2.0)
    curator = door(TABLE, CODES, cost)
    tracemalloc.start()
    try:
        method.fit(curator, cost)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken <= method.plan(FACTS, cost).limit_bytes + 2**23
