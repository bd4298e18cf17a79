"""Replay must notice each way in which two neighbours can be told apart, and nothing else."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from understudy.answers import Distribution
from understudy.counts.source import LabelCounts, OccupiedCells
from understudy.privacy.cost import UNIT, Cost
from understudy.privacy.randomizer import Randomizer, Request
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.replay import Leak, Recorder, Replayer, check_pair, cost_of

LAPLACE, GAUSSIAN = Distribution("laplace", Fraction(2)), Distribution("gaussian", Fraction(2))
TABLE, NEIGHBOUR = pa.table({"x": [1, 2, 3]}), pa.table({"x": [1, 2, 3, 3]})
Ask = Callable[[pa.Table, Randomizer], bytes]


ONE = Cost(epsilon=UNIT)


def _pipeline(ask: Ask, claimed: Cost = ONE) -> Callable[..., tuple[bytes, Cost]]:
    return lambda table, randomizer: (ask(table, randomizer), claimed)


def _histogram(table: pa.Table) -> np.ndarray:
    return np.bincount(table.column("x").to_numpy(), minlength=5)


def _measure(table: pa.Table, randomizer: Randomizer, **changes: object) -> np.ndarray:
    settings = {
        "kind": "measure",
        "name": "x",
        "cells": 5,
        "distribution": LAPLACE,
        "sensitivity": Fraction(1),
        **changes,
    }
    return randomizer.add_noise(Request(**settings), _histogram(table))  # type: ignore[arg-type]


def test_an_honest_pipeline_passes() -> None:
    check_pair(_pipeline(lambda table, noise: bytes(_measure(table, noise))), TABLE, NEIGHBOUR, SeededRandomizer(1))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda table, noise: bytes(_measure(table, noise)) + bytes([table.num_rows]), "released bytes differ"),
        (lambda table, noise: bytes(_measure(table, noise, name=str(table.num_rows))), "differs between neighbours"),
        (lambda table, noise: bytes(_measure(table, noise, sensitivity=Fraction(1, 2))), "moved by 1"),
        (lambda table, noise: b"".join(bytes(_measure(table, noise)) for _ in range(table.num_rows)), "not asked"),
        (lambda table, noise: bytes(_measure(table, noise) if table.num_rows < 4 else b""), "1 questions on one"),
        (lambda table, noise: bytes(_measure(table, noise)) + bytes(_measure(table, noise)) * 2, None),
    ],
)
def test_each_kind_of_leak_is_named(ask: Ask, message: str | None) -> None:
    if message is None:  # two questions of ½ each fit a claim of 1
        return check_pair(_pipeline(ask), TABLE, NEIGHBOUR, SeededRandomizer(1))
    with pytest.raises(Leak, match=message):
        check_pair(_pipeline(ask), TABLE, NEIGHBOUR, SeededRandomizer(1))
    return None


def test_questions_that_cost_more_than_the_claim_are_a_leak() -> None:
    cheap = _pipeline(lambda table, noise: bytes(_measure(table, noise)), Cost(epsilon=UNIT // 2 - 1))
    with pytest.raises(Leak, match="the claim is"):
        check_pair(cheap, TABLE, NEIGHBOUR, SeededRandomizer(1))


def test_gaussian_inputs_are_held_against_the_l2_distance() -> None:
    def spread(table: pa.Table, noise: Randomizer) -> bytes:
        request = Request("measure", "x", 4, GAUSSIAN, Fraction(2))
        moved = np.full(4, table.num_rows, dtype=np.int64)  # neighbours differ by (1, 1, 1, 1): L2 distance 2, L1 4
        return bytes(noise.add_noise(request, moved))

    check_pair(_pipeline(spread, Cost(rho=UNIT)), TABLE, NEIGHBOUR, SeededRandomizer(1))


def test_scores_claimed_monotone_must_be() -> None:
    def choose(monotone: bool) -> Ask:
        def ask(table: pa.Table, noise: Randomizer) -> bytes:
            request = Request("select", "s", 2, None, Fraction(1), Fraction(1, 4), monotone=monotone)
            return bytes(noise.choose(request, np.array([table.num_rows, -table.num_rows])))

        return ask

    check_pair(_pipeline(choose(monotone=False)), TABLE, NEIGHBOUR, SeededRandomizer(1))
    with pytest.raises(Leak, match="both directions"):
        check_pair(_pipeline(choose(monotone=True)), TABLE, NEIGHBOUR, SeededRandomizer(1))


def test_sparse_tables_and_labels_are_compared_cell_by_cell() -> None:
    def sparse(table: pa.Table, noise: Randomizer) -> bytes:
        counts = _histogram(table) * 2
        cells = np.flatnonzero(counts)
        request = Request("sparse", "x", 5, LAPLACE, Fraction(1), threshold=1)
        return bytes(noise.add_sparse_noise(request, OccupiedCells(cells, counts[cells])).indices)

    def labels(table: pa.Table, noise: Randomizer) -> bytes:
        held = sorted(set(table.column("x").to_pylist()) | ({9, 10} if table.num_rows > 3 else set()))
        found = LabelCounts(tuple(map(str, held)), np.ones(len(held), dtype=np.int64))
        request = Request("discover", "x", 0, LAPLACE, Fraction(1), threshold=1)
        return "".join(noise.keep_frequent(request, found).labels).encode()

    for ask in (sparse, labels):
        with pytest.raises(Leak, match="moved by 2"):
            check_pair(_pipeline(ask), TABLE, NEIGHBOUR, SeededRandomizer(1))


def test_price_by_currency() -> None:
    laplace = Request("measure", "a", 1, LAPLACE, Fraction(1))
    gaussian = Request("measure", "b", 1, GAUSSIAN, Fraction(1))
    choice = Request("select", "c", 2, None, Fraction(1), Fraction(1, 2))
    assert cost_of([laplace, choice], zcdp=False) == Cost(epsilon=UNIT // 2 + UNIT)
    assert cost_of([laplace, gaussian, choice], zcdp=True) == Cost(UNIT // 2, UNIT // 4 + UNIT // 8)
    label = Request("discover", "d", 1, LAPLACE, Fraction(1))
    assert cost_of([label], zcdp=True) == Cost(rho=UNIT // 8)


def test_the_recorder_passes_answers_on_and_the_replayer_gives_them_back() -> None:
    recorder = Recorder(NoNoise())
    request = Request("measure", "x", 3, LAPLACE, Fraction(1))
    assert recorder.add_noise(request, np.arange(3)).tolist() == [0, 1, 2]
    assert Replayer(recorder.log).add_noise(request, np.array([9, 9, 9])).tolist() == [0, 1, 2]


def _each(table: pa.Table, randomizer: Randomizer, scores: np.ndarray, **changes: object) -> bytes:
    settings = {"distribution": None, "sensitivity": Fraction(2), "rate": Fraction(1, 4), **changes}
    request = Request("select within", "x", 2, **settings)  # type: ignore[arg-type]
    return bytes(randomizer.choose_each(request, scores, np.ones(scores.shape, np.bool_)))


@pytest.mark.parametrize(
    ("moved", "changes", "message"),
    [
        ([[1, 1], [1, 0], [0, 0]], {}, None),
        ([[2, 0], [1, 0], [0, 0]], {}, "moved by 3 over all cells"),
        ([[1, -1], [0, 0], [0, 0]], {"monotone": True, "rate": Fraction(1, 2)}, "both directions"),
        ([[1, 1], [-1, 0], [0, 0]], {"monotone": True, "rate": Fraction(1, 2)}, None),
        ([[0, 0], [0, 0], [0, 0]], {"rate": Fraction(1, 3)}, "the questions cost"),
    ],
)
def test_choices_within_cells(moved: list[list[int]], changes: dict[str, object], message: str | None) -> None:
    """A unit's rows share the sensitivity among the cells they lie in."""

    def ask(table: pa.Table, noise: Randomizer) -> bytes:
        return _each(table, noise, np.array(moved) * (table.num_rows - 3), **changes)

    if message is None:
        return check_pair(_pipeline(ask), TABLE, NEIGHBOUR, SeededRandomizer(1))
    with pytest.raises(Leak, match=message):
        check_pair(_pipeline(ask), TABLE, NEIGHBOUR, SeededRandomizer(1))
    return None


def test_which_options_are_allowed_must_not_depend_on_rows() -> None:
    def ask(table: pa.Table, noise: Randomizer) -> bytes:
        request = Request("select within", "x", 2, None, Fraction(2), Fraction(1, 4))
        return bytes(noise.choose_each(request, np.zeros((1, 2), np.int64), np.array([[True, table.num_rows > 3]])))

    with pytest.raises(Leak, match="over all cells"):
        check_pair(_pipeline(ask), TABLE, NEIGHBOUR, NoNoise())


@pytest.mark.parametrize(
    ("distribution", "cost"),
    [(Distribution("laplace", Fraction(10)), ONE), (Distribution("gaussian", Fraction(10)), None)],
)
def test_scores_are_priced_one_by_one(distribution: Distribution, cost: Cost | None) -> None:
    """Five scores of sensitivity 2: ε = 5 · 2 / 10, ρ = 5 · 4 / 20."""
    request = Request("score", "x", 5, distribution, Fraction(2))
    assert cost_of([request], zcdp=cost is None) == (cost or Cost(rho=UNIT))

    def asking(step: int) -> Callable[..., tuple[bytes, Cost]]:
        def ask(table: pa.Table, noise: Randomizer) -> bytes:
            return bytes(noise.add_noise(request, np.full(5, step * (table.num_rows - 3))))

        return _pipeline(ask, cost or Cost(rho=UNIT))

    check_pair(asking(2), TABLE, NEIGHBOUR, SeededRandomizer(1))
    with pytest.raises(Leak, match="moved by 3"):
        check_pair(asking(3), TABLE, NEIGHBOUR, SeededRandomizer(1))


TREE = Distribution("laplace", Fraction(3 * 1024))


def _tree(table: pa.Table, noise: Randomizer, *, bias: int = 2130, lowered: int = 2130, first: int = 0) -> bytes:
    """Five layers of one node that holds all rows."""
    decided = []
    for layer in range(5):
        request = Request("grow", "x", 1, TREE, Fraction(1024), bias=bias, layer=first + layer)
        counts = np.maximum(np.array([table.num_rows * 1024 - layer * lowered]), -lowered)
        decided.append(noise.split(request, counts))
    return np.concatenate(decided).tobytes()


def test_a_tree_is_priced_once_and_its_decisions_together() -> None:
    check_pair(_pipeline(_tree), TABLE, NEIGHBOUR, NoNoise())
    with pytest.raises(Leak, match="layer 1 was asked where layer 0 was due"):
        check_pair(_pipeline(lambda *given: _tree(*given, first=1)), TABLE, NEIGHBOUR, NoNoise())
    with pytest.raises(Leak, match="no price is proved"):
        check_pair(_pipeline(lambda *given: _tree(*given, bias=0)), TABLE, NEIGHBOUR, NoNoise())
    with pytest.raises(Leak, match="the questions cost"):
        check_pair(_pipeline(lambda *given: _tree(*given) + _tree(*given)), TABLE, NEIGHBOUR, NoNoise())


def test_a_tree_whose_counts_are_not_lowered_is_likelier_on_one_table() -> None:
    """Thirty layers that state a bias and do not apply it: the decisions give the table away."""

    class Always(NoNoise):
        def split(self, request: Request, biased: np.ndarray) -> np.ndarray:
            return np.ones(biased.size, np.bool_)

    def ask(table: pa.Table, noise: Randomizer) -> bytes:
        for layer in range(30):
            noise.split(
                Request("grow", "x", 1, TREE, Fraction(1024), bias=2130, layer=layer),
                np.array([(table.num_rows - 3) * 1024]),
            )
        return b""

    with pytest.raises(Leak, match="times likelier on one table"):
        check_pair(_pipeline(ask), TABLE, NEIGHBOUR, Always())
