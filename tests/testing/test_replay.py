"""Replay must notice each way in which two neighbours can be told apart, and nothing else."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tests.statistics.chi_square import laplace_distribution
from understudy.codec.table import TableCodec
from understudy.counts.source import LabelCounts, OccupiedCells, Records
from understudy.domain import GROWTH_UNIT, Course, Distribution
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost, growth_rule
from understudy.privacy.randomizer import Randomizer, Request, SecureRandomizer
from understudy.privacy.training import training_distributions
from understudy.schema import Schema
from understudy.testing import cases as tables
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.replay import (
    HOSTILE,
    Exchange,
    Leak,
    Recorder,
    Replayer,
    check_noise,
    check_pair,
    coins_of,
    cost_of,
    designed_pairs,
    draws_of,
    random_pairs,
    record_pool,
    split_loss,
    split_probability,
    to_table,
    trainings_cost,
    tree_epsilon,
    uniforms,
    valid_texts,
)

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
        (lambda table, noise: bytes(_measure(table, noise) if table.num_rows < 4 else b""), "1 queries on one"),
        (lambda table, noise: bytes(_measure(table, noise)) + bytes(_measure(table, noise)) * 2, None),
    ],
)
def test_each_kind_of_leak_is_named(ask: Ask, message: str | None) -> None:
    if message is None:  # two queries of ½ each fit a claim of 1
        return check_pair(_pipeline(ask), TABLE, NEIGHBOUR, SeededRandomizer(1))
    with pytest.raises(Leak, match=message):
        check_pair(_pipeline(ask), TABLE, NEIGHBOUR, SeededRandomizer(1))
    return None


def test_queries_that_cost_more_than_the_claim_are_a_leak() -> None:
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


def test_cost_by_currency() -> None:
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
        ([[0, 0], [0, 0], [0, 0]], {"rate": Fraction(1, 3)}, "the queries cost"),
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
def test_scores_cost_one_by_one(distribution: Distribution, cost: Cost | None) -> None:
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


def test_a_tree_costs_once_and_its_decisions_together() -> None:
    check_pair(_pipeline(_tree), TABLE, NEIGHBOUR, NoNoise())
    with pytest.raises(Leak, match="layer 1 was asked where layer 0 was due"):
        check_pair(_pipeline(lambda *given: _tree(*given, first=1)), TABLE, NEIGHBOUR, NoNoise())
    with pytest.raises(Leak, match="no cost is proved"):
        check_pair(_pipeline(lambda *given: _tree(*given, bias=0)), TABLE, NEIGHBOUR, NoNoise())
    with pytest.raises(Leak, match="the queries cost"):
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


def _extra_rows(schema: Schema, table: pa.Table, neighbour: pa.Table) -> pa.Table:
    assert neighbour.slice(0, table.num_rows).equals(table), "the neighbour only adds rows"
    return neighbour.slice(table.num_rows)


def test_a_row_level_pair_differs_by_one_row() -> None:
    for pair in designed_pairs(tables.every_kind()):
        assert _extra_rows(tables.every_kind(), pair.table, pair.neighbour).num_rows == 1, pair.name


def test_a_unit_level_pair_differs_by_one_unit_with_too_many_rows() -> None:
    schema = tables.several_rows(3)
    for pair in designed_pairs(schema):
        extra = _extra_rows(schema, pair.table, pair.neighbour)
        assert set(extra.column("person").to_pylist()) == {"the-extra-unit"}
        assert extra.num_rows > 3
        assert "the-extra-unit" not in pair.table.column("person").to_pylist()


def test_every_listed_value_has_a_sole_holder() -> None:
    schema = tables.small()
    for column in schema.modelled:
        for text in valid_texts(column):
            holders = [
                pair
                for pair in designed_pairs(schema)
                if text in pair.neighbour.column(column.name).to_pylist()
                and text not in pair.table.column(column.name).to_pylist()
            ]
            assert holders, (column.name, text)


def test_every_hostile_value_meets_every_column() -> None:
    schema = tables.every_kind()
    seen = {(name, value) for pair in designed_pairs(schema) for name, value in _last(pair.neighbour).items()}
    assert {(column.name, value) for column in schema.modelled for value in HOSTILE} <= seen


def _last(table: pa.Table) -> dict[str, str | None]:
    return table.slice(table.num_rows - 1).to_pylist()[0]  # type: ignore[no-any-return]


def test_pool_values_are_inside_the_schema() -> None:
    schema = tables.every_kind()
    codec = TableCodec.of(schema)
    table = to_table(schema, record_pool(schema))
    for name, size in codec.domain.sizes.items():
        assert (codec.encode(name, table.column(name)) < size - 1).all(), f"{name}: missing is the last code"


def test_random_pairs_are_reproducible_and_mostly_different() -> None:
    first = list(random_pairs(tables.small(), 20, np.random.default_rng(1)))
    second = list(random_pairs(tables.small(), 20, np.random.default_rng(1)))
    assert [pair.neighbour for pair in first] == [pair.neighbour for pair in second]
    assert len({pair.neighbour.num_rows for pair in first}) > 5


# Coins for replay: they follow the unit and the step, not the place in the table.


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


# What trainings cost by their requests: one cost per training, whatever else was asked.


COST = Cost(epsilon=UNIT, delta=DELTA_UNIT // 10**6)
COURSE = Course(64, 5, Fraction(3), Fraction(1, 2))


def _queries(course=COURSE, paid=COST):
    first, distribution = training_distributions(paid, course, "train")
    requests = [Request("train", "x", 4, first, Fraction(64), delta=COST.delta)]
    for layer in range(1, COURSE.steps + 1):
        requests.append(
            Request("train", "x", 4, distribution, Fraction(64), Fraction(1, 3), layer=layer, delta=COST.delta)
        )
    return requests


def test_a_training_costs_what_was_paid() -> None:
    ((epsilon, delta),) = trainings_cost(_queries())
    assert 0.99 < epsilon <= 1
    assert delta == COST.delta


def test_a_second_training_costs_again() -> None:
    assert len(trainings_cost(_queries() + _queries())) == 2
    assert cost_of(_queries() + _queries(), zcdp=False).delta == 2 * COST.delta


def test_noise_that_was_not_paid_for_shows() -> None:
    cheap = _queries(Course(64, 2, Fraction(3), Fraction(1, 2)))
    assert not cost_of(cheap, zcdp=False).fits(COST)
    louder = [Request("train", "x", 4, Distribution("gaussian", Fraction(1)), Fraction(64), delta=1)]
    assert trainings_cost(louder)[0][0] > 100


def test_other_queries_cost_beside() -> None:
    other = Request("measure", "y", 4, Distribution("laplace", Fraction(2)), Fraction(1))
    both = cost_of([other, *_queries()], zcdp=False)
    assert both.epsilon == pytest.approx(1.5 * UNIT, rel=0.01)
    both = cost_of([other, *_queries()], zcdp=True)
    assert (both.epsilon, both.rho) == (UNIT // 2, pytest.approx(0.5 * UNIT, rel=0.02))
    assert trainings_cost([other]) == []


# The loss of a tree is the log ratio of its decisions, and its cost is never below the theorem's.


def _tree_loss_request(
    distribution: Distribution | None, bias: int = GROWTH_UNIT, rows: int = 1, threshold: int = 0
) -> Request:
    sensitivity = Fraction(rows * GROWTH_UNIT)
    return Request("grow", "tree", 2, distribution, sensitivity, threshold=threshold, bias=bias)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7)])
def test_chances_are_sums_of_the_distribution(scale: Fraction) -> None:
    distribution = laplace_distribution(float(scale), 60.0)
    for above in (-5, -1, 0, 1, 2, 9):
        direct = sum(probability for noise, probability in distribution.items() if above + noise > 0)
        assert math.exp(split_probability(np.array([above]), scale)[0]) == pytest.approx(direct, abs=1e-12)


def test_losses_of_splits_and_leaves_add_up() -> None:
    distribution = Distribution("laplace", Fraction(7))
    one, other, split = np.array([15, 12]), np.array([14, 12]), np.array([True, False])
    by_hand = split_probability(np.array([5]), Fraction(7)) - split_probability(np.array([4]), Fraction(7))
    assert split_loss(_tree_loss_request(distribution, threshold=10), one, other, split) == pytest.approx(by_hand[0])
    stopped = split_loss(_tree_loss_request(distribution, threshold=10), one, other, ~split)
    probabilities = [1 - math.exp(split_probability(np.array([at]), Fraction(7))[0]) for at in (5, 4)]
    assert stopped == pytest.approx(math.log(probabilities[0] / probabilities[1]))
    assert split_loss(_tree_loss_request(None), one, other, split) == math.inf


@pytest.mark.parametrize(("units", "decay", "rows"), [(UNIT, 2, 1), (UNIT // 7, 14, 3), (9 * UNIT, 2, 2)])
def test_the_cost_is_recovered_from_noise_and_bias(units: int, decay: int, rows: int) -> None:
    distribution, bias = growth_rule(Cost(epsilon=units), rows, Fraction(decay), "grow")
    paid_for = tree_epsilon(_tree_loss_request(distribution, bias, rows))
    assert paid_for is not None
    assert 0.6 * Fraction(units, UNIT) < paid_for <= Fraction(units, UNIT)


def test_where_the_theorem_does_not_hold_there_is_no_cost() -> None:
    distribution = Distribution("laplace", Fraction(3 * GROWTH_UNIT))
    assert tree_epsilon(_tree_loss_request(distribution, GROWTH_UNIT - 1)) is None
    assert tree_epsilon(_tree_loss_request(None)) is None
    assert tree_epsilon(_tree_loss_request(Distribution("gaussian", Fraction(9)))) is None


# Every kind of answer is uniform after the transform if the noise is right, and the audit says so if it is not.


NOISE_LAPLACE, NOISE_GAUSSIAN, WIDE = (
    Distribution("laplace", Fraction(3)),
    Distribution("gaussian", Fraction(9)),
    Distribution("gaussian", Fraction(10**8)),
)
NoiseAsk = Callable[[Randomizer, Fraction], object]
"""Asks with the scale of the noise (or the rate of a choice) multiplied by a number."""


def _noise_request(kind: str, cells: int, distribution: Distribution | None, factor: Fraction, **rest: int) -> Request:
    if distribution is not None:
        distribution = replace(
            distribution, parameter=distribution.parameter * (factor if distribution.kind == "laplace" else factor**2)
        )
    return Request(kind, "asked", cells, distribution, Fraction(1), rate=Fraction(1, 2) / factor, **rest)


def _dense(distribution: Distribution) -> NoiseAsk:
    exact = np.arange(100, dtype=np.int64)
    return lambda randomizer, factor: randomizer.add_noise(_noise_request("measure", 100, distribution, factor), exact)


def _sparse(randomizer: Randomizer, factor: Fraction) -> object:
    occupied = OccupiedCells(np.arange(0, 600, 10), np.tile(np.array([1, 8], dtype=np.int64), 30))
    return randomizer.add_sparse_noise(_noise_request("sparse", 1000, NOISE_LAPLACE, factor, threshold=5), occupied)


def _labels(randomizer: Randomizer, factor: Fraction) -> object:
    exact = LabelCounts(tuple(f"label {place:02}" for place in range(90)), np.tile(np.array([1, 3, 6]), 30))
    return randomizer.keep_frequent(_noise_request("discover", 0, NOISE_LAPLACE, factor, threshold=4), exact)


def _choice(randomizer: Randomizer, factor: Fraction) -> object:
    return randomizer.choose(_noise_request("select", 4, None, factor), np.array([0, 3, 5, -2]))


def _choices(randomizer: Randomizer, factor: Fraction) -> object:
    scores, allowed = np.tile(np.array([0, 3, 5, 90]), (80, 1)), np.tile([True, True, True, False], (80, 1))
    return randomizer.choose_each(_noise_request("select within", 4, None, factor), scores, allowed)


def _noise_tree(randomizer: Randomizer, factor: Fraction) -> object:
    return randomizer.split(
        _noise_request("grow", 99, NOISE_LAPLACE, factor, threshold=5), np.tile(np.array([2, 5, 9]), 33)
    )


ASKED: dict[str, tuple[NoiseAsk, int]] = {
    "Laplace": (_dense(NOISE_LAPLACE), 20),
    "Gaussian": (_dense(NOISE_GAUSSIAN), 20),
    "wide Gaussian": (_dense(WIDE), 20),
    "sparse": (_sparse, 20),
    "labels": (_labels, 20),
    "choice": (_choice, 1200),
    "choices within cells": (_choices, 30),
    "tree": (_noise_tree, 80),
}
"""What is asked, and how often: twice or half the noise is seen six or more standard deviations beyond the limit."""


def _noise_queries(kind: str, factor: Fraction, noise: Fraction) -> list[list[Exchange]]:
    """Two runs whose requests say one scale while the noise has another."""
    ask, times = ASKED[kind]
    runs = []
    for _ in range(2):
        told, real = Recorder(NoNoise()), Recorder(SecureRandomizer())
        for _ in range(times):
            ask(told, factor)
            ask(real, noise)
        runs.append([replace(got, request=said.request) for said, got in zip(told.log, real.log, strict=True)])
    return runs


@pytest.mark.parametrize("kind", ASKED)
def test_right_noise_passes_and_half_or_twice_the_noise_does_not(kind: str) -> None:
    check_noise(_noise_queries(kind, Fraction(1), Fraction(1)), fewest=600)
    for noise in (Fraction(1, 2), Fraction(2)):
        with pytest.raises(Leak, match="the noise"):
            check_noise(_noise_queries(kind, Fraction(1), noise), fewest=600)


@pytest.mark.parametrize("kind", ["Laplace", "Gaussian"])
def test_noise_used_again_is_found(kind: str) -> None:
    first, second = _noise_queries(kind, Fraction(1), Fraction(1))
    with pytest.raises(Leak, match="of the run before"):
        check_noise([first, first], fewest=600)
    with pytest.raises(Leak, match="of the query before"):
        check_noise([[exchange for exchange in first for _ in range(2)], second], fewest=600)


def test_the_transform_of_one_draw_covers_its_share_of_the_distribution() -> None:
    """A residual of 0 under P(k) ∝ exp(−|k|/3): below it lies less than half, at it tanh(1/6)."""
    exchange = Exchange(_noise_request("measure", 1, NOISE_LAPLACE, Fraction(1)), np.array([7]), np.array([7]))
    rng = np.random.default_rng(1)
    found = np.concatenate([uniforms(exchange, rng) for _ in range(2000)])
    assert draws_of(exchange) == 1
    middle = float(np.tanh(1 / 6))
    assert (found.min(), found.max()) == pytest.approx(((1 - middle) / 2, (1 + middle) / 2), abs=2e-3)


def test_too_few_draws_do_not_pass() -> None:
    with pytest.raises(Leak, match="no power"):
        check_noise(_noise_queries("labels", Fraction(1), Fraction(1)), fewest=10**6)


def test_no_query_is_no_fault() -> None:
    check_noise([[], []], fewest=0)
