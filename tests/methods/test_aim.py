import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from tests.methods.door import VOTERS, door, letters, rho, rows_of
from tests.methods.test_mst import CHAIN, EDGES, ROW, chain
from understudy.domain import Domain, Measurement, Selection, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.aim import Aim
from understudy.methods.method import PublicFacts, facts_of
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.privacy.scores import MarginalError
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.method_contract import MethodChecks
from understudy.testing.replay import Leak

PUBLISHED = {"one_way_share": None, "selection_share": 0.1}


def rounds_of(curator):
    """(σ, ε) of each round, from the transcript alone."""
    tables = curator.transcript.of(Measurement)[-len(curator.transcript.of(Selection)) :]
    draws = curator.transcript.of(Selection)
    return [(table.distribution.scale, 2.0 * float(draw.rate * ROW)) for table, draw in zip(tables, draws, strict=True)]


def test_the_published_schedule_has_the_published_noise():
    names = [f"c{place}" for place in range(10)]
    curator = door(rows_of({name: [0, 1, 1] for name in names}), letters(dict.fromkeys(names, 2)), rho(1), NoNoise())
    Aim(rounds=160, **PUBLISHED).fit(curator, rho(1))
    ones = curator.transcript.of(Measurement)[:10]
    assert [answer.distribution.scale for answer in ones] == pytest.approx([9.4281] * 10, abs=1e-4)
    assert rounds_of(curator)[0] == pytest.approx((9.4281, 0.070711), abs=1e-4)
    assert sum(cost.rho for _, cost in curator.charges[:10]) / UNIT == pytest.approx(0.05625, abs=1e-9)


def test_nothing_learned_halves_the_noise_and_doubles_the_rate():
    """With three rows every table is below the noise from the start, so each round is annealed."""
    curator = door(rows_of({"a": [0, 1, 1], "b": [0, 1, 0]}), letters({"a": 2, "b": 2}), rho(0.001), NoNoise())
    Aim(rounds=1000, **PUBLISHED).fit(curator, rho(0.001))
    found = rounds_of(curator)
    assert len(found) == 6  # 2 · 0.9 + 1 + 4 + 16 + 64 + 256 thousandths; then less than two rounds of 1024 are left
    for before, after in itertools.pairwise(found[:-1]):
        assert after == pytest.approx((before[0] / 2, before[1] * 2), rel=1e-6)


def test_the_last_round_takes_all_that_is_left():
    for seed in range(3):
        cost = rho(0.02)
        curator = door(rows_of(chain(500, seed)), CHAIN, cost)
        Aim().fit(curator, cost)
        assert curator.left == Cost()
        assert sum((part for _, part in curator.charges), Cost()) == cost
        *earlier, (sigma, epsilon) = rounds_of(curator)
        left = cost.rho / UNIT - sum(cost.rho for _, cost in curator.charges[:-2]) / UNIT
        assert sigma == pytest.approx(math.sqrt(1 / (1.8 * left)), rel=1e-6)
        assert epsilon == pytest.approx(math.sqrt(0.8 * left), rel=1e-6)
        assert all(scale >= sigma for scale, _ in earlier)


def test_dependent_tables_are_found_and_reproduced():
    cost, codes = rho(0.5), chain(3_000)
    curator = door(rows_of(codes), CHAIN, cost, SeededRandomizer(1))
    model = Aim().fit(curator, cost)
    measured = {answer.columns for answer in curator.transcript.of(Measurement)}
    assert {("a", "b"), ("b", "c")} <= measured
    for pair in ("ab", "bc", "ac"):
        truth = np.bincount(codes[pair[0]] * 4 + codes[pair[1]], minlength=16) / 3_000
        assert np.abs(model.marginal(curator.domain.clique(pair)) - truth).sum() < 0.1


def test_only_parts_of_the_workload_are_measured():
    cost = rho(0.5)
    curator = door(rows_of(chain(1_000)), CHAIN, cost, SeededRandomizer(1))
    Aim(workload="a×b×d:3, c").fit(curator, cost)
    assert all(
        {*answer.columns} <= {*"abd"} or answer.columns == ("c",) for answer in curator.transcript.of(Measurement)
    )
    assert any(len(answer.columns) > 1 for answer in curator.transcript.of(Measurement))


def test_a_heavier_table_is_preferred():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 400)
    codes = {"a": a, "b": a, "c": rng.integers(0, 2, 400)}
    codes["d"] = codes["c"]
    schema, cost = letters(dict.fromkeys("abcd", 2)), rho(0.05)
    for workload, wanted in (("a×b:9, c×d", ("a", "b")), ("a×b, c×d:9", ("c", "d"))):
        curator = door(rows_of(codes), schema, cost, NoNoise())
        Aim(workload=workload).fit(curator, cost)
        assert curator.transcript.of(Measurement)[4].columns == wanted


@pytest.mark.parametrize("model_bytes", [1_024, 2_048, 2**20])
def test_the_model_stays_within_its_bytes(model_bytes):
    cost = rho(100)
    curator = door(rows_of(chain(2_000)), CHAIN, cost)
    model = Aim(workload="triples", model_bytes=model_bytes).fit(curator, cost)
    assert sum(table.nbytes for table in model.tables) <= model_bytes  # type: ignore[attr-defined]
    assert curator.left == Cost()


def test_the_plan_says_what_the_run_keeps_to():
    cost = rho(0.01)
    curator = door(rows_of(chain(100)), CHAIN, cost)
    plan = Aim().plan(facts_of(curator), cost)
    Aim().fit(curator, cost)
    assert plan.cost.fits(cost)
    assert plan.cost.rho > 0.999 * cost.rho
    distributions = [answer.distribution.scale for answer in curator.transcript.of(Measurement)]
    assert distributions[:4] == [step.noise_scale for step in plan.steps[:4]]
    assert distributions[4] == plan.steps[-1].noise_scale
    assert len(curator.transcript.of(Selection)) <= 16
    assert plan.options["workload"] == "pairs"


def test_rules_hold_whatever_the_noise():
    cost = rho(1e-5)
    for _ in range(5):
        curator = door(rows_of({"registered": [1], "voted": [0], "age": [3]}), VOTERS, cost)
        codes = Aim().fit(curator, cost).draw(1_000, np.random.default_rng(0))
        assert not ((codes["registered"] == 0) & (codes["voted"] == 1)).any()


@pytest.mark.parametrize(("schema", "columns"), EDGES.values(), ids=EDGES.keys())
@pytest.mark.parametrize("cost", [rho(1e-9), rho(1e5)], ids=str)
@pytest.mark.parametrize("options", [{}, PUBLISHED], ids=["ours", "published"])
def test_edge_shapes(schema, columns, cost, options):
    curator = door(rows_of(columns), schema, cost)
    model = Aim(**options).fit(curator, cost)
    drawn = model.draw(20, np.random.default_rng(0))
    assert all(column.max() < curator.domain.sizes[name] for name, column in drawn.items())
    assert curator.left == Cost()


def test_the_plan_refuses_rules_that_tie_too_much_together_and_unknown_columns():
    domain = Domain.of({"x": 100, "y": 100})
    tied = StructuralZeros(domain.everything(), np.zeros(10_000, dtype=bool))
    with pytest.raises(ResourceError, match="rules"):
        Aim(model_bytes=2**14).plan(PublicFacts(domain, (tied,), 1), rho(1))
    with pytest.raises(UsageError, match="column 'z'"):
        Aim(workload="x×z").plan(PublicFacts(domain, (), 1), rho(1))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"workload": "a×"}, "workload"),
        ({"rounds": 0}, "rounds"),
        ({"one_way_share": 1.5}, "one_way_share"),
        ({"selection_share": 0}, "selection_share"),
        ({"model_bytes": 1.5}, "model_bytes"),
        ({"table_cells": True}, "table_cells"),
    ],
)
def test_options_are_checked(options, named):
    with pytest.raises(UsageError, match=named):
        Aim(**options)


def test_replay_catches_a_score_that_moves_more_than_it_claims(monkeypatch):
    understated = property(lambda quality: Fraction(ROW, 2))
    monkeypatch.setattr(MarginalError, "sensitivity", understated)
    with pytest.raises(Leak, match="moved by"):
        MethodChecks("aim", [Budget(1.0, 1e-6)], [], pairs=30).replays_on_neighbours()
