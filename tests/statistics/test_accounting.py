"""Claims against the truth: single Gaussian releases at random budgets, the exact δ by direct summation."""

import math

import numpy as np

from understudy.privacy.cost import Budget, distribution_for


def _exact_delta(variance: float, rows: int, epsilon: float) -> float:
    """Σ max(0, P(k) − e^ε P(k − rows)): the smallest δ for that ε, either direction being the same by symmetry."""
    reach = int(40 * math.sqrt(variance)) + 40 * rows + 40
    k = np.arange(-reach, reach + 1)
    log = -(k.astype(float) ** 2) / (2 * variance)
    log -= np.log(np.exp(log).sum())
    shifted = -((k.astype(float) - rows) ** 2) / (2 * variance) - np.log(
        np.exp(-(k.astype(float) ** 2) / (2 * variance)).sum()
    )
    return float(np.maximum(0.0, np.exp(log) - np.exp(np.minimum(epsilon + shifted, 700.0))).sum())


def test_two_hundred_random_budgets_hold_and_half_the_variance_would_not() -> None:
    generator = np.random.default_rng(5)
    broken = 0
    for _ in range(200):
        epsilon, delta = float(np.exp(generator.uniform(-3, 2.3))), float(10 ** generator.uniform(-10, -2))
        rows = int(generator.integers(1, 5))
        budget = Budget(epsilon, delta)
        cost = budget.cost("zcdp")
        claimed_epsilon, claimed_delta = budget.claim(cost)
        variance = float(distribution_for(cost, rows, "measure").parameter)
        assert _exact_delta(variance, rows, claimed_epsilon) <= claimed_delta * (1 + 1e-9)
        broken += _exact_delta(variance / 2, rows, claimed_epsilon) > claimed_delta
    assert broken == 200
