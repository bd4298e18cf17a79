import json

import numpy as np
import pytest

from understudy.domain import Domain
from understudy.errors import ReleaseError, ResourceError, UsageError
from understudy.models.junction_tree import JunctionTree
from understudy.models.markov_field import ExpandedField, Expansion, MarkovField
from understudy.models.model import load_model, save_model
from understudy.testing import check_model

MERGED = Domain.of({"a": 3, "b": 2, "c": 1, "d": 2})
DOMAIN = Domain.of({"a": 5, "b": 2, "c": 3, "d": 4})
A = Expansion(np.array([0, 2, 1, 2, 2]), np.array([1.0, 0.5, 1.0, 0.5, 0.0]))
C = Expansion(np.zeros(3, np.int64), np.array([0.2, 0.3, 0.5]))
D = Expansion(np.array([1, 0, 0, 1]), np.array([0.9, 0.25, 0.75, 0.1]))


def field_of(seed=1):
    rng = np.random.default_rng(seed)
    tree = JunctionTree.of(MERGED, [MERGED.clique("ab"), MERGED.clique("bd")])
    factors = [
        rng.random((MERGED.cells(above), MERGED.cells(fresh)))
        for above, fresh in zip(tree.separators, tree.fresh, strict=True)
    ]
    return MarkovField.of_factors(tree, factors, 40.0)


def model_of(seed=1):
    return ExpandedField(DOMAIN, field_of(seed), {"a": A, "c": C, "d": D})


def joint_of(model):
    table = model.merged.marginal(MERGED.everything()).reshape(MERGED.shape("abcd"))
    joint = np.zeros(DOMAIN.shape("abcd"))
    for a, b, c, d in np.ndindex(joint.shape):
        share = A.shares[a] * C.shares[c] * D.shares[d]
        joint[a, b, c, d] = table[A.places[a], b, C.places[c], D.places[d]] * share
    return joint.ravel()


def test_contract():
    model = model_of()
    check_model(model, joint_of(model))


def test_total_shrinks_with_the_chance_of_a_condition():
    model = model_of()
    probability = model.marginal(DOMAIN.clique("a"))[1] * 0.3
    conditioned = model.condition({"a": np.array([1]), "c": np.array([1])})
    assert conditioned.total == pytest.approx(40.0 * probability)
    with pytest.raises(UsageError, match="cannot happen"):
        model.condition({"a": np.array([4])})
    with pytest.raises(UsageError, match="between 0 and 4"):
        model.condition({"a": np.array([5])})


def test_rounded_draws_give_each_value_its_share():
    model = model_of()
    rounded = ExpandedField(DOMAIN, model.merged.with_rounding(), model.expansions)
    codes = rounded.draw(10_000, np.random.default_rng(0))
    counts = np.bincount(codes["c"], minlength=3)
    assert np.abs(counts - [2_000, 3_000, 5_000]).max() <= 1
    assert codes["a"].max() < 4  # the value without a share never occurs
    assert all(column.dtype == np.uint8 for column in codes.values())


def test_file_form(tmp_path):
    model = model_of()
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert isinstance(again, ExpandedField)
    np.testing.assert_array_equal(again.marginal(DOMAIN.everything()), model.marginal(DOMAIN.everything()))
    plain = ExpandedField(MERGED, field_of(), {})
    save_model(plain, tmp_path / "plain")
    np.testing.assert_array_equal(load_model(tmp_path / "plain").marginal(MERGED.clique("a")), plain.marginal("a"))


@pytest.mark.parametrize("entry", [["x", 5], ["a", 2], ["a", 6], "a", ["a", True], None])
def test_altered_files_are_refused(tmp_path, entry):
    save_model(model_of(), tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    document = json.loads(path.read_text())
    document["expanded"][0] = entry
    path.write_text(json.dumps(document))
    with pytest.raises(ReleaseError):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("expansions", "fault"),
    [
        ({"a": A, "d": D}, "column c: needs an expansion"),
        ({"a": A, "c": C, "d": Expansion(D.places, D.shares * 0.9)}, "add up to 1"),
        ({"a": A, "c": C, "d": Expansion(D.places + 1, D.shares)}, "inside"),
        ({"a": A, "c": C, "d": Expansion(D.places[:2], D.shares)}, "4 codes"),
        ({"a": A, "c": C, "d": Expansion(D.places, D.shares - 0.5)}, "0 or more"),
    ],
)
def test_faults_are_named(expansions, fault):
    with pytest.raises(UsageError, match=fault):
        ExpandedField(DOMAIN, field_of(), expansions)


def test_marginals_too_large_are_refused():
    wide = Domain.of({"a": 20_000, "b": 20_000})
    small = Domain.of({"a": 1, "b": 1})
    field = MarkovField.of_factors(JunctionTree.of(small, []), [np.ones((1, 1))], 1.0)
    even = Expansion(np.zeros(20_000, np.int64), np.full(20_000, 1 / 20_000))
    with pytest.raises(ResourceError):
        ExpandedField(wide, field, {"a": even, "b": even}).marginal(wide.everything())
