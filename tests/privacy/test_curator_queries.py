"""What the curator is asked: whole queries, choices within cells, and what they cost."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from tests.methods.door import MEMORY, door, epsilon, letters, rho, rows_of
from tests.nets.doubles import Chains, CommonCode
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.domain import (
    GROWTH_UNIT,
    ROUNDED_GRID,
    SCORE_UNIT,
    Clique,
    Distribution,
    Grown,
    NoisyScores,
    ResidualTable,
    Selections,
    centred,
)
from understudy.errors import BudgetError, UsageError
from understudy.privacy import curator as curator_module
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.gaussian import SMOOTHING, residual_shift
from understudy.privacy.trees import Halving, Ranges, counts_within
from understudy.schema import Unit
from understudy.testing.doubles import NoNoise
from understudy.testing.replay import Recorder

# Choices within cells, noisy scores and trees at the door: spent before reading, calibrated, written down.


SCHEMA = letters({"a": 6, "b": 3})
CODES = {"a": [0, 0, 1, 2, 3, 3, 3, 5], "b": [0, 1, 1, 1, 2, 2, 0, 0]}
TABLE = rows_of(CODES)
HALVES = Ranges("halves", Clique(("a",)), ((0, 3), (3, 6)))
PER_PERSON = letters({"a": 6, "b": 3}, unit=Unit(column="who", rows=4))


def _curator(granted: Cost, *, units: bool = False) -> tuple[Curator, Recorder]:
    recorder = Recorder(NoNoise())
    table = TABLE.append_column("who", pa.array([str(at) for at in range(8)])) if units else TABLE
    return door(table, PER_PERSON if units else SCHEMA, granted, recorder), recorder


@dataclass(frozen=True, eq=False)
class Counts:
    """Scores of the options "few" and "many": the rows of the column's first code, and of all others."""

    name: str = "few or many"
    options: tuple[str, ...] = ("few", "many")
    cliques: tuple[Clique, ...] = field(default_factory=lambda: (Clique(("b",)),))
    sensitivity: Fraction = Fraction(SCORE_UNIT)
    monotone: bool = True

    def scores(self, exact: Mapping[Clique, npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        counts = exact[self.cliques[0]]
        return np.array([counts[0], counts[1:].sum()]) * SCORE_UNIT


def test_one_option_for_every_cell() -> None:
    curator, recorder = _curator(epsilon(1))
    assert curator.select_within(HALVES, CommonCode("b", range(3), 3), epsilon(1)) == [1, 0, 0]
    (exchange,) = recorder.log
    assert exchange.exact.tolist() == (np.array([[1, 3, 0], [2, 0, 2], [0, 0, 0]]) * SCORE_UNIT).tolist()
    assert exchange.request.rate == Fraction(1, SCORE_UNIT)
    (answer,) = curator.transcript.of(Selections)
    assert (answer.options, answer.chosen.tolist(), answer.monotone) == (3, [1, 0, 0], True)
    assert curator.charges == [("select common code", epsilon(1))]
    assert curator.left == Cost()


@pytest.mark.parametrize(("cost", "rate"), [(epsilon(1), Fraction(1, 4)), (rho(0.125), Fraction(1, 4))])
def test_choices_are_calibrated_to_all_rows_of_a_unit(cost: Cost, rate: Fraction) -> None:
    """ρ = 1/8 buys ε = 1; four rows per unit make it a quarter per row."""
    curator, recorder = _curator(cost, units=True)
    curator.select_within(HALVES, CommonCode("b", range(3), 3), cost)
    assert recorder.log[0].request.sensitivity == 4 * SCORE_UNIT
    assert recorder.log[0].request.rate * SCORE_UNIT == rate


def test_only_allowed_options_are_chosen() -> None:
    @dataclass(frozen=True, slots=True, eq=False)
    class Never(CommonCode):
        @property
        def allowed(self) -> npt.NDArray[np.bool_]:
            return np.array([[True, False, True]] * self.cells)

    curator, _ = _curator(epsilon(1))
    assert curator.select_within(HALVES, Never("b", range(3), 3), epsilon(1)) == [0, 0, 0]


@pytest.mark.parametrize(("cells", "options"), [(2, 3), (4, 3), (3, 0)])
def test_masks_that_do_not_fit_are_refused_before_spending(cells: int, options: int) -> None:
    curator, recorder = _curator(epsilon(1))
    with pytest.raises(UsageError, match=r"needs (a mask|at least one)"):
        curator.select_within(HALVES, CommonCode("b", range(options), cells), epsilon(1))
    assert curator.left == epsilon(1)
    assert recorder.log == []


def test_scores_with_noise_of_their_cost() -> None:
    curator, recorder = _curator(epsilon(1) + rho(1))
    answer = curator.score(Counts(), epsilon(1))
    assert answer.scores.tolist() == [3.0, 5.0]
    assert answer.distribution.kind == "laplace"
    assert answer.distribution.parameter == 2 * SCORE_UNIT
    again = curator.score(Counts(), rho(1))
    assert again.distribution.kind == "gaussian"
    assert again.distribution.parameter == Fraction(2 * SCORE_UNIT**2, 2)
    assert [exchange.request.kind for exchange in recorder.log] == ["score", "score"]
    assert curator.transcript.of(NoisyScores) == [answer, again]
    assert curator.left == Cost()


def test_scores_of_units_with_several_rows() -> None:
    curator, _ = _curator(rho(1), units=True)
    assert curator.score(Counts(), rho(1)).distribution.parameter == Fraction(2 * (4 * SCORE_UNIT) ** 2, 2)


def test_scores_are_cut_before_noise() -> None:
    @dataclass(frozen=True, eq=False)
    class Huge(Counts):
        def scores(self, exact: object) -> npt.NDArray[np.int64]:
            return np.array([2**62, -(2**63)])

    curator, recorder = _curator(epsilon(1))
    curator.score(Huge(), epsilon(1))
    assert recorder.log[0].exact.tolist() == [2**60, -(2**60)]


def test_a_tree_is_paid_once_and_counted_layer_by_layer() -> None:
    curator, recorder = _curator(epsilon(30))
    tree = curator.grow(Halving.of("a", 6), epsilon(30))
    assert tree.leaves == ((0, 1), (1, 3), (3, 4), (4, 6))
    assert curator.charges == [("grow halves of a", epsilon(30))]
    assert [exchange.request.layer for exchange in recorder.log] == [0, 1, 2]
    assert {exchange.request.bias for exchange in recorder.log} == {GROWTH_UNIT}
    (answer,) = curator.transcript.of(Grown)
    assert answer.layers == (1, 2, 2)
    assert [split.tolist() for split in answer.splits] == [[True], [True, True], [False, False]]


def test_a_tree_of_several_rows_per_unit_and_a_tree_paid_in_rho() -> None:
    alone, shared = _curator(epsilon(1))[0], _curator(epsilon(1), units=True)[0]
    for curator in (alone, shared):
        curator.grow(Halving.of("a", 6), epsilon(1))
    one, four = alone.transcript.of(Grown)[0], shared.transcript.of(Grown)[0]
    assert four.distribution.parameter == 4 * one.distribution.parameter
    assert four.bias > 3.9 * one.bias
    paid = _curator(rho(0.5))[0]
    paid.grow(Halving.of("a", 6), rho(0.5))
    assert paid.transcript.of(Grown)[0].distribution == one.distribution


def test_a_tree_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curator_module, "MOST_LAYERS", 5)
    curator, recorder = _curator(epsilon(1000))
    grown = curator.grow(Chains("a", 10**9, (3,), theta=-(10**6)), epsilon(1000))
    assert not grown.finished
    assert len(recorder.log) == 5


def test_depths_that_do_not_rise_are_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Flat(Halving):
        @property
        def depths(self) -> npt.NDArray[np.int64]:
            return np.zeros(len(self.nodes), dtype=np.int64)

    curator, _ = _curator(epsilon(30))
    with pytest.raises(UsageError, match="depths must rise"):
        curator.grow(Flat("flat", "a", 0, 9, 9, ((0, 6),)), epsilon(30))  # type: ignore[type-var]


def test_nothing_is_read_that_cannot_be_paid() -> None:
    curator, recorder = _curator(epsilon(1))
    for ask in (
        lambda: curator.select_within(HALVES, CommonCode("b", range(3), 3), epsilon(2)),
        lambda: curator.score(Counts(), epsilon(2)),
        lambda: curator.grow(Halving.of("a", 6), epsilon(2)),
    ):
        with pytest.raises(BudgetError):
            ask()
    with pytest.raises(UsageError, match="needs at least one option"):
        curator.score(Counts(options=()), epsilon(1))
    assert recorder.log == []
    assert curator.left == epsilon(1)


# Counts inside cells equal counting by hand, and the cells of a batch are worked out once.


WITHIN_SCHEMA = letters({"a": 5, "b": 3, "c": 2})
RNG = np.random.default_rng(3)
WITHIN_CODES = {name: RNG.integers(0, size, 700) for name, size in {"a": 5, "b": 3, "c": 2}.items()}
WITHIN_TABLE = rows_of(WITHIN_CODES)


@dataclass
class Sum:
    """Rows by the sum of two codes, with a diary."""

    columns: Clique = field(default_factory=lambda: Clique(("a", "b")))
    cells: int = 7
    name: str = "sum"
    calls: int = 0

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> npt.NDArray[np.int64]:
        self.calls += 1
        return codes["a"].astype(np.int64) + codes["b"]


@dataclass(frozen=True)
class Everything:
    """All rows in one cell, without looking at any column."""

    columns: Clique = field(default_factory=Clique)
    cells: int = 1
    name: str = "everything"

    def assign(self, codes: object) -> npt.NDArray[np.int64]:
        raise AssertionError("no column, nothing to assign by")


def _counts(table: pa.Table, partition: Sum | Everything, columns: list[str]) -> dict[str, np.ndarray]:
    codec = TableCodec.of(WITHIN_SCHEMA)
    source = FrameTable(table, WITHIN_SCHEMA, memory_bytes=MEMORY).bind(codec)
    return counts_within(source, codec.domain, partition, columns)


def test_counts_are_those_of_the_rows_in_each_cell() -> None:
    partition = Sum()
    found = _counts(WITHIN_TABLE, partition, ["c", "a", "c"])
    cell = WITHIN_CODES["a"] + WITHIN_CODES["b"]
    assert list(found) == ["c", "a"]
    for name, size in (("c", 2), ("a", 5)):
        by_hand = [
            [int(np.sum((cell == at) & (WITHIN_CODES[name] == code))) for code in range(size)] for at in range(7)
        ]
        assert found[name].tolist() == by_hand
    assert partition.calls == 1


def test_a_partition_without_columns_is_one_cell() -> None:
    assert _counts(WITHIN_TABLE, Everything(), ["b"])["b"].tolist() == [
        np.bincount(WITHIN_CODES["b"], minlength=3).tolist()
    ]


@pytest.mark.parametrize("rows", [0, 1])
def test_small_tables(rows: int) -> None:
    found = _counts(WITHIN_TABLE.slice(0, rows), Sum(), ["b"])
    assert found["b"].shape == (7, 3)
    assert found["b"].sum() == rows


def test_nothing_counted_is_nothing_read() -> None:
    partition = Sum()
    assert _counts(WITHIN_TABLE, partition, []) == {}
    assert partition.calls == 0


def test_residuals_cost_less_noise_than_a_table_and_come_in_their_own_unit() -> None:
    curator = door(rows_of({"a": [0, 0, 1, 1, 2], "b": [0, 1, 0, 1, 1]}), letters({"a": 3, "b": 2}), rho(1), NoNoise())
    pair, single = Clique(("a", "b")), Clique(("a",))
    answers = curator.measure_residuals([pair, single], rho(1), weights=[3, 1])
    assert [answer.shape for answer in answers] == [(3, 2), (3,)]
    exact = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    assert answers[0].residuals == pytest.approx(centred(exact))
    assert answers[1].residuals == pytest.approx(np.array([2, 2, 1]) - 5 / 3)
    assert answers[0].distribution.parameter == residual_shift((3, 2)) / (2 * Fraction(3, 4))
    assert [step for step, _ in curator.charges] == ["measure residuals of a × b", "measure residuals of a"]
    assert curator.left == Cost()
    assert curator.transcript.of(ResidualTable) == answers
    with pytest.raises(BudgetError):
        curator.measure_residuals([pair], rho(0.1))


def test_residuals_of_a_unit_with_several_rows_have_as_much_more_noise() -> None:
    schema = letters({"a": 3, "b": 2}, unit=Unit(column="who", rows=3))
    rows = rows_of({"a": [0, 1, 2], "b": [0, 1, 1]}).append_column("who", [["x", "x", "y"]])
    (answer,) = door(rows, schema, rho(1), NoNoise()).measure_residuals([Clique(("a", "b"))], rho(1))
    assert answer.distribution.parameter == Fraction(9 * residual_shift((3, 2)), 2)


@pytest.mark.parametrize("cost", [Cost(epsilon=UNIT), Cost(epsilon=UNIT, rho=UNIT)])
def test_residuals_are_not_sold_for_pure_epsilon(cost: Cost) -> None:
    curator = door(rows_of({"a": [0], "b": [0]}), letters({"a": 3, "b": 2}), cost, NoNoise())
    with pytest.raises(UsageError, match="in ρ"):
        curator.measure_residuals([Clique(("a", "b"))], cost)
    assert curator.left == cost


def gaussian_door(granted: Cost) -> Curator:
    table = FrameTable(rows_of({"a": [0, 1, 2], "b": [0, 1, 1]}), letters({"a": 3, "b": 2}), memory_bytes=2**28)
    curator = Curator(table, granted, NoNoise(), currency="gaussian")
    curator.fix_codec(TableCodec.of(letters({"a": 3, "b": 2})))
    return curator


def test_a_run_accounted_as_gaussian_has_gaussian_noise_alone() -> None:
    a = Clique(("a",))
    everything = Cost(epsilon=UNIT, rho=UNIT, delta=DELTA_UNIT // 2)
    asked: dict[str, Callable[[Curator], object]] = {
        "Laplace noise": lambda curator: curator.measure([a], Cost(epsilon=UNIT)),
        "a sparse table": lambda curator: curator.measure_sparse(a, Cost(epsilon=UNIT), 5),
        "a choice": lambda curator: curator.select(Counts(), Cost(rho=UNIT)),
        "a choice in cells": lambda curator: curator.select_within(HALVES, CommonCode("b", range(2), 3), rho(1)),
        "a tree": lambda curator: curator.grow(SimpleNamespace(name="x", decay=Fraction(2)), Cost(rho=UNIT)),
        "a training": lambda curator: curator.train(SimpleNamespace(name="x"), Cost(epsilon=UNIT)),
        "labels": lambda curator: curator.discover("a", Cost(rho=UNIT, delta=DELTA_UNIT // 4)),
    }
    for name, ask in asked.items():
        curator = gaussian_door(everything)
        with pytest.raises(UsageError, match="Gaussian"):
            ask(curator)
        assert (curator.left, len(curator.transcript)) == (everything, 0), name
    curator = gaussian_door(Cost(rho=UNIT))
    (answer,) = curator.measure([a], Cost(rho=UNIT // 2))
    assert answer.distribution == Distribution("gaussian", 1 + Fraction(SMOOTHING, ROUNDED_GRID**2), ROUNDED_GRID)
