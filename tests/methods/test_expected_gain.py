"""Expected gain: scatter by its definition, gains by hand, tickets where they mend most."""

import math

import numpy as np
import pytest

from understudy.methods.expected_gain import CellGain, expected_scatter, tickets


@pytest.mark.parametrize("mean", [0.0, 0.3, 1.0, 4.7, 60.0])
def test_scatter_is_the_mean_distance_of_a_poisson_count(mean):
    counts = range(400)
    chances = [math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) if mean else float(k == 0) for k in counts]
    wanted = sum(chance * abs(k - mean) for k, chance in zip(counts, chances, strict=True))
    assert float(expected_scatter(np.array([mean]))[0]) == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_gain_by_hand():
    gain = CellGain.of(np.array([[100.0, 300.0], [500.0, 100.0]]), 100.0, 1000.0, 0.5)
    # A fifth of every cell is wrong: 20, 60, 100, 20. Noise of scale 60 takes 30 of each; scatter is below it.
    assert gain.at(60.0) == pytest.approx(30.0 + 70.0)
    assert gain.at(1e9) == 0.0
    scatter = float(expected_scatter(np.array([100.0, 300.0, 500.0, 100.0])).sum())
    assert gain.at(1e-9) == pytest.approx(200.0 + scatter)


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
