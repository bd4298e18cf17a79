"""understudy through the same file contract, in this environment: the other side of every ratio.

numba imports half of itself, and a part of SciPy, only when the first kernel is loaded. Imports are outside the timed
part for every peer, so that half is imported here with the rest; kernels themselves are still loaded in the timed part.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba.core.registry import cpu_target

from understudy import Schema, Unit, synthesize
from understudy.codec.table import TableCodec
from understudy.schema import Integer, UniformBins

from .contract import ContractError, Job, serve

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()


def schema_of(job: Job) -> Schema:
    """Integer columns with a bin for every code."""
    columns = tuple(
        Integer(name=name, lower=0, upper=size - 1, missing=False, bins=UniformBins(size))
        for name, size in job.domain.items()
    )
    schema = Schema(columns=columns, unit=Unit(), unreadable="drop")
    domain = TableCodec.of(schema).domain
    if any(domain.cells((name,)) != size for name, size in job.domain.items()):
        raise ContractError("a column has no bin for every code")
    return schema


def made(job: Job) -> dict[str, npt.NDArray[np.int64]]:
    """Synthetic columns by one of our methods at the job's (ε, δ)."""
    table = pa.table({name: pa.array(codes, pa.int32()) for name, codes in job.columns.items()})
    options: dict[str, object] = dict(job.options)
    if job.method == "aim" and job.workload != "pairs":
        options["workload"] = job.workload
    release = synthesize(
        table,
        schema_of(job),
        method=job.method,
        epsilon=job.epsilon,
        delta=job.delta,
        rows=job.rows,
        seed=job.seed,
        options=options,
    )
    drawn = release.table
    return {name: np.asarray(drawn.column(name).to_numpy(), dtype=np.int64) for name in job.domain}


if __name__ == "__main__":
    serve(
        made, packages=("understudy", "numpy", "numba", "pyarrow"), notes=("measured, fitted and drawn by synthesize",)
    )
