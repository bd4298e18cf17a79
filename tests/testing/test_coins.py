"""Coins for replay: they follow the unit and the step, not the place in the table."""

from fractions import Fraction

import numpy as np
import pytest

from understudy.counts.source import Records
from understudy.privacy.randomizer import Request
from understudy.testing.replay import coins_of


def _request(layer=1, rate=Fraction(1, 2)):
    return Request("train", "x", 1, None, Fraction(1), rate, layer=layer)


def _records(codes):
    codes = np.array(codes, dtype=np.uint16).reshape(-1, 1)
    return Records(codes, np.arange(len(codes) + 1, dtype=np.int64))


def test_about_the_asked_share_takes_part() -> None:
    found = coins_of(_request(), _records(range(20_000))).size / 20_000
    assert found == pytest.approx(-np.expm1(-0.5), abs=0.02)


def test_a_unit_keeps_its_coin_wherever_it_stands() -> None:
    codes = np.arange(500)
    here = set(codes[coins_of(_request(), _records(codes))].tolist())
    assert here == set(codes[::-1][coins_of(_request(), _records(codes[::-1]))].tolist())
    assert here == {code for code in here if code < 499} | ({499} & here)
    without = set(codes[:499][coins_of(_request(), _records(codes[:499]))].tolist())
    assert without == here - {499}


def test_steps_have_coins_of_their_own() -> None:
    one, two = (set(coins_of(_request(layer), _records(range(1000))).tolist()) for layer in (1, 2))
    both = len(one & two) / 1000
    assert both == pytest.approx(-np.expm1(-0.5) * -np.expm1(-0.5), abs=0.06)


def test_rows_of_a_unit_share_a_coin_in_any_order() -> None:
    codes = np.array([[1], [2], [2], [1]], dtype=np.uint8)
    starts = np.array([0, 2, 4], dtype=np.int64)
    for layer in range(20):
        assert coins_of(_request(layer), Records(codes, starts)).size in (0, 2)


def test_nobody() -> None:
    assert coins_of(_request(), _records([])).size == 0
