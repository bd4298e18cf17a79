"""AIM, AIM-GDP, SWIFT and MST of google/dpsynth, each within its wrapper for discrete tables.

The wrapper (`DiscreteConfig`) measures all columns first, merges rare values and calibrates the whole to (ε, δ) by the
package's own accountants. Everything else is at its defaults; AIM and SWIFT work on pairs, their default workload, so
another one is refused. Option "compress" (default true, as in the package's tabular synthesizer) merges rare values.
"""

import numpy as np
import numpy.typing as npt
from dpsynth import discrete_mechanisms as mechanisms
from mbi import Dataset, Domain

from .contract import ContractError, Job, serve

CONFIGS = {
    "aim": mechanisms.AIMConfig,
    "aim_gdp": mechanisms.AIMGDPConfig,
    "swift": mechanisms.SWIFTConfig,
    "mst": mechanisms.MSTConfig,
}


def synthesize(job: Job) -> dict[str, npt.NDArray[np.int64]]:
    """Synthetic columns by one of the package's mechanisms at the job's (ε, δ); as many rows as it draws."""
    if job.workload != "pairs":
        raise ContractError("dpsynth is run with its default workload, pairs")
    wrapped = mechanisms.DiscreteConfig(CONFIGS[job.method](), compress_columns=bool(job.options.get("compress", True)))
    ready = wrapped.calibrate(epsilon=job.epsilon, delta=job.delta)
    table = Dataset(dict(job.columns), Domain.fromdict(dict(job.domain)))
    made = ready(np.random.default_rng(), table).synthetic_data
    return {name: np.asarray(made.data[name], dtype=np.int64) for name in job.domain}


if __name__ == "__main__":
    serve(
        synthesize,
        packages=("jax", "numpy", "dp-accounting"),
        notes=(
            "google/dpsynth and ryan112358/mbi from checkouts; rows as many as the package draws",
            "noise: NumPy floats; JAX on the processor",
        ),
    )
