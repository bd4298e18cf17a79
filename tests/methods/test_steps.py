"""Steps: budgets that add up for every shape, options that are refused, and models that keep what was promised."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from tests.methods.test_independent import voters
from understudy.audit.bounds import epsilon_lower
from understudy.domain import Measurement
from understudy.errors import ResourceError, UsageError
from understudy.methods.method import facts_of
from understudy.methods.steps import Steps, padded_counts, printed_factor, printed_shares
from understudy.models.histogram_tree import HistogramTree, least_squares
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.privacy.randomizer import Request, SecureRandomizer
from understudy.synthesizer.design import Design
from understudy.testing import cases as tables
from understudy.testing.cases import Case
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.replay import Recorder, check_pair, cost_of, designed_pairs, random_pairs

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
        Steps(layers=2, utility="bic"),
        Steps(layers=2, utility="deviance", choice="grouped"),
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
    assert settings.structured is settings


@pytest.mark.parametrize(
    "options", [{"layers": 3}, {"sequence": "d,c,b,a"}, {"choice": "grouped"}, {"stopping": "range"}]
)
def test_without_noise_the_table_comes_back(options):
    rng = np.random.default_rng(4)
    codes = {name: rng.integers(0, size, 500) for name, size in SIZES.items()}
    curator = door(rows_of(codes), letters(SIZES), epsilon(1), NoNoise())
    model = Steps(**options).fit(curator, epsilon(1))
    exact = np.bincount(np.ravel_multi_index(tuple(codes.values()), tuple(SIZES.values())), minlength=48)
    assert model.signed == pytest.approx(exact)  # type: ignore[attr-defined]
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
    models = [Steps(layers=1).fit(door(rows_of(codes), schema, epsilon(2)), epsilon(2)) for _ in range(200)]
    found = [model.signed for model in models]  # type: ignore[attr-defined]
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
        ({"utility": "gini"}, "utility"),
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
        {"utility": "bic"},
        {"utility": "deviance"},
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
        {"utility": "bic"},
        {"utility": "deviance", "choice": "grouped"},
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


# What the papers print, and what it truly costs: by the account, by exact likelihood ratios, and by experiment.


FOUR = letters({"a": 2, "b": 3, "c": 2, "d": 3})
TENTH = Fraction(1, 10)
CONFIDENCE = 0.999
RUNS = 20_000


@pytest.mark.parametrize(
    ("layers", "share", "factor"),
    [(2, TENTH, Fraction(155, 100)), (3, TENTH, Fraction(135, 100)), (2, 0, Fraction(3, 2)), (3, 0, Fraction(4, 3))],
)
def test_true_cost_of_the_printed_budgets(layers, share, factor):
    assert printed_factor("2020", layers, 15, share=Fraction(share)) == factor


@pytest.mark.parametrize("columns", range(2, 9))
def test_the_printed_budget_is_right_for_a_full_decomposition(columns):
    assert printed_factor("2020", columns, columns, share=TENTH) == 1


def test_half_sensitivities_cost_half_as_much_again():
    assert printed_factor("2019", 2, 15, allocation="half_leaf") == Fraction(3, 2)
    assert printed_factor("2019", 2, 15, allocation="equal") == Fraction(5, 3)
    with pytest.raises(UsageError, match="divides by zero"):
        printed_shares("2020", 1, 15, share=TENTH)


def queries(method, budget):
    """The requests and answers of a run on one row, without noise."""
    rows = {name: np.zeros(1, int) for name in "abcd"}
    recorder = Recorder(NoNoise())
    curator = door(rows_of(rows), FOUR, budget, recorder)
    method.fit(curator, budget)
    return recorder.log, curator


def test_the_account_of_a_published_run_is_its_true_cost():
    log, curator = queries(Steps(as_published="2020", layers=2, choice_share=0.1), epsilon(1.55))
    assert curator.left.epsilon == 0
    total = cost_of([exchange.request for exchange in log], zcdp=False).epsilon / UNIT
    assert total == pytest.approx(1.55, abs=1e-9)
    rates = [exchange.request for exchange in log if exchange.request.distribution is None]
    assert [float(2 * request.rate * request.sensitivity) for request in rates] == pytest.approx([0.1, 0.1])
    scales = [exchange.request.distribution.scale for exchange in log if exchange.request.distribution is not None]
    assert scales == pytest.approx([1 / 0.45] * 3)


def test_ours_costs_what_it_says():
    log, curator = queries(Steps(layers=2, choice_share=0.1, allocation="equal", n_policy="estimated"), epsilon(1))
    assert curator.left.epsilon == 0
    total = cost_of([exchange.request for exchange in log], zcdp=False).epsilon / UNIT
    assert total == pytest.approx(1.0, abs=1e-9)
    scales = [exchange.request.distribution.scale for exchange in log if exchange.request.distribution is not None]
    assert scales == pytest.approx([1 / 0.3] * 3)


def distributions(method, budget):
    _, curator = queries(method, budget)
    return [answer.distribution for answer in curator.transcript if isinstance(answer, Measurement)]


PUBLISHED = (Steps(as_published="2020", layers=2, choice_share=0.1), epsilon(1.55))
OURS = (Steps(layers=2, choice_share=0.1, allocation="equal", n_policy="estimated"), epsilon(1))


def test_exact_likelihoods_of_the_counts_alone_exceed_the_printed_budget():
    # One row more raises its node of each layer and its cell by one. All three answers at or above the larger count
    # are e^(Σ 1/b) times as likely with the row as without it, for every such outcome.
    assert sum(1 / distribution.scale for distribution in distributions(*PUBLISHED)) == pytest.approx(1.35)
    assert sum(1 / distribution.scale for distribution in distributions(*OURS)) == pytest.approx(0.9)


def audited(method, budget) -> float:
    """A lower bound of ε of the counts on one path, from real noise: how often all of them lie above the count."""
    noisy = []
    for count in (0, 1):
        above = np.ones(RUNS, dtype=bool)
        for distribution in distributions(method, budget):
            request = Request("measure", "audit", RUNS, distribution, Fraction(1))
            above &= SecureRandomizer().add_noise(request, np.full(RUNS, count, dtype=np.int64)) >= 1
        noisy.append(int(above.sum()))
    return epsilon_lower(noisy[0], noisy[1], RUNS, CONFIDENCE)


def test_an_audit_refutes_the_printed_budget_and_not_ours():
    assert audited(*PUBLISHED) > 1.0
    ours = audited(*OURS)
    assert 0.6 < ours <= 1.0


def test_a_published_run_makes_no_claim():
    from understudy.methods.method import facts_of

    curator = door(rows_of({name: np.zeros(1, int) for name in "abcd"}), FOUR, epsilon(1.55))
    method = Steps(as_published="2020", layers=2, choice_share=0.1)
    plan = method.plan(facts_of(curator), epsilon(1.55))
    assert "ε = 1.55" in plan.refused
    assert "says ε = 1;" in plan.refused
    assert method.structured is None
    assert Steps().plan(facts_of(curator), epsilon(1)).refused == ""


def test_padding_breaks_the_sums_and_weighted_least_squares_does_not():
    tree = HistogramTree((np.zeros(2, dtype=np.int64),))
    padded = padded_counts(tree, [np.array([7.0, 2.0])], 3, 12.0)
    assert padded[1].tolist() == [8.0, 3.0]
    assert padded[1].sum() != 12
    right = least_squares(tree, [[12.0], [7.0, 2.0]], [0.0, 1.0])
    assert right.values[1].tolist() == [8.5, 3.5]


def test_padded_categories_as_known_zeros_change_nothing():
    with_phantom = HistogramTree((np.zeros(3, dtype=np.int64),))
    found = least_squares(with_phantom, [[12.0], [7.0, 2.0, 0.0]], [0.0, np.array([1.0, 1.0, 0.0])])
    assert found.values[1].tolist() == [8.5, 3.5, 0.0]


def test_the_padded_rule_is_that_of_hay_on_a_complete_tree():
    tree = HistogramTree((np.array([0, 0]), np.array([0, 0, 1, 1])))
    noisy = [np.array([11.0, 8.0]), np.array([7.0, 2.0, 5.0, 6.0])]
    padded = padded_counts(tree, noisy, 2, 20.0)
    right = least_squares(tree, [[20.0], *noisy], [0.0, 1.0, 1.0])
    for one, other in zip(padded, right.values, strict=True):
        assert one == pytest.approx(other)


@pytest.mark.parametrize("options", [{}, {"choice": "grouped"}, {"sequence": "d,a"}, {"sequence": "d,a,b,c"}])
def test_published_runs_come_back_without_noise(options):
    rng = np.random.default_rng(2)
    codes = {name: rng.integers(0, FOUR_SIZES[name], 300) for name in FOUR_SIZES}
    curator = door(rows_of(codes), FOUR, epsilon(2), NoNoise())
    model = Steps(as_published="2020", **options).fit(curator, epsilon(2))
    exact = np.bincount(np.ravel_multi_index(tuple(codes.values()), tuple(FOUR_SIZES.values())), minlength=36)
    assert model.signed == pytest.approx(exact)  # type: ignore[attr-defined]
    assert curator.left.epsilon == 0


FOUR_SIZES = {"a": 2, "b": 3, "c": 2, "d": 3}


def test_upper_nodes_gain_nothing_from_their_many_cells():
    # Half for the full table at ε = 1, m = 5, L = 2: a node of the second layer has variance 800 (scale 20), each of
    # its 215,040 cells 200 (scale 10). Combining both improves the node in the fifth digit only.
    tree = HistogramTree((np.zeros(1, dtype=np.int64), np.zeros(215_040, dtype=np.int64)))
    upward = least_squares(tree, [[0.0], [0.0], 0.0], [math.inf, 800.0, 200.0]).upward
    assert upward[1][0] == pytest.approx(799.985, abs=5e-4)
