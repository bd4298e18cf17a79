"""Raking: columns reach their targets, odds between columns stay, rules hold."""

import numpy as np
import pytest

from understudy.domain import Domain, StructuralZeros
from understudy.methods.dpwgan import raked
from understudy.models.mixture import MixtureModel

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
