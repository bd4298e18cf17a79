"""The method: options, plan, devices, and what a release of it says."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.methods.door import door, letters, rows_of
from understudy import synthesize
from understudy.counts.source import Records
from understudy.domain import Course, Distribution, Domain, StructuralZeros, Trained
from understudy.errors import ResourceError, UsageError
from understudy.methods.dpwgan import DpWgan, WganTrainer, column_counts, raked
from understudy.methods.method import PublicFacts, describe_method
from understudy.methods.networks import Critic, NetworkSettings, NumpyNetworks, average_gradient
from understudy.models.mixture import MixtureModel
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost
from understudy.privacy.randomizer import Request
from understudy.release import Release
from understudy.testing import NoNoise
from understudy.testing import cases as tables
from understudy.testing.replay import coins_of

TINY = {"steps": 5, "hidden": 4, "latent": 2, "batch": 8, "components": 16, "rate": 0.3}
COST = Cost(epsilon=UNIT, delta=DELTA_UNIT // 10**6)
PAIR = letters({"a": 3, "b": 3})


def _facts(schema=PAIR, rows=1):
    curator = door(rows_of({"a": [0], "b": [0]}), schema, COST)
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


def test_the_plan_asks_one_query_for_the_whole_cost() -> None:
    plan = DpWgan(**TINY).plan(_facts(), COST)
    assert [step.name for step in plan.steps] == ["train dpwgan"]
    assert plan.cost == plan.steps[0].cost == COST
    assert plan.options["structure_seed"] == 0
    longer = DpWgan(**{**TINY, "steps": 50}).plan(_facts(), COST)
    assert longer.steps[0].noise_scale > plan.steps[0].noise_scale  # type: ignore[operator]
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
        DpWgan(**TINY).plan(PublicFacts(domain, rules, 1), COST)


def test_a_gpu_that_is_not_there_is_a_usage_error(monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="torch"):
        DpWgan(**TINY, device="cuda").plan(_facts(), COST)


def test_the_published_preset_is_written_out_and_cannot_be_half() -> None:
    method = DpWgan(preset="published", rate=64 / 1000, steps=7)
    plan = method.plan(_facts(), COST)
    recorded = {name: plan.options[name] for name in ("hidden", "latent", "batch", "critic_steps", "weight_bound")}
    assert recorded == {"hidden": 1024, "latent": 64, "batch": 64, "critic_steps": 10, "weight_bound": 0.01}
    assert (plan.options["columns_share"], plan.options["averaging"]) == (0.0, 0.0)
    assert any("1,000 rows" in note for note in plan.notes)
    assert plan.by.plan(_facts(), COST).options == plan.options
    with pytest.raises(UsageError, match="hidden"):
        DpWgan(preset="published", hidden=64)


def test_without_a_first_look_all_of_the_budget_pays_the_steps() -> None:
    usual = DpWgan(**TINY).plan(_facts(), COST)
    blind = DpWgan(**TINY, columns_share=0.0).plan(_facts(), COST)
    assert blind.cost == usual.cost == COST
    assert blind.steps[0].noise_scale < usual.steps[0].noise_scale  # type: ignore[operator]
    codes = sum(_facts().domain.sizes.values())
    assert blind.cells == usual.cells - codes


def test_without_a_first_look_the_number_of_rows_is_public() -> None:
    for rows in (40, 400):
        table = rows_of({"a": [0, 1] * (rows // 2), "b": [2] * rows})
        model = DpWgan(**TINY, columns_share=0.0).fit(door(table, PAIR, COST), COST)
        assert model.total == pytest.approx(TINY["batch"] / TINY["rate"])


def test_weights_of_the_critic_stay_within_their_bound() -> None:
    networks = NumpyNetworks(NetworkSettings(3, hidden=6, generator_hidden=6, latent=3, batch=32, weight_bound=0.01))
    trainer = WganTrainer(tuple(SIZES.values()), _course(), 1, networks, 4)
    trainer.begin(100.0)
    door(rows_of(CODES), letters(SIZES), AMPLE, NoNoise()).train(trainer, AMPLE)
    assert 0 < np.abs(networks.critic.weights).max() <= 0.01
    assert np.abs(networks.critic.output).max() <= 0.01


def test_it_learns_what_columns_alone_do_not_show() -> None:
    rng = np.random.default_rng(1)
    first = rng.integers(3, size=3000)
    agree = rows_of({"a": first, "b": first})
    options = {"steps": 400, "hidden": 16, "latent": 4, "batch": 64, "components": 256, "rate": 0.1}
    ample = Cost(epsilon=50 * UNIT, delta=COST.delta)
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
    assert release.statement.delta <= 1e-6  # type: ignore[operator]


def test_the_description_names_the_guarantee() -> None:
    assert describe_method("dpwgan").guarantee == "(ε, δ) through Rényi divergences"


# The trainer at the door: bounded rows, a noisy number of rows, and with privacy off an ordinary WGAN.


AMPLE = Cost(epsilon=10_000 * UNIT, delta=DELTA_UNIT // 10**6)
SIZES = {"a": 3, "b": 2, "c": 5}
CODES = {name: np.random.default_rng(size).integers(size, size=80) for name, size in SIZES.items()}
MATRIX = np.stack(list(CODES.values()), axis=1).astype(np.uint8)
SETTINGS = NetworkSettings(3, hidden=6, generator_hidden=6, latent=3, batch=32)


def _trainer(course, unit_rows=1):
    return WganTrainer(tuple(SIZES.values()), course, unit_rows, NumpyNetworks(SETTINGS), 4)


def _course(clip=1024, steps=6):
    return Course(clip, steps, Fraction(3), Fraction(1, 2))


@pytest.mark.parametrize("unit_rows", [1, 3])
@pytest.mark.parametrize("clip", [32, 1024])
def test_no_row_exceeds_its_part_of_the_bound(unit_rows, clip) -> None:
    trainer = _trainer(_course(clip), unit_rows)
    look = trainer.look(MATRIX)
    assert len(SIZES) * int(look.shared[0, 0]) ** 2 <= (clip / unit_rows) ** 2
    trainer.looked(np.full(10, 100 * trainer.first_value), Distribution("gaussian", Fraction(1)))
    trainer.networks.critic.weights[:] *= 20.0  # gradients far beyond the norm they are cut to
    given = trainer.contribute(MATRIX)
    squares = 4 * (given.shared.astype(float) ** 2).sum(axis=1) + (given.own.astype(float) ** 2).sum(axis=1)
    assert squares.max() <= (clip / unit_rows) ** 2
    if clip > 32:
        assert squares.max() > (0.9 * clip / unit_rows) ** 2


def test_the_number_of_rows_is_estimated_from_all_columns() -> None:
    trainer = _trainer(_course())
    noisy = np.concatenate([np.bincount(CODES[name], minlength=size) for name, size in SIZES.items()])
    trainer.looked(noisy * trainer.first_value, Distribution("gaussian", Fraction(1)))
    assert trainer.total == pytest.approx(80.0)
    assert [part.tolist() for part in column_counts(noisy, (3, 2, 5), 1)][1] == np.bincount(CODES["b"]).tolist()
    trainer.looked(-noisy, Distribution("gaussian", Fraction(1)))
    assert trainer.total == 0.0


def _plain(course):
    """An ordinary WGAN on the same batches: mean gradients in floats, no bound, no grid, no noise."""
    networks = NumpyNetworks(SETTINGS)
    counted = [np.bincount(CODES[name], minlength=size).astype(float) for name, size in SIZES.items()]
    trainer = _trainer(course)
    trainer.looked(
        np.concatenate(counted).astype(np.int64) * trainer.first_value, Distribution("gaussian", Fraction(1))
    )  # groups and shares only
    networks.start(trainer.encoding)
    blocks = trainer.encoding.blocks(MATRIX)
    records = Records(MATRIX, np.arange(81))
    expected = 80 * -math.expm1(-1 / 3)
    for layer in range(1, course.steps + 1):
        request = Request("train", "dpwgan", 1, None, Fraction(1), Fraction(1, 3), layer=layer)
        batch = blocks[coins_of(request, records)]
        mean = average_gradient(networks.critic, batch, 1e9)
        share = len(batch) / expected
        networks.improve(Critic(mean.weights * share, mean.output * share))
    return networks


def test_with_privacy_off_it_is_an_ordinary_wgan(monkeypatch) -> None:
    monkeypatch.setattr(NetworkSettings, "most_norm", property(lambda self: 50.0))  # longer than any gradient here
    course = _course(2**20, 8)
    trainer = _trainer(course)
    door(rows_of(CODES), letters(SIZES), AMPLE, NoNoise()).train(trainer, AMPLE)
    plain = _plain(course)
    np.testing.assert_allclose(trainer.networks.critic.weights, plain.critic.weights, atol=2e-3)
    np.testing.assert_allclose(trainer.networks.probabilities(20), plain.probabilities(20), atol=1e-3)
    assert not np.allclose(plain.probabilities(20), _untrained().probabilities(20), atol=1e-3)


def _untrained():
    networks = NumpyNetworks(SETTINGS)
    counted = [np.bincount(CODES[name], minlength=size).astype(float) for name, size in SIZES.items()]
    trainer = _trainer(_course())
    trainer.networks = networks
    trainer.looked(
        np.concatenate(counted).astype(np.int64) * trainer.first_value, Distribution("gaussian", Fraction(1))
    )
    return networks


# Raking: columns reach their targets, odds between columns stay, rules hold.


DOMAIN = Domain.of({"a": 2, "b": 3})
TARGETS = [np.array([0.25, 0.75]), np.array([0.2, 0.2, 0.6])]


def _mixture(rules=()):
    rng = np.random.default_rng(3)
    probabilities = {name: rng.dirichlet(np.ones(size), 6) for name, size in DOMAIN.sizes.items()}
    return MixtureModel(DOMAIN, np.full(6, 1 / 6), probabilities, tuple(rules), 7.0)


def test_columns_reach_their_targets_and_odds_stay() -> None:
    before, after = _mixture(), raked(_mixture(), TARGETS, 200)
    for name, target in zip(DOMAIN.columns, TARGETS, strict=True):
        assert after.marginal(DOMAIN.clique([name])).tolist() == pytest.approx(target.tolist(), abs=1e-6)
    one, other = (model.marginal(DOMAIN.everything()).reshape(2, 3) for model in (before, after))
    for left, right in ((0, 1), (1, 2)):
        odds = [table[0, left] * table[1, right] / (table[0, right] * table[1, left]) for table in (one, other)]
        assert odds[0] == pytest.approx(odds[1], rel=1e-6)
    assert after.total == 7.0


def test_rules_stay() -> None:
    mask = np.array([True, False, False, False, False, False])
    model = raked(_mixture([StructuralZeros(DOMAIN.everything(), mask)]), TARGETS, 200)
    assert model.marginal(DOMAIN.everything())[0] == 0.0
    assert model.marginal(DOMAIN.clique("a")).tolist() == pytest.approx([0.25, 0.75], abs=1e-5)


def test_targets_that_rules_forbid_end_all_the_same() -> None:
    mask = np.array([True, True, True, False, False, False])
    model = raked(_mixture([StructuralZeros(DOMAIN.everything(), mask)]), TARGETS, 30)
    assert model.marginal(DOMAIN.clique("a")).tolist() == pytest.approx([0.0, 1.0])
    assert model.marginal(DOMAIN.clique("b")).tolist() == pytest.approx([0.2, 0.2, 0.6], abs=1e-5)
