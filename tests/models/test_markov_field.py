import json

import numpy as np
import pytest

from tests.models.enumeration import joint_of, marginal_of, noisy, rule, small_domain
from understudy.domain import Clique, Domain
from understudy.errors import ReleaseError, UsageError
from understudy.models.junction_tree import JunctionTree
from understudy.models.markov_field import MarkovField, fit
from understudy.models.model import draw_chunks, load_model, save_model
from understudy.testing.contracts import check_model


def fitted(seed=0, columns=("ab", "bc", "cd", "ae"), rules=()):
    rng = np.random.default_rng(seed)
    domain = small_domain()
    structural_zeros = [rule(domain, names, rng) for names in rules]
    return fit(domain, [noisy(domain, names, rng) for names in columns], structural_zeros, steps=100), structural_zeros


@pytest.mark.parametrize("rounding", [False, True])
@pytest.mark.parametrize(
    ("columns", "rules"),
    [
        (("a", "b"), ()),
        (("ab", "bc", "cd", "ae"), ()),
        (("ab", "bc", "ac", "de"), ("bd",)),
        (("abc", "cde"), ("ad", "b", "ce")),
        (("abcde",), ("abcde",)),
    ],
)
def test_the_contract_of_models(columns, rules, rounding):
    model, _ = fitted(3, columns, rules)
    model = model.with_rounding() if rounding else model
    check_model(model, joint_of(model).ravel())


def test_rules_outside_the_measured_cliques_hold_too():
    model, (each,) = fitted(1, ("ab", "cd"), ("bce",))
    joint = joint_of(model)
    assert marginal_of(model.domain, joint, each.clique)[each.mask].sum() == 0.0
    codes = model.draw(50_000, np.random.default_rng(0))
    shape = model.domain.shape(each.clique)
    assert not each.mask.reshape(shape)[tuple(codes[name] for name in each.clique)].any()
    check_model(model, joint.ravel())


def test_condition_is_exact_and_shrinks_the_total():
    model, _ = fitted(2)
    joint = joint_of(model)
    kept = joint * 1.0
    kept[1:] = 0.0
    kept[:, :, :, [0, 2]] = 0.0
    given = model.condition({"a": np.array([0]), "c": np.array([1, 3]), "one": np.array([0])})
    np.testing.assert_allclose(joint_of(given), kept / kept.sum(), atol=1e-14)
    assert given.total == pytest.approx(model.total * kept.sum())
    assert model.with_rounding().condition({}).rounding
    assert model.condition({}).total == pytest.approx(model.total)


def test_condition_refuses_the_impossible():
    model, (each,) = fitted(4, ("ab", "cd"), ("ab",))
    a, b = np.argwhere(each.mask.reshape(2, 3))[0]
    with pytest.raises(UsageError, match="cannot happen"):
        model.condition({"a": np.array([a]), "b": np.array([b])})
    with pytest.raises(UsageError, match="cannot happen"):
        model.condition({"b": np.array([], dtype=int)})
    with pytest.raises(UsageError, match="cannot happen"):
        model.condition({"one": np.array([], dtype=int)})
    for code in (-1, 3):
        with pytest.raises(UsageError, match="between 0 and 2"):
            model.condition({"b": np.array([code])})
    with pytest.raises(UsageError, match="not a modelled column"):
        model.condition({"z": np.array([0])})


def test_negative_rows_and_unknown_columns_are_refused():
    model, _ = fitted()
    with pytest.raises(UsageError, match="0 or more"):
        model.draw(-1, np.random.default_rng(0))
    with pytest.raises(UsageError, match="not a modelled column"):
        model.marginal(Clique("z"))


def test_chunks_depend_on_the_seed_alone():
    model, _ = fitted()
    whole = [chunk.codes for chunk in draw_chunks(model, 2500, seed=5, chunk_rows=1000)]
    again = [chunk.codes for chunk in draw_chunks(model, 2500, seed=5, chunk_rows=1000)]
    assert [codes["a"].size for codes in whole] == [1000, 1000, 500]
    for one, other in zip(whole, again, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in model.domain.columns)


def test_the_store_knows_it(tmp_path):
    model, _ = fitted()
    save_model(model.with_rounding(), tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert isinstance(loaded, MarkovField)
    assert loaded.rounding
    assert loaded.total == model.total
    np.testing.assert_array_equal(joint_of(loaded), joint_of(model))
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["model.json", "probabilities.npy"]


def altered(tmp_path, change=None, array=None):
    model, _ = fitted()
    folder = tmp_path / "model"
    folder.mkdir()
    model.save(folder)
    document = json.loads((folder / "model.json").read_text())
    (change or (lambda _: None))(document)
    (folder / "model.json").write_text(json.dumps(document))
    if array is not None:
        probabilities = np.load(folder / "probabilities.npy")
        np.save(folder / "probabilities.npy", array(probabilities))
    return folder


def scaled(values):
    values[0] += 0.5
    return values


def negative(values):
    values[0] -= 2.0
    return values


@pytest.mark.parametrize(
    ("change", "array"),
    [
        (lambda d: d.update(total=-1), None),
        (lambda d: d.update(total="many"), None),
        (lambda d: d.update(rounding=1), None),
        (lambda d: d.pop("rounding"), None),
        (lambda d: d.update(bags=[]), None),
        (lambda d: d.update(bags="none"), None),
        (lambda d: d["bags"].append(d["bags"][0]), None),
        (lambda d: d["bags"][1].update(parent=5), None),
        (lambda d: d["bags"][1].update(parent=True), None),
        (lambda d: d["bags"][0].update(columns=["a", "z"]), None),
        (lambda d: d["bags"][0].update(columns=[["a"]]), None),
        (lambda d: d["bags"][0]["columns"].reverse(), None),
        (lambda d: d["domain"].append(["more", 2]), None),
        (lambda d: d["domain"].__setitem__(0, ["a", 2**31]), None),
        (None, lambda values: values[:-1]),
        (None, lambda values: values.astype(np.float32)),
        (None, lambda values: values.reshape(1, -1)),
        (None, lambda values: values * np.nan),
        (None, scaled),
        (None, negative),
    ],
)
def test_altered_files_are_refused(tmp_path, change, array):
    folder = altered(tmp_path, change, array)
    with pytest.raises(ReleaseError):
        MarkovField.load(folder)


def test_extra_files_are_refused(tmp_path):
    folder = altered(tmp_path)
    (folder / "more.npy").write_bytes(b"")
    with pytest.raises(ReleaseError, match="exactly"):
        MarkovField.load(folder)


def test_malformed_models_cannot_be_made():
    domain = Domain.of({"a": 2})
    tree = JunctionTree.of(domain, [])
    with pytest.raises(UsageError, match="total"):
        MarkovField(tree, (np.array([[0.5, 0.5]]),), -1.0)
    with pytest.raises(UsageError, match="add up to 1"):
        MarkovField(tree, (np.array([[0.5, 0.6]]),), 1.0)
    with pytest.raises(UsageError, match="no combination"):
        MarkovField.of_factors(tree, [np.zeros((1, 2))], 1.0)
