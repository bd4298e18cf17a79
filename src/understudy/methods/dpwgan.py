"""dpwgan: a generative adversarial network trained on noisy sums of clipped gradients.

Source: the DP-WGAN entry of the 2018 NIST challenge (UCLANESL), after Abadi et al. (2016) and Arjovsky et al. (2017).

Steps. (1) A first look at all rows: a noisy count of every code of every column (none if `columns_share` is 0). (2)
`steps` steps: rows are sampled at `rate`, each contributes the clipped gradient of the critic's score, discrete
Gaussian noise is added to the sum, critic and generator move (`networks.py`). (3) The generator, held at `components`
fixed inputs, is a mixture of products; its columns are raked to the noisy counts, if there are any.

The first look: every row adds a one-hot vector of all its codes, and the noisy sum gives the number of rows and the
distribution of each column. A step: sampled rows contribute the gradients of the critic's real term, cut to a public
norm; the noisy sum, divided by the *expected* number of rows in a batch, moves the critic together with the (public)
term of drawn records; every few steps the generator climbs the critic. Critic weights are kept within ±1. Raking is
iterative proportional fitting (Deming and Stephan 1940) on a mixture of products: multiplying the joint distribution by
a factor per code of one column keeps its form. A component's line of that column is multiplied and scaled back to 1,
and its weight takes up the scale. Rules stay as they are.

Privacy. One query (`train`), one cost (ε, δ) for all of it: neighbours differ by one unit, its contributions are
bounded in L2 norm, moments of both directions add up over the first look and the steps (`privacy/training.py`). Whole
numbers from the gradient to the noisy sum: no caveat about floats. The noise is calibrated to (ε, δ) before the first
row is read, and a batch is divided by its expected size, from the noisy number of rows. Everything after a noisy sum is
post-processing with a public seed, on a processor or on a GPU. All that is asked is that one query, so a run can be
interrupted and continued from a checkpoint (`privacy/training.py`).

A row's contribution depends on the row, on weights that were made from noisy sums, and on public settings. The one-hot
vector has norm √columns · value ≤ clip/k, the gradient is cut to (clip − ½√entries)/k before each of its entries is
rounded to the nearest whole number, which adds at most ½ to each: a row stays within clip/k, a unit of k rows within
clip, and the curator leaves out what does not.

Without a first look the steps have all of (ε, δ), and the table tells nothing but their noisy sums: columns enter as
ranges of codes of equal length, a batch is divided by `batch`, and the number of rows is `batch`/`rate`: both public.

The preset `published` is the entry's own form: hidden layers of 1,024, latent dimension 64, batches of 64, critic
weights within ±0.01, ten critic steps for a step of the generator, both at rate 0.001, no first look, no raking, the
last generator and not an average. Its gradients are cut to norm 2, which four weight arrays cut to norm 1 each have
together. It sampled 64 of n rows in a step and walked 20 times through them: set `rate` to 64/n̂ for a public guess n̂
of the number of rows, and `steps` to 20/rate. In this form, too, coins decide who takes part and the whole budget is
used; noise is in whole numbers and calibrated beforehand, where the entry stopped once its account was spent.

Differs from the source. Rows are sampled by coins (the source walked through shuffled batches and accounted for coins).
One joint clip for all weights. The whole budget is used: the source left most of it. Columns get a share of the budget
of their own (not in the preset); wide columns enter as groups of codes of about equal noisy mass, instead of numbers
divided by 100. Drawn records are hard ones, and the generator's gradient averages over all one-column changes of them.
The generator is averaged over its steps (not in the preset), starts as columns without dependence, and is kept at a
fixed list of inputs. Below 0 the rectifier has slope 0.2, there 0.01. Rate, steps and output size follow from options
and noisy counts, never from the table.
"""

import importlib
import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np

from understudy.arrays import Floats, Ints, Unsigned
from understudy.domain import Course, Distribution, Domain
from understudy.errors import UsageError
from understudy.methods.method import Method, Plan, PublicFacts, Step, seconds_for
from understudy.methods.networks import Critic, Encoding, NetworkSettings, NumpyNetworks, contributions, one_hot_blocks
from understudy.models.mixture import MixtureModel
from understudy.models.tables import check_linked
from understudy.options import option
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator
from understudy.privacy.training import Contributions, State, training_distributions

_MOST_FACTOR = 1e3
_CLOSE = 1e-6


def raked(model: MixtureModel, targets: Sequence[Floats], rounds: int) -> MixtureModel:
    """The model with every column's distribution brought to its target, as far as rules allow, in `rounds` rounds."""
    for _ in range(rounds):
        off = 0.0
        for name, target in zip(model.domain.columns, targets, strict=True):
            found = model.marginal(model.domain.clique([name]))
            off = max(off, float(np.abs(found - target).sum()))
            factors = np.clip(target / np.maximum(found, 1e-300), 1 / _MOST_FACTOR, _MOST_FACTOR)
            model = _scaled(model, name, factors)
        if off < _CLOSE:
            break
    return model


def _scaled(model: MixtureModel, name: str, factors: Floats) -> MixtureModel:
    part = model.probabilities[name] * factors
    mass = part.sum(axis=1)
    weights = model.weights * mass
    probabilities = {**model.probabilities, name: part / mass[:, np.newaxis]}
    return MixtureModel(model.domain, weights / weights.sum(), probabilities, model.structural_zeros, model.total)


class Networks(Protocol):
    """Critic and generator as they are trained; sees no row, only noisy averages."""

    critic: Critic

    @property
    def most_norm(self) -> float:
        """What a row's gradient is cut to."""
        ...

    def start(self, encoding: Encoding) -> None:
        """Builds the networks, once the columns are known."""
        ...

    def improve(self, real: Critic) -> None:
        """One step: the noisy mean gradient of the critic's score on rows."""
        ...

    def probabilities(self, inputs: int) -> Floats:
        """The generator's distributions at a fixed list of that many inputs."""
        ...

    def state(self) -> State:
        """All of it as arrays, made of noisy averages, settings and the public seed."""
        ...

    def restore(self, state: State) -> None:
        """Goes on from a state, once started on the same columns."""
        ...


@dataclass(slots=True)
class WganTrainer:
    """The optimiser that the curator takes: turns rows into bounded contributions, and noisy sums into progress."""

    sizes: tuple[int, ...]
    course: Course
    unit_rows: int
    networks: Networks
    most_groups: int
    name: str = "dpwgan"
    encoding: Encoding | None = None
    total: float = 0.0

    @property
    def first_cells(self) -> int:
        """One coordinate per code of every column."""
        return sum(self.sizes)

    @property
    def cells(self) -> int:
        """One coordinate per number of the critic."""
        return self.networks.critic.size

    @property
    def first_value(self) -> int:
        """What a row adds to each of its codes in the first look."""
        return max(1, math.isqrt((self.course.clip // self.unit_rows) ** 2 // len(self.sizes)))

    def look(self, codes: Unsigned) -> Contributions:
        """The same whole number in the place of each code."""
        value = np.full((len(codes), 1), self.first_value, dtype=np.int32)
        return Contributions(one_hot_blocks(codes, self.sizes), value, np.zeros((len(codes), 0), dtype=np.int32))

    def looked(self, noisy: Ints, distribution: Distribution) -> None:
        """Fixes groups, shares and the number of rows."""
        counts = column_counts(noisy, self.sizes, self.first_value)
        # Every column's noisy sum is the number of rows; noise grows with the number of codes.
        weights = np.array([1.0 / size for size in self.sizes])
        self.total = max(0.0, float(weights @ [part.sum() for part in counts] / weights.sum()))
        self.encoding = Encoding.of(counts, self.most_groups)
        self.networks.start(self.encoding)

    def begin(self, rows: float) -> None:
        """Starts without a first look: ranges of codes of equal length, and a public number of rows."""
        self.total = rows
        self.encoding = Encoding.of([np.ones(size) for size in self.sizes], self.most_groups)
        self.networks.start(self.encoding)

    def contribute(self, codes: Unsigned) -> Contributions:
        """Gradients of the critic's score, cut and rounded."""
        assert self.encoding is not None
        return contributions(self.networks.critic, self.encoding.blocks(codes), self.networks.most_norm, self._radius())

    def step(self, noisy: Ints) -> None:
        """Moves the networks by the noisy mean gradient over the expected number of rows."""
        expected = max(1.0, self.total * -math.expm1(-1.0 / float(self.course.gap)))
        mean: Floats = noisy.astype(np.float64) * (self.networks.most_norm / (self._radius() * expected))
        split = self.networks.critic.weights.size
        shape = self.networks.critic.weights.shape
        self.networks.improve(Critic(np.asarray(mean[:split].reshape(shape)), np.asarray(mean[split:])))

    def state(self) -> State:
        """The networks; what the first look told is kept beside them."""
        return self.networks.state()

    def restore(self, state: State) -> None:
        """Puts the networks back, after the first look was told."""
        self.networks.restore(state)

    def _radius(self) -> float:
        """The norm on the integer grid to which a row's gradient is cut, with room for rounding."""
        bound = self.course.clip / self.unit_rows
        entries = (len(self.sizes) + 2) * self.networks.critic.output.size
        return max(bound - math.sqrt(entries) / 2, bound / 4)


def column_counts(noisy: Ints, sizes: tuple[int, ...], value: int) -> list[Floats]:
    """The first look in rows, column by column."""
    ends = np.cumsum(sizes)[:-1]
    return [part / value for part in np.split(noisy.astype(np.float64), ends)]


Device = Literal["cpu", "cuda"]
Preset = Literal["none", "published"]

_PUBLISHED: Mapping[str, Any] = {
    "hidden": 1024,
    "latent": 64,
    "batch": 64,
    "critic_steps": 10,
    "critic_rate": 0.001,
    "generator_rate": 0.001,
    "weight_bound": 0.01,
    "gradient_norm": 2.0,
    "averaging": 0.0,
    "columns_share": 0.0,
}
"""The numbers of the challenge's entry."""

_CLIPS = (1024, 128, 32)
"""Steps of the integer grid within the clipping norm; coarser ones only where noise would leave its range."""

_RAKING_ROUNDS = 50
_TIED_CELLS = 2**28
_DRAWS_PER_SECOND = 1.5e7
_GRADIENTS_PER_SECOND = 2e8


@dataclass(frozen=True, slots=True)
class DpWgan(Method):
    """Method: noisy columns, then a critic and a generator trained on noisy sums of gradients."""

    name: ClassVar[str] = "dpwgan"
    summary: ClassVar[str] = "A generative adversarial network trained with noisy gradients; all columns at once."
    source: ClassVar[str] = "UCLANESL's entry of the 2018 NIST challenge; Abadi et al. (2016), Arjovsky et al. (2017)."
    needs: ClassVar[str] = "δ above 0. Many rows; a GPU is optional (device=cuda, with understudy[gan])."
    limits: ClassVar[str] = (
        "All rows are held in memory as codes. What it learns about a relationship has no error bar."
    )
    currencies: ClassVar[tuple[Currency, ...]] = ("pure",)
    spends_delta: ClassVar[bool] = True
    keeps_checkpoints: ClassVar[bool] = True

    steps: int = option(500, help="steps of the critic, each on sampled rows", least=1, most=10**6)
    rate: float = option(0.02, help="probability with which a row takes part in a step", least=1e-6, most=0.99)
    preset: Preset = option("none", help="published: networks and updates of the challenge's entry; set rate and steps")
    columns_share: float = option(
        0.5,
        help="share of ε that the noisy one-way tables would cost alone; 0: no such tables, no raking",
        least=1e-6,
        most=0.95,
        also=(0.0, 0),
    )
    groups: int = option(
        12, help="maximum number of groups of codes per column that the networks distinguish", least=1, most=2**16
    )
    hidden: int = option(32, help="units in the hidden layer of critic and generator", least=1, most=4096)
    latent: int = option(16, help="dimension of the generator's random input", least=1, most=1024)
    batch: int = option(256, help="records drawn from the generator in a step", least=1, most=2**20)
    critic_steps: int = option(2, help="number of critic steps for each generator step", least=1, most=1000)
    critic_rate: float = option(0.02, help="learning rate of the critic", least=1e-6, most=1)
    generator_rate: float = option(0.01, help="learning rate of the generator", least=1e-6, most=1)
    weight_bound: float = option(1.0, help="weights of the critic are kept within ± this number", least=1e-6, most=1)
    gradient_norm: float = option(
        0.0, help="norm to which a row's gradient is clipped; 0: by the size of the critic", least=0, most=1e6
    )
    averaging: float = option(
        0.99, help="weight of earlier steps in the averaged generator; 0: the last step alone", least=0, most=0.9999
    )
    components: int = option(2048, help="number of latent points kept from the trained generator", least=1, most=2**18)
    structure_seed: int = option(0, help="public seed of the initial weights and of generated records", least=0)
    device: Device = option("cpu", help="device that trains the networks: cpu or cuda")

    def _check_together(self) -> None:
        if self.preset == "published":
            self._published()

    def informed(self, facts: PublicFacts) -> Self:
        """The same with the numbers of its preset, so that a release records them."""
        return self._published() if self.preset == "published" else self

    def _published(self) -> Self:
        """The preset written out; an option that was set to something else is refused."""
        usual = {field.name: field.default for field in fields(self)}
        for name, value in _PUBLISHED.items():
            if getattr(self, name) not in (usual[name], value):
                raise UsageError(name, f"is {value:g} in the preset published.", "Drop it or the preset.")
        if all(getattr(self, name) == value for name, value in _PUBLISHED.items()):
            return self
        return replace(self, **_PUBLISHED)

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """One query for the whole cost; refuses rules that tie too much together, and devices that are missing."""
        informed = self.informed(facts)
        return self._planned(facts, cost) if informed is self else informed.plan(facts, cost)

    def _planned(self, facts: PublicFacts, cost: Cost) -> Plan:
        domain = facts.domain
        tied = check_linked(
            domain, [domain.clique([name]) for name in domain.columns], facts.structural_zeros, f"method {self.name}"
        )
        if self.device == "cuda":
            _check_torch()
        course = self._course(cost)
        _, distribution = training_distributions(cost, course, f"train {self.name}")
        codes = sum(domain.sizes.values())
        looked = codes if self.columns_share else 0
        critic = self._critic_cells(domain)
        components = _components(self.components, tied if facts.structural_zeros else 1)
        rows = facts.rows_hint if facts.rows_hint is not None else 10**6
        work = critic / _DRAWS_PER_SECOND + rows * self.rate * self.hidden * len(domain.columns) / _GRADIENTS_PER_SECOND
        noise = distribution.scale / course.clip
        return Plan(
            self,
            cost,
            cost,
            (Step(f"train {self.name}", cost, looked + critic, noise, None),),
            looked + critic,
            8 * (4 * components * codes + 6 * critic + 4 * tied) + 4 * rows * len(domain.columns),
            seconds_for(facts, codes) + self.steps * work,
            (
                *self._rows_note(),
                f"{self.steps:,} steps at rate {self.rate:g}; noise σ = {noise:.4g} of the most that a unit can "
                "add to a step.",
                "What is learned about a relationship between columns has no error bar.",
            ),
            schedule=(course, components),
        )

    def run(self, curator: Curator, plan: Plan) -> MixtureModel:
        """Trains through the curator and returns the generator as a mixture with the noisy columns."""
        domain = curator.domain
        course, components = plan.schedule
        trainer = WganTrainer(
            tuple(domain.sizes.values()),
            course,
            curator.unit_rows,
            self._networks(len(domain.columns)),
            self.groups,
        )
        if not self.columns_share:
            trainer.begin(self._rows)
        curator.train(trainer, plan.granted)
        encoding = trainer.encoding
        assert encoding is not None
        found = encoding.code_probabilities(trainer.networks.probabilities(components))
        probabilities = dict(zip(domain.columns, found, strict=True))
        mixture = MixtureModel(
            domain, np.full(components, 1.0 / components), probabilities, curator.structural_zeros, trainer.total
        )
        return raked(mixture, encoding.shares, _RAKING_ROUNDS) if self.columns_share else mixture

    @property
    def _rows(self) -> float:
        """Without a first look: the number of rows of which a batch is expected to be as large as a drawn one."""
        return self.batch / self.rate

    def _rows_note(self) -> tuple[str, ...]:
        if self.columns_share:
            return ()
        return (f"No first look: the table is taken to have batch/rate = {self._rows:,.0f} rows.",)

    def _course(self, cost: Cost) -> Course:
        """The finest grid whose noise is within reach; depends on options and cost alone."""
        gap = Fraction(-1.0 / math.log1p(-self.rate)).limit_denominator(10**6)
        refusal: UsageError | None = None
        for clip in _CLIPS:
            course = Course(clip, self.steps, gap, Fraction(self.columns_share).limit_denominator(10**6))
            try:
                training_distributions(cost, course, f"train {self.name}")
            except UsageError as error:
                refusal = error
            else:
                return course
        assert refusal is not None
        raise refusal

    def _critic_cells(self, domain: Domain) -> int:
        """The most numbers the critic can have."""
        return (sum(min(size, self.groups) for size in domain.sizes.values()) + 2) * self.hidden

    def _networks(self, columns: int) -> Networks:
        settings = NetworkSettings(
            columns,
            self.hidden,
            self.hidden,
            self.latent,
            self.batch,
            self.critic_steps,
            critic_rate=self.critic_rate,
            generator_rate=self.generator_rate,
            averaging=self.averaging,
            norm=self.gradient_norm,
            weight_bound=self.weight_bound,
            seed=self.structure_seed,
        )
        if self.device == "cpu":
            return NumpyNetworks(settings)
        from understudy.methods.torch_networks import TorchNetworks  # an optional package

        return TorchNetworks(settings, self.device)


def _components(wanted: int, tied: int) -> int:
    """As many components as keep tables of tied columns within reach."""
    return max(1, min(wanted, _TIED_CELLS // tied))


def _check_torch() -> None:
    """Raises UsageError unless torch and a CUDA device are there."""
    fix = "Install understudy[gan] on a machine with a GPU, or drop device=cuda."
    if importlib.util.find_spec("torch") is None:
        raise UsageError("device cuda", "needs the package torch.", fix)
    if not importlib.import_module("torch").cuda.is_available():
        raise UsageError("device cuda", "torch finds no CUDA device here.", fix)
