from dataclasses import replace

import numpy as np
import pytest

from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from tests.methods.test_independent import voters
from understudy.domain import Domain, Measurement, StructuralZeros
from understudy.errors import ResourceError
from understudy.methods import auto
from understudy.methods.auto import ALIKE, Auto
from understudy.methods.ensemble import MixtureEnsemble
from understudy.methods.expected_error import NoiseShares, expected_errors, rows_tried
from understudy.methods.method import PublicFacts, facts_of
from understudy.privacy.cost import UNIT, Cost
from understudy.testing.doubles import NoNoise


def facts(*sizes, unit_rows=1, rows=None):
    return PublicFacts(Domain.of({f"c{place}": size for place, size in enumerate(sizes)}), (), unit_rows, rows)


def test_noise_shares_by_hand():
    """Three columns of 2, 3 and 4 codes at ε = 1: noise of a cell is ε-sized times the tables that share it."""
    shares = NoiseShares.of(facts(2, 3, 4), epsilon(1), 1_000.0)
    one = 2 * np.exp(-1.0) / -np.expm1(-2.0) / 2_000.0  # half of E|X| at all of the cost, over the rows
    assert shares.columns == pytest.approx(3 * one * (2 + 3 + 4) / 3)
    assert shares.few == shares.all_pairs == pytest.approx(3 * one * (6 + 8 + 12) / 3)
    assert shares.whole == pytest.approx(one * 24)
    assert shares.scores == pytest.approx(2 * one * 3 * 3 / 3)
    assert shares.wide == 0.0


def test_noise_of_gaussian_tables_grows_by_the_root_of_their_number():
    shares = NoiseShares.of(facts(2, 2, 2, 2, 2), rho(1), 1e6)
    assert shares.all_pairs / shares.few == pytest.approx(np.sqrt(10 / 5))


def test_no_share_exceeds_all_rows_and_more_rows_never_raise_a_forecast():
    for cost in (epsilon(0.1), rho(0.001)):
        found = [expected_errors(facts(9, 30, 600, 2), cost, rows) for rows in rows_tried()]
        for name in found[0]:
            errors = [one[name] for one in found]
            assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("sizes", [(2, 2), (100, 9, 9), (4,) * 60, (512, 512, 2), (50,)])
@pytest.mark.parametrize("cost", [rho(0.0001), rho(0.01), rho(1)], ids=str)
def test_under_delta_ensemble_is_picked_where_no_column_is_wide(sizes, cost):
    plan = Auto().plan(facts(*sizes), cost)
    assert plan.by == MixtureEnsemble()
    assert plan.notes[0].startswith("auto picked ensemble: ")


def test_where_a_column_is_wide_the_number_of_rows_decides_between_ensemble_and_others():
    cost = rho(0.01)
    wide = facts(1_000, 20, 10, 5, 2, 20, 5)
    assert auto._nearest(wide, cost, 1_000, ["ensemble", "aim", "mst"]) == "ensemble"
    assert auto._nearest(wide, cost, 1e6, ["ensemble", "aim", "mst"]) == "aim"
    plan = Auto().plan(wide, cost)
    assert plan.by == Auto()
    assert plan.steps[0].name == "measure total"


@pytest.mark.parametrize(("sizes", "cost"), [((2, 2, 8), epsilon(1)), ((10, 10, 20), epsilon(10))])
def test_small_tables_are_measured_whole_under_pure_epsilon(sizes, cost):
    plan = Auto().plan(facts(*sizes), cost)
    assert plan.method == "laplace"
    assert plan.options["rounding"] == "controlled"


def test_the_first_of_methods_that_are_expected_to_be_alike_is_picked():
    few = facts(4, 4, 4)
    errors = expected_errors(few, rho(1), 1e7)
    assert max(errors["ensemble"], errors["aim"]) - min(errors["ensemble"], errors["aim"]) < ALIKE
    for names in (["ensemble", "aim"], ["aim", "ensemble"]):
        assert auto._nearest(few, rho(1), 1e7, names) == names[0]


def test_a_plan_that_waits_for_the_number_of_rows_stays_within_what_it_was_granted():
    cost = epsilon(1)
    plan = Auto().plan(facts(14, 5, 2, 2, 2), cost)
    assert plan.by == Auto()
    assert plan.steps[0].cost.epsilon == UNIT // 100
    assert plan.cost.fits(cost)
    picked = {name: auto._PICKED[name].plan(facts(14, 5, 2, 2, 2), cost) for name in plan.schedule.names}
    assert plan.limit_bytes >= max(one.limit_bytes for one in picked.values()) * 0.9
    assert "auto decides in the run" in plan.notes[0]


@pytest.mark.parametrize("rows", [20, 2_000, 60_000])
def test_the_run_does_what_the_noisy_number_of_rows_says(rows):
    """Without noise the number is exact: the run spends all of its cost and picks what the forecast says for it."""
    schema = letters({"a": 14, "b": 5, "c": 2, "d": 2, "e": 2})
    codes = np.random.default_rng(0).integers(0, [14, 5, 2, 2, 2], (rows, 5)).T
    cost = epsilon(1)
    curator = door(rows_of(dict(zip("abcde", codes, strict=True))), schema, cost, NoNoise())
    wanted = Auto().plan(facts_of(curator), cost).schedule
    Auto().fit(curator, cost)
    name = auto._nearest(facts_of(curator), wanted.rest, rows, wanted.names)
    answers = curator.transcript.of(Measurement)
    assert (answers[0].columns, answers[0].values.tolist()) == ((), [rows])
    assert (len(answers[-1].columns) == 5) == (name == "laplace")
    assert sum((spent for _, spent in curator.charges), Cost()) + curator.left == cost


def test_the_first_query_is_the_same_whatever_the_rows():
    schema, queries = letters({"a": 14, "b": 5, "c": 2}), set()
    rng = np.random.default_rng(0)
    for codes in (np.zeros((3, 0), int), np.zeros((3, 40), int), rng.integers(0, [[14], [5], [2]], (3, 300))):
        curator = door(rows_of(dict(zip("abc", codes, strict=True))), schema, epsilon(0.1))
        planned = Auto().plan(facts_of(curator), epsilon(0.1)).method
        Auto().fit(curator, epsilon(0.1))
        queries.add((planned, tuple(curator.charges[:1])))
    assert len(queries) == 1


def test_what_rules_tie_too_large_is_left_out():
    """9,000 codes are more than ensemble pools, and rules tie more together than the model of aim holds."""
    domain = Domain.of({"a": 9000, "b": 1000})
    tied = (StructuralZeros(domain.everything(), np.eye(9000, 1000, dtype=bool).reshape(-1)),)
    assert set(Auto().plan(PublicFacts(domain, tied, 1), rho(1)).schedule.names) <= {"mst", "privsyn", "independent"}


def test_what_nothing_can_hold_is_refused_in_words():
    domain = Domain.of({"a": 20_000, "b": 20_000})
    tied = (StructuralZeros(domain.everything(), np.zeros(0, dtype=bool)),)
    with pytest.raises(ResourceError, match="independent"):
        Auto().plan(PublicFacts(domain, tied, 1), rho(1))


def test_a_hint_of_rows_does_not_change_what_is_picked():
    for given in (facts(100), facts(4, 4, 4), facts(14, 5, 2, 2, 2)):
        for cost in (epsilon(1), rho(0.01)):
            plans = [Auto().plan(replace(given, rows_hint=rows), cost) for rows in (None, 1, 10**9)]
            assert len({(plan.method, getattr(plan.schedule, "names", None)) for plan in plans}) == 1


def test_the_run_follows_the_plan():
    codes = rows_of(voters(200))
    assert len(Auto().fit(door(codes, VOTERS, epsilon(100)), epsilon(100)).blocks) == 1  # type: ignore[attr-defined]
    model = Auto().fit(door(codes, VOTERS, rho(0.01)), rho(0.01))
    assert model.kind == "records"
    assert len(model.draw(3, np.random.default_rng(0))) == 3
