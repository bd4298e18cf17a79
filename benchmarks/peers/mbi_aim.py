"""AIM on mbi: one-way tables, then rounds that each choose the worst answered table, measure it and refit.

Option "scoring": "eager" (default) answers the candidates with JAX's compiler off, which we found several times faster
than one compiled program for each candidate and round; "compiled" is the plain call. Option "size_megabytes" bounds
the model (default 80), "steps" the descent in each round (default 1,000).
"""

import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence

import jax
import numpy as np
import numpy.typing as npt
from mbi import Domain, MarkovRandomField, estimation, junction_tree

from .contract import ContractError, Job, serve
from .mbi_parts import NOTES, PACKAGES, chosen, dataset, measured, rows
from .zcdp import rho_of

Clique = tuple[str, ...]
ROUNDS_PER_COLUMN = 16
MEASURE_SHARE = 0.9
ABSOLUTE_NOISE = math.sqrt(2 / math.pi)  # mean absolute value of a standard normal deviate


def candidates_of(workload: Sequence[Clique]) -> dict[Clique, float]:
    """Every subset of a workload table, weighted by its overlap with the workload."""
    subsets = {
        part
        for clique in workload
        for size in range(1, len(clique) + 1)
        for part in itertools.combinations(clique, size)
    }
    return {part: float(sum(len(set(part) & set(clique)) for clique in workload)) for part in sorted(subsets)}


def affordable(
    weights: Mapping[Clique, float], model: MarkovRandomField, domain: Domain, megabytes: float
) -> list[Clique]:
    """Candidates that the model already covers or that keep it within the size."""
    held = [tuple(clique) for clique in model.cliques]
    covered = [set(clique) for clique in junction_tree.make_junction_tree(domain, held)[0].nodes]
    return [
        clique
        for clique in weights
        if any(set(clique) <= bag for bag in covered)
        or junction_tree.hypothetical_model_size(domain, [*held, clique]) <= megabytes
    ]


def expected(model: MarkovRandomField, clique: Clique, *, eager: bool) -> npt.NDArray[np.float64]:
    """The model's counts of one table."""
    with jax.disable_jit() if eager else contextlib.nullcontext():
        return np.asarray(model.project(clique).datavector(), dtype=np.float64)


class Rounds:
    """State of one run: what has been measured, the model, and what is left to spend."""

    def __init__(self, job: Job) -> None:
        scoring = str(job.options.get("scoring", "eager"))
        if scoring not in ("eager", "compiled"):
            raise ContractError(f'option scoring is "{scoring}"; it can be "eager" or "compiled"')
        self.eager = scoring == "eager"
        self.megabytes = float(str(job.options.get("size_megabytes", 80)))
        self.steps = int(str(job.options.get("steps", 1_000)))
        self.rng = np.random.default_rng()
        self.data = dataset(job)
        self.weights = candidates_of(job.cliques())
        self.exact = {clique: np.asarray(self.data.project(clique).datavector()) for clique in self.weights}
        self.rho = rho_of(job.epsilon, job.delta)
        rounds = ROUNDS_PER_COLUMN * len(job.domain)
        self.sigma = math.sqrt(rounds / (2 * MEASURE_SHARE * self.rho))
        self.epsilon = math.sqrt(8 * (1 - MEASURE_SHARE) * self.rho / rounds)
        self.measurements = [measured(self.rng, self.data, (name,), self.sigma) for name in job.domain]
        self.spent = len(self.measurements) / (2 * self.sigma**2)
        self.count = 0
        self.model = self.fitted(None)

    def fitted(self, start: MarkovRandomField | None) -> MarkovRandomField:
        """The model of all measurements so far."""
        return estimation.MirrorDescent().estimate(
            self.data.domain, self.measurements, iters=self.steps, warm_start=start
        )

    def cost(self) -> float:
        """ρ of one round at the present noise."""
        return self.epsilon**2 / 8 + 1 / (2 * self.sigma**2)

    def select(self) -> Clique:
        """The table that the model misses most beyond what measuring it would leave."""
        open_cliques = affordable(self.weights, self.model, self.data.domain, self.megabytes * self.spent / self.rho)
        scores = [
            self.weights[clique]
            * (
                float(np.abs(self.exact[clique] - expected(self.model, clique, eager=self.eager)).sum())
                - ABSOLUTE_NOISE * self.sigma * self.exact[clique].size
            )
            for clique in open_cliques
        ]
        sensitivity = max(self.weights[clique] for clique in open_cliques)
        return open_cliques[chosen(self.rng, scores, self.epsilon, sensitivity)]

    def step(self) -> None:
        """One round: choose, measure, refit, and halve the noise when the table told nothing beyond it."""
        self.spent += self.cost()
        self.count += 1
        clique = self.select()
        before = expected(self.model, clique, eager=self.eager)
        self.measurements.append(measured(self.rng, self.data, clique, self.sigma))
        self.model = self.fitted(self.model)
        moved = float(np.abs(expected(self.model, clique, eager=self.eager) - before).sum())
        if moved <= ABSOLUTE_NOISE * self.sigma * before.size:
            self.sigma /= 2
            self.epsilon *= 2

    def run(self) -> MarkovRandomField:
        """All rounds; what cannot pay two more is spent on a last one."""
        last = False
        while not last:
            left = self.rho - self.spent
            if left < 2 * self.cost():
                last = True
                self.sigma = math.sqrt(1 / (2 * MEASURE_SHARE * left))
                self.epsilon = math.sqrt(8 * (1 - MEASURE_SHARE) * left)
            self.step()
            print(f"round {self.count}: {self.measurements[-1].clique}, spent {self.spent / self.rho:.3f}", flush=True)
        return self.model


def synthesize(job: Job) -> dict[str, npt.NDArray[np.int64]]:
    """Synthetic columns by AIM at the job's (ε, δ) for its workload."""
    return rows(Rounds(job).run(), job)


if __name__ == "__main__":
    serve(synthesize, packages=PACKAGES, notes=NOTES)
