"""The bound holds as often as it says, is not wasteful, and is honest about small models."""

from fractions import Fraction

import numpy as np
import pytest

from understudy.answers import Distribution
from understudy.models.model import misplaced_share, noise_sum_bound
from understudy.privacy.noise import discrete_gaussian, discrete_laplace

DISTRIBUTIONS = [
    Distribution("laplace", Fraction(1, 2)),
    Distribution("laplace", Fraction(20)),
    Distribution("gaussian", Fraction(1, 2)),
    Distribution("gaussian", Fraction(400)),
    Distribution("gaussian", Fraction(10_000)),
]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
@pytest.mark.parametrize("cells", [1, 10, 1000])
def test_bound_holds_and_is_close(distribution: Distribution, cells: int) -> None:
    draw = discrete_laplace if distribution.kind == "laplace" else discrete_gaussian
    runs = 4000
    sums = np.abs(draw(runs * cells, distribution.parameter)).reshape(runs, cells).sum(axis=1)
    bound = noise_sum_bound(distribution, cells, 0.95)
    # 4,000 runs at 95 %: at most 5 % may lie above; six standard deviations are 2.1 points
    assert np.mean(sums > bound) < 0.05 + 0.021
    assert bound < 1.6 * np.quantile(sums, 0.95) + 3 * distribution.scale


def test_bound_grows_with_confidence_and_cells() -> None:
    distribution = Distribution("gaussian", Fraction(25))
    assert (
        noise_sum_bound(distribution, 10, 0.99)
        > noise_sum_bound(distribution, 10, 0.95)
        > noise_sum_bound(distribution, 9, 0.95)
    )


def test_misplaced_share_covers_the_true_distance() -> None:
    rng = np.random.default_rng(1)
    distribution = Distribution("gaussian", Fraction(100))
    exact = rng.integers(0, 500, 40)
    covered = 0
    for _ in range(200):
        noisy = exact + discrete_gaussian(40, distribution.parameter)
        model = np.maximum(noisy, 0) * rng.uniform(0.8, 1.2, 40)
        covered += np.abs(exact - model).sum() / (2 * model.sum()) <= misplaced_share(noisy, model, distribution)
    assert covered >= 190


def test_an_empty_model_can_be_wrong_about_everybody() -> None:
    assert misplaced_share([3, 4], [0, 0], Distribution("laplace", Fraction(1))) == 1.0
    assert misplaced_share([30000, 40000], [30000, 40000], Distribution("laplace", Fraction(1))) < 0.001
