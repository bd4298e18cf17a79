"""The ρ that an (ε, δ) buys, for peers that take ρ: needs SciPy and nothing else."""

import math

from scipy.optimize import brentq, minimize_scalar


def log_delta(rho: float, epsilon: float) -> float:
    """Logarithm of the smallest δ that ρ-zCDP gives at ε."""

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)  # the order is 1 + excess
        order = 1 + excess
        return excess * (order * rho - epsilon) + order * math.log1p(-1 / order) - log_excess

    return float(minimize_scalar(bound, bounds=(-15, 15), method="bounded", options={"xatol": 1e-10}).fun)


def rho_of(epsilon: float, delta: float) -> float:
    """The ρ whose zCDP gives (ε, δ)."""
    return float(brentq(lambda rho: log_delta(rho, epsilon) - math.log(delta), 1e-12, epsilon, xtol=1e-15))
