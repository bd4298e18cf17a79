"""Claims of statements against exact distributions: what auditors read is never below what the answers cost."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from tests.reference.conversions import exact_delta, least_epsilon_of_rho, mixed_delta
from tests.reference.noise import decimal
from understudy.domain import Distribution
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.release.statement import Charge, LedgerFacts, Statement
from understudy.schema import Unit

DELTA = 1e-6
VARIANCES = (Fraction(2), Fraction(9, 2), Fraction(2))


def gaussian(variance: Fraction, *, unit: int = 1, kind: str = "gaussian") -> Charge:
    cost = Cost(rho=int(UNIT / (2 * variance)) + 1)
    return Charge(1, "measure x", cost, Distribution(kind, variance), unit=unit)


def stated(charges: Sequence[Charge], *, delta: float = DELTA, **more: object) -> Statement:
    """A statement of a run with a budget far above what the charges come to, so that nothing is rounded up to it."""
    spent = sum((charge.cost for charge in charges), Cost())
    budget = Budget(1000.0, delta)
    facts = LedgerFacts(None, "", 1, None, None)
    found = Statement(
        "run", "2026-01-01", "", "mst", "zcdp", budget, Unit(), "", tuple(charges), spent, facts, as_planned=True
    )
    return replace(found, **more)


def claimed(statement: Statement) -> Fraction:
    assert statement.claim is not None
    assert statement.claim[1] == DELTA
    return Fraction(repr(statement.claim[0]))


def by_rho(charges: Sequence[Charge]) -> float:
    rho = sum((Fraction(charge.cost.rho, UNIT) for charge in charges), Fraction(0))
    return float(least_epsilon_of_rho(rho, Fraction(repr(DELTA))))


def test_a_fixed_plan_of_gaussian_answers_claims_their_exact_epsilon() -> None:
    charges = [gaussian(variance) for variance in VARIANCES]
    found = claimed(stated(charges))
    moves = [1] * len(charges)
    assert exact_delta(VARIANCES, moves, found) <= decimal(Fraction(repr(DELTA)))
    assert exact_delta(VARIANCES, moves, found * Fraction(998, 1000)) > decimal(Fraction(repr(DELTA)))
    assert float(found) < 0.97 * by_rho(charges)
    again = claimed(stated(charges[::-1]))
    assert again == found, "the order of queries costs nothing"


@pytest.mark.parametrize(
    ("why", "charges", "more"),
    [
        ("costs followed answers", VARIANCES, {"as_planned": False}),
        ("a unit has two rows", VARIANCES, {"unit": Unit(column="id", rows=2)}),
        ("a score is no histogram", (*VARIANCES, "score"), {}),
        ("Laplace noise was paid in ρ", (*VARIANCES, "laplace"), {}),
        ("a choice was paid in ρ", (*VARIANCES, "choice"), {}),
    ],
)
def test_nothing_else_is_claimed_by_exact_distributions(
    why: str, charges: Sequence[Fraction | str], more: dict[str, object]
) -> None:
    extra = {
        "score": gaussian(Fraction(4), unit=2**20),
        "laplace": gaussian(Fraction(4), kind="laplace"),
        "choice": Charge(1, "select x", Cost(rho=UNIT // 8), rate=Fraction(1), sensitivity=Fraction(1)),
    }
    made = [extra[one] if isinstance(one, str) else gaussian(one) for one in charges]
    assert float(claimed(stated(made, **more))) == pytest.approx(by_rho(made), rel=1e-9), why


def test_what_was_not_spent_is_claimed_unless_costs_were_fixed() -> None:
    charges = [gaussian(variance) for variance in VARIANCES]
    granted = Cost(rho=2 * UNIT)
    fixed, followed = stated(charges, granted=granted), stated(charges, granted=granted, as_planned=False)
    assert float(claimed(followed)) == pytest.approx(
        float(least_epsilon_of_rho(Fraction(2), Fraction(repr(DELTA)))), rel=1e-9
    )
    assert claimed(fixed) == claimed(stated(charges))


@pytest.mark.parametrize("pure", [Fraction(1, 10), Fraction(2)])
def test_answers_in_pure_epsilon_are_added_to_exact_ones(pure: Fraction) -> None:
    """The worst pure answer beside one Gaussian answer: the claim holds, and so does the sum of both."""
    charges = [
        gaussian(Fraction(3)),
        Charge(1, "measure y", Cost(epsilon=int(pure * UNIT)), Distribution("laplace", 1 / pure)),
    ]
    found = claimed(stated(charges))
    assert mixed_delta(pure, Fraction(3), found) <= decimal(Fraction(repr(DELTA)))
    alone = claimed(stated(charges[:1]))
    assert found <= alone + pure + Fraction(1, 10**12)
    assert found > alone


def test_labels_of_one_unit_move_two_cells() -> None:
    """One row leaves a cell and another enters one: exact distributions of both cells of every answer."""
    charges = [gaussian(variance) for variance in (Fraction(6), Fraction(10))]
    statement = stated(charges, labels=("sex",))
    assert statement.label_claim is not None
    found = Fraction(repr(statement.label_claim[0]))
    both = [Fraction(6), Fraction(6), Fraction(10), Fraction(10)]
    assert exact_delta(both, [1, -1, 1, -1], found) <= decimal(Fraction(repr(DELTA)))
    rho = sum(Fraction(2 * charge.cost.rho, UNIT) for charge in charges)
    assert float(found) == pytest.approx(float(least_epsilon_of_rho(rho, Fraction(repr(DELTA)))), rel=1e-9)
