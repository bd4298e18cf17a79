"""NumpyNetworks: critic and generator on the processor, without any extra package. Post-processing only."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.mechanisms.deep.critic import Critic, average_gradient, effects
from understudy.mechanisms.deep.encoding import Encoding
from understudy.mechanisms.deep.generator import Generator, draw_blocks
from understudy.mechanisms.deep.optimiser import Adam
from understudy.mechanisms.deep.state import (
    Arrays,
    array_of,
    filed,
    floats_of,
    listed,
    structure_draws,
    structure_state,
    taken,
)
from understudy.privacy.training.checkpoint import State

__all__ = ["NumpyNetworks", "Settings"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Settings:
    """Public numbers of the networks and of how they move."""

    columns: int
    hidden: int = 32
    generator_hidden: int = 32
    latent: int = 16
    batch: int = 256
    critic_steps: int = 2
    critic_rate: float = 0.02
    generator_rate: float = 0.01
    critic_momentum: float = 0.0
    generator_momentum: float = 0.0
    averaging: float = 0.99
    clip: float = 0.15
    seed: int = 0

    @property
    def most_norm(self) -> float:
        """What gradients are cut to: a share of the largest norm that weights within ±1 allow (up to a factor)."""
        return float(self.clip * np.sqrt(self.hidden) * (self.columns + 1))


class NumpyNetworks:
    """Both networks, their optimisers, the drawn records of the moment, and the averaged generator."""

    critic: Critic
    generator: Generator
    averaged: Generator

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._steps = 0

    @property
    def most_norm(self) -> float:
        """What a row's gradient is cut to."""
        return self.settings.most_norm

    def start(self, encoding: Encoding) -> None:
        """Random weights from the public seed; the generator begins with the noisy columns, independent."""
        chosen = self.settings
        self._rng = np.random.default_rng(np.random.SeedSequence(chosen.seed, spawn_key=(1,)))
        blocks = encoding.bounds[-1]
        weights = self._rng.normal(0.0, 0.1, (blocks + 1, chosen.hidden))
        self.critic = Critic(weights, self._rng.normal(0.0, 0.1, chosen.hidden))
        self.generator = Generator.fresh(encoding.group_shares(), chosen.latent, chosen.generator_hidden, self._rng)
        self.averaged = Generator([part.copy() for part in self.generator.parts], self.generator.bounds)
        self._columns = encoding.column_of_block
        self._critic_moves = Adam(chosen.critic_rate, chosen.critic_momentum)
        self._generator_moves = Adam(chosen.generator_rate, chosen.generator_momentum)
        self._draw()

    def improve(self, real: Critic) -> None:
        """One critic step, then one generator step where it is due."""
        drawn = average_gradient(self.critic, self._blocks, self.most_norm)
        moves = self._critic_moves.steps([real.weights - drawn.weights, real.output - drawn.output])
        for part, move in zip(self.critic, moves, strict=True):
            part += move
            np.clip(part, -1.0, 1.0, out=part)
        self._steps += 1
        if self._steps % self.settings.critic_steps == 0:
            gains = effects(self.critic, self._blocks, self._columns)
            self.generator.climb(self._latent, self._chances, gains, self._generator_moves)
            for mean, part in zip(self.averaged.parts, self.generator.parts, strict=True):
                mean += (1.0 - self.settings.averaging) * (part - mean)
            self._draw()

    def chances(self, inputs: int) -> Floats:
        """The averaged generator's distributions at inputs that follow from the seed alone."""
        rng = np.random.default_rng(np.random.SeedSequence(self.settings.seed, spawn_key=(2,)))
        return self.averaged.chances(rng.normal(size=(inputs, self.settings.latent)))

    def state(self) -> Arrays:
        """Weights, averages, optimisers, the drawn records of the moment, and where the public seed stands."""
        drawn: Arrays = {"latent": self._latent, "chances": self._chances, "blocks": self._blocks}
        return {
            **filed("critic", listed(self.critic)),
            **filed("generator", listed(self.generator.parts)),
            **filed("averaged", listed(self.averaged.parts)),
            **filed("critic moves", self._critic_moves.state()),
            **filed("generator moves", self._generator_moves.state()),
            **filed("drawn", drawn),
            "steps": np.array(self._steps),
            "structure": structure_state(self._rng),
        }

    def restore(self, state: State) -> None:
        """Goes on from a state; the networks must have been started on the same columns."""
        self.critic = Critic(*floats_of(state, "critic"))
        self.generator.parts = floats_of(state, "generator")
        self.averaged.parts = floats_of(state, "averaged")
        self._critic_moves.restore(taken("critic moves", state))
        self._generator_moves.restore(taken("generator moves", state))
        self._latent = np.asarray(array_of(state, "drawn.latent"), dtype=np.float64)
        self._chances = np.asarray(array_of(state, "drawn.chances"), dtype=np.float64)
        self._blocks = np.asarray(array_of(state, "drawn.blocks"), dtype=np.int32)
        self._steps = int(array_of(state, "steps"))
        self._rng = structure_draws(array_of(state, "structure"))

    def _draw(self) -> None:
        """Fresh records from the generator as it now is."""
        self._latent = self._rng.normal(size=(self.settings.batch, self.settings.latent))
        self._chances = self.generator.chances(self._latent)
        self._blocks = draw_blocks(self._chances, self.generator.bounds, self._rng)
