"""pfr, as we read it: denoising by hand, budget by columns, uniform where nothing is asked, rules in every row."""

import numpy as np
import pyarrow as pa
import pytest

from understudy import Schema, Unit, synthesize
from understudy.domain import Clique, Domain, Measurement
from understudy.errors import ResourceError, UsageError
from understudy.methods.fieldgroups import Group
from understudy.methods.method import PublicFacts
from understudy.methods.pfr import Pfr, budget_weights, denoised
from understudy.privacy.cost import Cost
from understudy.schema import Category, Derived, Lookup


def schema(sizes: dict[str, int], *extra: object) -> Schema:
    """Categories with so many labels, and as many codes."""
    listed = tuple(Category(name=n, labels=tuple(map(str, range(s))), missing=False) for n, s in sizes.items())
    return Schema(columns=(*listed, *extra), unit=Unit(), unreadable="drop")  # type: ignore[arg-type]


def test_denoising_by_hand() -> None:
    """b = 1, y = (5.2, −.4, .3, 1.1, −.9, .2): Ê = 4, τ = ln 2 = 0.693, so the first and the fourth survive."""
    found = denoised(np.array([5.2, -0.4, 0.3, 1.1, -0.9, 0.2]), 1.0, 1)
    assert found.tolist() == [5.2, 0.0, 0.0, 1.1, 0.0, 0.0]


def test_without_noise_exactly_the_occupied_cells_survive() -> None:
    counts = np.array([0.0, 7.0, 0.0, 1.0])
    assert denoised(counts, 1e-9, 1).tolist() == counts.tolist()


def test_about_as_many_false_survivors_as_accepted() -> None:
    """20,000 empty cells, 200 repeats: the mean number of survivors is κ within 5 standard errors."""
    rng = np.random.default_rng(7)
    for accepted in (1, 5):
        seen = [int((denoised(rng.laplace(0, 3.0, 20_000), 3.0, accepted) > 0).sum()) for _ in range(200)]
        assert abs(np.mean(seen) - accepted) < 5 * (accepted / 200) ** 0.5


def test_the_budget_goes_by_columns() -> None:
    """10 of 32 columns get 0.31 of ε."""
    groups = [Group(Clique(map(str, range(10)))), Group(Clique(map(str, range(10, 32))))]
    first, second = budget_weights(groups)
    assert first / (first + second) == pytest.approx(0.3125)
    parts = Cost(epsilon=10**12).split([first, second])
    assert parts[0].epsilon == 312_500_000_000


TABLE = pa.table(
    {
        "a": pa.array(list("0011") * 500),
        "b": pa.array(list("0011") * 500),
        "c": pa.array(list("0120") * 500),
        "city": pa.array(["x", "x", "y", "y"] * 500),
    }
)
SCHEMA = schema({"a": 2, "b": 2, "c": 3}, Derived(name="city", formula=Lookup("a", {"0": "x", "1": "y"})))


def test_groups_are_independent_ungrouped_columns_uniform_and_derived_columns_follow() -> None:
    release = synthesize(TABLE, SCHEMA, method="pfr", epsilon=100.0, options={"groups": "a+b"}, seed=1)
    assert release.model.marginal(Clique(("a", "b"))) == pytest.approx([0.5, 0.0, 0.0, 0.5], abs=1e-3)
    assert release.model.marginal(Clique(("c",))) == pytest.approx(np.full(3, 1 / 3))
    rows = release.sample(500, seed=2).to_pydict()
    assert all({"0": "x", "1": "y"}[a] == city for a, city in zip(rows["a"], rows["city"], strict=True))


@pytest.mark.parametrize(("least", "queries"), [(1000, True), (50_000, False)])
def test_a_group_that_wants_more_rows_than_there_are_is_uniform(least: int, queries: bool) -> None:
    release = synthesize(TABLE, SCHEMA, method="pfr", epsilon=10.0, options={"groups": f"a+b, c >= {least}"})
    tables = [answer.columns for answer in release.transcript if isinstance(answer, Measurement)]
    assert (("c",) in tables) == queries
    if not queries:
        assert release.model.marginal(Clique(("c",))) == pytest.approx(np.full(3, 1 / 3))
    assert release.statement.spent.epsilon == release.statement.granted.epsilon


def test_it_says_that_it_is_a_reading() -> None:
    plan = Pfr().plan(PublicFacts(Domain.of({"a": 2, "b": 3}), (), 1), Cost(epsilon=10**12))
    assert "reading" in Pfr.summary
    assert "reading" in Pfr.source
    assert any("reading" in note for note in plan.notes)
    assert sum((step.cost for step in plan.steps), Cost()) == plan.cost == Cost(epsilon=10**12)


def test_what_does_not_fit_or_cannot_be_paid_is_refused() -> None:
    huge = PublicFacts(Domain.of({"x": 2**31, "y": 2**31, "z": 2}), (), 1)
    with pytest.raises(ResourceError, match="x \\+ y"):
        Pfr(groups="x+y").plan(huge, Cost(epsilon=10**12))
    with pytest.raises(UsageError, match="pure"):
        Pfr().plan(huge, Cost(rho=10**9))
    with pytest.raises(UsageError, match="rows"):
        Pfr(rows=0)
