"""PrivBayes: every column given a few parents, chosen privately; the rows follow the network.

Source: Zhang, Cormode, Procopiuc, Srivastava, Xiao, "PrivBayes" (2014, 2017); the preset `nist` after the description
of the team of that name in the 2018 challenge.

Steps. (1) Every column on its own, at `one_way_share` (presets: the number of rows, at `total_share`). (2) The network:
from a first column, drawn by `structure_seed` or the widest, column after column by the exponential mechanism, d − 1
draws at equal cost, `structure_share` in all, among columns that are left with parents among those chosen. (3) The
tables of every column and its parents, at all that is left. (4) Conditional tables, post-processing.

Privacy. Neighbours differ by the rows of one unit, at most k. Tables move by at most k in L1 and L2: Laplace noise of
scale k/ε_i or Gaussian noise of variance k²/(2ρ_i). The scores move by at most 2k rows (R), ¾k (F) or k·g(N) (I); see
`privacy/questions`. A draw costs ε_e, or ρ_e with ε_e = √(8ρ_e). In the preset `nist` all pair scores are measured at
once with noise instead. All parts add up to the cost. Which parents may be drawn depends on sizes, rules and earlier
answers only.

Differs from the source. The original proof is for replace-one neighbours with n public; here rows are added or
removed, n is noisy, scores are in rows, and noise is half as large for the same ε. By default (preset `refined`):

* columns are measured on their own first, so that the noise of many cells does not move what one-way tables know;
* parents are chosen by score − ½ · expected absolute noise of their table, among all sets, instead of by score among
  maximal θ-useful sets: a table is worth it if it says more than its noise takes away;
* wide parents are offered at coarser levels: the `groups` of the schema, and others of about equal noisy mass;
* tables share their cost by cells^(1/2) (ε) or cells^(2/3) (ρ), are drawn towards independence as far as their noise
  warrants and made to agree with the columns and the parents (`conditionals.py`);
* rows are drawn by controlled rounding.

`published` (β = 0.3, θ = 4, score F if all columns have two codes, else R), `steps_paper` (k = 2, β = 0.5, score I; the
setting of the STEPS papers) and `nist` keep equal shares, the usefulness of the paper (with its noise, twice ours, in τ
and k), negatives set to 0, and independent rows. Coarser parents by halving are an option of `published` (`coarsen`).
Limits of a step: see `parents.py`. `groups` of a category are offered as a coarser parent in every preset. Hierarchies
across columns (`within`) are rules: they tie columns, so the coarser column is a parent of the finer one, or the other
way round, in every network.
"""

from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from understudy.errors import ResourceError, UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.mechanisms.field.network_fit import NetworkFit, Settings
from understudy.mechanisms.field.parents import COUNTED, STEP_CELLS
from understudy.mechanisms.field.structure import pairs_of
from understudy.mechanisms.forecast import facts_of, noisy_step, seconds_for
from understudy.mechanisms.measured import live_columns, times
from understudy.mechanisms.mechanism import Plan, PublicFacts, Step
from understudy.mechanisms.options.checks import check_choice, check_share, check_whole
from understudy.mechanisms.workload import COUNTED_CELLS
from understudy.models.network.bayesian import BayesianNetwork
from understudy.models.restrict import BLOCK_CELLS, check_linked, linked
from understudy.privacy.calibrate import law_for, selection_rate
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import KEPT_BYTES, Curator

__all__ = ["PrivBayes"]

Floats = npt.NDArray[np.float64]
Preset = Literal["refined", "published", "steps_paper", "nist"]
Score = Literal["auto", "R", "F", "I"]

_PRESETS: dict[str, Settings] = {
    "refined": Settings(0.1, 0.4, 0.0, 4.0, None, refined=True),
    "published": Settings(0.3, 0.0, 0.01, 4.0, None),
    "steps_paper": Settings(0.5, 0.0, 0.01, 4.0, 2),
    "nist": Settings(0.1, 0.0, 0.01, 5.0, None, pairs=True),
}
_DRAW_SECONDS = 4e-5


@dataclass(frozen=True, slots=True)
class PrivBayes:
    """Recipe: a Bayesian network chosen by private draws, its tables with noise."""

    name: ClassVar[str] = "privbayes"
    summary: ClassVar[str] = "A Bayesian network with privately chosen parents; the rows follow the network."
    source: ClassVar[str] = (
        "Zhang, Cormode, Procopiuc, Srivastava and Xiao (2017), refined; presets keep the originals."
    )
    needs: ClassVar[str] = "A schema. Columns of up to a few hundred codes."
    limits: ClassVar[str] = "Parents are few where columns are many. Very tangled networks answer no conditions."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure", "concentrated")

    preset: Preset = field(
        default="refined", metadata={"help": "refined, or as in the sources: published, steps_paper, nist"}
    )
    score: Score = field(default="auto", metadata={"help": "R, F (columns of two codes), I, or auto"})
    structure_share: float | None = field(default=None, metadata={"help": "share of the cost for choosing parents"})
    theta: float | None = field(default=None, metadata={"help": "usefulness: least average count over noise of a cell"})
    degree: int | None = field(default=None, metadata={"help": "number of parents; none: as many as are useful"})
    coarsen: int | None = field(
        default=None, metadata={"help": "factor of coarser parent levels; 0: none; none: as the preset has it"}
    )
    rows: int | None = field(default=None, metadata={"help": "public number of rows, instead of a noisy one"})
    most_candidates: int = field(default=4000, metadata={"help": "most candidates of one draw"})
    structure_seed: int = field(default=0, metadata={"help": "seed of the first column (public, not of any noise)"})

    def __post_init__(self) -> None:
        check_choice("preset", self.preset, get_args(Preset))
        check_choice("score", self.score, get_args(Score))
        if self.structure_share is not None:
            check_share("structure_share", self.structure_share)
            settings = _PRESETS[self.preset]
            check_share("all shares together", self.structure_share + settings.one_way_share + settings.total_share)
        theta = self.theta
        if theta is not None and (isinstance(theta, bool) or not 0.0 < theta < 1e9):
            raise UsageError("theta", f"must be a number above 0, got {theta!r}.")
        for name, number, least, most in (
            ("degree", self.degree, 0, 1000),
            ("coarsen", self.coarsen, 0, 1000),
            ("rows", self.rows, 1, 2**40),
        ):
            if number is not None:
                check_whole(name, number, least, most)
        check_whole("most_candidates", self.most_candidates, 1, 10**6)
        check_whole("structure_seed", self.structure_seed, 0, 2**63)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """Columns or total, draws, tables; refuses rules that force a table too large to count."""
        domain, settings = facts.domain, self._settings(facts.domain)
        columns = live_columns(domain)
        _check_rules(facts)
        if settings.degree is not None and settings.degree > 0:
            _check_degree(domain, columns, settings.degree)
        costs = settings.costs(cost, len(columns))
        steps = list[Step]()
        if settings.refined:
            parts = costs.opening.split(settings.weights(cost, [domain.sizes[name] for name in columns]))
            for name, part in zip(columns, parts, strict=True):
                steps.append(noisy_step(f"measure {name}", part, domain.sizes[name], facts.unit_rows))
        elif self.rows is None:
            steps.append(noisy_step("measure total", costs.opening, 1, facts.unit_rows))
        draws = len(columns) - 1
        if draws and settings.pairs:
            pairs = len(pairs_of(domain))
            steps.append(Step(f"score {pairs} pairs", costs.structure, pairs, None, None))
        elif draws:
            selection_rate(costs.draw, Fraction(1), "select parents", monotone=False)
            steps.append(
                Step(f"select {draws} parent sets", times(costs.draw, draws), self.most_candidates, None, None)
            )
        if not settings.refined or draws:
            spent = sum((step.cost for step in steps), Cost())
            tables = Cost(cost.epsilon, cost.rho) - spent
            law = law_for(tables.share(1 / len(columns)), facts.unit_rows, "measure tables")
            steps.append(Step(f"measure {len(columns)} tables", tables, 0, law.scale, None))
        counted = (COUNTED_CELLS if settings.pairs else STEP_CELLS) + sum(domain.sizes.values())
        notes = [
            f"At most {self.most_candidates:,} candidates per draw; tables of up to {COUNTED:,} cells are counted."
        ]
        if self.preset != "refined":
            notes.append(f"Preset {self.preset}: usefulness with the noise of the paper, twice ours.")
        return Plan(
            self.name,
            sum((step.cost for step in steps), Cost()),
            tuple(steps),
            counted,
            KEPT_BYTES + 24 * counted + 32 * COUNTED * len(columns) // 8,
            seconds_for(facts, counted) + draws * self.most_candidates * _DRAW_SECONDS,
            tuple(notes),
            asdict(self),
        )

    def run(self, curator: Curator, cost: Cost) -> BayesianNetwork:
        """Measures columns or the total, draws the network, measures its tables and returns it."""
        self.plan(facts_of(curator), cost)
        return NetworkFit(curator, cost, self._settings(curator.domain)).network()

    def _settings(self, domain: Domain) -> Settings:
        settings = _PRESETS[self.preset]
        binary = all(domain.sizes[name] == 2 for name in live_columns(domain))
        score = self.score
        if score == "auto":
            score = "I" if self.preset == "steps_paper" else "F" if binary and self.preset == "published" else "R"
        if score == "F" and not binary:
            raise UsageError("score F", "needs columns of two codes only.", "Use R.")
        return Settings(
            settings.structure_share if self.structure_share is None else self.structure_share,
            settings.one_way_share,
            0.0 if self.rows is not None else settings.total_share,
            settings.theta if self.theta is None else self.theta,
            settings.degree if self.degree is None else self.degree,
            refined=settings.refined,
            pairs=settings.pairs,
            score=score,
            coarsen=(4 if settings.refined else 0) if self.coarsen is None else self.coarsen,
            rows=self.rows,
            most_candidates=self.most_candidates,
            structure_seed=self.structure_seed,
            binary=binary,
        )


def _check_rules(facts: PublicFacts) -> None:
    """Refuses rules that leave nothing possible, or force more columns into one table than can be counted."""
    domain, cliques = facts.domain, [Clique((name,)) for name in facts.domain.columns]
    groups = linked(domain, cliques, facts.forbidden)
    if all(domain.cells(name for part in group for name in part) <= BLOCK_CELLS for group in groups):
        check_linked(domain, cliques, facts.forbidden, "method privbayes")
    for child in domain.columns:
        tied = {name for rule in facts.forbidden if child in rule.clique for name in rule.clique}
        cells = domain.cells(tied)
        if cells > COUNTED:
            where = f"method privbayes: rules force {', '.join(domain.clique(tied))} into one table"
            raise ResourceError(where, 8 * cells, 8 * COUNTED, "Use coarser bins for these columns or drop a rule.")


def _check_degree(domain: Domain, columns: list[str], degree: int) -> None:
    """Refuses a degree at which no parent set of some column could be counted."""
    smallest = sorted(columns, key=lambda name: domain.sizes[name])
    widest = smallest[-1]
    cells = domain.cells((widest, *smallest[: min(degree, len(columns) - 1)]))
    if cells > COUNTED:
        where = f"method privbayes: {widest} with {degree} parents"
        raise ResourceError(where, 8 * cells, 8 * COUNTED, "Lower the degree or use coarser bins.")
