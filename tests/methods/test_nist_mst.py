import math

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import VOTERS, door, letters, rho, rows_of
from tests.methods.generated_rows import SPECIFICATION, challenge_rows, challenge_schema
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.domain import Measurement
from understudy.errors import ResourceError, UsageError
from understudy.methods.marginals import counting_bytes
from understudy.methods.method import facts_of
from understudy.methods.nist_mst import NistMst
from understudy.methods.preparation import public_facts
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.randomizer import SecureRandomizer
from understudy.release import Release
from understudy.release.verify import verify_release
from understudy.schema import Category, OpenCategory, Schema, Unit
from understudy.synthesizer.design import Design, plan
from understudy.synthesizer.pipeline import synthesize
from understudy.testing.doubles import SeededRandomizer

needs_specification = pytest.mark.skipif(not SPECIFICATION.exists(), reason="the specification is not at hand")
CHALLENGE_DELTA = 2.2820544e-12
WIDE = letters({"a": 3, "b": 60, "c": 2})


def wide(rows=6_000, seed=0):
    """b has eight common values, two for each value of a and c, and 52 that are nearly never seen."""
    rng = np.random.default_rng(seed)
    a, c = rng.integers(0, 3, rows), rng.integers(0, 2, rows)
    b = np.where(rng.random(rows) < 0.98, 10 * (a + 2 * c), rng.integers(0, 60, rows))
    return {"a": a, "b": b, "c": c}


def answers_of(curator, width):
    return [answer for answer in curator.transcript.of(Measurement) if len(answer.columns) == width]


def delta_of(epsilon, sigma):
    """The δ of two continuous Gaussians of this σ and sensitivity 1 at ε (Balle and Wang 2018)."""
    shift = math.sqrt(2.0) / sigma
    below, above = -epsilon / shift + shift / 2, -epsilon / shift - shift / 2
    return math.erfc(-below / math.sqrt(2)) / 2 - math.exp(epsilon) * math.erfc(-above / math.sqrt(2)) / 2


@needs_specification
@pytest.mark.parametrize(
    ("epsilon", "source", "tight", "triple"), [(0.3, 34.61, 30.55, 8), (1.0, 10.45, 9.484, 6), (8.0, 1.385, 1.316, 4)]
)
def test_noise_of_the_challenge(epsilon, source, tight, triple):
    """Published σ of the normalised queries; per count round 1 has σ√102, and exact composition needs still less."""
    budget = Budget(epsilon, CHALLENGE_DELTA)
    options = {"preset": "match3", "one_way_share": 0.5}
    design = Design.of(challenge_schema(), "nist_mst", budget, options=options)
    facts = public_facts(design.schema, None)
    plain = NistMst(**options).plan(facts, budget.cost("zcdp"))
    assert [step.noise_scale for step in plain.steps[:3]] == pytest.approx([tight * np.sqrt(102)] * 3, rel=1e-3)
    exact = design.plan.steps[0].noise_scale / np.sqrt(102)
    assert exact < tight < source
    assert delta_of(epsilon, exact) == pytest.approx(CHALLENGE_DELTA, rel=0.03)
    names = [step.name for step in design.plan.steps]
    scales = np.array([step.noise_scale for step in design.plan.steps]) / exact
    normal = np.sqrt(143 + 3 * 2**2 + triple**2)
    assert len(names) == 99 + 147
    assert scales[names.index("measure INCWAGE.size")] == pytest.approx(np.sqrt(102) / 2)
    assert scales[names.index("measure CITY × SEX × INCWAGE.size")] == pytest.approx(normal / triple)
    assert scales[names.index("measure SEX × INCWAGE.size")] == pytest.approx(normal / 2)
    assert np.median(scales[99:]) == pytest.approx(normal)


@needs_specification
def test_all_tables_of_the_challenge_are_planned_and_run():
    schema = challenge_schema()
    release = synthesize(
        challenge_rows(schema, 20_000),
        schema,
        method="nist_mst",
        epsilon=1.0,
        delta=CHALLENGE_DELTA,
        options={"preset": "match3", "steps": 30},
        rows=500,
    )
    answers = release.fits[0].transcript.of(Measurement)
    assert [sum(len(answer.columns) == width for answer in answers) for width in (1, 2, 3)] == [99, 124, 23]
    assert release.statement.claim is not None
    assert release.statement.claim[0] <= 1.0
    assert release.statement.as_planned
    assert release.table.num_rows == 500
    assert release.model.total == pytest.approx(20_000, rel=0.05)


def test_rare_values_are_merged_and_come_back():
    cost = rho(0.05)
    curator = door(rows_of(wide()), WIDE, cost, SeededRandomizer(1))
    model = NistMst(marginals="a×b, b×c").fit(curator, cost)
    (column,) = [answer for answer in answers_of(curator, 1) if answer.columns == ("b",)]
    kept = column.values >= 3 * column.distribution.scale
    assert model.merged.domain.sizes["b"] == kept.sum() + 1  # type: ignore[attr-defined]
    places = model.expansions["b"].places  # type: ignore[attr-defined]
    assert (places[~kept] == kept.sum()).all()
    assert sorted(places[kept]) == list(range(kept.sum()))
    assert [answer.shape for answer in answers_of(curator, 2)] == [(3 * (kept.sum() + 1),), (2 * (kept.sum() + 1),)]
    codes = wide()
    exact = np.bincount(codes["a"] * 60 + codes["b"], minlength=180) / 6_000
    assert np.abs(model.marginal(curator.domain.clique("ab")) - exact).sum() / 2 < 0.04
    drawn = model.draw(5_000, np.random.default_rng(0))
    assert len(set(drawn["b"].tolist()) - set(np.flatnonzero(kept).tolist())) > 0


def test_kept_columns_stay_whole():
    cost = rho(0.05)
    model = NistMst(marginals="a×b, b×c", keep="b").fit(door(rows_of(wide()), WIDE, cost), cost)
    assert "b" not in model.expansions  # type: ignore[attr-defined]
    grouped = NistMst(marginals="a×b[1 20], b×c").fit(door(rows_of(wide()), WIDE, cost), cost)
    assert "b" not in grouped.expansions  # type: ignore[attr-defined]


def test_grouped_codes_are_measured_together():
    cost = rho(0.5)
    curator = door(rows_of(wide()), WIDE, cost, SeededRandomizer(1))
    model = NistMst(marginals="a×b[1 20]×c").fit(curator, cost)
    (answer,) = answers_of(curator, 3)
    assert answer.shape == (3 * 3 * 2,)
    codes = wide()
    group = np.searchsorted([1, 20], codes["b"], side="right")
    exact = np.bincount((codes["a"] * 3 + group) * 2 + codes["c"], minlength=18) / 6_000
    table = model.marginal(curator.domain.everything()).reshape(3, 60, 2)
    found = np.stack([table[:, :1].sum(1), table[:, 1:20].sum(1), table[:, 20:].sum(1)], axis=1).ravel()
    assert np.abs(found - exact).sum() / 2 < 0.03


def test_the_run_asks_just_what_the_plan_says_at_just_these_costs():
    cost = Cost(rho=12_345_678_901)
    curator = door(rows_of(wide()), WIDE, cost)
    method = NistMst(marginals="b:3, a×b:2, b×c, a×b×c:5")
    plan = method.plan(facts_of(curator), cost)
    method.fit(curator, cost)
    assert plan.fixed
    assert [part for _, part in curator.charges] == [step.cost for step in plan.steps]
    assert [answer.distribution.scale for answer in curator.transcript.of(Measurement)] == [
        s.noise_scale for s in plan.steps
    ]
    parts = np.array([step.cost.rho for step in plan.steps], dtype=float)
    assert parts / cost.rho == pytest.approx(np.array([0.3 / 11, 2.7 / 11, 0.3 / 11, 2.8 / 30, 0.7 / 30, 17.5 / 30]))
    assert all(answer.values.size <= step.cells for answer, step in zip(curator.transcript, plan.steps, strict=True))


def test_large_tables_are_measured_in_several_passes_at_the_same_costs(monkeypatch):
    monkeypatch.setattr("understudy.methods.marginals.BATCH_CELLS", 70)
    cost = rho(0.05)
    curator = door(rows_of(wide()), WIDE, cost)
    method = NistMst(marginals="pairs")
    method.fit(curator, cost)
    assert [part for _, part in curator.charges] == [s.cost for s in method.plan(facts_of(curator), cost).steps]


def test_tables_and_model_stay_within_their_limits():
    cost = rho(100)
    rng = np.random.default_rng(5)
    codes = {name: rng.integers(0, 40, 20_000) for name in "abc"}
    schema = letters(dict.fromkeys("abc", 40))
    curator = door(rows_of(codes), schema, cost)
    model = NistMst(marginals="pairs", table_cells=400, model_bytes=8 * 3_000, steps=50).fit(curator, cost)
    assert max(answer.values.size for answer in answers_of(curator, 2)) <= 400
    assert sum(table.size for table in model.merged.tables) <= 3_000  # type: ignore[attr-defined]
    curator = door(rows_of(codes), schema, cost)
    with pytest.raises(ResourceError, match="table"):
        NistMst(marginals="a×b", table_cells=400, keep="a, b").fit(curator, cost)
    with pytest.raises(ResourceError, match="model"):
        NistMst(marginals="pairs", model_bytes=8 * 3_000, keep="a, b, c").fit(curator, cost)
    assert curator.left == cost


def test_rules_hold_whatever_the_noise():
    cost = rho(1e-5)
    for marginals in ("pairs", "registered×age"):
        curator = door(rows_of({"registered": [1], "voted": [0], "age": [3]}), VOTERS, cost)
        codes = NistMst(marginals=marginals).fit(curator, cost).draw(1_000, np.random.default_rng(0))
        assert not ((codes["registered"] == 0) & (codes["voted"] == 1)).any()


EDGES = {
    "no row": (letters({"a": 3, "b": 2}), {"a": [], "b": []}),
    "one column": (letters({"a": 3}), {"a": ["1", "2"]}),
    "one code": (letters({"a": 1, "b": 1}), {"a": ["0"] * 5, "b": ["0"] * 5}),
    "one code beside others": (letters({"a": 1, "b": 2, "c": 3}), {"a": ["0"], "b": ["1"], "c": ["2"]}),
    "units": (letters({"a": 3, "b": 2}, unit=Unit(rows=2, column="u")), {"a": ["0"], "b": ["1"], "u": ["x"]}),
}


@pytest.mark.parametrize(("schema", "columns"), EDGES.values(), ids=EDGES.keys())
@pytest.mark.parametrize("cost", [rho(1e-8), rho(1e5)], ids=str)
def test_edge_shapes(schema, columns, cost):
    curator = door(rows_of(columns), schema, cost)
    model = NistMst(marginals="pairs").fit(curator, cost)
    drawn = model.draw(20, np.random.default_rng(0))
    assert all(column.max() < curator.domain.sizes[name] for name, column in drawn.items())
    assert curator.left.rho <= 0.01 * cost.rho
    if cost.rho > UNIT:
        assert model.total == pytest.approx(max(1, len(columns["a"])), abs=0.1)


def test_a_released_folder_can_be_read_and_verified(tmp_path):
    table, options = rows_of(wide(800)), {"marginals": "pairs"}
    made = synthesize(
        table, WIDE, method="nist_mst", epsilon=1.0, delta=1e-6, options=options, out=tmp_path / "release"
    )
    again = Release.load(tmp_path / "release")
    assert again.sample(50, seed=3) == made.sample(50, seed=3)
    assert verify_release(tmp_path / "release") == []


def test_without_a_list_it_says_what_to_give():
    with pytest.raises(UsageError, match="public list of marginals"):
        NistMst().fit(door(rows_of(wide(5)), WIDE, rho(1)), rho(1))


@pytest.mark.parametrize(
    "options",
    [
        {"one_way_share": 0.0},
        {"threshold": -1.0},
        {"threshold": float("nan")},
        {"table_cells": 0},
        {"steps": 2.5},
        {"model_bytes": 8},
        {"preset": "match4"},
        {"expand": "never"},
        {"marginals": "a×b", "preset": "match3"},
    ],
)
def test_options_are_checked(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        NistMst(**options)


def test_unknown_columns_are_named():
    with pytest.raises(UsageError, match=r"'INCWAGE\.size'"):
        NistMst(preset="match3").fit(door(rows_of(wide(5)), WIDE, rho(1)), rho(1))
    with pytest.raises(UsageError, match="'q'"):
        NistMst(marginals="a×b", keep="q").fit(door(rows_of(wide(5)), WIDE, rho(1)), rho(1))


def _synthesized(public, **options):
    rows = rows_of(wide())
    return synthesize(rows, WIDE, method="nist_mst", epsilon=1.0, delta=1e-6, public=public, options=options, rows=50)


def test_a_public_table_gives_the_list_before_anything_is_planned():
    public = rows_of(wide(3_000, seed=9))
    planned = plan(WIDE, method="nist_mst", epsilon=1.0, delta=1e-6, public=public)
    written = planned.options["marginals"]
    assert {"a×b", "b×c"} <= set(written.split(", "))  # type: ignore[attr-defined]
    assert any("public table" in note for note in planned.notes)
    release = _synthesized(public)
    assert release.config.options == planned.options
    assert release.statement.as_planned
    assert [charge.cost for charge in release.statement.charges] == [step.cost for step in planned.steps]
    plain = plan(WIDE, method="nist_mst", epsilon=1.0, delta=1e-6, options={"marginals": written})
    assert [step.cost for step in plain.steps] == [step.cost for step in planned.steps]
    counted = counting_bytes(facts_of(door(public, WIDE, rho(1))).domain)
    assert plain.bytes < planned.bytes <= plain.bytes + counted  # less where drawing takes more than counting did


def test_the_list_follows_the_public_table_not_the_private_one():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 3, 3_000), rng.integers(0, 60, 3_000)
    public = rows_of({"a": a, "b": b, "c": (a == 0).astype(int)})  # a and c go together here, b with nothing
    listed = _synthesized(public).config.options["marginals"].split(", ")
    assert listed[0] == "a×c"
    assert "b×c" in _synthesized(public, together="b, c").config.options["marginals"].split(", ")


def test_a_list_and_a_public_table_are_one_too_many():
    public = rows_of(wide(50))
    with pytest.raises(UsageError, match="not used when a list"):
        _synthesized(public, marginals="pairs")
    with pytest.raises(UsageError, match="together"):
        NistMst(marginals="pairs", together="a, b")
    with pytest.raises(UsageError, match="no rows"):
        _synthesized(rows_of(wide(0)))


def test_run_without_a_design_takes_the_list_from_the_door():
    public = FrameTable(rows_of(wide(3_000, seed=9)), WIDE, memory_bytes=2**28)
    private = FrameTable(rows_of(wide()), WIDE, memory_bytes=2**28)
    curator = Curator(private, rho(0.1), SecureRandomizer(), public=public)
    curator.fix_codec(TableCodec.of(WIDE))
    NistMst().fit(curator, rho(0.1))
    assert {answer.columns for answer in answers_of(curator, 2)} >= {("a", "b"), ("b", "c")}
    assert curator.left.rho < 10  # units of 10⁻¹², lost to rounding


def test_labels_to_be_discovered_are_planned_with_public_ones():
    sexes = [Category(name=name, labels=("F", "M")) for name in ("sex", "other_sex")]
    schema = Schema((OpenCategory(name="job", most_labels=4), *sexes), Unit())
    rng = np.random.default_rng(1)
    sex = rng.choice(["F", "M"], 3_000)
    jobs = np.where(sex == "F", "nurse", "smith")
    table = pa.table({"job": jobs, "sex": sex, "other_sex": np.where(rng.random(3_000) < 0.8, sex, "F")})
    release = synthesize(table, schema, method="nist_mst", epsilon=20.0, delta=1e-6, public=table, rows=50)
    # Were all jobs unknown to the plan, job would tell nothing about sex and come last.
    assert release.config.options["marginals"].startswith("job×sex")  # type: ignore[attr-defined]
    assert release.codec.labels["job"] == ("nurse", "smith")
