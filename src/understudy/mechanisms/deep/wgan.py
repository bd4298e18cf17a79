"""WganTrainer: a Wasserstein generative adversarial network that learns through the door.

Course. A first look: every row adds a one-hot vector of all its codes, and the noisy sum gives the number of rows and
the distribution of each column. Then steps: sampled rows contribute the gradients of the critic's real term, cut to a
public norm; the noisy sum, divided by the *expected* number of rows in a batch, moves the critic together with the
(public) term of drawn records; every few steps the generator climbs the critic. Critic weights are kept within ±1.

Privacy. A row's contribution depends on the row, on weights that were made from noisy sums, and on public settings.
The one-hot vector has norm √columns · value ≤ clip/k, the gradient is cut to (clip − ½√entries)/k before each of its
entries is rounded to the nearest whole number, which adds at most ½ to each: a row stays within clip/k, a unit of k
rows within clip, and the door leaves out what does not. Everything else is post-processing with a public seed.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from understudy.marginals.answer import Course, Law
from understudy.mechanisms.deep.critic import Critic, contributions
from understudy.mechanisms.deep.encoding import Encoding, one_hot_blocks
from understudy.privacy.training.checkpoint import State
from understudy.privacy.training.train import Contributions

__all__ = ["Networks", "WganTrainer", "column_counts"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.unsignedinteger]


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

    def chances(self, inputs: int) -> Floats:
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
    """The optimiser that passes the door: turns rows into bounded contributions, and noisy sums into progress."""

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

    def look(self, codes: Codes) -> Contributions:
        """The same whole number in the place of each code."""
        value = np.full((len(codes), 1), self.first_value, dtype=np.int32)
        return Contributions(one_hot_blocks(codes, self.sizes), value, np.zeros((len(codes), 0), dtype=np.int32))

    def looked(self, noisy: Ints, law: Law) -> None:
        """Settles groups, shares and the number of rows."""
        counts = column_counts(noisy, self.sizes, self.first_value)
        # Every column's noisy sum is the number of rows; noise grows with the number of codes.
        weights = np.array([1.0 / size for size in self.sizes])
        self.total = max(0.0, float(weights @ [part.sum() for part in counts] / weights.sum()))
        self.encoding = Encoding.of(counts, self.most_groups)
        self.networks.start(self.encoding)

    def contribute(self, codes: Codes) -> Contributions:
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
