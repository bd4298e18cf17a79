"""Critic and generator of `dpwgan` on the processor, without any extra package. Post-processing only.

Blocks
------
Every column is one-hot over at most `most` groups of neighbouring codes. A column with no more codes than that is taken
as it is; otherwise the noisy counts of the column (already paid for) are cut into groups of about equal mass, so that a
frequent code has a group of its own and rare neighbours share one. Bins of numbers are ordered, so neighbours belong
together there; the missing code and special values come last. What is drawn is a group; which code of the group follows
from the noisy counts. All of this is post-processing.

Critic
------
One hidden layer, computed record by record. A record is a set of blocks, one per column (the group its code belongs
to). With one weight vector per block and a last block that every record has (the bias),

    h = Σ_blocks W[block],     a = leaky(h),     f = ⟨v, a⟩,

so that a record's gradient is the same vector v ∘ leaky'(h) in each of its blocks, and a in the place of v. That is the
form in which the curator takes contributions; no matrix product over a batch is needed, and no number of a record
depends on another record. Kernels add in a fixed order ("fastmath" is off), so a record alone decides its vector.

Generator
---------
Random numbers in, one distribution per column out; records are drawn from these distributions.

    z ~ N(0, 1)^latent,     u = leaky(A z + c),     p_column = softmax(B u + s)

Given z the columns are independent; what they have in common is z. The expected score of the critic, E_z E_x[f(x)] with
x drawn column by column, has the exact derivative E[f(x with block j in its column)] in the probability of block j. It
is estimated by drawn records and all their one-column neighbours, so no soft records and no straight-through trick.

State
-----
Named arrays, so that a training can be interrupted and taken up again. Public seeds and noisy sums are all that goes
into it: the generator kept here is that of starting weights and drawn records, which follows from the option
`structure_seed`; noise has no generator that could be kept.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from understudy.arrays import Bytes, Floats, Ints, Shorts, Unsigned
from understudy.compiled import compiled
from understudy.errors import UsageError
from understudy.models.tables import norm_sub
from understudy.privacy.training import Contributions, State

Arrays = dict[str, npt.NDArray[np.generic]]


def filed(group: str, parts: Mapping[str, npt.NDArray[np.generic]]) -> Arrays:
    """The arrays under names that begin with the group.

    >>> list(filed("critic", {"weights": np.zeros(1)}))
    ['critic.weights']
    """
    return {f"{group}.{name}": np.array(part) for name, part in parts.items()}


def taken(group: str, state: State) -> Arrays:
    """The arrays of a group under their own names, as copies."""
    head = f"{group}."
    return {name.removeprefix(head): np.array(part) for name, part in state.items() if name.startswith(head)}


def listed(parts: Sequence[npt.NDArray[np.generic]]) -> Arrays:
    """A list of arrays, named by their places."""
    return {str(place): part for place, part in enumerate(parts)}


def array_of(state: State, name: str) -> npt.NDArray[np.generic]:
    """One array of a state.

    Raises:
        UsageError: if it is not there.
    """
    if name not in state:
        raise UsageError("checkpoint", f"holds no {name!r}.", "It was written by another version of understudy.")
    return np.array(state[name])


def floats_of(state: State, group: str) -> list[Floats]:
    """The list of arrays that was filed under the group."""
    parts = taken(group, state)
    return [np.asarray(parts[str(place)], dtype=np.float64) for place in range(len(parts))]


def structure_state(draws: np.random.Generator) -> Bytes:
    """Where the public generator of starting weights and drawn records stands."""
    return np.frombuffer(json.dumps(draws.bit_generator.state, sort_keys=True).encode(), dtype=np.uint8)


def structure_draws(stored: npt.NDArray[np.generic]) -> np.random.Generator:
    """A generator that goes on from there."""
    draws = np.random.Generator(np.random.PCG64(0))
    draws.bit_generator.state = json.loads(stored.astype(np.uint8).tobytes())
    return draws


class Adam:
    """Steps whose size adapts to the gradients seen so far (Kingma and Ba 2015); RMSProp where momentum is 0.

    Keeps running means of gradients and of their squares, of as many arrays as it is given.
    """

    def __init__(self, rate: float, momentum: float = 0.5, memory: float = 0.99) -> None:
        self._rate, self._momentum, self._memory = rate, momentum, memory
        self._first: list[Floats] = []
        self._second: list[Floats] = []
        self._count = 0

    def steps(self, gradients: Sequence[Floats]) -> list[Floats]:
        """What to add to each array to go uphill."""
        if not self._first:
            self._first = [np.zeros_like(part) for part in gradients]
            self._second = [np.zeros_like(part) for part in gradients]
        self._count += 1
        out = []
        for first, second, gradient in zip(self._first, self._second, gradients, strict=True):
            first += (1 - self._momentum) * (gradient - first)
            second += (1 - self._memory) * (gradient**2 - second)
            mean = first / (1 - self._momentum**self._count)
            spread = np.sqrt(second / (1 - self._memory**self._count))
            out.append(self._rate * mean / (spread + 1e-12))
        return out

    def state(self) -> Arrays:
        """The running means and the number of steps so far."""
        means = filed("first", listed(self._first)) | filed("second", listed(self._second))
        return {**means, "count": np.array(self._count)}

    def restore(self, state: State) -> None:
        """Goes on from a state."""
        self._first, self._second = floats_of(state, "first"), floats_of(state, "second")
        self._count = int(array_of(state, "count"))


_LEAST_SHARE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Encoding:
    """Groups of codes per column, and the estimated share of every code."""

    groups: tuple[Ints, ...]
    """For every column the group of each code, counted from 0 without gaps."""
    shares: tuple[Floats, ...]
    """For every column the estimated share of each code, above 0, adding up to 1."""

    @classmethod
    def of(cls, counts: Sequence[Floats], most: int) -> "Encoding":
        """Groups and shares from noisy counts of the columns."""
        shares = tuple(_positive_shares(part) for part in counts)
        return cls(tuple(cut_evenly(part, most) for part in shares), shares)

    @property
    def bounds(self) -> list[int]:
        """Where the blocks of each column begin; the last entry is their number."""
        return [0, *np.cumsum([int(part.max()) + 1 for part in self.groups]).tolist()]

    @property
    def column_of_block(self) -> Shorts:
        """Which column each block belongs to."""
        bounds = self.bounds
        return np.repeat(np.arange(len(self.groups)), np.diff(bounds)).astype(np.int32)

    def group_shares(self) -> list[Floats]:
        """The share of every group, column by column."""
        pairs = zip(self.groups, self.shares, strict=True)
        return [np.asarray(np.bincount(groups, weights=shares), dtype=np.float64) for groups, shares in pairs]

    def blocks(self, codes: Unsigned) -> Shorts:
        """One line of blocks per line of codes, ending with the block that every record has."""
        bounds = self.bounds
        table = np.concatenate([part + low for part, low in zip(self.groups, bounds[:-1], strict=True)])
        starts = np.array([0, *np.cumsum([part.size for part in self.groups])[:-1]], dtype=np.int64)
        found = np.empty((len(codes), len(self.groups) + 1), dtype=np.int32)
        _look_up(codes, table.astype(np.int32), starts, bounds[-1], found)
        return found

    def code_probabilities(self, probabilities: Floats) -> list[Floats]:
        """Distributions over groups turned into distributions over codes, column by column."""
        found = []
        bounds = self.bounds
        for place, (groups, shares) in enumerate(zip(self.groups, self.shares, strict=True)):
            part = probabilities[:, bounds[place] : bounds[place + 1]]
            within = shares / np.bincount(groups, weights=shares)[groups]
            expanded = part[:, groups] * within
            found.append(expanded / expanded.sum(axis=1, keepdims=True))
        return found


def one_hot_blocks(codes: Unsigned, sizes: Sequence[int]) -> Shorts:
    """One block per code of every column: the plain one-hot form."""
    starts = np.array([0, *np.cumsum(sizes)[:-1]], dtype=np.int64)
    return np.asarray(codes.astype(np.int64) + starts, dtype=np.int32)


def cut_evenly(shares: Floats, most: int) -> Ints:
    """At most `most` groups of neighbouring codes with about equal shares.

    >>> cut_evenly(np.array([0.4, 0.05, 0.05, 0.1, 0.4]), 3).tolist()
    [0, 1, 1, 1, 2]
    """
    if shares.size <= most:
        return np.arange(shares.size, dtype=np.int64)
    middle = np.cumsum(shares) - shares / 2
    places = np.minimum(np.floor(middle * most / shares.sum()), most - 1)
    return np.unique(places, return_inverse=True)[1].astype(np.int64)


def _positive_shares(counts: Floats) -> Floats:
    """Shares of 0 or more nearest to the noisy counts, none quite 0: what noise hid may still occur."""
    total = max(1.0, float(counts.sum()))
    shares = np.maximum(norm_sub(counts, total) / total, _LEAST_SHARE / counts.size)
    return np.asarray(shares / shares.sum())


@compiled()  # pragma: no cover
def _look_up(codes, table, starts, last, out):  # type: ignore[no-untyped-def]
    for row in range(codes.shape[0]):
        for place in range(codes.shape[1]):
            out[row, place] = table[starts[place] + np.int64(codes[row, place])]
        out[row, codes.shape[1]] = last


SLOPE = 0.2
"""Slope of the leaky rectifier below 0."""


class Critic(NamedTuple):
    """Weights: one line per block and one for the bias, and one output weight per hidden number."""

    weights: Floats
    output: Floats

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return self.weights.size + self.output.size


def contributions(critic: Critic, blocks: Shorts, most_norm: float, radius: float) -> Contributions:
    """Every record's gradient of f, cut to `most_norm` in L2 norm, on the integer grid where that norm is `radius`."""
    rows, hidden = len(blocks), critic.output.size
    shared = np.empty((rows, hidden), dtype=np.int32)
    own = np.empty((rows, hidden), dtype=np.int32)
    _contribute(critic.weights, critic.output, blocks, most_norm, radius, shared, own)
    return Contributions(blocks, shared, own)


def average_gradient(critic: Critic, blocks: Shorts, most_norm: float) -> Critic:
    """The mean of the records' gradients, each cut to `most_norm`, as real numbers."""
    found = Critic(np.zeros_like(critic.weights), np.zeros_like(critic.output))
    _average(critic.weights, critic.output, blocks, most_norm, found.weights, found.output)
    return found


def scores(critic: Critic, blocks: Shorts) -> Floats:
    """f of every record."""
    hidden = critic.weights[blocks].sum(axis=1)
    return np.asarray(np.where(hidden > 0, hidden, SLOPE * hidden) @ critic.output)


def effects(critic: Critic, blocks: Shorts, column_of_block: Shorts) -> Floats:
    """For every record and every block: f if that block took the place of the one its column has."""
    out = np.empty((len(blocks), column_of_block.size))
    _effects(critic.weights, critic.output, blocks, column_of_block, out)
    return out


@compiled()  # pragma: no cover
def _hidden(weights, output, blocks, row, slopes, active):  # type: ignore[no-untyped-def]
    """Fills one record's v ∘ leaky'(h) and leaky(h); returns the squared norm of its gradient."""
    norm_shared = norm_own = 0.0
    for at in range(output.size):
        total = 0.0
        for place in range(blocks.shape[1]):
            total += weights[blocks[row, place], at]
        slopes[at] = output[at] if total > 0 else SLOPE * output[at]
        active[at] = total if total > 0 else SLOPE * total
        norm_shared += slopes[at] * slopes[at]
        norm_own += active[at] * active[at]
    return blocks.shape[1] * norm_shared + norm_own


@compiled()  # pragma: no cover
def _contribute(weights, output, blocks, most_norm, radius, shared, own):  # type: ignore[no-untyped-def]
    slopes, active = np.empty(output.size), np.empty(output.size)
    for row in range(blocks.shape[0]):
        norm = np.sqrt(_hidden(weights, output, blocks, row, slopes, active))
        factor = radius / max(norm, most_norm)
        for at in range(output.size):
            shared[row, at] = np.int32(np.rint(slopes[at] * factor))
            own[row, at] = np.int32(np.rint(active[at] * factor))


@compiled()  # pragma: no cover
def _average(weights, output, blocks, most_norm, sum_weights, sum_output):  # type: ignore[no-untyped-def]
    slopes, active = np.empty(output.size), np.empty(output.size)
    for row in range(blocks.shape[0]):
        norm = np.sqrt(_hidden(weights, output, blocks, row, slopes, active))
        factor = most_norm / max(norm, most_norm) / blocks.shape[0]
        for place in range(blocks.shape[1]):
            for at in range(output.size):
                sum_weights[blocks[row, place], at] += slopes[at] * factor
        for at in range(output.size):
            sum_output[at] += active[at] * factor


@compiled()  # pragma: no cover
def _effects(weights, output, blocks, column_of_block, out):  # type: ignore[no-untyped-def]
    hidden = np.empty(output.size)
    for row in range(blocks.shape[0]):
        for at in range(output.size):
            total = 0.0
            for place in range(blocks.shape[1]):
                total += weights[blocks[row, place], at]
            hidden[at] = total
        for block in range(column_of_block.size):
            held = blocks[row, column_of_block[block]]
            score = 0.0
            for at in range(output.size):
                value = hidden[at] - weights[held, at] + weights[block, at]
                score += output[at] * (value if value > 0 else SLOPE * value)
            out[row, block] = score


@dataclass(slots=True)
class Generator:
    """Weights of the generator, with the ends of each column's blocks."""

    parts: list[Floats]
    """A, c, B, s: into the hidden layer, its bias, out of it, its bias."""
    bounds: Sequence[int]
    """Where the blocks of each column begin; the last entry is their number."""

    @classmethod
    def fresh(cls, shares: Sequence[Floats], latent: int, hidden: int, rng: np.random.Generator) -> "Generator":
        """Random inner weights; without training every column has the given shares, whatever z is."""
        bounds = [0, *np.cumsum([len(part) for part in shares]).tolist()]
        start = np.log(np.concatenate([np.maximum(part, 1e-6) for part in shares]))
        inner = rng.normal(0.0, np.sqrt(2.0 / latent), (latent, hidden))
        outer = rng.normal(0.0, 0.1 / np.sqrt(hidden), (hidden, bounds[-1]))
        return cls([inner, rng.normal(0.0, 0.1, hidden), outer, start], bounds)

    def probabilities(self, latent: Floats) -> Floats:
        """The distributions of all columns side by side, one line per line of `latent`."""
        return self._softmax(self._logits(self._active(latent)))

    def climb(self, latent: Floats, probabilities: Floats, effects: Floats, optimiser: Adam) -> None:
        """One step uphill on the critic's expected score, given effects of blocks on drawn records."""
        inner, bias, outer, start = self.parts
        before = latent @ inner + bias
        active = np.where(before > 0, before, SLOPE * before)
        slopes = np.empty_like(probabilities)
        for low, high in itertools.pairwise(self.bounds):
            part, gain = probabilities[:, low:high], effects[:, low:high]
            slopes[:, low:high] = part * (gain - (part * gain).sum(axis=1, keepdims=True))
        slopes /= len(latent)
        back = (slopes @ outer.T) * np.where(before > 0, 1.0, SLOPE)
        uphill = [latent.T @ back, back.sum(axis=0), active.T @ slopes, slopes.sum(axis=0)]
        for part, step in zip((inner, bias, outer, start), optimiser.steps(uphill), strict=True):
            part += step

    def _active(self, latent: Floats) -> Floats:
        before = latent @ self.parts[0] + self.parts[1]
        return np.where(before > 0, before, SLOPE * before)

    def _logits(self, active: Floats) -> Floats:
        return np.asarray(active @ self.parts[2] + self.parts[3])

    def _softmax(self, logits: Floats) -> Floats:
        out = np.empty_like(logits)
        for low, high in itertools.pairwise(self.bounds):
            part = np.exp(logits[:, low:high] - logits[:, low:high].max(axis=1, keepdims=True))
            out[:, low:high] = part / part.sum(axis=1, keepdims=True)
        return out


def draw_blocks(probabilities: Floats, bounds: Sequence[int], rng: np.random.Generator) -> Shorts:
    """One block per column and line, drawn from the line's distributions, and the block every record has."""
    drawn = np.empty((len(probabilities), len(bounds)), dtype=np.int32)
    drawn[:, -1] = bounds[-1]
    for place, (low, high) in enumerate(itertools.pairwise(bounds)):
        sums = np.cumsum(probabilities[:, low:high], axis=1)
        at = (sums < rng.random((len(probabilities), 1)) * sums[:, -1:]).sum(axis=1)
        drawn[:, place] = low + np.minimum(at, high - low - 1)
    return drawn


@dataclass(frozen=True, slots=True)
class NetworkSettings:
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
    norm: float = 0.0
    weight_bound: float = 1.0
    seed: int = 0

    @property
    def most_norm(self) -> float:
        """What gradients are cut to: `norm`, or a share of the largest norm that weights within ±1 allow (about)."""
        return self.norm or float(self.clip * np.sqrt(self.hidden) * (self.columns + 1))


class NumpyNetworks:
    """Both networks, their optimisers, the drawn records of the moment, and the averaged generator."""

    critic: Critic
    generator: Generator
    averaged: Generator

    def __init__(self, settings: NetworkSettings) -> None:
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
            np.clip(part, -self.settings.weight_bound, self.settings.weight_bound, out=part)
        self._steps += 1
        if self._steps % self.settings.critic_steps == 0:
            gains = effects(self.critic, self._blocks, self._columns)
            self.generator.climb(self._latent, self._probabilities, gains, self._generator_moves)
            for mean, part in zip(self.averaged.parts, self.generator.parts, strict=True):
                mean += (1.0 - self.settings.averaging) * (part - mean)
            self._draw()

    def probabilities(self, inputs: int) -> Floats:
        """The averaged generator's distributions at inputs that follow from the seed alone."""
        rng = np.random.default_rng(np.random.SeedSequence(self.settings.seed, spawn_key=(2,)))
        return self.averaged.probabilities(rng.normal(size=(inputs, self.settings.latent)))

    def state(self) -> Arrays:
        """Weights, averages, optimisers, the drawn records of the moment, and where the public seed stands."""
        drawn: Arrays = {"latent": self._latent, "chances": self._probabilities, "blocks": self._blocks}
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
        self._probabilities = np.asarray(array_of(state, "drawn.chances"), dtype=np.float64)
        self._blocks = np.asarray(array_of(state, "drawn.blocks"), dtype=np.int32)
        self._steps = int(array_of(state, "steps"))
        self._rng = structure_draws(array_of(state, "structure"))

    def _draw(self) -> None:
        """Fresh records from the generator as it now is."""
        self._latent = self._rng.normal(size=(self.settings.batch, self.settings.latent))
        self._probabilities = self.generator.probabilities(self._latent)
        self._blocks = draw_blocks(self._probabilities, self.generator.bounds, self._rng)
