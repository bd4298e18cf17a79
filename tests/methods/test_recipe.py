"""Recipes and costs: who is private, what each question costs under either relation."""

import pytest

from understudy.domain import Domain
from understudy.errors import ResourceError, UsageError
from understudy.methods.rdt import GrowthLimits, LabelCosts, LabelSettings
from understudy.privacy.cost import UNIT, Cost, distribution_for

DOMAIN = Domain.of({"age": 9, "pay": 5, "one": 1, "sex": 2, "race": 6})
LIMITS = GrowthLimits(10, 9, 50)


def _costs(epsilon, *, shares=(0.0, 0.0), label_change=False, columns=2):
    return LabelCosts.of(Cost(epsilon=int(epsilon * UNIT)), columns, 5, shares=shares, label_change=label_change)


def test_the_printed_totals():
    """ε = 0.1 a tree, five trees for each of two columns: 1.0, and 2.0 for a change of labels."""
    by_adding, by_change = _costs(1.0), _costs(2.0, label_change=True)
    for costs in (by_adding, by_change):
        (table,) = {part.epsilon for part in costs.ensemble.split([1.0] * 5)}
        assert table == UNIT // 10
        assert distribution_for(Cost(epsilon=table), 1, "table").scale == pytest.approx(10.0)
    assert 2 * by_adding.ensemble.epsilon == 1 * UNIT
    assert 2 * 2 * by_change.ensemble.epsilon == 2 * UNIT


def test_prices_add_up_to_the_cost():
    costs = _costs(3.0, shares=(0.01, 0.25))
    spent = costs.total + Cost(epsilon=5 * costs.tree.epsilon) + Cost(epsilon=2 * costs.ensemble.epsilon)
    assert 0 <= 3 * UNIT - spent.epsilon < 10


def test_a_change_of_labels_costs_the_budget_in_either_currency():
    pure = _costs(4.0, shares=(0.01, 0.25), label_change=True)
    assert 2 * (pure.total.epsilon + 5 * pure.tree.epsilon + 2 * pure.ensemble.epsilon) <= 4 * UNIT
    cost = Cost(rho=UNIT)
    rho = LabelCosts.of(cost, 2, 5, shares=(0.01, 0.25), label_change=True)
    changed = 2 * rho.total.rho + 4 * 5 * rho.tree.rho + 2 * 2 * rho.ensemble.rho
    assert UNIT * 0.999 < changed <= UNIT
    # Twice ρ for √2 times the distance; a tree's ε doubles, so its ρ = ε²/2 is four times as large.
    assert rho.tree.rho == pytest.approx(UNIT * 0.25 / 5 / 4, rel=1e-6)


def test_private_columns_default_to_the_last_one():
    settings = LabelSettings.of(DOMAIN, (), {}, {}, LIMITS)
    assert settings.private == ("race",)
    assert settings.public == ("age", "pay", "one", "sex")
    assert LabelSettings.of(DOMAIN, ("race", "sex"), {}, {}, LIMITS).private == ("race", "sex"), "in the order given"


def test_parts_of_a_split_column_stay_together():
    split = Domain.of({"a": 2, "pay.size": 3, "pay.kind": 4})
    for named in ((), ("pay",), ("pay.size",), ("pay.kind", "pay")):
        assert LabelSettings.of(split, named, {}, {}, LIMITS).private == ("pay.size", "pay.kind")
    assert LabelSettings.of(Domain.of({"a": 2, "b.size": 3}), (), {}, {}, LIMITS).private == ("b.size",)


def test_what_can_be_split_on():
    settings = LabelSettings.of(DOMAIN, ("sex", "race"), {"age": 0.0, "pay": 60.0}, {"pay": 200.0}, LIMITS)
    assert [name for name in DOMAIN.columns if settings.splits(name)] == ["pay", "sex", "race"]
    assert settings.grows
    assert not LabelSettings.of(DOMAIN, ("sex",), dict.fromkeys(("age", "pay", "race"), 0.0), {}, LIMITS).grows
    assert not LabelSettings.of(DOMAIN, ("sex",), {}, {}, GrowthLimits(10, 0, 50)).grows
    assert settings.most_leaves(0) == 45
    assert settings.most_leaves(1) == 90


@pytest.mark.parametrize(
    "given",
    [
        (("gender",), {}, {}),
        (("sex",), {"sexx": 1.0}, {}),
        (("sex",), {"sex": 1.0}, {}),
        (("sex",), {}, {"sex": 5.0}),
        (("sex", "race"), {"race": 1.0}, {}),
    ],
)
def test_names_that_cannot_be_named_are_refused(given):
    with pytest.raises(UsageError):
        LabelSettings.of(DOMAIN, *given, LIMITS)  # type: ignore[call-arg]


def test_sizes_that_cannot_be_held_are_refused():
    with pytest.raises(ResourceError, match="combinations"):
        LabelSettings.of(Domain.of({"a": 200, "b": 200}), ("a", "b"), {}, {}, LIMITS)
    with pytest.raises(ResourceError, match="public columns"):
        LabelSettings.of(Domain.of({f"c{place}": 2 for place in range(64)}), (), {}, {}, LIMITS)
