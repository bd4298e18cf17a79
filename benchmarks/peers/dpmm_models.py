"""MST, AIM and PrivBayes of dpmm, through its pipelines with the coded table and the public domain.

dpmm has no workload setting: its AIM works on pairs unless its option "degree" says otherwise, so a list of cliques is
refused. The option "compress" (default true, as in the package) merges rare values; "size_megabytes" bounds the model.
"""

import numpy as np
import numpy.typing as npt
import pandas as pd
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

from .contract import ContractError, Job, serve

PIPELINES = {"mst": MSTPipeline, "aim": AIMPipeline, "privbayes": PrivBayesPipeline}
DEGREES = {"pairs": 2, "triples": 3}


def synthesize(job: Job) -> dict[str, npt.NDArray[np.int64]]:
    """Synthetic columns by one of the package's pipelines at the job's (ε, δ)."""
    extra: dict[str, object] = {}
    if job.method == "aim":
        if not isinstance(job.workload, str) or job.workload not in DEGREES:
            raise ContractError('dpmm\'s aim takes the workloads "pairs" and "triples" only')
        extra["degree"] = DEGREES[job.workload]
    size = job.options.get("size_megabytes")
    pipeline = PIPELINES[job.method](
        epsilon=job.epsilon,
        delta=job.delta,
        compress=bool(job.options.get("compress", True)),
        max_model_size=None if size is None else float(str(size)),
        gen_kwargs=extra,
        disable_processing=True,  # the columns are codes of a public domain already
    )
    pipeline.fit(pd.DataFrame(dict(job.columns)), domain=dict(job.domain))
    drawn = pipeline.generate(n_records=job.rows, random_state=job.seed)
    return {name: drawn[name].to_numpy(dtype=np.int64) for name in job.domain}


if __name__ == "__main__":
    serve(
        synthesize,
        packages=("dpmm", "opendp", "numpy", "pandas"),
        notes=("the package's own pipeline, its preprocessing switched off; the seed steers drawing rows only",),
    )
