"""plan: what a run will cost and need, from public facts alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.release.people import everything, simple
from understudy.errors import ResourceError, UsageError
from understudy.privacy.cost import Budget
from understudy.schema import Integer, PrivateBins, Schema, Unit
from understudy.synthesizer.design import Copies, Design, check_disk, check_memory, plan


def test_a_plan_names_every_question_and_stays_within_the_budget() -> None:
    made = plan(everything(), method="independent", epsilon=1.0, delta=1e-6)
    assert made.steps[0].name == "discover job"
    assert len(made.steps) == 8
    granted = Design.of(everything(), "independent", Budget(1.0, 1e-6)).granted
    assert made.cost.fits(granted)
    assert made.cost.rho > 0.999 * granted.rho


def test_a_plan_is_made_without_data_and_follows_the_hint() -> None:
    few = plan(simple(), epsilon=1.0, rows_hint=1000)
    many = plan(simple(), epsilon=1.0, rows_hint=10**9)
    assert few.seconds < many.seconds
    assert few.cost == many.cost


def test_what_auto_picks_is_what_runs() -> None:
    design = Design.of(simple(), "auto", Budget(1.0))
    assert design.method.name == design.plan.method != "auto"
    assert any("auto picked" in note for note in design.plan.notes)


def test_copies_measured_anew_get_equal_shares() -> None:
    design = Design.of(simple(), "independent", Budget(1.0), runs=4)
    assert design.share.epsilon * 4 == design.granted.epsilon
    assert design.plan.cost.fits(design.share)


def test_memory_is_checked_in_advance() -> None:
    made = plan(simple(), method="laplace", epsilon=1.0)
    check_memory(made, made.bytes)
    check_memory(made, None)
    with pytest.raises(ResourceError) as refused:
        check_memory(made, made.bytes - 1)
    assert refused.value.needed_bytes == made.bytes


def test_disk_is_checked_in_advance(tmp_path: Path) -> None:
    made = plan(simple(), method="laplace", epsilon=1.0)
    check_disk(made, tmp_path)
    with pytest.raises(ResourceError, match="disk"):
        check_disk(replace(made, bytes=2**62), tmp_path)


def test_near_misses_are_named() -> None:
    with pytest.raises(UsageError, match="laplace"):
        plan(simple(), method="laplac", epsilon=1.0)
    with pytest.raises(UsageError, match="resanitize"):
        Copies(2, "resanitise")


@pytest.mark.parametrize(("copies", "runs"), [(Copies(3, "resample"), 1), (Copies(3, "resanitize"), 3)])
def test_only_resanitized_copies_measure_again(copies: Copies, runs: int) -> None:
    assert copies.runs == runs


@pytest.mark.parametrize(("by", "summed"), [("mass", False), ("quantiles", False), ("privtree", False)])
def test_nothing_is_summed_by_exact_laws_where_codes_are_settled_first(by: str, *, summed: bool) -> None:
    """Where codes are settled first, prices of what follows may move with them: nothing is summed by exact laws."""
    schema = Schema((Integer(name="pay", lower=0, upper=999, bins=PrivateBins(4, by)),), Unit())
    design = Design.of(schema, "independent", Budget(1.0, 1e-6))
    assert bool(design.variances) is summed
    by_price = Budget(1.0, 1e-6).cost("concentrated")
    assert (design.granted.rho > by_price.rho) is summed
