"""The same measurements to this engine and to mbi: equal loss or lower.

For development only: set UNDERSTUDY_MBI_PYTHON to a Python of an environment of its own in which `mbi` is installed.
"""

import json
import os
import subprocess

import numpy as np
import pytest

from tests.models.enumeration import full_table, marginal_of
from understudy.domain import Domain
from understudy.models.estimation import NoisyTable
from understudy.models.markov_field import fit

PYTHON = os.environ.get("UNDERSTUDY_MBI_PYTHON", "")
TOTAL, SIGMA = 20_000.0, 15.0

PEER = """
import json, sys
import jax
jax.config.update("jax_enable_x64", True)
import numpy as np
from mbi import Domain, LinearMeasurement, estimation
given = json.load(sys.stdin)
domain = Domain([name for name, _ in given["domain"]], [size for _, size in given["domain"]])
measured = [LinearMeasurement(np.array(y), tuple(clique), stddev=given["sigma"]) for clique, y in given["tables"]]
model = estimation.MirrorDescent().estimate(domain, measured, known_total=given["total"], iters=given["steps"])
loss = 0.0
for clique, y in given["tables"]:
    found = np.asarray(model.project(tuple(clique)).datavector(), dtype=np.float64)
    loss += 0.5 * float((((found - np.array(y)) / given["sigma"]) ** 2).sum())
print(json.dumps(loss))
"""


@pytest.mark.skipif(not PYTHON, reason="UNDERSTUDY_MBI_PYTHON names no Python with mbi")
@pytest.mark.parametrize("edges", [("ab", "bc", "cd", "ce"), ("ab", "bc", "ac", "cd", "de", "ce")])
def test_loss_is_equal_or_lower(edges):
    rng = np.random.default_rng(0)
    domain = Domain.of({"a": 12, "b": 9, "c": 15, "d": 7, "e": 20})
    truth = full_table(domain, {domain.clique(edge): rng.normal(0.0, 1.0, domain.cells(edge)) for edge in edges})
    tables = []
    for columns in ("a", "b", "c", "d", "e", *edges):
        clique = domain.clique(columns)
        values = TOTAL * marginal_of(domain, truth, clique) + rng.normal(0.0, SIGMA, domain.cells(clique))
        tables.append(NoisyTable(clique, values, SIGMA**2))
    given = {
        "domain": list(domain.sizes.items()),
        "tables": [[list(table.clique), table.values.tolist()] for table in tables],
        "sigma": SIGMA,
        "total": TOTAL,
        "steps": 3000,
    }
    answer = subprocess.run(
        [PYTHON, "-c", PEER], input=json.dumps(given), capture_output=True, text=True, check=True, timeout=300
    )
    theirs = json.loads(answer.stdout.strip().splitlines()[-1])
    ours = fit(domain, tables, total=TOTAL, steps=3000).fit.loss
    print(f"loss {ours:.6f}, mbi {theirs:.6f}")
    assert ours <= theirs * (1.0 + 1e-4)
