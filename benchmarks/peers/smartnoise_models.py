"""MST and AIM of smartnoise-synth, with label lists given from the public domain.

Without them the package reads the labels off the private table. A seed is ignored: the package has no setting that
separates drawing rows from its noise. Its AIM knows degrees only, and by its default skips tables of more than 10,000
cells; the option "most_cells" changes that.
"""

import numpy as np
import numpy.typing as npt
import pandas as pd
from snsynth.aim import AIMSynthesizer
from snsynth.mst import MSTSynthesizer
from snsynth.transform import LabelTransformer, TableTransformer

from .contract import ContractError, Job, serve

DEGREES = {"pairs": 2, "triples": 3}


def public_labels(job: Job) -> TableTransformer:
    """A transformer that has seen every code of the domain and no row of the table."""
    most = max(job.domain.values())
    every = pd.DataFrame({name: np.arange(most) % size for name, size in job.domain.items()})
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in job.domain])
    transformer.fit(every)
    return transformer


def synthesize(job: Job) -> dict[str, npt.NDArray[np.int64]]:
    """Synthetic columns by one of the package's synthesizers at the job's (ε, δ)."""
    if job.method == "mst":
        synthesizer = MSTSynthesizer(epsilon=job.epsilon, delta=job.delta)
    elif isinstance(job.workload, str) and job.workload in DEGREES:
        synthesizer = AIMSynthesizer(
            epsilon=job.epsilon,
            delta=job.delta,
            degree=DEGREES[job.workload],
            max_cells=int(str(job.options.get("most_cells", 10_000))),
        )
    else:
        raise ContractError('smartnoise-synth\'s aim takes the workloads "pairs" and "triples" only')
    synthesizer.fit(pd.DataFrame(dict(job.columns)), transformer=public_labels(job))
    drawn = synthesizer.sample(job.rows)
    return {name: np.asarray(drawn[name], dtype=np.int64) for name in job.domain}


if __name__ == "__main__":
    serve(
        synthesize,
        packages=("smartnoise-synth", "mbi", "opendp", "jax", "numpy", "pandas"),
        notes=("the package's own synthesizer; its MST fits to the exact number of rows", "seed ignored"),
    )
