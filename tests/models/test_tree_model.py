import json

import numpy as np
import pytest

from understudy.domain import Domain
from understudy.errors import ReleaseError, UsageError
from understudy.models.histogram_tree import TreeModel, TreeStructure
from understudy.models.model import load_model, save_model

DOMAIN = Domain.of({"a": 2, "one": 1, "b": 3, "c": 4})
TREE = TreeStructure.root(DOMAIN).split(["b"]).refine(["c", "a", None], parts=2)


def model(rounding="multinomial"):
    rng = np.random.default_rng(4)
    signed = rng.normal(3, 5, 24)
    return TreeModel.of(TREE, signed, np.maximum(signed, 0.0), 70.0, rounding)


def test_signed_estimates_are_kept_and_summed():
    found = model()
    assert found.signed.min() < 0.0
    assert found.signed_marginal(DOMAIN.clique(["b"])) == pytest.approx(found.signed.reshape(2, 3, 4).sum(axis=(0, 2)))
    leaves = np.bincount(TREE.leaf_parents(), weights=found.signed)
    assert leaves.size == TREE.size()
    given = found.condition({"a": np.array([1])})
    assert given.signed.reshape(2, 12)[0].tolist() == [0.0] * 12
    assert given.signed.reshape(2, 12)[1].tolist() == found.signed.reshape(2, 12)[1].tolist()


def test_controlled_rounding_draws_fewer_surprises():
    expected = model().probabilities * 5_000
    codes = model("controlled").draw(5_000, np.random.default_rng(1))
    places = np.ravel_multi_index(tuple(codes[name].astype(int) for name in ("a", "b", "c")), (2, 3, 4))
    assert np.all(np.abs(np.bincount(places, minlength=24) - expected) < 1.0 + 1e-9)
    assert not np.array_equal(places, np.sort(places))  # in random order: any part of the rows is a fair sample


def test_files_keep_tree_tables_and_rounding(tmp_path):
    save_model(model("controlled"), tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert isinstance(again, TreeModel)
    assert again.rounding == "controlled"
    assert again.structure.nodes() == TREE.nodes()
    assert again.signed.tolist() == model().signed.tolist()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("layers", [0, 1]),
        ("layers", "x"),
        ("layers", [0, 1, 9, 9]),
        ("rounding", "up"),
        ("total", -1),
        ("domain", [["a", 2]]),
    ],
)
def test_altered_documents_are_refused(tmp_path, key, value):
    save_model(model(), tmp_path / "model")
    place = tmp_path / "model" / "model.json"
    document = json.loads(place.read_text())
    document[key] = value
    place.write_text(json.dumps(document))
    with pytest.raises(ReleaseError):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("probabilities", np.full(24, 0.5)),
        ("probabilities", np.full(23, 1 / 23)),
        ("signed", np.full(24, np.nan)),
        ("columns", np.full(8, 99, dtype=np.int32)),
        ("parents", np.zeros(8, dtype=np.int64)),
    ],
)
def test_altered_arrays_are_refused(tmp_path, name, array):
    save_model(model(), tmp_path / "model")
    np.save(tmp_path / "model" / f"{name}.npy", array)
    with pytest.raises(ReleaseError):
        load_model(tmp_path / "model")


def test_faults_are_refused():
    with pytest.raises(UsageError, match="one probability"):
        TreeModel.of(TREE, np.zeros(24), np.ones(23), 1.0)
    with pytest.raises(UsageError, match="rounding"):
        TreeModel.of(TREE, np.zeros(24), np.ones(24), 1.0, "nearest")
    with pytest.raises(UsageError, match="cannot happen"):
        TreeModel.of(TREE, np.zeros(24), np.r_[np.ones(12), np.zeros(12)], 1.0).condition({"a": np.array([1])})
