"""MST on mbi: one-way tables, rare values merged, a spanning tree of pairs chosen privately, one fit.

Option "scoring": "product" (default) multiplies the fitted one-way tables, which is what a model of independent columns
says about a pair; "compiled" asks the package for each pair, one compiled program each, to the same numbers.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from mbi import Dataset, Domain, MarkovRandomField, estimation

from .contract import ContractError, Job, serve
from .mbi_parts import NOTES, PACKAGES, chosen, dataset, measured, rows
from .zcdp import rho_of

Pair = tuple[str, str]
Counts = npt.NDArray[np.float64]
FIRST_STEPS, LAST_STEPS = 1_000, 10_000


def groups_of(noisy: Counts, sigma: float) -> npt.NDArray[np.int64]:
    """New code of each value: those above three deviations keep one of their own, the rest share the last."""
    kept = noisy >= 3 * sigma
    groups = np.cumsum(kept) - 1
    groups[~kept] = kept.sum()
    return groups.astype(np.int64)


def expected_pairs(model: MarkovRandomField, names: Sequence[str], *, compiled: bool) -> dict[Pair, Counts]:
    """Counts of every pair of columns under a model of independent columns."""
    pairs = list(itertools.combinations(names, 2))
    if compiled:
        return {pair: np.asarray(model.project(pair).datavector(), dtype=np.float64) for pair in pairs}
    singles = {name: np.asarray(model.project((name,)).datavector(), dtype=np.float64) for name in names}
    total = float(model.total)
    return {(left, right): np.outer(singles[left], singles[right]).ravel() / total for left, right in pairs}


def spanning_tree(rng: np.random.Generator, data: Dataset, expected: Mapping[Pair, Counts], rho: float) -> list[Pair]:
    """Pairs that join all columns, each drawn by how far the model of independent columns misses its counts."""
    names = data.domain.attributes
    misses = {
        pair: float(np.abs(np.asarray(data.project(pair).datavector()) - counts).sum())
        for pair, counts in expected.items()
    }
    part = {name: name for name in names}
    epsilon = math.sqrt(8 * rho / max(1, len(names) - 1))
    edges: list[Pair] = []
    while len(edges) < len(names) - 1:
        open_pairs = [pair for pair in misses if part[pair[0]] != part[pair[1]]]
        edge = open_pairs[chosen(rng, [misses[pair] for pair in open_pairs], epsilon)]
        edges.append(edge)
        gone, stays = part[edge[0]], part[edge[1]]
        part = {name: stays if label == gone else label for name, label in part.items()}
    return edges


def synthesize(job: Job) -> dict[str, npt.NDArray[np.int64]]:
    """Synthetic columns by MST at the job's (ε, δ)."""
    scoring = str(job.options.get("scoring", "product"))
    if scoring not in ("product", "compiled"):
        raise ContractError(f'option scoring is "{scoring}"; it can be "product" or "compiled"')
    rng = np.random.default_rng()
    data = dataset(job)
    rho = rho_of(job.epsilon, job.delta)
    first_sigma = math.sqrt(3 * len(job.domain) / (2 * rho))
    singles = [measured(rng, data, (name,), first_sigma) for name in job.domain]
    total = estimation.minimum_variance_unbiased_total(singles)
    groups = {single.clique[0]: groups_of(np.asarray(single.noisy_measurement), first_sigma) for single in singles}
    full = Domain.fromdict(dict(job.domain))
    merged = data.compress(groups)
    measurements = [single.compress(groups, full) for single in singles]
    estimator = estimation.MirrorDescent()
    model = estimator.estimate(merged.domain, measurements, known_total=total, iters=FIRST_STEPS)
    expected = expected_pairs(model, merged.domain.attributes, compiled=scoring == "compiled")
    edges = spanning_tree(rng, merged, expected, rho / 3)
    last_sigma = math.sqrt(3 * max(1, len(edges)) / (2 * rho))
    measurements += [measured(rng, merged, edge, last_sigma) for edge in edges]
    model = estimator.estimate(merged.domain, measurements, iters=LAST_STEPS)
    return rows(model, job, groups)


if __name__ == "__main__":
    serve(
        synthesize,
        packages=PACKAGES,
        notes=[*NOTES, f"{FIRST_STEPS} steps on one-way tables, {LAST_STEPS} in the last fit"],
    )
