"""Generator: random numbers in, one distribution per column out; records are drawn from these distributions.

    z ~ N(0, 1)^latent,     u = leaky(A z + c),     p_column = softmax(B u + s)

Given z the columns are independent; what they have in common is z. The expected score of the critic, E_z E_x[f(x)] with
x drawn column by column, has the exact derivative E[f(x with block j in its column)] in the probability of block j. It
is estimated by drawn records and all their one-column neighbours, so no soft records and no straight-through trick.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.mechanisms.deep.critic import SLOPE
from understudy.mechanisms.deep.optimiser import Adam

__all__ = ["Generator", "draw_blocks"]

Floats = npt.NDArray[np.float64]
Blocks = npt.NDArray[np.int32]


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

    def chances(self, latent: Floats) -> Floats:
        """The distributions of all columns side by side, one line per line of `latent`."""
        return self._softmax(self._logits(self._active(latent)))

    def climb(self, latent: Floats, chances: Floats, effects: Floats, optimiser: Adam) -> None:
        """One step uphill on the critic's expected score, given effects of blocks on drawn records."""
        inner, bias, outer, start = self.parts
        before = latent @ inner + bias
        active = np.where(before > 0, before, SLOPE * before)
        slopes = np.empty_like(chances)
        for low, high in itertools.pairwise(self.bounds):
            part, gain = chances[:, low:high], effects[:, low:high]
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


def draw_blocks(chances: Floats, bounds: Sequence[int], rng: np.random.Generator) -> Blocks:
    """One block per column and line, drawn from the line's distributions, and the block every record has."""
    drawn = np.empty((len(chances), len(bounds)), dtype=np.int32)
    drawn[:, -1] = bounds[-1]
    for place, (low, high) in enumerate(itertools.pairwise(bounds)):
        sums = np.cumsum(chances[:, low:high], axis=1)
        at = (sums < rng.random((len(chances), 1)) * sums[:, -1:]).sum(axis=1)
        drawn[:, place] = low + np.minimum(at, high - low - 1)
    return drawn
