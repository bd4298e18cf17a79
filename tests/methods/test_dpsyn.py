"""DPSyn: equal noise, reserved shares, merging, bins, blocks, the team's preset, refusals."""

import numpy as np
import pytest

import understudy as us
from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from tests.methods.test_privsyn import CHAIN, chain
from understudy.domain import Clique, Domain, Measurement
from understudy.errors import ResourceError, UsageError
from understudy.methods.dpsyn import DpSyn
from understudy.methods.method import PublicFacts, facts_of
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.release.verify import verify_release
from understudy.synthesizer.design import Design
from understudy.testing import cases as tables
from understudy.testing.doubles import NoNoise
from understudy.testing.method_contract import MethodChecks


def answers(curator):
    return {answer.columns: answer for answer in curator.transcript.of(Measurement)}


def test_all_tables_have_the_same_noise():
    curator = door(rows_of(chain(500)), CHAIN, rho(1.0))
    DpSyn(marginals="a×b, b×c").fit(curator, rho(1.0))
    found = answers(curator)
    assert len(found) == 6
    assert [answer.distribution.variance for answer in found.values()] == pytest.approx([6 / 2] * 6, rel=1e-6)
    assert curator.left.rho < 100


def test_reserved_shares_come_first():
    curator = door(rows_of(chain(500)), CHAIN, rho(1.0))
    DpSyn(marginals="a×b, b×c", reserve="a×b:0.25, d:0.05").fit(curator, rho(1.0))
    paid = {columns: 1 / (2 * answer.distribution.variance) for columns, answer in answers(curator).items()}
    assert paid["a", "b"] == pytest.approx(0.25, rel=1e-6)
    assert paid[("d",)] == pytest.approx(0.05, rel=1e-6)
    assert paid["b", "c"] == pytest.approx(0.7 / 4, rel=1e-6)
    assert paid[("a",)] == pytest.approx(0.7 / 4, rel=1e-6)


def test_pure_reserved_parts_are_laplace_as_in_the_source():
    curator = door(rows_of(chain(500)), CHAIN, epsilon(1.0))
    DpSyn(marginals="a×b, b×c", reserve="a×b:0.25").fit(curator, epsilon(1.0))
    distribution = answers(curator)["a", "b"].distribution
    assert (distribution.kind, distribution.scale) == ("laplace", pytest.approx(4.0))


def test_reserved_parts_are_laplace_beside_gaussian_others():
    mixed = Cost(epsilon=3 * UNIT // 10, rho=UNIT)
    curator = door(rows_of(chain(500)), CHAIN, mixed)
    DpSyn(marginals="a×b, b×c", reserve="a×b:0.25, d:0.05").fit(curator, mixed)
    distributions = {columns: answer.distribution for columns, answer in answers(curator).items()}
    assert (distributions["a", "b"].kind, distributions["a", "b"].scale) == ("laplace", pytest.approx(4.0))
    assert (distributions[("d",)].kind, distributions[("d",)].scale) == ("laplace", pytest.approx(20.0))
    others = [distribution for columns, distribution in distributions.items() if columns not in (("a", "b"), ("d",))]
    assert [(distribution.kind, distribution.variance) for distribution in others] == [
        ("gaussian", pytest.approx(2.0))
    ] * 4
    assert (curator.left.epsilon, curator.left.rho) <= (10, 10)


def test_a_release_with_reserved_parts_claims_what_was_granted(tmp_path):
    budget = Budget(1.0, 1e-6)
    options = {"marginals": "registered×voted, voted×age", "reserve": "registered×voted:0.25, age:0.05"}
    design = Design.of(tables.small(), "dpsyn", budget, options=options)
    assert design.granted.epsilon == pytest.approx(0.3 * UNIT)
    by_rho_alone = budget.cost("zcdp", pure=design.granted.epsilon).rho
    assert by_rho_alone < design.granted.rho < 1.5 * by_rho_alone, "exact distributions are summed beside the pure part"
    release = us.synthesize(
        tables.some_rows(tables.small(), 200, seed=1),
        schema=tables.small(),
        method="dpsyn",
        epsilon=1.0,
        delta=1e-6,
        options=options,
        out=tmp_path / "release",
    )
    kinds = [charge.distribution.kind for charge in release.statement.charges]
    assert kinds.count("laplace") == 2
    assert kinds.count("gaussian") == 3
    assert 0.99 < release.statement.claim[0] <= 1.0  # type: ignore[index]
    assert verify_release(tmp_path / "release") == []


def test_shares_of_rho_can_be_reserved_instead():
    options = {"marginals": "registered×voted, voted×age", "reserve": "age:0.05", "reserve_noise": "gaussian"}
    design = Design.of(tables.small(), "dpsyn", Budget(1.0, 1e-6), options=options)
    assert design.granted.epsilon == 0


class _Reserved(MethodChecks):
    def schemas(self):
        yield tables.small()
        yield tables.several_rows()


@pytest.mark.parametrize("check", ["budget_is_kept", "replays_on_neighbours", "improves_with_the_budget"])
def test_reserved_parts_keep_the_contract(check):
    options = {"marginals": "pairs", "reserve": "registered×voted:0.25, age:0.1", "most_records": 500, "sweeps": 2}
    checks = _Reserved("dpsyn", [Budget(1.0), Budget(1.0, 1e-6)], [["registered", "voted"]], options, pairs=40)
    getattr(checks, check)()


def test_open_columns_are_paid_in_rho_beside_reserved_parts():
    schema = tables.open_labels()
    options = {"marginals": "sex×job", "reserve": "sex:0.1"}
    design = Design.of(schema, "dpsyn", Budget(1.0, 1e-6), options=options)
    (prepared,) = design.preparation.values()
    assert prepared.epsilon == 0
    assert prepared.rho > 0
    assert design.rest.epsilon == design.granted.epsilon


def test_weights_and_a_share_for_columns():
    curator = door(rows_of(chain(500)), CHAIN, rho(1.0))
    DpSyn(marginals="a×b:2, b×c", one_way_share=0.2).fit(curator, rho(1.0))
    paid = {columns: 1 / (2 * answer.distribution.variance) for columns, answer in answers(curator).items()}
    assert paid["a", "b"] == pytest.approx(0.64, rel=1e-6)
    assert paid["b", "c"] == pytest.approx(0.16, rel=1e-6)
    assert paid[("c",)] == pytest.approx(0.05, rel=1e-6)


def test_listed_tables_are_kept_and_values_come_back():
    rng = np.random.default_rng(1)
    a = np.minimum(rng.geometric(0.3, 20_000) - 1, 29)
    codes = {"a": a, "b": (a > 1).astype(int), "c": rng.integers(0, 3, 20_000)}
    schema = letters({"a": 30, "b": 2, "c": 3})
    curator = door(rows_of(codes), schema, rho(0.5))
    model = DpSyn(marginals="a×b", least_count=100.0).fit(curator, rho(0.5))
    table = answers(curator)["a", "b"]
    assert table.values.size < 40, "values below 100 rows are merged"
    exact = np.bincount(a, minlength=30) / 20_000
    assert np.abs(model.marginal(Clique("a")) - exact).sum() / 2 < 0.02
    assert (model.marginal(Clique("a")) > 0).sum() > table.shape[0] // 2, "merged values come back"
    joint = np.bincount(a * 2 + codes["b"], minlength=60) / 20_000
    assert np.abs(model.marginal(Clique("ab")) - joint).sum() / 2 < 0.03


def test_at_most_so_many_values_stay():
    codes = {"a": np.arange(3000) % 30, "b": np.arange(3000) % 2}
    curator = door(rows_of(codes), letters({"a": 30, "b": 2}), rho(5.0))
    DpSyn(marginals="a×b", most_values=7).fit(curator, rho(5.0))
    assert answers(curator)["a", "b"].values.size == 16


def test_tables_beyond_the_limit_are_merged_further():
    codes = {"a": np.arange(9000) % 30, "b": np.arange(9000) % 20}
    curator = door(rows_of(codes), letters({"a": 30, "b": 20}), rho(50.0))
    DpSyn(marginals="a×b", table_cells=100).fit(curator, rho(50.0))
    assert answers(curator)["a", "b"].values.size <= 100


def test_bins_serve_all_tables_and_values_inside_come_back():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 12, 6000)
    codes = {"a": a, "b": (a >= 6).astype(int), "c": (a >= 3).astype(int)}
    curator = door(rows_of(codes), letters({"a": 12, "b": 2, "c": 2}), rho(5.0))
    model = DpSyn(marginals="a[3 6]×b, a[3 6]×c").fit(curator, rho(5.0))
    assert answers(curator)["a", "b"].values.size == 6
    assert model.marginal(Clique("a")).min() > 0.06
    with pytest.raises(UsageError, match="the same in all tables"):
        DpSyn(marginals="a[3 6]×b, a[4]×c").plan(facts_of(curator), rho(5.0))


def test_blocks_are_made_apart_and_joined_on_what_they_share():
    cost = rho(5.0)
    model = DpSyn(marginals="a×b; b×c; d×a").fit(door(rows_of(chain(8000)), CHAIN, cost), cost)
    codes = chain(8000)
    for pair in ("ab", "bc"):
        exact = np.bincount(codes[pair[0]] * 4 + codes[pair[1]], minlength=16) / 8000
        assert np.abs(model.marginal(Clique(pair)) - exact).sum() / 2 < 0.02


@pytest.mark.parametrize("update", ["sweeps", "gradual", "both"])
def test_rules_hold_across_blocks(update):
    rows = rows_of({"registered": [0, 1, 1], "voted": [0, 1, 0], "age": [0, 3, 4]})
    method = DpSyn(marginals="registered×age; voted×age", update=update, rounds=4)
    model = method.fit(door(rows, VOTERS, rho(0.001)), rho(0.001))
    assert model.marginal(Clique(("registered", "voted")))[1] == 0.0


def test_the_same_noise_gives_the_same_records():
    method = DpSyn(marginals="pairs")
    first, second = (method.fit(door(rows_of(chain(900)), CHAIN, rho(1.0), NoNoise()), rho(1.0)) for _ in range(2))
    assert all(np.array_equal(first.codes[name], second.codes[name]) for name in "abcd")  # type: ignore[attr-defined]


def test_plan_lists_every_query_at_its_cost():
    facts = PublicFacts(Domain.of({"a": 4, "b": 4, "c": 4, "d": 4}), (), 1, None)
    plan = DpSyn(marginals="a×b, b×c", reserve="a×b:0.25").plan(facts, rho(1.0))
    curator = door(rows_of(chain(100)), CHAIN, rho(1.0))
    DpSyn(marginals="a×b, b×c", reserve="a×b:0.25").fit(curator, rho(1.0))
    assert plan.fixed
    assert [step.cost for step in plan.steps] == [cost for _, cost in curator.charges]
    assert plan.cost.rho > 0.999 * UNIT


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a public list"),
        ({"marginals": "a×z"}, "z"),
        ({"marginals": "a×b", "reserve": "a×c:0.1"}, "not a listed table"),
        ({"marginals": "registered[1]×b"}, "rule"),
    ],
)
def test_lists_are_checked_before_anything_is_charged(options, message):
    schema = VOTERS if "rule" in message else CHAIN
    if "rule" in message:
        options = {"marginals": "voted[1]×age"}
        rows = rows_of({"registered": [0], "voted": [0], "age": [1]})
    else:
        rows = rows_of(chain(5))
    curator = door(rows, schema, rho(1.0))
    with pytest.raises(UsageError, match=message):
        DpSyn(**options).fit(curator, rho(1.0))
    assert not curator.charges


def test_columns_that_may_not_be_merged_must_fit():
    facts = PublicFacts(Domain.of({"a": 400, "b": 400}), (), 1, None)
    with pytest.raises(ResourceError):
        DpSyn(marginals="a×b", keep="a, b", table_cells=10_000).plan(facts, rho(1.0))


@pytest.mark.parametrize(
    "options",
    [
        {"preset": "match4"},
        {"preset": "match3", "marginals": "a×b"},
        {"one_way_share": 1.0},
        {"threshold": -1.0},
        {"least_count": float("inf")},
        {"most_values": -1},
        {"table_cells": 0},
        {"reserve": "a:0.5, b:0.5"},
        {"update": "none"},
        {"reserve_noise": "none"},
    ],
)
def test_options_are_checked(options):
    with pytest.raises(UsageError):
        DpSyn(**options)


def test_a_reserved_table_needs_a_share():
    with pytest.raises(UsageError, match=r"'a×b' has no share below 1\. Write COLUMN:SHARE, for example a×b:0\.1"):
        DpSyn(marginals="a×b", reserve="a×b")


def test_the_refusal_without_a_list_names_every_way_to_give_one():
    with pytest.raises(UsageError, match=r"'pairs'}, or, for the challenge's table, options={'preset': 'match3'}"):
        DpSyn().fit(door(rows_of(chain(5)), CHAIN, rho(1.0)), rho(1.0))


def test_nothing_is_charged_without_a_cost():
    curator = door(rows_of(chain(5)), CHAIN, Cost())
    with pytest.raises(UsageError):
        DpSyn(marginals="a×b").fit(curator, Cost())
    assert not curator.charges
