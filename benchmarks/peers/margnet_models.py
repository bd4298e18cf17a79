"""MargNet (KaiChen9909/margnet): adaptively chosen pairs, fitted by a network; on coded tables, so without its binning.

The repository is a collection of scripts: its generator is made as its own `main` makes it, with the settings it ships
for Adult. Option "device" says where the network runs ("cuda:0" or "cpu").
"""

import argparse
import tempfile

import numpy as np
import numpy.typing as npt
import pandas as pd
from method.MargDL.main import MargDLGen

from .contract import Job, serve
from .zcdp import rho_of

SETTINGS = {"train": {"selection_iterations": 200, "final_iterations": 200, "lr": 0.001, "batch_size": 512}}
LAYERS = [256, 256]


def synthesize(job: Job) -> dict[str, npt.NDArray[np.int64]]:
    """Synthetic columns by the network at the job's (ε, δ)."""
    device = str(job.options.get("device", "cuda:0"))
    steps = 100 if job.epsilon >= 10 else 200
    settings = {
        "train": SETTINGS["train"] | {"selection_iterations": steps, "final_iterations": steps},
        "model_params": {"d_layers": LAYERS, "dropout": 0.0},
    }
    given = argparse.Namespace(
        method="marggan",
        dataset="table",
        iter=None,
        lr=None,
        batch=None,
        test=False,
        resample=False,
        graph_sample=False,
    )
    table = pd.DataFrame({name: job.columns[name] for name in job.domain})
    with tempfile.TemporaryDirectory() as folder:
        generator = MargDLGen(given, table, dict(job.domain), device, settings, folder, "gan")
        generator.fit_adaptive(rho_of(job.epsilon, job.delta))
        drawn = generator.model.sample(job.rows)
    values = np.asarray(drawn.cpu() if hasattr(drawn, "cpu") else drawn)
    return {name: values[:, place].astype(np.int64) for place, name in enumerate(job.domain)}


if __name__ == "__main__":
    serve(
        synthesize,
        packages=("torch", "numpy", "pandas"),
        notes=("from a checkout; the network on the GPU where there is one",),
    )
