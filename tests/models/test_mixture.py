"""Mixtures of products against enumeration, with and without rules."""

import json

import numpy as np
import pytest

from understudy.domain import Domain, StructuralZeros
from understudy.errors import ReleaseError, ResourceError, UsageError
from understudy.models.mixture import MixtureModel
from understudy.models.model import load_model, save_model
from understudy.testing import check_model

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4})


def _mixture(rules=(), components=5, seed=1, sparse=0.0):
    rng = np.random.default_rng(seed)
    probabilities = {name: rng.dirichlet(np.ones(size), components) for name, size in DOMAIN.sizes.items()}
    if sparse:
        probabilities["c"][:, 1] = 0.0
        probabilities["c"] /= probabilities["c"].sum(axis=1, keepdims=True)
    return MixtureModel(DOMAIN, rng.dirichlet(np.ones(components)), probabilities, tuple(rules), 12.0)


def _joint(model):
    table = np.einsum("m,ma,mb,mc->abc", model.weights, *(model.probabilities[name] for name in DOMAIN.columns))
    for rule in model.structural_zeros:
        mask = rule.mask.reshape([DOMAIN.sizes[name] if name in rule.clique else 1 for name in DOMAIN.columns])
        table = np.where(mask, 0.0, table)
    return (table / table.sum()).reshape(-1)


def _rule(columns, cells):
    clique = DOMAIN.clique(columns)
    mask = np.zeros(DOMAIN.cells(clique), dtype=bool)
    mask[cells] = True
    return StructuralZeros(clique, mask)


def test_without_rules() -> None:
    model = _mixture()
    check_model(model, _joint(model))


def test_rules_tie_columns_and_a_code_never_occurs() -> None:
    model = _mixture([_rule("ac", [0, 5])], sparse=1.0)
    check_model(model, _joint(model))


def test_several_rules_tie_everything_together() -> None:
    model = _mixture([_rule("ab", [1, 2]), _rule("bc", [0, 4, 9])], seed=3)
    check_model(model, _joint(model))


def test_one_component_is_a_product() -> None:
    model = _mixture(components=1)
    check_model(model, _joint(model))


def test_components_are_worked_through_in_pieces(monkeypatch) -> None:
    monkeypatch.setattr("understudy.models.mixture._WORKING_CELLS", 20)
    model = _mixture([_rule("ab", [1, 2])], components=11)
    check_model(model, _joint(model))


def test_the_total_shrinks_with_the_condition() -> None:
    model = _mixture([_rule("ab", [1])])
    kept = model.condition({"a": np.array([1])})
    assert kept.total == pytest.approx(12.0 * model.marginal(DOMAIN.clique("a"))[1])
    assert kept.condition({"a": np.array([0, 1])}).total == pytest.approx(kept.total)


def test_what_cannot_happen_is_refused() -> None:
    model = _mixture([_rule("ab", [0, 1, 2])])
    with pytest.raises(UsageError, match="cannot happen"):
        model.condition({"a": np.array([0])})
    with pytest.raises(UsageError):
        model.condition({"a": np.array([2])})
    with pytest.raises(UsageError):
        model.draw(-1, np.random.default_rng(1))


def test_marginals_that_do_not_fit_are_refused() -> None:
    wide = Domain.of({"x": 10_000, "y": 20_000})
    even = {name: np.full((1, size), 1 / size) for name, size in wide.sizes.items()}
    with pytest.raises(ResourceError):
        MixtureModel(wide, np.ones(1), even, (), 1.0).marginal(wide.everything())


@pytest.mark.parametrize(
    "change",
    [
        {"weights": np.array([0.0] * 5)},
        {"weights": np.array([1.0, -1.0, 1.0, 1.0, 1.0])},
        {"probabilities": {"a": np.ones((5, 2))}},
        {"probabilities": {name: np.ones((5, size)) for name, size in DOMAIN.sizes.items()}},
        {"total": float("nan")},
    ],
)
def test_what_is_no_distribution_is_refused(change) -> None:
    model = _mixture()
    fields = {
        "domain": DOMAIN,
        "weights": model.weights,
        "probabilities": model.probabilities,
        "structural_zeros": (),
        "total": 1.0,
    }
    with pytest.raises(UsageError):
        MixtureModel(**(fields | change))


def _saved(folder, rules=()):
    save_model(_mixture(rules), folder / "model")
    return folder / "model"


def test_rules_survive_the_files(tmp_path) -> None:
    loaded = load_model(_saved(tmp_path, [_rule("ab", [1, 2])]))
    assert loaded.marginal(DOMAIN.clique("ab"))[[1, 2]].sum() == 0.0


@pytest.mark.parametrize("key", ["components", "rules", "domain", "total"])
def test_altered_documents_are_refused(tmp_path, key) -> None:
    folder = _saved(tmp_path)
    document = json.loads((folder / "model.json").read_text())
    document[key] = {"components": 4, "rules": [["a"]], "domain": [["a", 2]], "total": -1}[key]
    (folder / "model.json").write_text(json.dumps(document))
    with pytest.raises(ReleaseError):
        load_model(folder)


def test_altered_numbers_are_refused(tmp_path) -> None:
    folder = _saved(tmp_path)
    content = bytearray((folder / "chances.npy").read_bytes())
    content[-8:] = np.array([7.0]).tobytes()
    (folder / "chances.npy").write_bytes(content)
    with pytest.raises(ReleaseError):
        load_model(folder)


def test_rules_that_leave_nothing_are_refused(tmp_path) -> None:
    folder = _saved(tmp_path, [_rule("a", [0])])
    content = bytearray((folder / "rules.npy").read_bytes())
    content[-1] = 1
    (folder / "rules.npy").write_bytes(content)
    with pytest.raises(ReleaseError):
        load_model(folder)
