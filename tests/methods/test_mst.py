import itertools

import numpy as np
import pytest

from tests.methods.door import VOTERS, door, letters, rho, rows_of
from understudy.domain import SCORE_UNIT, Domain, Measurement, Selection, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.method import PublicFacts, facts_of
from understudy.methods.mst import Mst
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.privacy.scores import WEIGHT_UNIT, MarginalError
from understudy.testing.doubles import NoNoise, SeededRandomizer

THIRDS = Mst(one_way_share=1 / 3, selection_share=1 / 3)
ROW = WEIGHT_UNIT * SCORE_UNIT
CHAIN = letters({"a": 4, "b": 4, "c": 4, "d": 4})


def chain(rows, seed=0):
    """b copies a four times out of five, c likewise b, and d is on its own."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, rows)
    b = np.where(rng.random(rows) < 0.8, a, rng.integers(0, 4, rows))
    c = np.where(rng.random(rows) < 0.8, b, rng.integers(0, 4, rows))
    return {"a": a, "b": b, "c": c, "d": rng.integers(0, 4, rows)}


def pairs_of(curator):
    return [answer.columns for answer in curator.transcript.of(Measurement) if len(answer.columns) == 2]


def spans(columns, pairs):
    part = {name: name for name in columns}
    for first, second in pairs:
        if part[first] == part[second]:
            return False
        part = {name: part[first] if part[name] == part[second] else part[name] for name in part}
    return len(set(part.values())) == 1


def test_noise_and_selection_in_thirds_are_those_of_the_paper():
    cost = Budget(1.0, 1e-9).cost("zcdp")
    assert cost.rho / UNIT == pytest.approx(0.0149731, abs=1e-7)
    names = [f"c{place}" for place in range(10)]
    curator = door(rows_of({name: [0, 1, 1] for name in names}), letters(dict.fromkeys(names, 2)), cost)
    THIRDS.fit(curator, cost)
    ones = [answer for answer in curator.transcript.of(Measurement) if len(answer.columns) == 1]
    draws = curator.transcript.of(Selection)
    assert [answer.distribution.scale for answer in ones] == pytest.approx([31.65] * 10, abs=0.005)  # 10.009 · √10
    assert [2.0 * float(draw.rate * ROW) for draw in draws] == pytest.approx([0.066607] * 9, abs=1e-6)
    assert spans(names, pairs_of(curator))
    third = cost.rho / 3
    spent = {kind: sum(part.rho for step, part in curator.charges if test(step)) for kind, test in STEPS.items()}
    assert spent == pytest.approx({"columns": third, "draws": third, "pairs": third}, abs=20)


STEPS = {
    "columns": lambda step: step.startswith("measure") and "×" not in step,
    "draws": lambda step: step.startswith("select"),
    "pairs": lambda step: "×" in step,
}


def test_the_tree_follows_the_dependence_and_spans_all_columns():
    cost = rho(0.5)
    curator = door(rows_of(chain(3_000)), CHAIN, cost, SeededRandomizer(1))
    model = Mst().fit(curator, cost)
    pairs = pairs_of(curator)
    assert len(pairs) == 3
    assert spans("abcd", pairs)
    assert {("a", "b"), ("b", "c")} <= set(pairs)
    codes = chain(3_000)
    truth = np.bincount(codes["a"] * 4 + codes["b"], minlength=16) / 3_000
    assert np.abs(model.marginal(curator.domain.clique("ab")) - truth).sum() < 0.06


def test_the_run_spends_what_the_plan_says_and_all_of_it():
    cost = rho(0.01)
    curator = door(rows_of(chain(100)), CHAIN, cost)
    plan = Mst().plan(facts_of(curator), cost)
    Mst().fit(curator, cost)
    spent = sum((part for _, part in curator.charges), Cost())
    assert spent + curator.left == cost
    assert plan.cost.fits(cost)
    assert 0 <= plan.cost.rho - spent.rho <= 8
    assert spent.rho > 0.999999 * cost.rho
    distributions = [answer.distribution.scale for answer in curator.transcript.of(Measurement)]
    assert distributions[:4] == [step.noise_scale for step in plan.steps[:4]]
    assert distributions[4:] == pytest.approx([plan.steps[-1].noise_scale] * 3)  # all pairs have 16 cells


def test_without_dependence_every_pair_is_about_as_likely():
    codes = {name: np.tile(np.arange(8) >> shift & 1, 4) for shift, name in enumerate("abc")}
    counts, runs, cost = np.zeros(3), 240, rho(0.001)
    schema = letters({"a": 2, "b": 2, "c": 2})
    for _ in range(runs):
        curator = door(rows_of(codes), schema, cost)
        Mst().fit(curator, cost)
        counts[curator.transcript.of(Selection)[0].chosen] += 1
    # χ² with two degrees of freedom exceeds 32 with probability e⁻¹⁶, about 1e-7.
    assert ((counts - runs / 3) ** 2 / (runs / 3)).sum() < 32


def test_pairs_are_scored_once_however_many_are_drawn(monkeypatch):
    """Scoring the pairs anew for each draw made the run cubic in the number of columns."""
    queries, scores = [], MarginalError.scores_of
    monkeypatch.setattr(MarginalError, "scores_of", lambda *given: queries.append(1) or scores(*given))
    names, cost = [f"c{place}" for place in range(12)], rho(0.1)
    curator = door(rows_of({name: [0, 1, 1] for name in names}), letters(dict.fromkeys(names, 2)), cost)
    Mst().fit(curator, cost)
    assert spans(names, pairs_of(curator))
    draws = curator.transcript.of(Selection)
    assert (len(draws), len(queries)) == (11, 1)
    assert len({draw.rate for draw in draws}) == 1
    options = [draw.options for draw in draws]
    assert options[0] == 66
    assert all(later < before for before, later in itertools.pairwise(options))


def test_noise_is_weighed_against_error_when_pairs_are_drawn():
    """The wide pair is farther from its prediction, but measuring it would add more noise than that."""
    rng = np.random.default_rng(1)
    codes = {"a": rng.integers(0, 2, 200), "u": rng.integers(0, 60, 200), "v": rng.integers(0, 60, 200)}
    codes["b"] = np.where(rng.random(200) < 0.9, codes["a"], 1 - codes["a"])
    cost = rho(0.05)
    curator = door(rows_of(codes), letters({"a": 2, "b": 2, "u": 60, "v": 60}), cost, NoNoise())
    Mst().fit(curator, cost)
    assert pairs_of(curator)[0] == ("a", "b")


def test_pairs_that_do_not_fit_are_left_out_and_the_rest_is_still_spent():
    cost = rho(1)
    wide = letters({"a": 30, "b": 30, "c": 3})
    curator = door(rows_of({"a": [1], "b": [2], "c": [0]}), wide, cost)
    method = Mst(model_bytes=2_048)
    model = method.fit(curator, cost)
    assert sum(table.nbytes for table in model.tables) <= 2_048  # type: ignore[attr-defined]
    assert pairs_of(curator) in ([("a", "c"), ("b", "c")], [("b", "c"), ("a", "c")])
    assert curator.left.rho < 1e-6 * cost.rho
    nothing = door(rows_of({"a": [1], "b": [2], "c": [0]}), letters({"a": 30, "b": 30, "c": 30}), cost)
    Mst(model_bytes=1_024).fit(nothing, cost)
    assert pairs_of(nothing) == []
    assert nothing.left.rho < 1e-6 * cost.rho


def test_rules_hold_whatever_the_noise():
    cost = rho(1e-5)
    for _ in range(5):
        curator = door(rows_of({"registered": [1], "voted": [0], "age": [3]}), VOTERS, cost)
        codes = Mst().fit(curator, cost).draw(1_000, np.random.default_rng(0))
        assert not ((codes["registered"] == 0) & (codes["voted"] == 1)).any()


EDGES = {
    "no row": (letters({"a": 3, "b": 2}), {"a": [], "b": []}),
    "one column": (letters({"a": 3}), {"a": ["1", "2"]}),
    "one code": (letters({"a": 1, "b": 1}), {"a": ["0"] * 5, "b": ["0"] * 5}),
    "one code beside others": (letters({"a": 1, "b": 2, "c": 3}), {"a": ["0"], "b": ["1"], "c": ["2"]}),
}


@pytest.mark.parametrize(("schema", "columns"), EDGES.values(), ids=EDGES.keys())
@pytest.mark.parametrize("cost", [rho(1e-8), rho(1e5)], ids=str)
def test_edge_shapes(schema, columns, cost):
    curator = door(rows_of(columns), schema, cost)
    model = Mst().fit(curator, cost)
    assert all(
        column.max() < curator.domain.sizes[name] for name, column in model.draw(20, np.random.default_rng(0)).items()
    )
    assert curator.left.rho <= 0.01 * cost.rho
    if cost.rho > UNIT:
        assert model.total == pytest.approx(max(1, len(columns["a"])), abs=0.1)


def test_the_plan_refuses_rules_that_tie_too_much_together():
    domain = Domain.of({"x": 100, "y": 100})
    tied = StructuralZeros(domain.everything(), np.zeros(10_000, dtype=bool))
    with pytest.raises(ResourceError, match="rules"):
        Mst(model_bytes=2**14).plan(PublicFacts(domain, (tied,), 1), rho(1))


def test_a_budget_too_small_is_refused_before_anything_is_asked():
    curator = door(rows_of(chain(5)), CHAIN, rho(1))
    with pytest.raises(UsageError, match="share of the budget"):
        Mst().fit(curator, Cost())
    assert curator.left == rho(1)


@pytest.mark.parametrize(
    "options",
    [
        {"one_way_share": 0.0},
        {"selection_share": 1.0},
        {"one_way_share": 0.6, "selection_share": 0.4},
        {"model_bytes": 8},
    ],
)
def test_options_are_checked(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        Mst(**options)
