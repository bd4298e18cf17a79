"""Cross-checks by two libraries of others: `dp-accounting` (Google) and OpenDP. `make test-peers` installs and requires
them; elsewhere these tests are skipped where they are missing."""

import importlib
import math
import os
from collections import Counter
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest

from tests.reference.noise import gaussian_masses, laplace_mass
from understudy.privacy.composition import tight_epsilon
from understudy.privacy.cost import UNIT, Cost, distribution_for, epsilon_of_rho, selection_rate
from understudy.privacy.gaussian import gaussian_epsilon
from understudy.privacy.noise import discrete_gaussian, discrete_laplace
from understudy.privacy.randomizer import choose_exponentially
from understudy.privacy.training import TrainingPart, parts_epsilon

DRAWS = 20_000
LARGEST_Z = 6.0


def peer(name: str) -> ModuleType:
    """The library, or a skipped module where it is missing and nobody requires it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if os.environ.get("REQUIRE_PEERS"):
            raise
        pytest.skip(f"{name} is not installed; `make test-peers` installs it", allow_module_level=True)


accounting = peer("dp_accounting")
losses = peer("dp_accounting.pld.privacy_loss_distribution")
orders = peer("dp_accounting.rdp")
opendp = peer("opendp.prelude")
opendp.enable_features("contrib")


@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-9])
@pytest.mark.parametrize("rho", ["0.001", "0.0243560", "0.5", "3"])
def test_both_convert_rho_as_we_do(rho: str, delta: float) -> None:
    """They try a list of orders, we all of them: what they find is never smaller, and hardly larger."""
    ours = float(epsilon_of_rho(Fraction(rho), Fraction(str(delta))))
    accountant = orders.RdpAccountant(orders=[1 + 2 ** (place / 8) for place in range(-40, 120)])
    accountant.compose(accounting.ZCDpEvent(float(rho)))
    assert ours <= accountant.get_epsilon(delta) * (1 + 1e-9)
    assert ours >= accountant.get_epsilon(delta) * 0.98
    scale = 1 / math.sqrt(2 * float(rho))
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l2_distance(T=float)
    curve = opendp.c.make_zCDP_to_approxDP(opendp.m.make_gaussian(*space, scale=scale)).map(1.0)
    assert curve.epsilon(delta) == pytest.approx(ours, rel=1e-6)


@pytest.mark.parametrize(
    ("variances", "delta"), [((2,), 1e-6), ((4, 4, 4), 1e-6), ((2, 9, 9), 1e-5), ((100,) * 20, 1e-9)]
)
def test_exact_composition_lies_within_their_bounds(variances: tuple[int, ...], delta: float) -> None:
    ours = tight_epsilon(tuple(map(Fraction, variances)), Fraction(str(delta)))
    assert ours is not None
    for pessimistic, sign in ((True, 1), (False, -1)):
        parts = [
            losses.from_discrete_gaussian_mechanism(
                math.sqrt(variance), pessimistic_estimate=pessimistic, value_discretization_interval=1e-4
            )
            for variance in variances
        ]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.compose(part)
        theirs = whole.get_epsilon_for_delta(delta)
        # Their losses are rounded by up to 1e-4 for each answer, ours claim to be within a thousandth.
        assert sign * (theirs - ours) >= -0.002 * ours - 1e-4 * len(variances)


@pytest.mark.parametrize(("epsilon", "rows"), [(0.5, 1), (1.0, 3), (4.0, 2)])
def test_laplace_noise_is_as_private_for_them(epsilon: float, rows: int) -> None:
    scale = float(distribution_for(Cost(epsilon=int(epsilon * UNIT)), rows, "x").parameter)
    found = losses.from_discrete_laplace_mechanism(1 / scale, sensitivity=rows)
    assert found.get_epsilon_for_delta(0.0) == pytest.approx(epsilon, rel=1e-3)
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l1_distance(T=int)
    assert opendp.m.make_laplace(*space, scale=scale).map(rows) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(("rho", "rows"), [(0.01, 1), (0.5, 3)])
def test_gaussian_noise_is_as_private_for_them(rho: float, rows: int) -> None:
    variance = float(distribution_for(Cost(rho=int(rho * UNIT)), rows, "x").parameter)
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l2_distance(T=float)
    measurement = opendp.m.make_gaussian(*space, scale=math.sqrt(variance))
    assert measurement.map(float(rows)) == pytest.approx(rho, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-5, 1e-9])
@pytest.mark.parametrize("rho", [0.01, 0.125, 2.0])
def test_normal_noise_costs_what_they_find(rho: float, delta: float) -> None:
    ours = gaussian_epsilon(Fraction(rho), Fraction(str(delta)))
    theirs = accounting.get_epsilon_gaussian(1 / math.sqrt(2 * rho), delta)
    assert ours is not None
    assert float(ours) == pytest.approx(theirs, rel=1e-5)
    assert float(ours) >= theirs * (1 - 1e-9)


@pytest.mark.parametrize(("rate", "multiplier", "steps"), [(0.01, 1.0, 1000), (0.001, 0.8, 5000), (0.2, 4.0, 50)])
def test_training_costs_what_they_find(rate: float, multiplier: float, steps: int) -> None:
    ours = parts_epsilon([TrainingPart(rate, multiplier, steps)], 1e-6)
    accountant = orders.RdpAccountant(orders=list(range(2, 200)))
    event = accounting.PoissonSampledDpEvent(rate, accounting.GaussianDpEvent(multiplier))
    accountant.compose(accounting.SelfComposedDpEvent(event, steps))
    assert ours == pytest.approx(accountant.get_epsilon(1e-6), rel=2e-3)


def z_of(found: list[int], chances: dict[int, float]) -> float:
    """How many deviations the chi-square statistic lies above its mean; what is rare is put together."""
    counts, kept, missing, rest = Counter(found), 0.0, 1.0, len(found)
    places = 0
    for value, chance in chances.items():
        if chance * len(found) >= 20:
            kept += (counts[value] - chance * len(found)) ** 2 / (chance * len(found))
            missing, rest, places = missing - chance, rest - counts[value], places + 1
    if missing * len(found) >= 20:
        kept, places = kept + (rest - missing * len(found)) ** 2 / (missing * len(found)), places + 1
    return (kept - (places - 1)) / math.sqrt(2 * (places - 1))


@pytest.mark.parametrize("scale", [1, 3, 10])
def test_their_samplers_and_ours_follow_the_reference(scale: int) -> None:
    zeros = [0] * DRAWS
    laplace = {value: float(laplace_mass(Fraction(scale), value)) for value in range(-60, 61)}
    normal = {value: float(mass) for value, mass in gaussian_masses(Fraction(scale**2)).items()}
    space = opendp.vector_domain(opendp.atom_domain(T=int))
    theirs = opendp.m.make_laplace(space, opendp.l1_distance(T=int), scale=float(scale))(zeros)
    assert z_of(theirs, laplace) < LARGEST_Z
    assert z_of(discrete_laplace(DRAWS, Fraction(scale)).tolist(), laplace) < LARGEST_Z
    theirs = opendp.m.make_gaussian(space, opendp.l2_distance(T=float), scale=float(scale))(zeros)
    assert z_of(theirs, normal) < LARGEST_Z
    assert z_of(discrete_gaussian(DRAWS, Fraction(scale**2)).tolist(), normal) < LARGEST_Z
    shifted = [value + (place % 20 == 0) for place, value in enumerate(theirs)]
    assert z_of(shifted * 5, normal) > LARGEST_Z, "one draw in twenty off by one would be noticed in a few more draws"


def test_their_choices_and_ours_are_made_alike() -> None:
    """Report noisy max with Gumbel noise is the exponential mechanism; with scale 2/ε on scores of sensitivity 1."""
    scores, epsilon, draws = [0, 2, 3], 1.0, 4000
    rate = selection_rate(Cost(epsilon=UNIT), Fraction(1), "x", monotone=False)
    weights = np.exp(float(rate) * np.array(scores))
    chances = dict(enumerate((weights / weights.sum()).tolist()))
    ours = [choose_exponentially(scores, rate) for _ in range(draws)]
    assert z_of(ours, chances) < LARGEST_Z
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.linf_distance(T=int)
    choice = opendp.m.make_noisy_max(*space, opendp.zero_concentrated_divergence(), scale=2 / epsilon)
    theirs = [choice(scores) for _ in range(draws)]
    assert z_of(theirs, chances) < LARGEST_Z
    assert choice.map(1) == pytest.approx(epsilon**2 / 8, rel=1e-9)
