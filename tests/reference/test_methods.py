"""Whole runs of every method, paid for anew by the reference from what their queries say in public."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

import pytest

from tests.methods.door import letters
from tests.reference import conversions, prices, training
from tests.reference.conversions import least_epsilon_of_rho
from tests.reference.noise import decimal
from tests.testing.test_methods import METHODS as CHECKS
from understudy.codec.table import TableCodec
from understudy.domain import GROWTH_UNIT, ROUNDED_GRID, Domain
from understudy.methods.method import METHODS, Method, PublicFacts
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost
from understudy.privacy.gaussian import SMOOTHING, residual_shift
from understudy.privacy.randomizer import Request
from understudy.privacy.training import rate_of
from understudy.release import Release
from understudy.testing import cases
from understudy.testing.cases import Case
from understudy.testing.doubles import NoNoise
from understudy.testing.method_contract import MethodChecks
from understudy.testing.replay import Recorder

ROWS = 3
NEARLY = Fraction(1, 10**9)


def run_of(checks: MethodChecks, budget: Budget, rows: int) -> tuple[Release, list[Request]]:
    schema = cases.small() if rows == 1 else cases.several_rows(rows)
    recorder = Recorder(NoNoise())
    case = Case(schema, checks.method, budget, checks.options, public=checks.public(schema))
    release = case.release(cases.some_rows(schema, 40, seed=1), recorder)
    return release, [exchange.request for exchange in recorder.log]


def moved_by(request: Request, rows: int) -> Fraction:
    """How far a unit of so many rows moves the exact answer, by kind: not what the request says, but what is known."""
    if request.kind in ("measure", "sparse", "discover", "residuals"):
        return Fraction(rows)
    if request.kind == "grow":
        return Fraction(rows * GROWTH_UNIT)
    assert request.sensitivity % rows == 0, "scores are bounded for one row, and added up over the rows of a unit"
    return request.sensitivity


def paid(requests: list[Request], rows: int, *, zcdp: bool) -> tuple[Fraction, Fraction]:
    """ε and ρ that the queries come to (trainings apart)."""
    epsilon = rho = Fraction(0)
    for request in requests:
        if request.kind == "train" or (request.kind == "grow" and request.layer):
            continue
        moved, noise = moved_by(request, rows), request.distribution
        options = request.cells if request.kind == "score" else 1
        if noise is None:
            alone = prices.choice_epsilon(request.rate, moved, monotone=request.monotone)
            in_rho = prices.choice_rho(alone)
        elif noise.kind == "gaussian":
            squared = moved**2 * (residual_shift(request.shape) if request.kind == "residuals" else options)
            rho += prices.gaussian_rho(squared, Fraction(noise.parameter))
            continue
        elif request.kind == "grow":
            found = prices.tree_epsilon(Fraction(noise.parameter), request.bias, rows, GROWTH_UNIT)
            alone = Fraction(found)
            in_rho = prices.pure_rho(alone)
        else:
            alone = prices.laplace_epsilon(options * moved, Fraction(noise.parameter))
            in_rho = prices.pure_rho(alone)
        as_rho = zcdp and request.kind not in ("measure", "sparse")
        epsilon, rho = epsilon + (0 if as_rho else alone), rho + (in_rho if as_rho else 0)
    return epsilon, rho


@pytest.mark.parametrize("rows", [1, ROWS])
@pytest.mark.parametrize("name", CHECKS)
def test_no_run_costs_more_than_it_says(name: str, rows: int) -> None:
    """The sum of what the reference finds for the queries: never above the charge, and (but for noise that was widened
    on purpose) nearly all of it; and never above the claim."""
    checks = CHECKS[name]
    for budget in checks.budgets:
        release, requests = run_of(checks, budget, rows)
        spent, granted = release.statement.spent, release.statement.granted
        epsilon, rho = paid(requests, rows, zcdp=granted.rho > 0)
        assert epsilon <= Fraction(spent.epsilon, UNIT) * (1 + NEARLY) or any(one.kind == "train" for one in requests)
        assert rho <= Fraction(spent.rho, UNIT) * (1 + NEARLY)
        assert spent.fits(granted)
        assert (spent.epsilon, spent.delta) <= (budget.epsilon_units, budget.delta_units)
        if not any(request.kind == "train" for request in requests):
            widened = any(one.distribution and one.distribution.grid == ROUNDED_GRID for one in requests)
            assert rho >= Fraction(spent.rho, UNIT) * (Fraction(9, 10) if widened else 1 - Fraction(1, 10**4))
            assert epsilon >= Fraction(spent.epsilon, UNIT) * (1 - Fraction(1, 10**4))
        claim = release.statement.claim or (budget.epsilon, budget.delta)
        assert claim[0] <= budget.epsilon
        assert claim[1] <= budget.delta
        assert claim[0] >= _least_claim(requests, epsilon, rho, Fraction(repr(claim[1]))), claim


def _least_claim(requests: list[Request], epsilon: Fraction, rho: Fraction, delta: Fraction) -> float:
    """What may be claimed at the least: pure sums, ρ by its best order, noise alone by its normal twin."""
    if any(request.kind == "train" for request in requests):
        return 0.0  # see below
    if not rho:
        return float(epsilon) * (1 - 1e-12)
    in_rho = least_epsilon_of_rho(rho + epsilon**2 / 2, delta)
    beside = decimal(epsilon) + least_epsilon_of_rho(rho, delta)
    least = min(in_rho, beside)
    if all(one.distribution and one.distribution.kind == "gaussian" for one in requests):
        while conversions.gaussian_delta(Fraction(least), rho * Fraction(98, 100)) <= decimal(delta):
            least *= Decimal("0.98")
    return float(least) * (1 - 1e-12)


def test_training_costs_what_the_reference_finds() -> None:
    checks = CHECKS["dpwgan"]
    (budget,) = checks.budgets
    release, requests = run_of(checks, budget, 1)
    delta = Fraction(release.statement.spent.delta, DELTA_UNIT)
    best = None
    for order in [*range(2, 60), 80, 120]:
        total = Decimal(0)
        for request in requests:
            assert request.distribution
            multiplier = Fraction(request.distribution.scale) / request.sensitivity
            rate = Fraction(1) if request.layer == 0 else Fraction(rate_of(1 / request.rate))
            total += training.formula(order, rate, multiplier)
        found = training.epsilon_at(total, order, delta)
        best = found if best is None else min(best, found)
    assert best is not None
    spent = Decimal(release.statement.spent.epsilon) / UNIT
    assert spent * Decimal("0.97") <= best <= spent * Decimal("1.0001")


@pytest.mark.parametrize(
    "name", ["independent", "mst", "mwem", "aim", "privsyn", "privbayes", "laplace", "steps", "fieldgroups"]
)
def test_more_rows_of_a_unit_mean_that_much_more_noise(name: str) -> None:
    """The group bound: the first answers of a unit of three rows have three times the scale."""
    checks = CHECKS[name]
    for budget in checks.budgets:
        (_, one), (_, many) = (run_of(checks, budget, rows) for rows in (1, ROWS))
        assert one[0].kind == many[0].kind
        if one[0].distribution is None:
            assert one[0].rate == ROWS * many[0].rate
            continue
        first, other = one[0].distribution, many[0].distribution
        assert other
        if first.kind == "laplace":
            assert Fraction(other.parameter) == ROWS * Fraction(first.parameter)
        else:
            wider = Fraction(SMOOTHING, ROUNDED_GRID**2) if first.grid == ROUNDED_GRID else 0
            if name == "independent":  # single rows are accounted by exact distributions, which buys less noise
                assert Fraction(other.parameter) >= ROWS**2 * Fraction(first.parameter)
                continue
            assert Fraction(other.parameter) - wider == ROWS**2 * (Fraction(first.parameter) - wider)


SIZES = {"a": 2, "b": 5, "c": 9, "d": 30}
WHOLE = 10**12


def shares(method: Method, cost: Cost) -> Mapping[str, float]:
    """Of the cost, by the first word of a step and whether its table has several columns."""
    facts = PublicFacts(_domain(), (), 1, 10**6)
    plan = method.plan(facts, cost)
    assert sum((step.cost for step in plan.steps), Cost()) == plan.cost
    assert plan.cost.fits(cost)
    found: dict[str, float] = {}
    for step in plan.steps:
        known = step.name.removeprefix("measure ") in SIZES
        key = "column" if known else step.name.split()[0]
        found[key] = found.get(key, 0.0) + (step.cost.epsilon or step.cost.rho) / WHOLE
    return found


def _domain() -> Domain:
    return TableCodec.of(letters(SIZES)).domain


@pytest.mark.parametrize("cost", [Cost(epsilon=WHOLE), Cost(rho=WHOLE)], ids=["pure", "zcdp"])
@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("independent", {}, {"column": 1.0}),
        (
            "mst",
            {"one_way_share": 1 / 3, "selection_share": 1 / 3},
            {"column": 1 / 3, "select": 1 / 3, "measure": 1 / 3},
        ),
        ("mwem", {"one_way_share": 0.4, "selection_share": 0.1}, {"column": 0.4, "select": 0.06, "measure": 0.54}),
        ("aim", {"one_way_share": 0.4, "selection_share": 0.1}, {"column": 0.4, "select": 0.06, "measure": 0.54}),
        ("privsyn", {"one_way_share": 0.1, "selection_share": 0.1}, {"column": 0.1, "score": 0.1, "measure": 0.8}),
    ],
)
def test_methods_share_their_budget_as_published(
    name: str, options: dict[str, object], expected: dict[str, float], cost: Cost
) -> None:
    made = METHODS.make(name, options)
    currency = "pure" if cost.epsilon else "zcdp"
    if currency not in made.currencies:
        pytest.skip(f"{name} is not paid in {currency}")
    assert dict(shares(made, cost)) == pytest.approx(expected, abs=1e-9)


def test_every_share_of_a_layer_is_that_of_the_design() -> None:
    """STEPS: with L layers and a leaf table, `half_leaf` gives the leaves one half and each layer 1/(2L)."""
    for layers in (1, 2):
        options = {"layers": layers, "sequence": "a,b"[: 2 * layers - 1], "allocation": "half_leaf"}
        made = METHODS.make("steps", {**options, "n_policy": "public", "known_rows": 100})
        facts = PublicFacts(_domain(), (), 1, 10**6)
        plan = made.plan(facts, Cost(epsilon=WHOLE))
        parts = [Fraction(step.cost.epsilon, WHOLE) for step in plan.steps]
        assert [round(float(part), 6) for part in parts] == [round(1 / (2 * layers), 6)] * layers + [0.5]


def test_every_method_is_looked_at() -> None:
    assert {checks.method for checks in CHECKS.values()} == set(METHODS.names())
