"""Steps: budgets that add up for every shape, options that are refused, and models that keep what was promised."""

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest

from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from tests.methods.test_independent import voters
from understudy.errors import ResourceError, UsageError
from understudy.methods.method import facts_of
from understudy.methods.steps import Steps
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.privacy.randomizer import SecureRandomizer
from understudy.synthesizer.design import Design
from understudy.testing import cases as tables
from understudy.testing.cases import Case
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.replay import check_pair, designed_pairs, random_pairs

SIZES = {"a": 2, "b": 3, "c": 2, "d": 4}


def of_columns(count: int):
    return letters(dict(itertools.islice({**SIZES, "e": 2}.items(), count)))


def shares_for(layers: int, columns: int) -> str:
    """Unequal shares of every counted layer, the full table last."""
    counted = min(layers, columns - 1) + 1
    whole = counted * (counted + 1) // 2
    return ",".join(str(Fraction(place, whole)) for place in range(1, counted + 1))


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
@pytest.mark.parametrize("scheme", ["equal", "half_leaf", "custom"])
def test_the_ledger_is_charged_the_budget_exactly_for_every_shape(columns, scheme):
    schema = of_columns(columns)
    names = ",".join(schema.names)
    for layers, copies, share in itertools.product(range(1, columns + 1), (1, 2, 3, 5), (None, 0.1, 0.37)):
        options = {"layers": layers, "allocation": scheme}
        options |= {"sequence": names} if share is None else {"choice_share": share}
        if scheme == "custom":
            options["shares"] = shares_for(layers, columns)
        for shared in (True, False):
            design = Design.of(
                schema, "steps", Budget(1.0), options=options | {"shared_structure": shared}, runs=copies
            )
            assert design.granted == Cost(epsilon=UNIT)
            spent = sum(cost.epsilon for cost in design.planned)
            # What is lost are fractions of 10⁻¹² that equal parts leave over.
            assert UNIT - copies - layers <= spent <= UNIT
            one = design.method.plan(_facts(schema), Cost(epsilon=UNIT))
            assert one.cost == Cost(epsilon=UNIT)
            assert sum((step.cost for step in one.steps), Cost()) == one.cost


def _facts(schema):
    return facts_of(door(rows_of({name: [] for name in schema.names}), schema, Cost()))


def test_the_parts_are_those_of_the_corrected_budget():
    schema = of_columns(5)
    plan = Steps(layers=2, allocation="equal", n_policy="estimated").plan(_facts(schema), epsilon(1))
    assert [step.name for step in plan.steps] == [
        "select column of layer 1",
        "select column of layer 2",
        "measure layer 1",
        "measure layer 2",
        "measure table",
    ]
    assert [step.cost.epsilon / UNIT for step in plan.steps] == pytest.approx([0.05, 0.05, 0.3, 0.3, 0.3])
    full = Steps(layers=5, allocation="equal", n_policy="estimated").plan(_facts(schema), epsilon(1))
    assert [step.cost.epsilon / UNIT for step in full.steps] == pytest.approx([0.1 / 4] * 4 + [0.9 / 5] * 5)
    grouped = Steps(layers=2, choice="grouped", allocation="equal", n_policy="estimated")
    assert [step.cost.epsilon / UNIT for step in grouped.plan(_facts(schema), epsilon(1)).steps] == pytest.approx(
        [0.1, 0.45, 0.45]
    )


@pytest.mark.parametrize(
    ("layers", "scheme", "scales"),
    [(2, "equal", [15, 15, 15]), (2, "half_leaf", [20, 20, 10]), (3, "half_leaf", [30, 30, 30, 10])],
)
def test_noise_scales_of_the_voter_study(layers, scheme, scales):
    names = ",".join(of_columns(5).names[:layers])
    options = {"sequence": names, "allocation": scheme, "n_policy": "estimated"}
    design = Design.of(of_columns(5), "steps", Budget(1.0), options=options, runs=5)
    assert [step.noise_scale for step in design.plan.steps] == pytest.approx(scales, rel=1e-9)
    assert design.structure is None  # a public sequence is free, so there is nothing to share


@pytest.mark.parametrize("budget", [epsilon(1), rho(0.1)])
@pytest.mark.parametrize(
    "settings",
    [
        Steps(),
        Steps(layers=3, utility="information_gain", rows_bound=5000, n_policy="estimated"),
        Steps(choice="grouped", allocation="equal", negatives="norm_sub"),
        Steps(sequence="voted,age", stopping="privtree"),
        Steps(layers=1, n_policy="public", known_rows=900, rounding="controlled"),
        Steps(layers=2, stopping="privtree", theta=30),
    ],
)
def test_the_run_spends_what_the_plan_says(settings, budget):
    table = rows_of(voters(900))
    curator = door(table, VOTERS, budget)
    plan = settings.plan(facts_of(curator), budget)
    model = settings.fit(curator, budget)
    assert [cost for _, cost in curator.charges] == [step.cost for step in plan.steps]
    assert curator.charges[0][0] == plan.steps[0].name.replace("table", "registered × voted × age")
    assert curator.left.epsilon == 0
    assert curator.left.rho <= 5
    assert model.marginal(curator.domain.clique(["registered", "voted"]))[1] == 0  # the rule: no vote, not registered
    assert settings.shares_structure


@pytest.mark.parametrize(
    "options", [{"layers": 3}, {"sequence": "d,c,b,a"}, {"choice": "grouped"}, {"stopping": "range"}]
)
def test_without_noise_the_table_comes_back(options):
    rng = np.random.default_rng(4)
    codes = {name: rng.integers(0, size, 500) for name, size in SIZES.items()}
    curator = door(rows_of(codes), letters(SIZES), epsilon(1), NoNoise())
    model = Steps(**options).fit(curator, epsilon(1))
    exact = np.bincount(np.ravel_multi_index(tuple(codes.values()), tuple(SIZES.values())), minlength=48)
    assert model.signed == pytest.approx(exact)
    assert curator.left == Cost()


def test_columns_of_the_first_layers_come_out_better():
    rng = np.random.default_rng(1)
    sizes = {"top": 2, **{f"x{place}": 4 for place in range(5)}}
    codes = {name: rng.integers(0, size, 3000) for name, size in sizes.items()}
    schema, exact = letters(sizes), np.bincount(codes["top"]) / 3000
    errors = {}
    for name, settings in (("first", Steps(sequence="top")), ("last", Steps(sequence="x0,x1"))):
        found = []
        for seed in range(12):
            model = settings.fit(door(rows_of(codes), schema, epsilon(0.5), SeededRandomizer(seed)), epsilon(0.5))
            found.append(abs(model.marginal(model.domain.clique(["top"])) - exact).sum())
        errors[name] = np.mean(found)
    assert errors["first"] < errors["last"] / 2


def test_estimates_of_layers_are_unbiased_before_negatives_are_removed():
    codes = {"a": np.repeat([0, 1], [30, 10]), "b": np.tile([0, 1, 1, 2], 10)}
    schema = letters({"a": 2, "b": 3})
    exact = np.bincount(np.ravel_multi_index((codes["a"], codes["b"]), (2, 3)), minlength=6)
    found = [Steps(layers=1).fit(door(rows_of(codes), schema, epsilon(2)), epsilon(2)).signed for _ in range(200)]
    error = np.std(found, axis=0) / np.sqrt(len(found))
    # Six standard errors of 200 runs: about 1e-8 for each of the six cells.
    assert np.all(np.abs(np.mean(found, axis=0) - exact) < 6 * error)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": 0}, "layers"),
        ({"choice_share": 0}, "choice_share"),
        ({"choice_share": 1}, "choice_share"),
        ({"stopping_share": True}, "stopping_share"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"theta": -1}, "theta"),
        ({"utility": "bic"}, "utility"),
        ({"utility": "information_gain"}, "rows_bound"),
        ({"utility": "information_gain", "rows_bound": 0}, "rows_bound"),
        ({"utility": "information_gain", "rows_bound": 10, "choice": "grouped"}, "AIC"),
        ({"allocation": "half"}, "allocation"),
        ({"shares": "0.5,0.5"}, "shares"),
        ({"n_policy": "public"}, "known_rows"),
        ({"known_rows": 10}, "known_rows"),
        ({"n_policy": "exact"}, "n_policy"),
        ({"sequence": "a,a"}, "sequence"),
        ({"sequence": None}, "text"),
        ({"choice": "grouped", "sequence": "a"}, "grouped"),
        ({"as_published": "2019"}, "at no cost"),
        ({"as_published": "2020", "stopping": "range"}, "as_published"),
        ({"as_published": "2020", "choice": "grouped", "layers": 3}, "two layers"),
        ({"negatives": "norm_cut"}, "negatives"),
        ({"rounding": "up"}, "rounding"),
    ],
)
def test_bad_options_are_refused_at_once(options, message):
    with pytest.raises(UsageError, match=message):
        Steps(**options)


def test_bad_plans_are_refused_before_anything_is_charged():
    schema = letters(SIZES)
    curator = door(rows_of({name: [] for name in SIZES}), schema, epsilon(1))
    facts = facts_of(curator)
    with pytest.raises(UsageError, match="'dd'"):
        Steps(sequence="dd").plan(facts, epsilon(1))
    with pytest.raises(UsageError, match="shares"):
        Steps(layers=2, allocation="custom", shares="0.5,0.5").plan(facts, epsilon(1))
    with pytest.raises(ResourceError, match="cells"):
        Steps(most_cells=10).plan(facts, epsilon(1))
    with pytest.raises(UsageError, match="divides by zero"):
        Steps(as_published="2020", layers=1).plan(facts, epsilon(1))
    with pytest.raises(UsageError, match="ε alone"):
        Steps(as_published="2020").plan(facts, rho(1))
    assert curator.charges == []


def test_only_a_run_without_choices_has_all_its_distributions_fixed_beforehand():
    facts = _facts(of_columns(3))
    assert Steps(sequence="a,b").plan(facts, rho(1)).fixed
    for chosen in (Steps(), Steps(sequence="a,b", stopping="range"), Steps(choice="grouped")):
        assert not chosen.plan(facts, rho(1)).fixed


@pytest.mark.parametrize(
    "options",
    [
        {"stopping": "privtree", "layers": 3},
        {"choice": "grouped"},
        {"utility": "information_gain", "rows_bound": 20},
        {"sequence": "*", "allocation": "custom", "shares": "0.2,0.2,0.6", "n_policy": "estimated"},
        {"as_published": "2020"},
    ],
)
def test_neighbours_get_the_same_everything_from_the_same_answers(options):
    for schema in (tables.small(), tables.several_rows()):
        case = Case(schema, "steps", Budget(1.0), options)
        fixed = [pair for pair in designed_pairs(schema) if not pair.name.startswith("hostile")]
        for number, pair in enumerate([*fixed[::4], *random_pairs(schema, 2, np.random.default_rng(6))]):
            check_pair(case.pipeline(), pair.table, pair.neighbour, SeededRandomizer(number))


def test_a_published_run_is_charged_its_true_cost_and_claims_nothing():
    case = Case(tables.small(), "steps", Budget(1.55), {"as_published": "2020", "layers": 2})
    release = case.release(tables.some_rows(tables.small(), 50, seed=1), SecureRandomizer())
    assert json.loads(release.ledger[-1])["cost_epsilon"] == 155 * UNIT // 100
    assert release.statement.spent == release.statement.granted
    assert release.statement.claim is None
    assert "as published in 2020" in release.statement.markdown()


@pytest.mark.parametrize(
    "options",
    [
        {"sequence": "job"},
        {"sequence": "job,sex", "allocation": "custom", "shares": "0.3,0.7"},
        {"choice": "grouped"},
        {"stopping": "range"},
        {"stopping": "privtree", "layers": 1},
        {"utility": "information_gain", "rows_bound": 100},
    ],
)
def test_labels_that_are_not_found_never_stop_a_run(options):
    # Planned for twenty jobs, none of which is frequent enough to be found: after the charge nothing may be refused.
    schema = tables.open_labels()
    for copies_mode in ("resample", "remeasure"):
        case = Case(schema, "steps", Budget(0.1, 1e-9), options, copies=2, copies_mode=copies_mode)
        release = case.release(tables.some_rows(schema, 5, seed=1), NoNoise())
        assert release.model.domain.sizes["job"] < 3
        assert release.statement.spent.fits(release.statement.granted)


def test_the_number_of_rows_is_never_read():
    # Only known_rows, an option, gives a total without noise; bought and summed totals differ from run to run.
    codes = {"a": np.zeros(50, int), "b": np.zeros(50, int)}
    schema = letters({"a": 2, "b": 3})
    totals = {
        policy: {
            Steps(n_policy=policy).fit(door(rows_of(codes), schema, epsilon(0.5)), epsilon(0.5)).total for _ in range(6)
        }
        for policy in ("noisy", "estimated")
    }
    assert all(len(found) > 2 for found in totals.values())
    told = Steps(n_policy="public", known_rows=7).fit(door(rows_of(codes), schema, epsilon(0.5)), epsilon(0.5))
    assert told.total == 7
