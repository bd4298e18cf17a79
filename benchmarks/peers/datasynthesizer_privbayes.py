"""PrivBayes of DataSynthesizer (correlated attribute mode), with label lists given from the public domain.

Its default seed fixes the privacy noise, so a fresh one from the operating system is passed. Pure ε: the job's δ is
unused. Option "parents" is the degree of the network (default 2).
"""

import json
import secrets
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator

from .contract import Job, serve


def synthesize(job: Job) -> dict[str, npt.NDArray[np.int64]]:
    """Synthetic columns by the package's Bayesian network at the job's ε."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, domains, description = (str(folder / part) for part in ("table.csv", "domains.json", "description.json"))
        pd.DataFrame(dict(job.columns)).to_csv(table, index=False)
        codes = {column: list(range(size)) for column, size in job.domain.items()}
        Path(domains).write_text(json.dumps(codes), encoding="utf-8")
        describer = DataDescriber(category_threshold=max(job.domain.values()) + 1)
        describer.describe_dataset_in_correlated_attribute_mode(
            dataset_file=table,
            k=int(str(job.options.get("parents", 2))),
            epsilon=job.epsilon,
            attribute_to_datatype=dict.fromkeys(job.domain, "Integer"),
            attribute_to_is_categorical=dict.fromkeys(job.domain, True),
            attribute_to_is_candidate_key=dict.fromkeys(job.domain, False),
            categorical_attribute_domain_file=domains,
            seed=secrets.randbits(31),
        )
        describer.save_dataset_description_to_file(description)
        generator = DataGenerator()
        seed = secrets.randbits(31) if job.seed is None else job.seed
        generator.generate_dataset_in_correlated_attribute_mode(job.rows, description, seed=seed)
        drawn = generator.synthetic_dataset
    return {column: drawn[column].to_numpy(dtype=np.int64) for column in job.domain}


if __name__ == "__main__":
    serve(
        synthesize,
        packages=("DataSynthesizer", "numpy", "pandas"),
        notes=(
            "pure ε; the package spends ε on one-way tables and ε again on the network, so its claim at ε is 2ε",
            "a fresh seed for every run in place of the package's default 0; files written and read are in the time",
        ),
    )
