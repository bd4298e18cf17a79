"""dpwgan: a generative adversarial network trained on noisy sums of clipped gradients.

Source: the DP-WGAN entry of the 2018 NIST challenge (UCLANESL), after Abadi et al. (2016) and Arjovsky et al. (2017).

Steps. (1) A first look at all rows: a noisy count of every code of every column. (2) `steps` steps: rows are sampled at
`rate`, each contributes the clipped gradient of the critic's score, discrete Gaussian noise is added to the sum, critic
and generator move (`wgan.py`). (3) The generator, held at `components` fixed inputs, is a mixture of products; its
columns are raked to the noisy counts.

Privacy. One question at the door (`train`), one price (ε, δ) for all of it: neighbours differ by one unit, its
contributions are bounded in L2 norm, moments of both directions add up over the first look and the steps
(`privacy/training/accountant.py`). Whole numbers from the gradient to the noisy sum: no caveat about floats. The noise
is calibrated to (ε, δ) before the first row is read, and a batch is divided by its expected size, from the noisy number
of rows. Everything after a noisy sum is post-processing, on a processor or on a GPU. All that is asked is that one
question, so a run can be interrupted and continued from a checkpoint (`privacy/training/checkpoint.py`).

Differs from the source. Rows are sampled by coins (the source walked through shuffled batches and accounted for
coins). One joint clip for all weights. The whole budget is used: the source left most of it. Columns get a share of the
budget of their own; wide columns enter as groups of codes of about equal noisy mass, instead of numbers divided by 100.
Drawn records are hard ones, and the generator's gradient averages over all one-column changes of them. The generator is
averaged over its steps. Rate, steps and output size follow from options and noisy counts, never from the table.
"""

import importlib
import importlib.util
import math
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import ClassVar, Literal, get_args

import numpy as np

from understudy.errors import UsageError
from understudy.marginals.answer import Course
from understudy.marginals.domain import Domain
from understudy.mechanisms.deep.numpy_networks import NumpyNetworks, Settings
from understudy.mechanisms.deep.raking import raked
from understudy.mechanisms.deep.wgan import Networks, WganTrainer
from understudy.mechanisms.forecast import facts_of, seconds_for
from understudy.mechanisms.mechanism import Plan, PublicFacts, Step
from understudy.models.deep.mixture import MixtureModel
from understudy.models.restrict import check_linked
from understudy.privacy.cost import Cost, Currency
from understudy.privacy.curator import Curator
from understudy.privacy.training.accountant import training_laws

__all__ = ["DpWgan"]

Device = Literal["cpu", "cuda"]

_CLIPS = (1024, 128, 32)
"""Steps of the integer grid within the clipping norm; coarser ones only where noise would leave its range."""

_RAKING_ROUNDS = 50
_TIED_CELLS = 2**28
_DRAWS_PER_SECOND = 1.5e7
_GRADIENTS_PER_SECOND = 2e8


@dataclass(frozen=True, slots=True)
class DpWgan:
    """Recipe: noisy columns, then a critic and a generator trained on noisy sums of gradients."""

    name: ClassVar[str] = "dpwgan"
    summary: ClassVar[str] = "A generative adversarial network trained with noisy gradients; all columns at once."
    source: ClassVar[str] = "UCLANESL's entry of the 2018 NIST challenge; Abadi et al. (2016), Arjovsky et al. (2017)."
    needs: ClassVar[str] = "δ above 0. Many rows; a GPU is optional (device=cuda, with understudy[gan])."
    limits: ClassVar[str] = "All rows are held in memory as codes. What it learns of a relationship has no error bar."
    currencies: ClassVar[tuple[Currency, ...]] = ("pure",)
    spends_delta: ClassVar[bool] = True
    keeps_checkpoints: ClassVar[bool] = True

    steps: int = field(default=500, metadata={"help": "steps of the critic, each on sampled rows"})
    rate: float = field(default=0.02, metadata={"help": "probability with which a row takes part in a step"})
    columns_share: float = field(default=0.5, metadata={"help": "share of ε that the noisy columns would cost alone"})
    groups: int = field(default=12, metadata={"help": "most groups of codes per column that the networks tell apart"})
    hidden: int = field(default=32, metadata={"help": "hidden numbers of critic and generator"})
    latent: int = field(default=16, metadata={"help": "random numbers that go into the generator"})
    batch: int = field(default=256, metadata={"help": "records drawn from the generator in a step"})
    critic_steps: int = field(default=2, metadata={"help": "critic steps for each step of the generator"})
    critic_rate: float = field(default=0.02, metadata={"help": "step size of the critic"})
    generator_rate: float = field(default=0.01, metadata={"help": "step size of the generator"})
    components: int = field(default=2048, metadata={"help": "inputs at which the finished generator is held"})
    structure_seed: int = field(default=0, metadata={"help": "public seed of starting weights and drawn records"})
    device: Device = field(default="cpu", metadata={"help": "where the networks move: cpu or cuda"})

    def __post_init__(self) -> None:
        whole = {"steps": 10**6, "groups": 2**16, "hidden": 4096, "latent": 1024, "batch": 2**20}
        for key, most in {**whole, "critic_steps": 1000, "components": 2**18}.items():
            value = getattr(self, key)
            if type(value) is not int or not 1 <= value <= most:
                raise UsageError(f"option {key!r}", f"must be a whole number from 1 to {most:,}, got {value!r}.")
        if type(self.structure_seed) is not int or self.structure_seed < 0:
            raise UsageError(
                "option 'structure_seed'", f"must be a whole number, 0 or more, got {self.structure_seed!r}."
            )
        for key, highest in {"rate": 0.99, "columns_share": 0.95, "critic_rate": 1.0, "generator_rate": 1.0}.items():
            value = getattr(self, key)
            if not isinstance(value, int | float) or not 1e-6 <= value <= highest:
                raise UsageError(f"option {key!r}", f"must be a number from 0.000001 to {highest}, got {value!r}.")
        if self.device not in get_args(Device):
            raise UsageError(f"option 'device': {self.device!r}", "must be cpu or cuda.")

    def plan(self, facts: PublicFacts, cost: Cost) -> Plan:
        """One question for the whole cost; refuses rules that tie too much together, and devices that are missing."""
        domain = facts.domain
        tied = check_linked(
            domain, [domain.clique([name]) for name in domain.columns], facts.forbidden, f"method {self.name}"
        )
        if self.device == "cuda":
            _check_torch()
        course = self._course(cost)
        _, law = training_laws(cost, course, f"train {self.name}")
        codes = sum(domain.sizes.values())
        critic = self._critic_cells(domain)
        components = _components(self.components, tied if facts.forbidden else 1)
        rows = facts.rows_hint if facts.rows_hint is not None else 10**6
        work = critic / _DRAWS_PER_SECOND + rows * self.rate * self.hidden * len(domain.columns) / _GRADIENTS_PER_SECOND
        noise = law.scale / course.clip
        return Plan(
            self.name,
            cost,
            (Step(f"train {self.name}", cost, codes + critic, noise, None),),
            codes + critic,
            8 * (4 * components * codes + 6 * critic + 4 * tied) + 4 * rows * len(domain.columns),
            seconds_for(facts, codes) + self.steps * work,
            (
                f"{self.steps:,} steps at rate {self.rate:g}; noise σ = {noise:.4g} of the most a unit adds to a step.",
                "What is learned of a relationship between columns has no error bar.",
            ),
            asdict(self),
        )

    def run(self, curator: Curator, cost: Cost) -> MixtureModel:
        """Trains through the door and returns the generator as a mixture with the noisy columns."""
        facts = facts_of(curator)
        self.plan(facts, cost)
        domain = curator.domain
        trainer = WganTrainer(
            tuple(domain.sizes.values()),
            self._course(cost),
            curator.unit_rows,
            self._networks(len(domain.columns)),
            self.groups,
        )
        curator.train(trainer, cost)
        encoding = trainer.encoding
        assert encoding is not None
        tied = check_linked(
            domain, [domain.clique([name]) for name in domain.columns], facts.forbidden, f"method {self.name}"
        )
        components = _components(self.components, tied if facts.forbidden else 1)
        found = encoding.code_chances(trainer.networks.chances(components))
        chances = dict(zip(domain.columns, found, strict=True))
        mixture = MixtureModel(domain, np.full(components, 1.0 / components), chances, curator.forbidden, trainer.total)
        return raked(mixture, encoding.shares, _RAKING_ROUNDS)

    def _course(self, cost: Cost) -> Course:
        """The finest grid whose noise is within reach; depends on options and price alone."""
        gap = Fraction(-1.0 / math.log1p(-self.rate)).limit_denominator(10**6)
        refusal: UsageError | None = None
        for clip in _CLIPS:
            course = Course(clip, self.steps, gap, Fraction(self.columns_share).limit_denominator(10**6))
            try:
                training_laws(cost, course, f"train {self.name}")
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
        settings = Settings(
            columns,
            self.hidden,
            self.hidden,
            self.latent,
            self.batch,
            self.critic_steps,
            critic_rate=self.critic_rate,
            generator_rate=self.generator_rate,
            seed=self.structure_seed,
        )
        if self.device == "cpu":
            return NumpyNetworks(settings)
        from understudy.mechanisms.deep.torch_networks import TorchNetworks  # an optional package

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
