"""Critic: a network that tells records from drawn ones, one hidden layer, computed record by record.

A record is a set of blocks, one per column (the group its code belongs to). With one weight vector per block and a last
block that every record has (the bias),

    h = Σ_blocks W[block],     a = leaky(h),     f = ⟨v, a⟩,

so that a record's gradient is the same vector v ∘ leaky'(h) in each of its blocks, and a in the place of v. That is the
form in which the door takes contributions; no matrix product over a batch is needed, and nothing of a record's numbers
depends on another record. Kernels add in a fixed order ("fastmath" is off), so a record alone decides its vector.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.privacy.training.train import Contributions

__all__ = ["SLOPE", "Critic", "average_gradient", "contributions", "effects", "scores"]

Floats = npt.NDArray[np.float64]
Blocks = npt.NDArray[np.int32]

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


def contributions(critic: Critic, blocks: Blocks, most_norm: float, radius: float) -> Contributions:
    """Every record's gradient of f, cut to `most_norm` in L2 norm, on the integer grid where that norm is `radius`."""
    rows, hidden = len(blocks), critic.output.size
    shared = np.empty((rows, hidden), dtype=np.int32)
    own = np.empty((rows, hidden), dtype=np.int32)
    _contribute(critic.weights, critic.output, blocks, most_norm, radius, shared, own)
    return Contributions(blocks, shared, own)


def average_gradient(critic: Critic, blocks: Blocks, most_norm: float) -> Critic:
    """The mean of the records' gradients, each cut to `most_norm`, as real numbers."""
    found = Critic(np.zeros_like(critic.weights), np.zeros_like(critic.output))
    _average(critic.weights, critic.output, blocks, most_norm, found.weights, found.output)
    return found


def scores(critic: Critic, blocks: Blocks) -> Floats:
    """f of every record."""
    hidden = critic.weights[blocks].sum(axis=1)
    return np.asarray(np.where(hidden > 0, hidden, SLOPE * hidden) @ critic.output)


def effects(critic: Critic, blocks: Blocks, column_of_block: Blocks) -> Floats:
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
