"""Expected gain: scatter by its definition, gains by hand, tickets where they mend most."""

import math

import numpy as np
import pytest

from understudy.methods.expected_gain import CellGain, expected_scatter, scatter_beyond, tickets


@pytest.mark.parametrize("mean", [0.0, 0.3, 1.0, 4.7, 60.0])
def test_scatter_is_the_mean_distance_of_a_poisson_count(mean):
    counts = range(400)
    chances = [math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) if mean else float(k == 0) for k in counts]
    wanted = sum(chance * abs(k - mean) for k, chance in zip(counts, chances, strict=True))
    assert float(expected_scatter(np.array([mean]))[0]) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("mean", "floor"), [(0.01, 0.5), (0.3, 2.0), (3.0, 0.0), (12.5, 1.3), (7.0, 3.0), (50.0, 10.0)]
)
def test_scatter_beyond_a_floor_is_that_of_poisson_counts(mean, floor):
    chances = [math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(400)]
    wanted = sum(chance * max(abs(k - mean) - floor, 0.0) for k, chance in enumerate(chances))
    assert scatter_beyond(np.array([mean]), floor) == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    many = np.full(5000, mean) * np.linspace(0.999, 1.001, 5000)
    assert scatter_beyond(many, floor) == pytest.approx(5000 * wanted, rel=0.02)


def test_gain_by_hand():
    gain = CellGain.of(np.array([[100.0, 300.0], [500.0, 100.0]]), 100.0, 1000.0, 0.5)
    # A fifth of every cell is wrong: 20, 60, 100, 20. Noise of scale 60 takes 30 of each; scatter is below it.
    assert gain.at(60.0) == pytest.approx(30.0 + 70.0)
    assert gain.at(1e9) == 0.0
    scatter = float(expected_scatter(np.array([100.0, 300.0, 500.0, 100.0])).sum())
    assert gain.at(1e-9) == pytest.approx(200.0 + scatter)


def test_gain_by_hand_where_rows_must_come_together():
    """Three quarters are wrong: a quarter of each cell has three times its rows too many, the rest all of them."""
    gain = CellGain.of(np.array([400.0, 600.0]), 750.0, 1000.0, 1.0)
    # Noise of scale 500 is above the scatter and takes as much of 1,200 and 1,800, and of 400 and 600.
    assert gain.at(500.0) == pytest.approx(0.25 * (700.0 + 1300.0) + 0.75 * 100.0)
    scatter = float(expected_scatter(np.array([400.0, 600.0])).sum())
    assert gain.at(1e-9) == pytest.approx(1500.0 + scatter), "rows too many and rows too few"


def test_below_half_of_the_rows_both_formulas_are_one():
    below, above = (
        CellGain.of(np.array([400.0, 600.0]), 500.0 + step, 1000.0, 1.0).at(300.0) for step in (-1e-6, 1e-6)
    )
    assert below == pytest.approx(above)


def test_gain_of_a_column_each_code_of_which_goes_with_one_other():
    counts = np.array([100.0, 300.0, 50.0])
    # A score of 240 beyond 3 times a noise of 20: 2 · (0.6 · 300 − 60) = 240.
    gain = CellGain.concentrated(counts, 240.0, 20.0, 3.0, 1.0)
    assert gain.at(20.0) == pytest.approx(240.0, rel=1e-6)
    assert gain.at(10.0) == pytest.approx(2.0 * (30.0 + 150.0), rel=1e-6)
    assert CellGain.concentrated(counts, 240.0, 20.0, 3.0, 4.0).at(20.0) == pytest.approx(960.0, rel=1e-6)


def test_tickets_go_where_more_is_wrong():
    gains = [CellGain.of(np.full(10, 100.0), excess, 1000.0, 0.3) for excess in (300.0, 60.0, 0.0)]
    # Of pair 0 a cell lacks 60 rows, of pair 1 it lacks 12: noise takes less than that from 26 tickets on.
    assert tickets(gains, 20, 200.0, np.zeros(3)).tolist() == [20, 0, 0]
    many = tickets(gains, 400, 200.0, np.zeros(3))
    assert many[0] > 26
    assert many[1] > 26
    assert many.sum() == 400


def test_several_tickets_are_tried_where_one_gains_nothing():
    gain = CellGain.of(np.full(10, 100.0), 100.0, 1000.0, 1.0)
    assert gain.at(50.0) == 0.0
    assert tickets([gain], 16, 50.0, np.ones(1))[0] == 16


def test_where_nothing_is_worth_its_noise_the_best_quarter_gets_some():
    gains = [CellGain.of(np.full(4, 1.0), 0.1, 4.0, 0.3) for _ in range(8)]
    given = tickets(gains, 50, 1e6, np.arange(8.0))
    assert given.tolist() == [0, 0, 0, 0, 0, 0, 1, 1]
