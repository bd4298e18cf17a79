"""What the two mbi adapters share: selection, noisy tables and drawing rows.

The installed package infers; it holds no mechanism. MST and AIM are therefore written here from the published
algorithms, on the package's public interface. The noise is NumPy's float noise, which is how the package's own
examples use it: good enough to compare time and accuracy, and no promise of privacy.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from mbi import Dataset, Domain, LinearMeasurement, MarkovRandomField

from .contract import Job

NOTES = (
    "mechanism written here from the published algorithm on mbi's public interface; the package holds none",
    "noise: NumPy floats from the operating system's entropy; JAX on the processor in its default 32-bit mode",
)
PACKAGES = ("mbi", "jax", "numpy")


def dataset(job: Job) -> Dataset:
    """The job's table as the package holds it."""
    return Dataset(dict(job.columns), Domain.fromdict(dict(job.domain)))


def measured(rng: np.random.Generator, data: Dataset, clique: Sequence[str], sigma: float) -> LinearMeasurement:
    """One table of counts with Gaussian noise of that deviation on every cell."""
    counts = np.asarray(data.project(tuple(clique)).datavector())
    return LinearMeasurement(counts + rng.normal(scale=sigma, size=counts.size), tuple(clique), stddev=sigma)


def chosen(rng: np.random.Generator, scores: npt.ArrayLike, epsilon: float, sensitivity: float = 1.0) -> int:
    """Index drawn by the exponential mechanism, as the largest of scores with Gumbel noise."""
    tilted = np.asarray(scores, dtype=np.float64) * (epsilon / (2 * sensitivity))
    return int(np.argmax(tilted + rng.gumbel(size=len(tilted))))


def rows(
    model: MarkovRandomField, job: Job, groups: Mapping[str, npt.NDArray[np.int64]] | None = None
) -> dict[str, npt.NDArray[np.int64]]:
    """Rows drawn from the model; the seed, where given, steers this step and nothing before it."""
    if job.seed is not None:
        np.random.seed(job.seed)
    drawn = model.synthetic_data(rows=job.rows)
    if groups:
        drawn = drawn.decompress(dict(groups))
    return {name: np.asarray(codes, dtype=np.int64) for name, codes in drawn.to_dict().items()}
