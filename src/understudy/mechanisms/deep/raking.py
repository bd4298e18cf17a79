"""Raking: a mixture whose columns get the distributions that were measured, with everything else kept.

Iterative proportional fitting (Deming and Stephan 1940) on a mixture of products: multiplying the joint distribution by
a factor per code of one column keeps its form. A component's line of that column is multiplied and scaled back to 1,
and its weight takes up the scale. Rules stay as they are. Post-processing.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from understudy.models.deep.mixture import MixtureModel

__all__ = ["raked"]

Floats = npt.NDArray[np.float64]

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
    part = model.chances[name] * factors
    mass = part.sum(axis=1)
    weights = model.weights * mass
    chances = {**model.chances, name: part / mass[:, np.newaxis]}
    return MixtureModel(model.domain, weights / weights.sum(), chances, model.forbidden, model.total)
