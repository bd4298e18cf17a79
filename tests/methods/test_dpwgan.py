"""The method: options, plan, devices, and what a release of it says."""

import numpy as np
import pytest

from tests.methods.door import door, letters, rows_of
from understudy import synthesize
from understudy.answers import Trained
from understudy.domain import Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.dpwgan import DpWgan
from understudy.methods.method import PublicFacts
from understudy.methods.registry import describe
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost
from understudy.release import Release
from understudy.testing import cases as tables

TINY = {"steps": 5, "hidden": 4, "latent": 2, "batch": 8, "components": 16, "rate": 0.3}
PRICE = Cost(epsilon=UNIT, delta=DELTA_UNIT // 10**6)
PAIR = letters({"a": 3, "b": 3})


def _facts(schema=PAIR, rows=1):
    curator = door(rows_of({"a": [0], "b": [0]}), schema, PRICE)
    return PublicFacts(curator.domain, curator.structural_zeros, rows)


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 0},
        {"steps": 1.5},
        {"hidden": 10**6},
        {"rate": 0.0},
        {"rate": 1.0},
        {"columns_share": 0.99},
        {"structure_seed": -1},
        {"device": "tpu"},
    ],
)
def test_bad_options_are_refused(options) -> None:
    with pytest.raises(UsageError):
        DpWgan(**options)


def test_the_plan_asks_one_question_for_the_whole_price() -> None:
    plan = DpWgan(**TINY).plan(_facts(), PRICE)
    assert [step.name for step in plan.steps] == ["train dpwgan"]
    assert plan.cost == plan.steps[0].cost == PRICE
    assert plan.options["structure_seed"] == 0
    longer = DpWgan(**{**TINY, "steps": 50}).plan(_facts(), PRICE)
    assert longer.steps[0].noise_scale > plan.steps[0].noise_scale
    assert longer.seconds > plan.seconds


def test_without_delta_there_is_no_training() -> None:
    with pytest.raises(UsageError, match="δ"):
        DpWgan(**TINY).plan(_facts(), Cost(epsilon=UNIT))
    with pytest.raises(UsageError, match="δ above 0"):
        synthesize(rows_of({"a": [0], "b": [0]}), PAIR, method="dpwgan", epsilon=1.0)


def test_rules_that_tie_too_much_are_refused_in_advance() -> None:
    domain = Domain.of({"a": 300, "b": 300, "c": 300})
    mask = np.zeros(90_000, dtype=bool)
    mask[0] = True
    rules = (StructuralZeros(domain.clique("ab"), mask), StructuralZeros(domain.clique("bc"), mask))
    with pytest.raises(ResourceError):
        DpWgan(**TINY).plan(PublicFacts(domain, rules, 1), PRICE)


def test_a_gpu_that_is_not_there_is_a_usage_error(monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="torch"):
        DpWgan(**TINY, device="cuda").plan(_facts(), PRICE)


def test_it_learns_what_columns_alone_do_not_show() -> None:
    rng = np.random.default_rng(1)
    first = rng.integers(3, size=3000)
    agree = rows_of({"a": first, "b": first})
    options = {"steps": 400, "hidden": 16, "latent": 4, "batch": 64, "components": 256, "rate": 0.1}
    ample = Cost(epsilon=50 * UNIT, delta=PRICE.delta)
    model = DpWgan(**options).fit(door(agree, PAIR, ample), ample)
    joint = model.marginal(model.domain.everything()).reshape(3, 3)
    # 1/3 if nothing is learned; 50 runs gave 0.86 on average, spread 0.03, and 0.77 at least.
    assert np.trace(joint) > 0.45
    assert model.marginal(model.domain.clique("a")).tolist() == pytest.approx([1 / 3] * 3, abs=0.02)


def test_the_release_says_what_was_done(tmp_path) -> None:
    schema = tables.small()
    table = tables.possible_rows(schema, 200, seed=1)
    release = synthesize(
        table, schema, method="dpwgan", epsilon=1.0, delta=1e-6, options=TINY, out=tmp_path / "release", seed=1
    )
    assert (release.statement.epsilon, release.statement.delta) == (1.0, 1e-6)
    assert release.statement.variant == "(ε, δ)-differential privacy"
    assert [charge.step for charge in release.statement.charges] == ["train dpwgan"]
    loaded = Release.load(tmp_path / "release")
    (trained,) = loaded.fits[0].transcript.of(Trained)
    (original,) = release.fits[0].transcript.of(Trained)
    assert trained.course == original.course
    assert (trained.distribution, trained.first_distribution) == (original.distribution, original.first_distribution)
    assert trained.values.tolist() == original.values.tolist()
    assert "training" in (tmp_path / "release" / "card.html").read_text(encoding="utf-8")
    sampled = loaded.sample(50, seed=2, where={"registered": "yes"})
    assert set(sampled.column("registered").to_pylist()) == {"yes"}


def test_open_labels_and_training_share_delta() -> None:
    schema = tables.open_labels()
    rows = rows_of({"sex": [0] * 50, "job": [0] * 50})
    release = synthesize(rows, schema, method="dpwgan", epsilon=4.0, delta=1e-6, options=TINY)
    deltas = [charge.cost.delta for charge in release.statement.charges]
    assert len(deltas) == 2
    assert min(deltas) > 0
    assert sum(deltas) <= DELTA_UNIT // 10**6
    assert release.statement.delta <= 1e-6


def test_the_description_names_the_guarantee() -> None:
    assert describe("dpwgan").guarantee == "(ε, δ) through Rényi divergences"
