"""What growing a tree costs, and what one grown tree gave away about a pair of tables.

`tree_epsilon` is the price by the theorem of `privacy/questions/growth.py`, from the noise and the bias that a request
states, rounded up. `split_loss` is no theorem: it is the exact log ratio of the probabilities of the decisions that
were taken, on two tables, from the biased counts that really reached the randomizer.
"""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from understudy.counts.source import Ints
from understudy.marginals.answer import GROWTH_UNIT
from understudy.privacy.exact.interval import exp_minus
from understudy.privacy.randomizer import Bools, Request

__all__ = ["split_chance", "split_loss", "tree_epsilon"]

Floats = npt.NDArray[np.float64]
_BITS = 192


def tree_epsilon(request: Request) -> Fraction | None:
    """ε of a whole tree, from below never; None where the theorem does not apply."""
    if request.law is None or request.law.kind != "laplace" or request.bias < GROWTH_UNIT:
        return None
    scale = request.law.parameter
    ratio = Fraction(exp_minus(request.bias / scale, _BITS)[1], 1 << _BITS)  # at least e^(−bias/scale) = 1/β'
    return request.sensitivity / scale * (2 + ratio / (1 - ratio))


def split_chance(above: Ints, scale: Fraction) -> Floats:
    """ln P(above + X > 0) for discrete Laplace X of that scale.

    >>> import numpy as np
    >>> float(np.exp(split_chance(np.array([0]), Fraction(10**6)))[0]).__round__(3)
    0.5
    """
    rate = 1.0 / float(scale)
    places = above.astype(np.float64)
    below = -(1.0 - np.minimum(places, 1.0)) * rate - math.log1p(math.exp(-rate))
    beyond = np.log1p(-np.exp(-np.maximum(places, 1.0) * rate) / (1.0 + math.exp(-rate)))
    return np.where(places <= 1.0, below, beyond)


def split_loss(request: Request, one: Ints, other: Ints, split: Bools) -> float:
    """ln of how much likelier these decisions are on one table's biased counts than on the other's."""
    if request.law is None:
        return math.inf
    chances = []
    for biased in (one, other):
        above = biased - request.threshold
        # Not splitting is the mirror image: P(above + X ≤ 0) = P(X ≥ above) = P(1 − above + X > 0).
        chances.append(split_chance(np.where(split, above, 1 - above), request.law.parameter).sum())
    return float(chances[0] - chances[1])
