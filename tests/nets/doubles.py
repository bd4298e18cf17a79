"""The smallest methods and trainer that use every verb of the curator, and runs that are interrupted. For tests.

`Chooser`: a third of the cost for all one-way tables, a third for choosing one pair by the exponential mechanism, a
third for measuring that pair; the parts add up. The score of a pair (`PairError`) is ‖M − M̂‖₁, where M̂ (from noisy
answers alone) is rounded to score units: one row moves one cell of M by one, so it moves the score by at most one row's
worth, in either direction, hence not monotone.

`Grower`: a quarter of the cost each for a tree (halves of the column with the most codes, see `privacy/trees.py`), for
one choice per leaf (`CommonCode`), for noisy scores of all pairs (`PairError` against nothing), and for all one-way
tables; the parts add up. `CommonCode` scores a code of a column by the rows of the leaf that hold it: a row of a leaf
raises one score of that leaf by one row and no other score. Sensitivity one row, monotone.

`Trainee` counts the codes of a column in every step, as often as its course says. Every row adds `length` in the place
of its code; a unit of several rows adds several. Noisy sums are kept as they come.

`Interrupted` starts a small training with real noise and breaks it off where a test wants it: after some steps, or when
the release is about to be written. Such a run may be continued, at no charge, once.
"""

import itertools
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import ClassVar
from unittest import mock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.arrays import Ints
from understudy.domain import SCORE_UNIT, Clique, Course, Distribution
from understudy.errors import UnderstudyError
from understudy.methods.dpwgan import WganTrainer
from understudy.methods.independent import Independent, weighted_total
from understudy.methods.method import Method, Plan, PublicFacts
from understudy.models.product import BlockModel
from understudy.models.tables import norm_sub
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator
from understudy.privacy.ledger import Ledger
from understudy.privacy.training import Contributions
from understudy.privacy.trees import Halving, Ranges
from understudy.release import Release, verify_release
from understudy.release.files import working_place
from understudy.synthesizer import pipeline, synthesize
from understudy.testing import cases as tables


@dataclass(frozen=True, slots=True)
class PairError:
    """How far each pair's exact table is from its estimate (in score units)."""

    estimates: Mapping[Clique, npt.NDArray[np.int64]]
    name: str = "pair"

    @property
    def options(self) -> tuple[Clique, ...]:
        """The pairs."""
        return tuple(self.estimates)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The same pairs."""
        return tuple(self.estimates)

    @property
    def sensitivity(self) -> Fraction:
        """One row moves one cell by one."""
        return Fraction(SCORE_UNIT)

    @property
    def monotone(self) -> bool:
        """No: a row may bring a cell closer to its estimate or take it away."""
        return False

    def scores(self, exact: Mapping[Clique, Ints]) -> Ints:
        """‖M − M̂‖₁ of each pair."""
        parts = [np.abs(exact[clique] * SCORE_UNIT - self.estimates[clique]).sum() for clique in self.options]
        return np.array(parts, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Chooser(Method):
    """Method: all one-way tables, then the pair that independence misses most."""

    name: ClassVar[str] = "chooser"
    summary: ClassVar[str] = "For tests: one-way tables and one chosen pair."
    source: ClassVar[str] = "This package."
    needs: ClassVar[str] = "Two columns."
    limits: ClassVar[str] = "Tests only."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp")

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The plan of `independent` under its own name: the rest is small."""
        return replace(Independent().plan(facts, cost), by=self, fixed=False)

    def run(self, curator: Curator, plan: Plan) -> BlockModel:
        """Measures, chooses, measures; with a single column there is nothing to choose."""
        if len(curator.domain.columns) < 2:
            return Independent().run(curator, plan)
        third = plan.granted.share(Fraction(1, 3))
        domain = curator.domain
        ones = curator.measure([domain.clique([name]) for name in domain.columns], third)
        total = weighted_total(ones)
        parts = {Clique(one.columns): norm_sub(one.values.astype(np.float64), max(total, 1.0)) for one in ones}
        estimates = {}
        for pair in itertools.combinations(domain.columns, 2):
            left, right = parts[Clique(pair[:1])], parts[Clique(pair[1:])]
            table = np.outer(left, right).reshape(-1) / max(total, 1.0)
            estimates[domain.clique(pair)] = np.rint(table * SCORE_UNIT).astype(np.int64)
        chosen = curator.select(PairError(estimates), third)
        (answer,) = curator.measure([chosen], third)
        kept = {clique: part for clique, part in parts.items() if clique[0] not in chosen}
        kept[chosen] = norm_sub(answer.values.astype(np.float64), max(total, 1.0))
        return BlockModel.of_marginals(domain, kept, curator.structural_zeros, total)


@dataclass(frozen=True, slots=True)
class Chains:
    """Every code of a column is a root with one child of the same code, and so on: as many experiments as codes.

    A tree that costs the same at any depth must hide whether a code holds one row, however long its chain is.
    """

    column: str
    most_depth: int
    nodes: tuple[int, ...]
    depth: int = 0
    name: str = "chains"
    decay: float = 2.0
    theta: int = 0

    @property
    def frontier(self) -> Ranges:
        """One range of one code per open chain."""
        return Ranges(self.name, Clique((self.column,)), tuple((code, code + 1) for code in self.nodes))

    @property
    def depths(self) -> Ints:
        """The same depth for all."""
        return np.full(len(self.nodes), self.depth, dtype=np.int64)

    @property
    def finished(self) -> bool:
        """At the public depth, or with no chain left."""
        return self.depth == self.most_depth or not self.nodes

    def after(self, split: npt.NDArray[np.bool_]) -> "Chains":
        """The chains that go on."""
        kept = tuple(code for code, on in zip(self.nodes, split.tolist(), strict=True) if on)
        return replace(self, nodes=kept, depth=self.depth + 1)


@dataclass(frozen=True, slots=True, eq=False)
class CommonCode:
    """How many rows of each cell hold each code of a column; `cells` cells."""

    column: str
    options: Sequence[int]
    cells: int
    name: str = "common code"

    @property
    def columns(self) -> tuple[str, ...]:
        """The column alone."""
        return (self.column,)

    @property
    def allowed(self) -> npt.NDArray[np.bool_]:
        """Every code."""
        return np.ones((self.cells, len(self.options)), dtype=np.bool_)

    @property
    def sensitivity(self) -> Fraction:
        """One row holds one code."""
        return Fraction(SCORE_UNIT)

    @property
    def monotone(self) -> bool:
        """Yes: a row lowers no score."""
        return True

    def scores(self, exact: Mapping[str, Ints]) -> Ints:
        """The counts, in score units."""
        return exact[self.column] * SCORE_UNIT


@dataclass(frozen=True, slots=True)
class Grower(Method):
    """Method: a tree, a choice in each of its leaves, noisy scores of all pairs, all one-way tables."""

    name: ClassVar[str] = "grower"
    summary: ClassVar[str] = "For tests: a tree, choices in its leaves, noisy scores, one-way tables."
    source: ClassVar[str] = "This package."
    needs: ClassVar[str] = "One column."
    limits: ClassVar[str] = "Tests only."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "zcdp")

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """The plan of `independent` under its own name: the rest is small."""
        return replace(Independent().plan(facts, cost), by=self, fixed=False)

    def run(self, curator: Curator, plan: Plan) -> BlockModel:
        """Grows, chooses, scores, measures; with a single column there is no pair to score."""
        domain = curator.domain
        parts = 4 if len(domain.columns) > 1 else 3
        part = plan.granted.share(Fraction(1, parts))
        column = max(domain.columns, key=lambda name: domain.sizes[name])
        tree = curator.grow(Halving.of(column, domain.sizes[column]), part)
        leaves = Ranges("leaves", Clique((column,)), tree.leaves)
        other = domain.columns[0]
        curator.select_within(leaves, CommonCode(other, range(domain.sizes[other]), leaves.cells), part)
        if parts == 4:
            pairs = [domain.clique(pair) for pair in itertools.combinations(domain.columns, 2)]
            curator.score(PairError({pair: np.zeros(domain.cells(pair), np.int64) for pair in pairs}), part)
        return Independent().fit(curator, part)  # type: ignore[return-value]


@dataclass(slots=True)
class Trainee:
    """Counts `codes` codes of the first column; `sums` holds what it was told."""

    codes: int
    course: Course
    length: int
    name: str = "trainee"
    sums: list[Ints] = field(default_factory=list)

    @property
    def first_cells(self) -> int:
        """One coordinate per code."""
        return self.codes

    @property
    def cells(self) -> int:
        """One coordinate per code, and one that nobody touches."""
        return self.codes + 1

    def look(self, codes: npt.NDArray[np.unsignedinteger]) -> Contributions:
        """The length in the place of the code."""
        shared = np.full((len(codes), 1), self.length, dtype=np.int32)
        return Contributions(codes[:, :1].astype(np.int32), shared, np.zeros((len(codes), 0), dtype=np.int32))

    def looked(self, noisy: Ints, distribution: Distribution) -> None:
        """Keeps the sum."""
        self.sums.append(noisy)

    def contribute(self, codes: npt.NDArray[np.unsignedinteger]) -> Contributions:
        """The same as in the first look, and 0 behind."""
        given = self.look(codes)
        return Contributions(given.blocks, given.shared, np.zeros((len(codes), 1), dtype=np.int32))

    def step(self, noisy: Ints) -> None:
        """Keeps the sum."""
        self.sums.append(noisy)


OPTIONS: Mapping[str, object] = {
    "steps": 40,
    "hidden": 4,
    "latent": 2,
    "batch": 8,
    "components": 16,
    "rate": 0.3,
}


@contextmanager
def interrupted_after(steps: int) -> Iterator[None]:
    """Breaks off every training in its next step, once that many were taken."""
    taken, step = 0, WganTrainer.step

    def counted(trainer: WganTrainer, noisy: Ints) -> None:
        nonlocal taken
        taken += 1
        if taken > steps:
            raise KeyboardInterrupt
        step(trainer, noisy)

    with mock.patch.object(WganTrainer, "step", counted), suppress(KeyboardInterrupt):
        yield


@contextmanager
def interrupted_writing() -> Iterator[None]:
    """Breaks off every run when its release would be written."""
    broken = mock.patch.object(pipeline, "save_release", side_effect=KeyboardInterrupt)
    with broken, suppress(KeyboardInterrupt):
        yield


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A run of `dpwgan` on a small table, charged to a ledger, with its release in `folder`."""

    ledger: Ledger
    folder: Path
    options: Mapping[str, object] = field(default_factory=lambda: OPTIONS)

    @property
    def table(self) -> pa.Table:
        """The table, the same each time."""
        return tables.possible_rows(tables.small(), 60, seed=1)

    @property
    def working(self) -> Path:
        """Where the run keeps its state."""
        return working_place(self.folder)

    def run(self, *, resume: bool = False, **changes: object) -> Release:
        """Starts or continues the run."""
        settings: dict[str, object] = {"epsilon": 1.0, "delta": 1e-6, "options": self.options, "ledger": self.ledger}
        settings |= {"out": self.folder, "dataset": "people", "method": "dpwgan", "resume": resume} | changes
        return synthesize(self.table, tables.small(), **settings)  # type: ignore[arg-type]

    def check(self) -> None:
        """Continues a run that was interrupted twice, and tries to get a second release out of it."""
        before = self.ledger.balance("people").spent
        with interrupted_after(5):
            self.run()
        charged = self.ledger.balance("people").spent - before
        with interrupted_writing():
            self.run(resume=True)
        assert not self.folder.exists(), "an interrupted run left a release"
        kept = self.folder.with_name("kept")
        shutil.copytree(self.working, kept)
        release = self.run(resume=True)
        assert self.ledger.balance("people").spent - before == charged, "a continued run was charged again"
        assert release.statement.claim == (1.0, 1e-6), "a continued run claims something else"
        assert not verify_release(self.folder), "the release of a continued run does not verify"
        self.folder.rename(self.folder.with_name("first"))
        shutil.copytree(kept, self.working)
        with suppress(UnderstudyError):
            self.run(resume=True)
        assert not self.folder.exists(), "one charge yielded two releases"
        assert not self.ledger.verify(), "the ledger does not verify"
