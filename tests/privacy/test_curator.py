"""The door: it spends before it reads, never more than granted, and asks for noise that matches the cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from understudy.arrays import Ints
from understudy.counts.source import Batch, LabelCounts, OccupiedCells, PrivateTable
from understudy.domain import Clique, Domain, Partition, Selection
from understudy.errors import BudgetError, UsageError
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost
from understudy.privacy.curator import Curator
from understudy.testing.doubles import NoNoise
from understudy.testing.replay import Recorder

DOMAIN = Domain.of({"a": 2, "b": 3})
A, B, AB = DOMAIN.clique("a"), DOMAIN.clique("b"), DOMAIN.everything()
TABLE = np.arange(6, dtype=np.int64)


@dataclass
class StubTable(PrivateTable):
    """Counts a fixed table and keeps a diary of every read."""

    unit_rows: int = 1
    reads: list[str] = field(default_factory=list)
    domain: Domain = DOMAIN

    def __post_init__(self) -> None:
        self._schema = SimpleNamespace(unit=SimpleNamespace(sensitivity=self.unit_rows))  # type: ignore[assignment]

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        raise AssertionError("the stub counts by itself")

    def counts(self, cliques: Sequence[Clique]) -> Mapping[Clique, Ints]:
        self.reads.append("counts")
        axes = {A: 1, B: 0}
        return {c: TABLE if c == AB else TABLE.reshape(2, 3).sum(axis=axes[c]) for c in cliques}

    def partition_counts(self, partitions: Sequence[Partition]) -> list[Ints]:
        self.reads.append("partitions")
        return [np.array([TABLE[:4].sum(), TABLE[4:].sum()]) for _ in partitions]

    def occupied(self, clique: Clique) -> OccupiedCells:
        self.reads.append("occupied")
        return OccupiedCells(np.arange(1, 6), TABLE[1:])

    def found_labels(self, column: str) -> LabelCounts:
        self.reads.append("labels")
        return LabelCounts(("common", "rare"), np.array([1000, 1]))


@pytest.fixture(autouse=True)
def _stubs_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrivateTable, "bind", lambda table, _: table)
    monkeypatch.setattr(PrivateTable, "label_counts", lambda table, column: table.found_labels(column))


@dataclass(frozen=True)
class Halves:
    name: str = "halves"
    columns: Clique = AB
    cells: int = 2

    def assign(self, codes: object) -> Ints:
        raise AssertionError("the stub does not assign")


@dataclass(frozen=True)
class FirstCell:
    """Score: how many rows the first cell of each clique holds. One row moves each by at most one unit."""

    name: str = "first cell"
    options: tuple[Clique, ...] = (A, B)
    cliques: tuple[Clique, ...] = (A, B)
    sensitivity: Fraction = Fraction(1)
    monotone: bool = True

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        return np.array([exact[clique][0] for clique in self.cliques])


def door(granted: Cost, unit_rows: int = 1) -> tuple[Curator, StubTable, Recorder]:
    table, recorder = StubTable(unit_rows), Recorder(NoNoise())
    curator = Curator(table, granted, recorder)
    curator.fix_codec(SimpleNamespace(domain=DOMAIN, structural_zeros=()))  # type: ignore[arg-type]
    return curator, table, recorder


PURE, CONCENTRATED = Cost(epsilon=UNIT), Cost(rho=UNIT)


def test_settling_reads_nothing() -> None:
    assert door(PURE)[1].reads == []


def test_measure_splits_the_cost_and_answers_in_order() -> None:
    curator, _, recorder = door(PURE)
    answers = curator.measure([AB, A, Halves()], PURE, weights=[2, 1, 1])
    assert [answer.values.tolist() for answer in answers] == [[0, 1, 2, 3, 4, 5], [3, 12], [6, 9]]
    assert [answer.distribution.parameter for answer in answers] == [Fraction(2), Fraction(4), Fraction(4)]
    assert [exchange.request.sensitivity for exchange in recorder.log] == [1, 1, 1]
    assert curator.left == Cost()
    assert list(curator.transcript) == answers


def test_answers_are_named_after_their_columns() -> None:
    curator, _, _ = door(PURE)
    curator.measure([AB, A], PURE)
    assert [step for step, _ in curator.charges] == ["measure a × b", "measure a"]
    assert curator._name(Clique()) == "total"


def test_gaussian_noise_follows_from_rho_and_the_unit() -> None:
    curator, _, _ = door(CONCENTRATED, unit_rows=3)
    (answer,) = curator.measure([A], CONCENTRATED)
    assert answer.distribution.kind == "gaussian"
    assert answer.distribution.parameter == Fraction(9, 2)  # k² / (2ρ) with k = 3, ρ = 1


def test_laplace_noise_follows_from_epsilon_and_the_unit() -> None:
    curator, _, _ = door(PURE, unit_rows=3)
    (answer,) = curator.measure([A], PURE)
    assert answer.distribution.parameter == 3


def test_overspending_is_refused_before_reading() -> None:
    curator, table, _ = door(Cost(epsilon=UNIT))
    with pytest.raises(BudgetError):
        curator.measure([A], Cost(epsilon=UNIT + 1))
    with pytest.raises(BudgetError):
        curator.select(FirstCell(), Cost(epsilon=UNIT + 1))
    with pytest.raises(BudgetError):
        curator.measure_sparse(AB, Cost(epsilon=UNIT + 1), 1)
    with pytest.raises(BudgetError):
        curator.discover("job", Cost(epsilon=UNIT + 1, delta=1))
    assert table.reads == []
    assert curator.left == Cost(epsilon=UNIT)


def test_a_currency_that_was_not_granted_is_refused() -> None:
    curator, table, _ = door(PURE)
    with pytest.raises(BudgetError):
        curator.measure([A], CONCENTRATED)
    assert table.reads == []


def test_charges_are_kept_in_order_and_add_up() -> None:
    curator, _, _ = door(PURE)
    part = PURE.share(Fraction(1, 4))
    curator.measure([A, B], part)
    curator.select(FirstCell(), part)
    curator.measure_sparse(AB, part, threshold=2)
    assert [step for step, _ in curator.charges] == ["measure a", "measure b", "select first cell", "measure a × b"]
    spent = sum((cost.epsilon for _, cost in curator.charges), 0)
    assert spent + curator.left.epsilon == UNIT


@pytest.mark.parametrize(("monotone", "rate"), [(True, Fraction(1, 2)), (False, Fraction(1, 4))])
def test_selection_rate_counts_the_unit_and_the_factor_two(monotone: bool, rate: Fraction) -> None:
    curator, _, recorder = door(PURE, unit_rows=2)
    chosen = curator.select(FirstCell(monotone=monotone), PURE)
    assert chosen == A  # the first cell of a holds 3 rows, that of b holds 3 as well: argmax takes the first
    assert recorder.log[0].request.rate == rate
    assert recorder.log[0].request.sensitivity == 2


def test_selection_in_the_concentrated_currency_buys_root_eight_rho() -> None:
    curator, _, recorder = door(CONCENTRATED)
    curator.select(FirstCell(monotone=True), Cost(rho=UNIT // 2))  # ρ = ½ buys ε = 2
    assert float(recorder.log[0].request.rate) == pytest.approx(2.0, rel=1e-9)
    assert recorder.log[0].request.rate <= 2


@dataclass
class Counted:
    """Four fixed scores over one table; counts how often it was asked for them, and its bound may be changed."""

    scores_asked: int = 0
    name: str = "counted"
    options: tuple[str, ...] = ("w", "x", "y", "z")
    cliques: tuple[Clique, ...] = (A,)
    sensitivity: Fraction = Fraction(1)
    monotone: bool = False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        self.scores_asked += 1
        return np.array([4, 1, 3, 2], dtype=np.int64)


def test_draws_from_parts_of_the_options_score_them_once_at_the_cost_of_any_draw() -> None:
    curator, table, recorder = door(PURE)
    part, quality = PURE.share(Fraction(1, 8)), Counted()
    assert [curator.select(quality, part, among) for among in ([1, 2, 3], np.array([1, 3]), [1])] == ["y", "z", "x"]
    assert quality.scores_asked == 1
    assert table.reads == ["counts"]
    assert curator.charges == [("select counted", part)] * 3
    assert [entry.request.cells for entry in recorder.log] == [3, 2, 1]
    assert {entry.request.sensitivity for entry in recorder.log} == {Fraction(1)}
    drawn = curator.transcript.of(Selection)
    assert [(draw.options, draw.chosen) for draw in drawn] == [(3, 1), (2, 1), (1, 0)]
    assert curator.select(quality, part) == "w"  # all options: nothing is kept for that
    assert curator.select(Counted(), part, [0, 1]) == "w"
    assert quality.scores_asked == 2


def test_kept_scores_keep_the_bound_they_were_computed_under() -> None:
    """A method that holds the quality and lowers its bound later would otherwise draw too sharply for the cost."""
    curator, _, recorder = door(PURE)
    part, quality = PURE.share(Fraction(1, 8)), Counted(sensitivity=Fraction(8))
    curator.select(quality, part, [0, 1])
    quality.sensitivity, quality.monotone = Fraction(1), True
    curator.select(quality, part, [0, 1])
    assert [entry.request.sensitivity for entry in recorder.log] == [8, 8]
    assert len({entry.request.rate for entry in recorder.log}) == 1


def test_scores_made_anew_have_the_bound_that_is_stated_now() -> None:
    """The other way round: a low bound kept from earlier draws must not serve scores that are computed after it."""
    curator, _, recorder = door(PURE)
    part, quality = PURE.share(Fraction(1, 8)), Counted()
    curator.select(quality, part, [0, 1])
    quality.sensitivity = Fraction(8)
    curator.select(quality, part)
    assert quality.scores_asked == 2
    assert [entry.request.sensitivity for entry in recorder.log] == [1, 8]
    assert recorder.log[1].request.rate * 8 == recorder.log[0].request.rate


def test_kept_scores_go_when_the_codes_are_fixed_anew() -> None:
    curator, _, _ = door(PURE)
    part, quality = PURE.share(Fraction(1, 8)), Counted()
    curator.select(quality, part, [0])
    curator.fix_codec(SimpleNamespace(domain=DOMAIN, structural_zeros=()))  # type: ignore[arg-type]
    curator.select(quality, part, [0])
    assert quality.scores_asked == 2


@pytest.mark.parametrize("among", [[], [4], [-1, 2], [2, 1], [1, 1], [[0, 1]]])
def test_only_increasing_positions_of_options_can_be_drawn_from(among: list[int]) -> None:
    curator, table, _ = door(PURE)
    with pytest.raises(UsageError, match="select counted"):
        curator.select(Counted(), PURE, among)
    assert curator.left == PURE
    assert table.reads == []


def test_discovery_hides_lone_labels_with_the_stated_probability() -> None:
    delta = Cost(epsilon=UNIT, delta=DELTA_UNIT // 10**6)
    curator, _, recorder = door(delta)
    found = curator.discover("job", delta)
    assert found.labels == ("common",)
    # smallest τ with P(noise ≥ τ − 1) = q^(τ−1)/(1+q) ≤ 10⁻⁶, q = e⁻¹
    assert found.threshold == recorder.log[0].request.threshold == 15
    assert curator.left == Cost()


def test_discovery_needs_delta() -> None:
    curator, table, _ = door(PURE)
    with pytest.raises(UsageError, match=r"delta|δ"):
        curator.discover("job", PURE)
    assert table.reads == []


def test_sparse_noise_is_pure_and_needs_a_threshold() -> None:
    curator, table, _ = door(CONCENTRATED)
    with pytest.raises(UsageError, match="pure"):
        curator.measure_sparse(AB, CONCENTRATED, 1)
    curator, table, _ = door(PURE)
    with pytest.raises(UsageError, match="threshold"):
        curator.measure_sparse(AB, PURE, 0)
    assert table.reads == []


def test_nothing_can_be_asked_before_the_codes_are_fixed() -> None:
    curator = Curator(StubTable(), PURE, NoNoise())
    with pytest.raises(UsageError, match="fix_codec"):
        curator.measure([A], PURE)
    assert curator.left == PURE


def test_counts_are_read_once_per_clique_until_the_codes_change() -> None:
    curator, table, _ = door(PURE)
    part = PURE.share(Fraction(1, 8))
    for _ in range(3):
        curator.select(FirstCell(), part)
    curator.measure([A, B], part)
    assert table.reads == ["counts"]
    curator.measure([AB], part)
    assert table.reads == ["counts"] * 2
    curator.fix_codec(SimpleNamespace(domain=DOMAIN, structural_zeros=()))  # type: ignore[arg-type]
    curator.measure([A], part)
    assert table.reads == ["counts"] * 3


def test_kept_counts_are_bounded_and_cannot_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.privacy.curator.KEPT_BYTES", 16)

    @dataclass(frozen=True)
    class Meddler(FirstCell):
        def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
            with pytest.raises(ValueError, match="read-only"):
                exact[A][0] = 7
            return FirstCell.scores(self, exact)

    curator, table, _ = door(PURE)
    part = PURE.share(Fraction(1, 8))
    curator.select(Meddler(), part)  # a (two cells) is kept, b (three cells) is not
    curator.select(Meddler(), part)
    curator.measure([A], part)
    assert table.reads == ["counts"] * 2


def test_cells_of_a_public_table_are_free_and_leave_the_private_one_alone() -> None:
    private, public = StubTable(), StubTable()
    curator = Curator(private, Cost(), NoNoise(), public=public)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="fix_codec"):
        curator.public_cells(AB)
    curator.fix_codec(SimpleNamespace(domain=DOMAIN, structural_zeros=()))  # type: ignore[arg-type]
    found = curator.public_cells(AB)
    assert found.counts.size == found.indices.size > 0
    assert (private.reads, public.reads) == ([], ["occupied"])
    assert curator.charges == []
    bare = Curator(private, Cost(), NoNoise())  # type: ignore[arg-type]
    bare.fix_codec(SimpleNamespace(domain=DOMAIN, structural_zeros=()))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="public="):
        bare.public_cells(AB)
