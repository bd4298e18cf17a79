"""Score 1: the vector, and how triples are drawn."""

import numpy as np
import pytest

from tests.evaluate.examples import mixed, mixed_frame, rows_of
from understudy.evaluate.nist import draw_triples, triple_agreement, triples_agreement


def test_vector() -> None:
    original, submission = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.6, 0.1, 0.0, 0.3])
    assert 1e6 * triple_agreement(original, submission) == pytest.approx(600_000)


def test_last_column_is_forgotten_unless_asked_for() -> None:
    names = list("abcde")
    drawn = draw_triples(names, np.random.default_rng(1))
    assert len(drawn) == 100
    assert all(len(set(triple)) == 3 for triple in drawn)
    assert {name for triple in drawn for name in triple} == set("abcd")
    whole = draw_triples(names, np.random.default_rng(1), include_last=True)
    assert {name for triple in whole for name in triple} == set(names)
    assert draw_triples(list("abc"), np.random.default_rng(1)) == ()


def test_agreement_by_hand() -> None:
    first, second = rows_of(mixed_frame(80), mixed()), rows_of(mixed_frame(60, seed=2), mixed())
    (found,) = triples_agreement(first, second, [("region", "sex", "voted")])
    cells: dict[tuple[int, ...], list[float]] = {}
    for part, rows in enumerate((first, second)):
        for place in range(rows.count):
            cell = tuple(int(rows.codes[name][place]) for name in ("region", "sex", "voted"))
            cells.setdefault(cell, [0.0, 0.0])[part] += 1 / rows.count
    assert found == pytest.approx(1 - sum(abs(one - other) for one, other in cells.values()) / 2)
