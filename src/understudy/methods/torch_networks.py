"""TorchNetworks: the same networks in torch, for a GPU. Needs `understudy[gan]`. Post-processing only.

Rows never come here: their gradients are computed on the processor, in whole numbers, whatever the device. So a release
made with a GPU carries the same promise; rounding and the order of sums on the device can change what is learned, not
what is protected.
"""

import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from understudy.arrays import Floats
from understudy.methods.networks import (
    SLOPE,
    Arrays,
    Critic,
    Encoding,
    Generator,
    NetworkSettings,
    array_of,
    filed,
    floats_of,
    listed,
    taken,
)
from understudy.privacy.training import State

# Tensors belong to a package that need not be installed, hence `Any` inside this file only.


class TorchNetworks:
    """Critic and generator as tensors on a device; the critic's weights are copied back for the rows' gradients."""

    critic: Critic

    def __init__(self, settings: NetworkSettings, device: str) -> None:
        self.settings = settings
        self._torch: Any = importlib.import_module("torch")
        self._device = device
        self._steps = 0

    @property
    def most_norm(self) -> float:
        """What a row's gradient is cut to."""
        return self.settings.most_norm

    def start(self, encoding: Encoding) -> None:
        """The same start as on the processor, from the same public seed."""
        chosen, torch = self.settings, self._torch
        rng = np.random.default_rng(np.random.SeedSequence(chosen.seed, spawn_key=(1,)))
        self._bounds = encoding.bounds
        weights = rng.normal(0.0, 0.1, (self._bounds[-1] + 1, chosen.hidden))
        self.critic = Critic(weights, rng.normal(0.0, 0.1, chosen.hidden))
        made = Generator.fresh(encoding.group_shares(), chosen.latent, chosen.generator_hidden, rng)
        self._rng = torch.Generator(device=self._device).manual_seed(chosen.seed)
        self._weights, self._output = self._tensor(self.critic.weights), self._tensor(self.critic.output)
        self._parts = [self._tensor(part) for part in made.parts]
        self._averaged = [part.clone() for part in self._parts]
        self._critic_moves = _Adam(torch, chosen.critic_rate, chosen.critic_momentum)
        self._generator_moves = _Adam(torch, chosen.generator_rate, chosen.generator_momentum)
        self._draw()

    def improve(self, real: Critic) -> None:
        """One critic step, then one generator step where it is due."""
        torch = self._torch
        uphill = [self._tensor(real.weights), self._tensor(real.output)]
        moves = self._critic_moves.steps([a - b for a, b in zip(uphill, self._drawn_gradient(), strict=True)])
        bound = self.settings.weight_bound
        for part, move in zip((self._weights, self._output), moves, strict=True):
            part.add_(move).clamp_(-bound, bound)
        self._steps += 1
        if self._steps % self.settings.critic_steps == 0:
            self._climb()
            for mean, part in zip(self._averaged, self._parts, strict=True):
                mean.add_(part - mean, alpha=1.0 - self.settings.averaging)
            self._draw()
        if self._device != "cpu":
            torch.cuda.synchronize()
        self.critic = Critic(self._array(self._weights), self._array(self._output))

    def probabilities(self, inputs: int) -> Floats:
        """The averaged generator's distributions at inputs that follow from the seed alone."""
        rng = np.random.default_rng(np.random.SeedSequence(self.settings.seed, spawn_key=(2,)))
        latent = rng.normal(size=(inputs, self.settings.latent))
        return Generator([self._array(part) for part in self._averaged], self._bounds).probabilities(latent)

    def state(self) -> Arrays:
        """Weights, averages, optimisers, the drawn records of the moment, and where the public seed stands."""
        drawn = (self._latent, self._before, self._active, self._probabilities, self._blocks)
        return {
            **filed("critic", listed(self._arrays([self._weights, self._output]))),
            **filed("generator", listed(self._arrays(self._parts))),
            **filed("averaged", listed(self._arrays(self._averaged))),
            **filed("critic moves", self._critic_moves.state()),
            **filed("generator moves", self._generator_moves.state()),
            **filed("drawn", listed(self._arrays(drawn))),
            "steps": np.array(self._steps),
            "structure": self._rng.get_state().cpu().numpy(),
        }

    def restore(self, state: State) -> None:
        """Goes on from a state; the networks must have been started on the same columns."""
        self._weights, self._output = map(self._tensor, floats_of(state, "critic"))
        self._parts = [self._tensor(part) for part in floats_of(state, "generator")]
        self._averaged = [self._tensor(part) for part in floats_of(state, "averaged")]
        self._critic_moves.restore(taken("critic moves", state), self._tensor)
        self._generator_moves.restore(taken("generator moves", state), self._tensor)
        drawn = floats_of(state, "drawn")
        self._latent, self._before, self._active, self._probabilities = map(self._tensor, drawn[:4])
        self._blocks = self._torch.tensor(drawn[4].astype(np.int64), device=self._device)
        self._steps = int(array_of(state, "steps"))
        self._rng.set_state(self._torch.tensor(array_of(state, "structure").astype(np.uint8)))
        self.critic = Critic(self._array(self._weights), self._array(self._output))

    def _arrays(self, tensors: Sequence[Any]) -> list[Floats]:
        return [self._array(tensor) for tensor in tensors]

    def _tensor(self, array: Floats) -> Any:
        return self._torch.tensor(array, dtype=self._torch.float32, device=self._device)

    def _array(self, tensor: Any) -> Floats:
        return np.ascontiguousarray(tensor.cpu().numpy(), dtype=np.float64)

    def _draw(self) -> None:
        """Fresh records from the generator as it now is."""
        torch, chosen = self._torch, self.settings
        shape = (chosen.batch, chosen.latent)
        self._latent = torch.randn(shape, generator=self._rng, device=self._device)
        before = self._latent @ self._parts[0] + self._parts[1]
        self._active = torch.where(before > 0, before, SLOPE * before)
        self._before = before
        logits = self._active @ self._parts[2] + self._parts[3]
        spans = list(itertools.pairwise(self._bounds))
        self._probabilities = torch.cat([torch.softmax(logits[:, low:high], dim=1) for low, high in spans], dim=1)
        # The largest of log-probabilities plus Gumbel noise is a draw from the distribution.
        noise = -torch.log(
            -torch.log(torch.rand(logits.shape, generator=self._rng, device=self._device) + 1e-20) + 1e-20
        )
        pulled = torch.log(self._probabilities + 1e-30) + noise
        picked = [low + pulled[:, low:high].argmax(dim=1) for low, high in spans]
        self._blocks = torch.stack([*picked, torch.full_like(picked[0], self._bounds[-1])], dim=1)

    def _drawn_gradient(self) -> list[Any]:
        """The mean of the drawn records' gradients, each cut as rows' gradients are."""
        torch = self._torch
        self._hidden = self._weights[self._blocks].sum(dim=1)
        slopes = torch.where(self._hidden > 0, self._output, SLOPE * self._output)
        active = torch.where(self._hidden > 0, self._hidden, SLOPE * self._hidden)
        norm = (self._blocks.shape[1] * (slopes**2).sum(dim=1) + (active**2).sum(dim=1)).sqrt()
        factor = (self.most_norm / norm.clamp(min=self.most_norm) / len(norm)).unsqueeze(1)
        found = torch.zeros_like(self._weights)
        for place in range(self._blocks.shape[1]):
            found.index_add_(0, self._blocks[:, place], slopes * factor)
        return [found, (active * factor).sum(dim=0)]

    def _effects(self) -> Any:
        """For every drawn record and every block: f if that block took the place of the one its column has."""
        torch = self._torch
        hidden = self._weights[self._blocks].sum(dim=1)
        found = []
        for place, (low, high) in enumerate(itertools.pairwise(self._bounds)):
            others = hidden - self._weights[self._blocks[:, place]]
            moved = others.unsqueeze(1) + self._weights[low:high].unsqueeze(0)
            found.append(torch.where(moved > 0, moved, SLOPE * moved) @ self._output)
        return torch.cat(found, dim=1)

    def _climb(self) -> None:
        """One step of the generator uphill on the critic's expected score."""
        torch, gains = self._torch, self._effects()
        slopes = []
        for low, high in itertools.pairwise(self._bounds):
            part, gain = self._probabilities[:, low:high], gains[:, low:high]
            slopes.append(part * (gain - (part * gain).sum(dim=1, keepdim=True)))
        back = torch.cat(slopes, dim=1) / self.settings.batch
        inner = (back @ self._parts[2].T) * torch.where(self._before > 0, 1.0, SLOPE)
        uphill = [self._latent.T @ inner, inner.sum(dim=0), self._active.T @ back, back.sum(dim=0)]
        for part, move in zip(self._parts, self._generator_moves.steps(uphill), strict=True):
            part.add_(move)


class _Adam:
    """As `Adam` of `networks.py`, on tensors."""

    def __init__(self, torch: Any, rate: float, momentum: float, memory: float = 0.99) -> None:
        self._torch, self._rate, self._momentum, self._memory = torch, rate, momentum, memory
        self._means: list[tuple[Any, Any]] = []
        self._count = 0

    def steps(self, gradients: Sequence[Any]) -> list[Any]:
        """What to add to each tensor to go uphill."""
        if not self._means:
            self._means = [(self._torch.zeros_like(part), self._torch.zeros_like(part)) for part in gradients]
        self._count += 1
        out = []
        for (first, second), gradient in zip(self._means, gradients, strict=True):
            first.add_(gradient - first, alpha=1 - self._momentum)
            second.add_(gradient**2 - second, alpha=1 - self._memory)
            mean = first / (1 - self._momentum**self._count)
            out.append(self._rate * mean / ((second / (1 - self._memory**self._count)).sqrt() + 1e-12))
        return out

    def state(self) -> Arrays:
        """The running means and the number of steps so far."""
        first = filed("first", listed([pair[0].cpu().numpy() for pair in self._means]))
        second = filed("second", listed([pair[1].cpu().numpy() for pair in self._means]))
        return {**first, **second, "count": np.array(self._count)}

    def restore(self, state: State, tensor: Callable[[Floats], Any]) -> None:
        """Goes on from a state."""
        pairs = zip(floats_of(state, "first"), floats_of(state, "second"), strict=True)
        self._means = [(tensor(first), tensor(second)) for first, second in pairs]
        self._count = int(array_of(state, "count"))
