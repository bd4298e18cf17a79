"""Ensemble: costs and noise by formula, what it keeps, rules, units, pooling, refusals."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import MEMORY, VOTERS, door, epsilon, letters, rho, rows_of
from tests.methods.test_privsyn import CHAIN, chain
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.domain import (
    RESIDUAL_UNIT,
    SCORE_UNIT,
    Clique,
    Distribution,
    Domain,
    Measurement,
    NoisyScores,
    ResidualTable,
    StructuralZeros,
)
from understudy.errors import ResourceError, UsageError
from understudy.methods.ensemble import MixtureEnsemble, _Excess, _Measuring, _Synthesis, _variance
from understudy.methods.expected_gain import CellGain
from understudy.methods.known_columns import KnownColumns
from understudy.methods.method import PublicFacts, facts_of
from understudy.methods.record_synthesis import Coarsening
from understudy.models.estimation import NoisyTable
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.gaussian import residual_shift
from understudy.privacy.scores import WEIGHT_UNIT
from understudy.schema import Unit
from understudy.testing.cases import Case
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.replay import Leak, check_pair

QUICK = MixtureEnsemble(components=20, steps=100)
ALL_CODES = MixtureEnsemble(threshold=0.0, components=5, steps=10)


def answers_about(curator, columns):
    return [answer for answer in curator.transcript.of(Measurement) if len(answer.columns) == columns]


def rho_of(residuals):
    """What residuals of a pair cost by their noise."""
    return residual_shift(residuals.shape) / RESIDUAL_UNIT**2 / (2 * residuals.variance)


def spent_on_columns(rows, cost):
    curator = door(rows_of(chain(rows)), CHAIN, cost, NoNoise())
    ALL_CODES.fit(curator, cost)
    assert curator.left.rho < 100
    pairs = curator.transcript.of(ResidualTable)
    return sum(1 / (2 * one.distribution.variance) for one in answers_about(curator, 1)) * 1e12 / cost.rho, pairs


def test_costs_add_up_and_noise_follows_from_them():
    cost = rho(1.0)
    curator = door(rows_of(chain(20_000)), CHAIN, cost)
    QUICK.fit(curator, cost)
    (total,) = answers_about(curator, 0)
    assert total.distribution.variance == pytest.approx(1 / (2 * 0.005), rel=1e-6)
    ones = sum(1 / (2 * answer.distribution.variance) for answer in answers_about(curator, 1))
    scores = curator.transcript.of(NoisyScores)
    for query in scores:
        assert query.sensitivity == SCORE_UNIT * WEIGHT_UNIT, "one row moves a score by one"
        assert query.distribution.variance / (SCORE_UNIT * WEIGHT_UNIT) ** 2 == pytest.approx(6 / (2 * 0.03), rel=1e-4)
    asked = sum(query.scores.size for query in scores)
    pairs = sum(map(rho_of, curator.transcript.of(ResidualTable)))
    assert not answers_about(curator, 2), "of pairs, what columns do not tell already"
    assert ones + pairs + 0.005 + 0.03 * asked / 6 == pytest.approx(1.0, rel=1e-6)
    assert curator.left.rho < 100


@pytest.mark.parametrize("cost", [rho(0.1), epsilon(0.5)], ids=str)
def test_scores_with_a_large_share_take_no_more_than_columns_left(cost):
    """Noise is large beside 120 rows, so columns take about 0.7 of the cost, and scores ask for 0.5 of it."""
    method = MixtureEnsemble(components=3, steps=3, selection_share=0.5)
    curator = door(rows_of(chain(120)), CHAIN, cost, NoNoise())
    assert method.fit(curator, cost).total > 0
    assert curator.left.rho < 100
    assert curator.left.epsilon < 100


def test_columns_take_no_more_than_the_total_left():
    method = MixtureEnsemble(components=3, steps=3, total_share=0.5, one_way_share=0.4)
    curator = door(rows_of(chain(120)), CHAIN, rho(0.1), NoNoise())
    assert method.fit(curator, rho(0.1)).total > 0
    assert curator.left.rho < 100


def test_columns_get_more_where_noise_is_large_beside_the_rows():
    """Of 4 equal columns at all of ρ, σ = √(4/2ρ); x = 0.4 · 4 · σ / n, and the share is 0.4 · √(x/0.007)."""
    share, pairs = spent_on_columns(20_000, rho(2.0))
    assert share == pytest.approx(0.05, rel=1e-3), "the least share"
    assert pairs
    share, pairs = spent_on_columns(3_000, rho(0.005))
    assert share == pytest.approx(0.4 * math.sqrt(1.6 * 20 / 3_000 / 0.007), rel=1e-3)
    assert pairs
    share, pairs = spent_on_columns(900, rho(0.005))
    assert share == pytest.approx(0.7 + 1.6 * 20 / 900, rel=1e-3)
    assert pairs


def test_where_noise_drowns_the_scores_what_is_left_goes_to_columns_again():
    """Noise of a score is σ = √(6 / (2 · 0.03 · 0.005)) = 141 of 300 rows; columns have 0.81 of the cost by then."""
    share, pairs = spent_on_columns(300, rho(0.005))
    assert share == pytest.approx(1.0 - 0.005 - 0.03, rel=1e-3)
    assert not pairs


def test_where_noise_drowns_pairs_columns_get_all_and_rows_are_independent():
    share, pairs = spent_on_columns(60, rho(0.005))
    assert share == pytest.approx(0.995, rel=1e-3)
    assert not pairs


def test_pairs_are_kept():
    cost, exact = rho(0.5), chain(20_000)
    model = QUICK.fit(door(rows_of(exact), CHAIN, cost, SeededRandomizer(1)), cost)
    for pair in ("ab", "bc", "ac", "ad"):
        table = np.bincount(exact[pair[0]] * 4 + exact[pair[1]], minlength=16) / 20_000
        assert np.abs(model.marginal(Clique(pair)) - table).sum() / 2 < 0.02


@pytest.fixture
def few(monkeypatch):
    """Columns of four codes make strong pairs, and those of more than 256 are wide."""
    monkeypatch.setattr("understudy.methods.ensemble._MANY", 4)
    monkeypatch.setattr("understudy.methods.ensemble.WIDE", 256)


@pytest.mark.usefixtures("few")
def test_strong_pairs_come_first_and_what_follows_from_them_is_scored_again():
    """a – b – c: neighbours in the chain are strong, and what they make of a × c is nearly right."""
    cost, exact = rho(1.0), chain(20_000)
    curator = door(rows_of(exact), CHAIN, cost, NoNoise())
    QUICK.fit(curator, cost)
    kinds = [type(answer) for answer in curator.transcript]
    first, again = (place for place, kind in enumerate(kinds) if kind is NoisyScores)
    early = [answer.columns for answer in list(curator.transcript)[first + 1 : again]]
    assert sorted(early) == [("a", "b"), ("b", "c")]
    before, after = (query.scores / WEIGHT_UNIT for query in curator.transcript.of(NoisyScores))
    assert before.size == 6
    assert after.size == 1
    assert after[0] < 0.1 * before[1], "of a × c, the second of all pairs"


@lru_cache
def places(codes, rows=20_000):
    """A place of so many codes; a district that nearly follows it; and what follows neither."""
    rng = np.random.default_rng(1)
    place = rng.integers(0, codes, rows)
    district = np.where(rng.random(rows) < 0.9, place * 7 % 10, rng.integers(0, 10, rows))
    return {"place": place, "district": district, "other": rng.integers(0, 4, rows)}


@pytest.mark.usefixtures("few")
def test_a_wide_column_keeps_its_strongest_relation():
    exact, cost = places(400), rho(2.0)
    curator = door(rows_of(exact), letters({"place": 400, "district": 10, "other": 4}), cost, SeededRandomizer(2))
    model = QUICK.fit(curator, cost)
    assert curator.domain.sizes["place"] > 256
    (wide,) = (answer for answer in curator.transcript.of(ResidualTable) if "place" in answer.columns)
    assert wide.columns == ("place", "district")
    table = np.bincount(exact["place"] * 10 + exact["district"], minlength=4000) / 20_000
    assert np.abs(model.marginal(Clique(("place", "district"))) - table).sum() / 2 < 0.12  # 0.8 if it followed nothing
    assert np.abs(model.marginal(Clique(("place",))) - table.reshape(400, 10).sum(axis=1)).sum() / 2 < 0.05
    assert curator.left.rho < 1000


@pytest.mark.usefixtures("few")
def test_where_all_columns_are_wide_they_hang_on_the_narrowest():
    exact, cost = places(400), rho(20.0)
    codes = {"place": exact["place"], "street": exact["place"] * 3 % 401, "road": exact["place"] * 7 % 300}
    curator = door(rows_of(codes), letters({"place": 400, "street": 401, "road": 300}), cost, NoNoise())
    model = QUICK.fit(curator, cost)
    for pair in (("place", "street"), ("place", "road")):
        sizes = curator.domain.shape(pair)
        table = np.bincount(codes[pair[0]] * sizes[1] + codes[pair[1]], minlength=math.prod(sizes)) / 20_000
        assert np.abs(model.marginal(Clique(pair)) - table).sum() / 2 < 0.1


def test_where_only_the_far_end_of_a_chain_was_measured_the_near_one_goes_by_its_counts():
    """Two wide columns a and b: b hangs on a, and a on c by a pair that was not worth its cost."""
    domain, noise = Domain.of({"a": 300, "b": 300, "c": 2}), Distribution("gaussian", Fraction(4))
    total = Measurement("total", (), (), np.array([3000]), noise)
    ones = [np.full(300, 10), np.full(300, 10), np.full(2, 1500)]
    answers = [Measurement(name, (name,), one.shape, one, noise) for name, one in zip("abc", ones, strict=True)]
    known = KnownColumns.of(Coarsening(domain, {}), total, answers, (), 0.0, wide=frozenset("ab"))
    contrasts = RESIDUAL_UNIT * 10 * (np.eye(299, dtype=np.int64) + 1)  # of a table with 10 rows wherever a = b
    flat = ResidualTable("a × b", ("a", "b"), (300, 300), contrasts.ravel(), noise)
    gain = CellGain.concentrated(np.full(300, 10.0), 50.0, 1.0, 1.0, 1.0)
    excess = _Excess(known.independent(), {}, {Clique("ac"): gain, Clique("ab"): gain})
    made = _Synthesis(QUICK, known, (), excess, {Clique("ab"): flat})._with_wide(
        {"c": np.zeros(3000, dtype=np.uint8)}, np.random.default_rng(0)
    )
    assert list(made) == ["a", "b", "c"]
    assert np.abs(np.bincount(made["a"], minlength=300) - 10).max() <= 1
    assert (made["a"] == made["b"]).mean() > 0.95


@pytest.mark.usefixtures("few")
def test_a_wide_column_that_nothing_goes_with_is_drawn_by_its_counts():
    rng = np.random.default_rng(3)
    codes = {"place": rng.integers(0, 400, 20_000), "other": rng.integers(0, 4, 20_000)}
    curator = door(rows_of(codes), letters({"place": 400, "other": 4}), rho(0.5), SeededRandomizer(3))
    model = QUICK.fit(curator, rho(0.5))
    assert not curator.transcript.of(ResidualTable)
    table = np.bincount(codes["place"], minlength=400) / 20_000
    assert np.abs(model.marginal(Clique(("place",))) - table).sum() / 2 < 0.05


WIDE = letters({"place": 300, "district": 4, "other": 2})


def wide_rows():
    """Every place twice or more, so that with little noise none is pooled."""
    place = np.concatenate([np.arange(300)] * 4)
    return rows_of({"place": place, "district": place % 4, "other": np.arange(1200) % 3 % 2})


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("schema", "table"), [(CHAIN, rows_of(chain(400))), (WIDE, wide_rows())], ids=["chain", "wide"]
)
def test_the_same_answers_ask_the_same_of_a_neighbour(schema, table):
    """What is strong, wide, measured and scored again must follow from the answers."""
    options = {"components": 5, "steps": 10, "sweeps": 2}
    pipeline = Case(schema, "ensemble", Budget(50.0, 1e-6), options).pipeline()
    for seed, row in enumerate((0, 3, table.num_rows - 1)):
        neighbour = pa.concat_tables([table.slice(0, row), table.slice(row + 1)])
        check_pair(pipeline, table, neighbour, SeededRandomizer(seed))


@pytest.mark.usefixtures("few")
def test_replay_catches_strong_pairs_chosen_by_exact_counts(monkeypatch):
    """Planted: which pairs come first depends on whether the number of rows is even."""
    table = rows_of(chain(400))
    counts = Curator._counts
    parity = []

    def spying(curator, source, cliques, **given):
        found = counts(curator, source, cliques, **given)
        parity.append(int(next(iter(found.values())).sum()) % 2)
        return found

    honest = _Measuring._strong
    monkeypatch.setattr(Curator, "_counts", spying)
    monkeypatch.setattr(_Measuring, "_strong", lambda self, excess: honest(self, excess)[parity[-1] :])
    pipeline = Case(CHAIN, "ensemble", Budget(50.0, 1e-6), {"components": 5, "steps": 10, "sweeps": 2}).pipeline()
    with pytest.raises(Leak):
        check_pair(pipeline, table, table.slice(1), SeededRandomizer(0))


def test_a_pair_that_was_not_measured_follows_from_those_that_were():
    """a – b – c: the mixtures know a × c from a × b and b × c; independence would be off by a third."""
    cost, exact = rho(0.01), chain(20_000)
    curator = door(rows_of(exact), CHAIN, cost, SeededRandomizer(3))
    model = QUICK.fit(curator, cost)
    table = np.bincount(exact["a"] * 4 + exact["c"], minlength=16) / 20_000
    assert np.abs(model.marginal(Clique("ac")) - table).sum() / 2 < 0.1


def test_rules_hold_whatever_the_noise():
    for budget in (0.00001, 0.001, 10.0):
        rows = rows_of({"registered": [0, 1, 1], "voted": [0, 1, 0], "age": [0, 3, 4]})
        model = QUICK.fit(door(rows, VOTERS, rho(budget)), rho(budget))
        assert model.marginal(Clique(("registered", "voted")))[1] == 0.0


def told(ones=((60, 40), (60, 40)), rules=()):
    """A synthesis of two columns of two codes, as they were counted, and of residuals that are all 0."""
    domain, noise = Domain.of({"a": 2, "b": 2}), Distribution("gaussian", Fraction(4))
    total = Measurement("total", (), (), np.array([100]), noise)
    answers = [Measurement(name, (name,), (2,), np.array(one), noise) for name, one in zip("ab", ones, strict=True)]
    known = KnownColumns.of(Coarsening(domain, {}), total, answers, rules, 0.0)
    table = ResidualTable("a × b", ("a", "b"), (2, 2), np.array([0]), noise)
    excess = _Excess(known.independent(), {Clique("ab"): 0.0}, {})
    return _Synthesis(QUICK, known, tuple(rules), excess, {Clique("ab"): table})


def test_columns_get_the_noisy_number_of_rows_and_no_negative_count():
    synthesis = told(((70, 50), (130, -10)))
    columns, rows = synthesis._columns(), synthesis.known.total
    assert columns[:2] == pytest.approx([70 + (rows - 120) / 2, 50 + (rows - 120) / 2])
    assert columns[2:] == pytest.approx([rows, 0.0])


def test_what_is_told_again_is_weighed_by_its_precision():
    known = told(((70, 30), (50, 50))).known
    again = known.joined([NoisyTable(Clique("a"), np.array([40.0, 60.0]), 1.0)])
    assert again.counts == pytest.approx([(70 / 4 + 40) / 1.25, (30 / 4 + 60) / 1.25, 50.0, 50.0])
    assert again.variances == pytest.approx([0.8, 0.8, 4.0, 4.0])
    assert again.wide.counts["a"].sum() == pytest.approx(known.total)
    whole = known.joined([NoisyTable(Clique("ab"), np.array([10.0, 20.0, 30.0, 40.0]), 2.0)])
    assert whole.counts == pytest.approx([50.0, 50.0, 45.0, 55.0]), "sums of two cells have the variance of a column"


def liked(public, rules=()):
    """What a public table of two columns makes one expect of 100 rows, 60 and 40 of which have the codes of each."""
    known = told(((60, 40), (60, 40)), rules).known
    return known, known.grid.table(known.like({Clique("ab"): np.array(public)}), Clique("ab"))


def test_a_public_table_lends_its_relation_and_not_its_columns():
    known, found = liked([9_000, 0, 0, 1_000])
    assert found.sum(axis=1) == pytest.approx([0.6 * known.total, 0.4 * known.total], rel=0.03)
    assert found.sum(axis=0) == pytest.approx([0.6 * known.total, 0.4 * known.total], rel=0.03)
    assert np.trace(found) > 0.9 * known.total, "independent columns would have 0.52 there"


def test_a_public_table_without_rows_says_nothing_and_rules_hold():
    known, found = liked([0, 0, 0, 0])
    assert found == pytest.approx(known.grid.table(known.independent(), Clique("ab")))
    rule = StructuralZeros(Clique("ab"), np.array([False, True, False, False]))
    _, found = liked([10, 500, 30, 40], (rule,))
    assert found[0, 1] == 0.0


def with_public(public, rows=2_000, share=0.002, *, noise=1):
    """Rows of the chain, measured beside public rows, and the distance of the pair a × b."""
    exact, cost = chain(rows), rho(share)
    table = None if public is None else FrameTable(rows_of(public), CHAIN, memory_bytes=MEMORY)
    curator = Curator(
        FrameTable(rows_of(exact), CHAIN, memory_bytes=MEMORY), cost, SeededRandomizer(noise), public=table
    )
    curator.fix_codec(TableCodec.of(CHAIN))
    model = QUICK.fit(curator, cost)
    real = np.bincount(exact["a"] * 4 + exact["b"], minlength=16) / rows
    return curator, np.abs(model.marginal(Clique("ab")) - real).sum() / 2


def test_a_public_table_like_the_private_one_helps_and_a_misleading_one_is_left():
    alike, other = chain(20_000), chain(20_000)
    other["b"] = (other["b"] + 2) % 4
    distances = {
        name: np.mean([with_public(public, noise=seed)[1] for seed in range(5)])
        for name, public in {"none": None, "alike": alike, "misleading": other}.items()
    }
    assert distances["alike"] < 0.8 * distances["none"]
    assert distances["misleading"] < 1.15 * distances["none"]


def test_scores_beside_a_public_table_share_the_cost_of_scores():
    curator, _ = with_public(chain(500), 20_000, 1.0)
    scores = curator.transcript.of(NoisyScores)
    assert [query.scores.size for query in scores[:2]] == [6, 6]
    for query in scores[:2]:
        assert query.sensitivity == SCORE_UNIT * WEIGHT_UNIT
        assert query.distribution.variance / (SCORE_UNIT * WEIGHT_UNIT) ** 2 == pytest.approx(6 / 0.03, rel=1e-4)
    assert curator.left.rho < 100


def test_residuals_stand_on_top_of_what_columns_told():
    synthesis = told()
    assert synthesis._noisy(Clique("ab")) == pytest.approx(np.array([[35.0, 25.0], [25.0, 15.0]]))
    assert _variance(synthesis.tables[Clique("ab")]) == pytest.approx(4 / RESIDUAL_UNIT**2)


def test_nothing_is_wanted_where_a_rule_excludes_rows():
    rule = StructuralZeros(Clique("ab"), np.array([False, True, False, False]))
    assert told(rules=[rule])._noisy(Clique("ab"))[0, 1] == 0.0


def test_columns_are_kept_beside_pairs():
    cost, exact = rho(0.01), chain(20_000)
    model = QUICK.fit(door(rows_of(exact), CHAIN, cost, SeededRandomizer(4)), cost)
    own = [np.bincount(exact[name], minlength=4) / 20_000 for name in "abcd"]
    assert (
        np.mean([np.abs(model.marginal(Clique(name)) - real).sum() / 2 for name, real in zip("abcd", own, strict=True)])
        < 0.01
    )


def test_rare_codes_are_pooled_and_come_back():
    schema = letters({"a": 40, "b": 3})
    rng = np.random.default_rng(0)
    a = np.where(rng.random(5000) < 0.9, rng.integers(0, 3, 5000), rng.integers(3, 40, 5000))
    b = np.where(rng.random(5000) < 0.5, a % 3, rng.integers(0, 3, 5000))
    curator = door(rows_of({"a": a, "b": b}), schema, rho(0.01), SeededRandomizer(2))
    model = QUICK.fit(curator, rho(0.01))
    (pair,) = curator.transcript.of(ResidualTable)
    assert pair.shape[0] < 40
    assert pair.shape[1] == 3
    assert model.domain.sizes["a"] == 40
    assert (model.marginal(Clique("a"))[3:] > 0).sum() > 5


def test_codes_are_pooled_until_all_fit():
    schema = letters({"a": 30, "b": 30, "c": 3})
    rng = np.random.default_rng(0)
    codes = {"a": rng.integers(0, 30, 3000), "b": rng.integers(0, 30, 3000), "c": rng.integers(0, 3, 3000)}
    curator = door(rows_of(codes), schema, rho(100.0), NoNoise())
    MixtureEnsemble(components=5, steps=10, most_codes=20).fit(curator, rho(100.0))
    assert sum(curator.domain.sizes.values()) <= 20


def test_a_unit_of_several_rows_gets_more_noise():
    schema = letters({"a": 3, "b": 3}, unit=Unit(column="who", rows=3))
    rows = rows_of({"a": [0, 1, 2], "b": [0, 1, 1]}).append_column("who", [["x", "x", "y"]])
    curator = door(rows, schema, rho(1000.0), NoNoise())
    ALL_CODES.fit(curator, rho(1000.0))
    (scores,) = curator.transcript.of(NoisyScores)
    assert scores.sensitivity == 3 * SCORE_UNIT * WEIGHT_UNIT
    (total,) = answers_about(curator, 0)
    assert total.distribution.variance == pytest.approx(9 / (2 * 5.0), rel=1e-6)


def test_one_column_gets_everything():
    curator = door(rows_of({"a": [0, 1, 1]}), letters({"a": 3}), rho(1.0))
    model = QUICK.fit(curator, rho(1.0))
    assert curator.left.rho < 10
    assert model.domain.columns == ("a",)


def test_where_noise_leaves_one_code_each_the_columns_are_measured_again():
    curator = door(rows_of(chain(10)), CHAIN, rho(1e-8), SeededRandomizer(5))
    model = MixtureEnsemble(threshold=1e9, components=5, steps=10).fit(curator, rho(1e-8))
    assert curator.left.rho < 10
    assert set(model.domain.sizes.values()) == {4}


def test_one_seed_one_model_and_another_seed_another():
    codes = rows_of(chain(1500))
    models = [
        MixtureEnsemble(components=10, steps=20, structure_seed=seed).fit(
            door(codes, CHAIN, rho(1.0), NoNoise()), rho(1.0)
        )
        for seed in (1, 1, 2)
    ]
    first, same, other = (model.codes for model in models)  # type: ignore[attr-defined]
    assert all(np.array_equal(first[name], same[name]) for name in "abcd")
    assert any(not np.array_equal(first[name], other[name]) for name in "abcd")


def test_the_plan_is_what_is_spent():
    curator = door(rows_of(chain(500)), CHAIN, rho(1.0))
    plan = QUICK.plan(facts_of(curator), rho(1.0))
    assert plan.cost == sum((step.cost for step in plan.steps), Cost()) == rho(1.0)
    assert not plan.fixed, "what columns and pairs cost depends on answers"


def test_large_tables_are_fitted_with_fewer_and_smaller_mixtures():
    fitting, members = MixtureEnsemble()._fitting(200, 500)
    assert (fitting.components, members) == (200, 3)
    smaller, fewer = MixtureEnsemble()._fitting(2000, 500)
    assert smaller.components < 200
    assert fewer == 2


def test_rules_over_too_many_codes_are_refused_before_anything_is_asked():
    domain = Domain.of({"a": 6000, "b": 3000})
    mask = np.zeros(domain.cells("ab"), dtype=bool)
    mask[0] = True
    facts = PublicFacts(domain, (StructuralZeros(Clique("ab"), mask),), 1)
    with pytest.raises(ResourceError):
        MixtureEnsemble().plan(facts, rho(1.0))


def test_shares_must_leave_something_for_pairs():
    with pytest.raises(UsageError):
        MixtureEnsemble(one_way_share=0.97)


def test_under_pure_epsilon_all_noise_is_laplace_and_costs_add_up():
    """Whole tables of pairs in place of residuals; every answer costs k over its scale, scores the sum of theirs."""
    cost = epsilon(3)
    curator = door(rows_of(chain(4_000)), CHAIN, cost, SeededRandomizer(1))
    QUICK.fit(curator, cost)
    assert not curator.transcript.of(ResidualTable)
    answers, (scores,) = curator.transcript.of(Measurement), curator.transcript.of(NoisyScores)
    assert {*(answer.distribution.kind for answer in answers), scores.distribution.kind} == {"laplace"}
    spent = sum(1 / answer.distribution.scale for answer in answers)
    spent += scores.scores.size * float(scores.sensitivity) / scores.distribution.scale
    assert spent == pytest.approx(3, rel=1e-6)
    assert curator.left.epsilon < 100
    assert any(len(answer.columns) == 2 for answer in answers)


@pytest.mark.parametrize("rows", [0, 3, 200])
def test_costs_under_pure_epsilon_stay_within_what_is_granted_where_noise_drowns_the_rows(rows):
    """Columns then take nearly all, and scores no more than a part of what is left."""
    cost = epsilon(0.01)
    curator = door(rows_of(chain(rows)), CHAIN, cost, SeededRandomizer(2))
    QUICK.fit(curator, cost)
    assert sum((spent for _, spent in curator.charges), Cost()) + curator.left == cost


def test_scores_take_more_under_pure_epsilon_where_their_noise_would_be_large():
    plan = QUICK.plan(PublicFacts(Domain.of({"a": 4, "b": 4, "c": 4}), (), 1), epsilon(1))
    whole, pairs = Cost(epsilon=UNIT), 100
    aimed = math.sqrt(2) * pairs / 0.05  # rows at which the whole of ε = 1 would have that noise
    assert QUICK._scores_cost(plan, whole, pairs, aimed / 0.05).epsilon == pytest.approx(0.05 * UNIT)
    assert QUICK._scores_cost(plan, whole, pairs, aimed * 1e6).epsilon == pytest.approx(0.03 * UNIT)
    assert QUICK._scores_cost(plan, whole, pairs, 1.0).epsilon == pytest.approx(0.12 * UNIT)
    assert QUICK._scores_cost(plan, whole.share(0.1), pairs, 1.0).epsilon == pytest.approx(0.03 * UNIT)


def test_residuals_of_a_whole_table_are_its_counts_less_means_with_its_noise():
    counts = np.array([[5, 1, 0], [2, 8, 4]])
    answer = Measurement("a b", ("a", "b"), (2, 3), counts.ravel(), Distribution("laplace", Fraction(7)))
    found = ResidualTable.of_counts(answer, ("a", "b"), (2, 3))
    means = counts.mean(axis=0)[np.newaxis, :] + counts.mean(axis=1)[:, np.newaxis] - counts.mean()
    assert found.residuals == pytest.approx(counts - means)
    assert found.variance == pytest.approx(answer.distribution.variance, rel=0.01)


def test_what_whole_tables_say_of_columns_is_joined_by_precision():
    """A column told as (60, 40) ± 1 and summed from a pair as (64, 40) ± 3 cells of variance 1: a quarter counts."""
    domain = Domain.of({"a": 2, "b": 3})
    noise = Distribution("laplace", Fraction(1))
    answers = [
        Measurement("a", ("a",), (2,), np.array([60, 40]), noise),
        Measurement("b", ("b",), (3,), np.array([50, 30, 20]), noise),
    ]
    total = Measurement("total", (), (), np.array([100]), noise)
    known = KnownColumns.of(Coarsening(domain, {}), total, answers, (), 0.01)
    pair = NoisyTable(Clique(("a", "b")), np.array([30.0, 20.0, 14.0, 20.0, 10.0, 10.0]), noise.variance)
    joined = known.joined([pair])
    place = joined.grid.places("a")
    assert joined.counts[place] == pytest.approx((known.counts[place] * 3 + np.array([64.0, 40.0])) / 4)
    assert joined.variances[place] == pytest.approx(known.variances[place] * 3 / 4)
    assert known.joined([]) is known
