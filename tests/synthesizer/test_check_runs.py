"""Runs with a check: its part of the budget in every currency, apart from the method, for copies and continued runs."""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.nets.doubles import Interrupted, interrupted_after
from understudy import Synthesizer
from understudy.arrays import Ints
from understudy.domain import HeldBack
from understudy.errors import SchemaError, UsageError
from understudy.methods.method import METHODS
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.privacy.ledger import Ledger
from understudy.privacy.randomizer import Request
from understudy.release import Release, verify_release
from understudy.release.criteria import criteria_of
from understudy.schema import Schema
from understudy.synthesizer import Environment, plan, synthesize
from understudy.synthesizer.design import Design
from understudy.testing import NoNoise
from understudy.testing import cases as tables
from understudy.testing.replay import Recorder, cost_of

pytestmark = pytest.mark.filterwarnings("ignore::understudy.errors.UnderstudyWarning")
OPTIONS = {"dpsyn": {"marginals": "pairs"}}
RUNS = {
    "pure": ("independent", Budget(1.0), tables.small()),
    "summed exactly": ("independent", Budget(1.0, 1e-6), tables.small()),
    "zCDP": ("mst", Budget(1.0, 1e-6), tables.small()),
    "Gaussian": ("ensemble", Budget(1.0, 1e-6), tables.small()),
    "people": ("independent", Budget(1.0, 1e-6), tables.several_rows()),
    "tree": ("steps", Budget(1.0), tables.small()),
    "open labels": ("independent", Budget(1.0, 1e-6), tables.open_labels()),
    "some in pure ε": ("dpsyn", Budget(1.0, 1e-6), tables.small()),
    "split columns": ("independent", Budget(1.0), tables.split_amounts()),
}
LIMITS = criteria_of("criteria: [{columns: all, within: 0.3}]")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


def _environment(randomizer: object) -> Environment:
    return Environment(randomizer, lambda: datetime(2026, 1, 1, tzinfo=UTC), lambda: "a-run")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", RUNS)
def test_method_and_check_share_what_was_granted(name: str) -> None:
    method, budget, schema = RUNS[name]
    recorder = Recorder(NoNoise())
    release = synthesize(
        tables.some_rows(schema, 60, seed=1), schema, method=method, epsilon=budget.epsilon, delta=budget.delta,
        options=OPTIONS.get(method),
        check_share=0.25, criteria=LIMITS, _environment=_environment(recorder),
    )  # fmt: skip
    statement = release.statement
    held = [charge for charge in statement.charges if charge.step.startswith("check ")]
    spent = sum((charge.cost for charge in held), Cost())
    granted = statement.granted
    part = spent.rho / granted.rho if granted.rho else spent.epsilon / granted.epsilon
    assert 0.2499 < part <= 0.25
    assert (spent.epsilon == 0) == (granted.rho > 0)
    asked = cost_of([exchange.request for exchange in recorder.log], zcdp=granted.rho > 0)
    assert asked.fits(statement.spent)
    assert statement.spent.fits(granted)
    assert len(held) == len(release.transcript.of(HeldBack))


@pytest.mark.parametrize("name", RUNS)
def test_a_folder_with_a_check_claims_its_budget_and_verifies(name: str, folder: Path) -> None:
    method, budget, schema = RUNS[name]
    out = folder / "release"
    release = synthesize(
        tables.some_rows(schema, 60, seed=1), schema, method=method, epsilon=budget.epsilon, delta=budget.delta,
        options=OPTIONS.get(method),
        check_share=0.05, criteria=LIMITS, out=out,
    )  # fmt: skip
    assert verify_release(out) == []
    epsilon, delta = release.statement.claim or (9.0, 9.0)
    assert 0.99 * budget.epsilon < epsilon <= budget.epsilon
    assert delta <= budget.delta
    assert Release.load(out).statement == release.statement
    check = release.statement.check
    assert check is not None
    assert check.distances
    assert len(check.verdicts) == 1


@pytest.mark.parametrize("method", sorted(METHODS.built_in))
def test_every_method_leaves_the_check_its_share(method: str, folder: Path) -> None:
    schema, kind = tables.small(), METHODS.find(method)
    needed: dict[str, dict[str, object]] = {"rdt": {"private": "age"}, "dpwgan": {"steps": 10}}
    options = (needed | {name: {"marginals": "pairs"} for name in ("dpsyn", "nist_mst")}).get(method)
    delta = 1e-6 if kind.spends_delta or "zcdp" in kind.currencies or "gaussian" in kind.currencies else 0.0
    out = folder / "release"
    release = synthesize(
        tables.possible_rows(schema, 60, seed=1), schema, method=method, epsilon=2.0, delta=delta, options=options,
        check_share=0.1, out=out,
    )  # fmt: skip
    assert verify_release(out) == []
    assert release.statement.check is not None
    assert len(release.statement.check.distances) == 5


@pytest.mark.parametrize("name", ["pure", "summed exactly", "Gaussian"])
def test_the_plan_shows_the_check_before_the_run(name: str) -> None:
    method, budget, schema = RUNS[name]
    settings = {"method": method, "epsilon": budget.epsilon, "delta": budget.delta}
    without, made = plan(schema, **settings), plan(schema, **settings, check_share=0.1, criteria=LIMITS)
    checks = [step for step in made.steps if step.name.startswith("check ")]
    assert checks[0].name == "check total"
    assert {"check registered", "check voted", "check age"} <= {step.name for step in checks}
    assert made.cells == without.cells + sum(step.cells for step in checks)
    assert made.reads == without.reads + 1
    assert any("Held back" in note for note in made.notes)
    release = synthesize(tables.some_rows(schema, 60, seed=1), schema, **settings, check_share=0.1, criteria=LIMITS)
    charged = {one.step: (one.cost, one.distribution.scale) for one in release.statement.charges if one.distribution}
    assert {step.name: (step.cost, step.noise_scale) for step in checks}.items() <= charged.items()


def test_what_was_planned_is_summed_exactly_with_the_check() -> None:
    """Fixed Gaussian costs: the check's noise belongs to the sum that makes the claim."""
    method, budget, schema = RUNS["summed exactly"]
    design = Design.of(schema, method, budget, check_share=0.2)
    assert len(design.variances) == len(design.plan.steps) + len(design.check_steps)
    release = synthesize(
        tables.some_rows(schema, 60, seed=1), schema, method=method, epsilon=1.0, delta=1e-6, check_share=0.2
    )
    assert release.statement.as_planned
    assert release.statement.epsilon == 1.0


def _shifted(shift: int) -> NoNoise:
    """No noise for the method; the check's answers, which begin with the total, are moved. Not private."""
    seen: list[str] = []

    class Shifted(NoNoise):
        def add_noise(self, request: Request, exact: Ints) -> Ints:
            seen.append(request.name)
            return exact + shift if "total" in seen else exact.copy()

    return Shifted()


def test_rows_do_not_depend_on_the_checks_answers() -> None:
    schema = tables.small()
    table = tables.some_rows(schema, 200, seed=1)
    releases = [
        synthesize(
            table, schema, method="mst", epsilon=1.0, delta=1e-6, seed=4, rows=150, check_share=0.3,
            _environment=_environment(_shifted(shift)),
        )
        for shift in (0, 10_000)
    ]  # fmt: skip
    assert releases[0].table.equals(releases[1].table)
    first, second = ([one.values for one in release.transcript.of(HeldBack)] for release in releases)
    assert all((a + 10_000 == b).all() for a, b in zip(first, second, strict=True))
    others = [[repr(one) for one in release.transcript if not isinstance(one, HeldBack)] for release in releases]
    assert others[0] == others[1]


def test_the_check_comes_last_and_the_method_is_asked_nothing_after_it() -> None:
    schema = tables.small()
    release = synthesize(
        tables.some_rows(schema, 60, seed=1), schema, method="mst", epsilon=1.0, delta=1e-6, check_share=0.1
    )
    kinds = [isinstance(answer, HeldBack) for answer in release.transcript]
    assert kinds == sorted(kinds)


@pytest.mark.parametrize("mode", ["resample", "remeasure"])
@pytest.mark.parametrize("schema", [tables.small(), tables.open_labels()], ids=["closed", "open"])
def test_every_copy_is_judged_by_one_check(mode: str, schema: Schema, folder: Path) -> None:
    out = folder / "release"
    release = synthesize(
        tables.some_rows(schema, 300, seed=1), schema, method="independent", epsilon=2.0, delta=1e-6, copies=3,
        copies_mode=mode, check_share=0.2, criteria=LIMITS, out=out,
    )  # fmt: skip
    assert verify_release(out) == []
    check = release.statement.check
    assert check is not None
    assert {one.copy for one in check.distances} == {1, 2, 3}
    assert sum(len(fitted.transcript.of(HeldBack)) > 0 for fitted in release.fits) == 1
    assert "copy" in check.verdicts[0].decided_by


def test_labels_that_never_show_change_no_table_of_the_check(folder: Path) -> None:
    """Nobody's job is frequent enough, so the column has a code for other and missing values alone."""
    schema = tables.open_labels()
    limits = criteria_of("criteria: [{pairs_with: sex, within: 0.9}, {columns: all, within: 0.9}]")
    release = synthesize(
        tables.some_rows(schema, 6, seed=1), schema, method="independent", epsilon=0.1, delta=1e-9, rows=20,
        check_share=0.1, criteria=limits, out=folder / "release",
    )  # fmt: skip
    assert release.codec.domain.sizes["job"] <= 2
    assert verify_release(folder / "release") == []


def test_rows_in_memory_are_judged_as_rows_in_a_folder_are(folder: Path) -> None:
    schema = tables.every_kind()
    table = tables.some_rows(schema, 300, seed=1)
    settings = {"method": "independent", "epsilon": 2.0, "seed": 8, "rows": 200, "check_share": 0.2}
    kept = synthesize(table, schema, **settings, _environment=_environment(NoNoise()))
    saved = synthesize(table, schema, **settings, out=folder / "a", _environment=_environment(NoNoise()))
    assert kept.statement.check == saved.statement.check
    kept.save(folder / "b")
    assert Release.load(folder / "b").statement.check == kept.statement.check


def test_an_interrupted_run_is_checked_once_it_is_continued(folder: Path) -> None:
    ledger = Ledger.create(folder / "ledger.db", "people", Budget(3.0, 1e-3))
    run = Interrupted(ledger, folder / "release")
    with interrupted_after(5):
        run.run(check_share=0.2)
    spent = ledger.balance("people").spent
    with pytest.raises(UsageError):
        run.run(resume=True)
    with pytest.raises(UsageError):
        run.run(resume=True, check_share=0.1)
    release = run.run(resume=True, check_share=0.2)
    assert ledger.balance("people").spent == spent
    assert release.statement.claim == (1.0, 1e-6)
    trained = next(charge.cost for charge in release.statement.charges if charge.step.startswith("train"))
    assert trained.epsilon == UNIT - UNIT // 5
    assert verify_release(run.folder) == []


def test_a_method_as_published_is_checked_but_claims_nothing() -> None:
    schema = tables.small()
    table = tables.possible_rows(schema, 60, seed=1)
    options = {"as_published": "2020"}
    release = synthesize(table, schema, method="steps", epsilon=1.0, options=options, check_share=0.1)
    assert release.statement.claim is None
    assert release.statement.check is not None
    assert release.statement.check.distances


@pytest.mark.parametrize("share", [0, -0.1, 0.6, "a lot"])
def test_a_wrong_share_is_refused_before_anything_is_charged(share: object, folder: Path) -> None:
    ledger = Ledger.create(folder / "ledger.db", "people", Budget(3.0, 1e-3))
    schema = tables.small()
    with pytest.raises(UsageError, match="check_share"):
        synthesize(
            tables.some_rows(schema, 9, seed=1), schema, method="independent", epsilon=1.0, ledger=ledger,
            dataset="people", check_share=share,
        )  # fmt: skip
    assert ledger.balance("people").spent == Cost()


def test_criteria_need_a_share_and_known_columns() -> None:
    schema = tables.small()
    with pytest.raises(UsageError, match="no share of the budget"):
        plan(schema, method="independent", epsilon=1.0, criteria=LIMITS)
    unknown = criteria_of("criteria: [{columns: [weight], within: 0.1}]")
    with pytest.raises(SchemaError, match="weight"):
        plan(schema, method="independent", epsilon=1.0, check_share=0.1, criteria=unknown)


def test_the_estimator_takes_the_same_settings() -> None:
    schema = tables.small()
    estimator = Synthesizer(schema, method="independent", epsilon=1.0, check_share=0.1)
    assert estimator.get_params()["check_share"] == 0.1
    assert estimator.fit(tables.some_rows(schema, 60, seed=1)).statement_.check is not None


def test_rows_without_a_check_are_as_they_were(folder: Path) -> None:
    schema = tables.small()
    release = synthesize(
        tables.some_rows(schema, 60, seed=1), schema, method="independent", epsilon=1.0, out=folder / "release"
    )
    assert release.statement.check is None
    assert b"check" not in (folder / "release" / "statement.json").read_bytes()
    assert not release.transcript.of(HeldBack)
    assert isinstance(release.table, pa.Table)
    assert np.all([charge.step.startswith("measure") for charge in release.statement.charges])
