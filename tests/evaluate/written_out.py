"""Model matrices written out, for comparing with computations made elsewhere."""

import numpy as np
import numpy.typing as npt

from understudy.evaluate.glm import ModelMatrix


def dense(design: ModelMatrix) -> npt.NDArray[np.float64]:
    """Every entry of the matrix."""
    out = np.zeros((design.rows, design.width))
    for term in range(design.places.shape[1]):
        here = np.flatnonzero(design.places[:, term] >= 0)
        entries = design.values[here, term] if term < design.values.shape[1] else 1.0
        out[here, design.places[here, term]] = entries
    return out
