"""plan: what a run will cost and need, from public facts alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.release.people import everything, simple
from understudy.errors import ResourceError, SchemaError, UsageError
from understudy.methods.aim import Aim
from understudy.methods.independent import Independent
from understudy.methods.laplace import Laplace
from understudy.methods.method import Method, Plan
from understudy.methods.steps import Steps
from understudy.privacy.cost import Budget
from understudy.schema import Integer, PrivateBins, Schema, Unit
from understudy.schema import yaml_text as emit
from understudy.synthesizer import design as designing
from understudy.synthesizer import synthesize
from understudy.synthesizer.design import Copies, Design, check_disk, check_memory, memory_limit, plan
from understudy.testing import cases as tables


def test_a_plan_names_every_query_and_stays_within_the_budget() -> None:
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
    check_memory(made, made.limit_bytes)
    check_memory(made, None)
    with pytest.raises(ResourceError) as refused:
        check_memory(made, made.limit_bytes - 1)
    assert refused.value.needed_bytes == made.limit_bytes


def test_a_run_is_refused_by_the_most_it_may_take_not_by_what_is_expected() -> None:
    made = plan(simple(), method="aim", epsilon=1.0, delta=1e-9)
    assert made.bytes < made.limit_bytes
    check_memory(made, made.limit_bytes)
    with pytest.raises(ResourceError) as refused:
        check_memory(made, made.limit_bytes - 1)
    assert refused.value.needed_bytes == made.limit_bytes


def test_rows_are_in_the_plan_even_where_their_number_is_unknown() -> None:
    made = plan(simple(), method="independent", epsilon=1.0)
    assert made.bytes == plan(simple(), method="independent", epsilon=1.0, rows_hint=10**6).bytes
    assert made.bytes > 2**18 * 8 * len(simple().names)  # codes of a piece of new rows
    assert made.seconds > plan(simple(), method="independent", epsilon=1.0, rows_hint=10).seconds


def test_the_limit_of_a_container_is_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of processes may be given less than the machine has; "max" and unreadable files say nothing."""
    limit, unlimited = tmp_path / "memory.max", tmp_path / "other"
    limit.write_text("300000000\n")
    unlimited.write_text("max\n")
    whole = memory_limit(None)
    monkeypatch.setattr(designing, "CONTAINER_FILES", (str(tmp_path / "absent"), str(unlimited)))
    assert memory_limit(None) >= whole
    monkeypatch.setattr(designing, "CONTAINER_FILES", (str(limit), str(unlimited)))
    monkeypatch.setattr(designing, "KEPT_ROWS_BYTES", 0)
    assert memory_limit(None) == 240_000_000
    big = plan(simple(), epsilon=1.0)
    with pytest.raises(ResourceError) as caught:
        check_memory(replace(big, bytes=240_000_001), None)
    assert caught.value.limit_bytes == 240_000_000
    assert memory_limit(7) == 7


def test_a_schema_that_cannot_be_written_down_is_refused_before_anything_is_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(emit, "MOST_ENTRIES", 10)
    with pytest.raises(SchemaError, match="which no reader accepts"):
        plan(simple(), epsilon=1.0)


def test_disk_is_checked_in_advance(tmp_path: Path) -> None:
    made = plan(simple(), method="laplace", epsilon=1.0)
    check_disk(made, tmp_path)
    with pytest.raises(ResourceError, match="disk"):
        check_disk(replace(made, bytes=2**62), tmp_path)


def test_near_misses_are_named() -> None:
    with pytest.raises(UsageError, match="laplace"):
        plan(simple(), method="laplac", epsilon=1.0)
    with pytest.raises(UsageError, match="remeasure"):
        Copies(2, "resanitise")


@pytest.mark.parametrize(("copies", "runs"), [(Copies(3, "resample"), 1), (Copies(3, "remeasure"), 3)])
def test_only_resanitized_copies_measure_again(copies: Copies, runs: int) -> None:
    assert copies.runs == runs


@pytest.mark.parametrize(("by", "summed"), [("mass", False), ("quantiles", False), ("privtree", False)])
def test_nothing_is_summed_by_exact_distributions_where_codes_are_fixed_first(by: str, *, summed: bool) -> None:
    """Where codes are fixed first, costs of what follows may move with them: nothing is summed by exact
    distributions."""
    schema = Schema((Integer(name="pay", lower=0, upper=999, bins=PrivateBins(4, by)),), Unit())
    design = Design.of(schema, "independent", Budget(1.0, 1e-6))
    assert bool(design.variances) is summed
    by_cost = Budget(1.0, 1e-6).cost("zcdp")
    assert (design.granted.rho > by_cost.rho) is summed


@pytest.mark.parametrize(
    ("method", "made_by", "options", "schema", "budget", "copies", "times"),
    [
        ("aim", Aim, {"rounds": 2}, tables.small(), Budget(1.0, 1e-6), 1, 1),
        ("aim", Aim, {"rounds": 2}, tables.small(), Budget(1.0, 1e-6), 3, 1),
        ("auto", Laplace, {}, tables.small(), Budget(1.0), 1, 1),
        ("steps", Steps, {}, tables.small(), Budget(1.0), 1, 1),
        ("independent", Independent, {}, tables.small(), Budget(1.0), 1, 1),
        # For the ρ of zCDP, and for the larger one that exact distributions of the noise buy.
        ("independent", Independent, {}, tables.small(), Budget(1.0, 1e-6), 1, 2),
        # For as many labels as there can be, and, in each run, for those that were found.
        ("independent", Independent, {}, tables.open_labels(), Budget(1.0, 1e-6), 1, 2),
        ("independent", Independent, {}, tables.open_labels(), Budget(1.0, 1e-6), 2, 3),
    ],
)
def test_a_plan_is_made_once_for_its_codes_and_cost_and_then_followed(
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    made_by: type[Method],
    options: dict[str, object],
    schema: Schema,
    budget: Budget,
    copies: int,
    times: int,
) -> None:
    planned, calls = made_by.plan, []

    def counting(*given: object) -> Plan:
        calls.append(given)
        return planned(*given)

    monkeypatch.setattr(made_by, "plan", counting)
    rows = tables.some_rows(schema, 40, seed=1)
    asked = {"epsilon": budget.epsilon, "delta": budget.delta, "options": options}
    synthesize(rows, schema, method=method, copies=copies, copies_mode="remeasure", **asked)
    assert len(calls) == times
