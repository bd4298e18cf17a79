"""Tests of `understudy.models.product`."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ReleaseError, ResourceError, UsageError
from understudy.models.product import Block, BlockModel

DOMAIN = Domain.of({"a": 2, "b": 3, "one": 1, "c": 4})
LEVEL = 1e-4  # fixed significance of every statistical check below


def mixed_model(total=100.0):
    """A joint block over (a, c), which are not neighbours in the domain, and single blocks for the others."""
    rng = np.random.default_rng(3)
    joint = Block.of(Clique(("a", "c")), np.array([0, 2, 3, 4, 7]), rng.dirichlet(np.ones(5)))
    single = Block.of(Clique(("b",)), np.arange(3), np.array([0.2, 0.3, 0.5]))
    one = Block.of(Clique(("one",)), np.arange(1), np.ones(1))
    return BlockModel(DOMAIN, (single, joint, one), total)


def dense(model):
    """The full table by brute force, shape (a, b, c)."""
    joint = np.zeros(8)
    joint[model.blocks[1].indices] = model.blocks[1].probabilities
    single = np.zeros(3)
    single[model.blocks[0].indices] = model.blocks[0].probabilities
    return np.einsum("ac,b->abc", joint.reshape(2, 4), single)


@pytest.mark.parametrize(
    ("columns", "spelled"),
    [("a", "a"), ("b", "b"), ("c", "c"), ("ab", "ab"), ("bc", "bc"), ("ac", "ac"), ("abc", "abc"), ("", "")],
)
def test_marginals_agree_with_the_full_table(columns, spelled):
    model = mixed_model()
    expected = np.einsum(f"abc->{spelled}", dense(model)).ravel()
    np.testing.assert_allclose(model.marginal(DOMAIN.clique(columns)), expected)
    np.testing.assert_allclose(model.marginal(DOMAIN.clique([*columns, "one"])), expected)


def test_marginal_is_size_guarded_and_checks_names():
    domain = Domain.of({f"c{i}": 100 for i in range(5)})
    with pytest.raises(ResourceError, match="fewer columns"):
        BlockModel.uniform(domain, (), 1.0).marginal(domain.everything())
    with pytest.raises(UsageError, match="not a modelled column"):
        mixed_model().marginal(Clique(("z",)))


def test_many_columns_of_one_code():
    domain = Domain.of({f"c{i}": 1 for i in range(100)} | {"x": 2})
    model = BlockModel.uniform(domain, (), 1.0)
    np.testing.assert_allclose(model.marginal(domain.everything()), [0.5, 0.5])


@pytest.mark.parametrize("rows", [3, 60_000])
def test_drawn_records_have_small_types_and_the_columns_in_order(rows):
    codes = mixed_model().draw(rows, np.random.default_rng(0))
    assert list(codes) == list(DOMAIN.columns)
    assert all(column.dtype == np.uint8 and column.shape == (rows,) for column in codes.values())


def test_drawn_records_follow_the_model():
    model = mixed_model()
    codes = model.draw(200_000, np.random.default_rng(5))
    cells = np.ravel_multi_index((codes["a"], codes["b"], codes["c"]), (2, 3, 4))
    expected = dense(model).ravel()
    seen = np.bincount(cells, minlength=24)
    assert not seen[expected == 0].any()
    possible = expected > 0
    assert chisquare(seen[possible], expected[possible] * 200_000).pvalue > LEVEL


def test_children_of_one_parent_do_not_rise_together():
    # Rounding expected counts in row order gives two independent columns a correlation near 1: never here.
    domain = Domain.of({"x": 2, "y": 2})
    model = BlockModel.uniform(domain, (), 1.0)
    for seed in range(3):
        codes = model.draw(5_000, np.random.default_rng(seed))
        table = np.histogram2d(codes["x"], codes["y"], bins=2)[0]
        assert chi2_contingency(table).pvalue > LEVEL
    # Neither within a draw nor across draws: sums of x and y over many small draws are uncorrelated.
    rng = np.random.default_rng(9)
    sums = np.array([[column.sum() for column in model.draw(50, rng).values()] for _ in range(2_000)])
    assert abs(np.corrcoef(sums.T)[0, 1]) < 4 / np.sqrt(2_000)


def test_controlled_rounding_keeps_every_block_to_within_a_row_and_blocks_apart():
    model = replace(mixed_model(), rounding="controlled")
    codes = model.draw(5_000, np.random.default_rng(2))
    for block in model.blocks:
        cells = np.ravel_multi_index([codes[name] for name in block.clique], DOMAIN.shape(block.clique))
        seen = np.bincount(cells, minlength=DOMAIN.cells(block.clique))[block.indices]
        assert np.all(np.abs(seen - 5_000 * block.probabilities) < 1.0 + 1e-9)
    # Within blocks counts are fixed; which codes of one meet which of the other is left to chance.
    uniform = replace(BlockModel.uniform(Domain.of({"x": 2, "y": 2}), (), 1.0), rounding="controlled")
    rng = np.random.default_rng(4)
    both = [np.count_nonzero(drawn["x"] & drawn["y"]) for drawn in (uniform.draw(100, rng) for _ in range(2_000))]
    # Hypergeometric: mean 25, variance 100 / 16 · 100 / 99.
    assert abs(np.mean(both) - 25) < 6 * 2.513 / np.sqrt(2_000)
    assert np.var(both) == pytest.approx(2.513**2, rel=0.2)


def test_a_condition_and_a_file_keep_the_rounding(tmp_path):
    model = replace(mixed_model(), rounding="controlled")
    assert model.condition({"c": np.array([0])}).rounding == "controlled"
    model.save(tmp_path)
    assert BlockModel.load(tmp_path).rounding == "controlled"


def test_an_unknown_rounding_is_refused(tmp_path):
    with pytest.raises(UsageError, match="rounding"):
        replace(mixed_model(), rounding="up")
    mixed_model().save(tmp_path)
    document = tmp_path / "model.json"
    text = document.read_text(encoding="utf-8")
    document.write_text(text.replace('"multinomial"', '"up"'), encoding="utf-8")
    with pytest.raises(ReleaseError, match="rounding"):
        BlockModel.load(tmp_path)


def test_condition_is_exact_against_rejection():
    model = mixed_model()
    where = {"c": np.array([0, 3]), "b": np.array([1, 2])}
    given = model.condition(where)
    full = dense(model)
    masked = np.zeros_like(full)
    masked[:, 1:, [0, 3]] = full[:, 1:, [0, 3]]
    np.testing.assert_allclose(dense(given), masked / masked.sum())
    assert given.total == pytest.approx(100.0 * masked.sum())

    drawn = given.draw(20_000, np.random.default_rng(1))
    wide = model.draw(100_000, np.random.default_rng(2))
    kept = np.isin(wide["c"], where["c"]) & np.isin(wide["b"], where["b"])
    tables = [
        np.bincount(np.ravel_multi_index((codes["a"], codes["b"], codes["c"]), (2, 3, 4)), minlength=24)
        for codes in (drawn, {name: column[kept] for name, column in wide.items()})
    ]
    both = np.array(tables)[:, np.sum(tables, axis=0) > 0]
    assert chi2_contingency(both).pvalue > LEVEL


def test_condition_refuses_the_impossible():
    model = mixed_model()
    assert model.condition({}).total == model.total
    for where in ({"a": np.array([0]), "c": np.array([1])}, {"b": np.array([], dtype=int)}):
        with pytest.raises(UsageError, match="cannot happen"):
            model.condition(where)
    for code in (3, -1):
        with pytest.raises(UsageError, match="between 0 and 2"):
            model.condition({"b": np.array([code])})
    with pytest.raises(UsageError, match="not a modelled column"):
        model.condition({"z": np.array([0])})


def test_rules_are_never_broken_and_other_columns_stay_free():
    mask = np.zeros((2, 4), dtype=bool)
    mask[0, 1:] = True
    parts = {
        Clique(("a",)): np.array([0.6, 0.4]),
        Clique(("b",)): np.array([2.0, 3.0, 5.0]),
        Clique(("one",)): np.ones(1),
        Clique(("c",)): np.array([0.7, 0.1, 0.1, 0.1]),
    }
    model = BlockModel.of_marginals(DOMAIN, parts, [StructuralZeros(DOMAIN.clique("ac"), mask.ravel())], 10.0)
    assert [tuple(block.clique) for block in model.blocks] == [("a", "c"), ("b",), ("one",)]
    np.testing.assert_allclose(model.marginal(Clique(("b",))), [0.2, 0.3, 0.5])
    np.testing.assert_allclose(model.marginal(Clique(("c",))), parts[Clique(("c",))], atol=1e-8)
    codes = model.draw(50_000, np.random.default_rng(0))
    assert not mask[codes["a"], codes["c"]].any()
    assert not mask[
        tuple(model.condition({"a": np.array([0])}).draw(9, np.random.default_rng(0))[n] for n in "ac")
    ].any()


def test_a_rule_on_one_column_removes_its_code():
    rule = StructuralZeros(Clique(("b",)), np.array([True, False, False]))
    model = BlockModel.uniform(DOMAIN, [rule], 1.0)
    np.testing.assert_allclose(model.marginal(Clique(("b",))), [0, 0.5, 0.5])


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([Block(Clique(("a",)), np.arange(2), np.full(2, 0.5))], "every column"),
        ([Block(Clique(("a", "b", "one", "c")), np.array([0]), np.array([0.5]))], "add up to 1"),
        ([Block(Clique(("a", "b", "one", "c")), np.array([1, 0]), np.array([0.5, 0.5]))], "increase"),
        ([Block(Clique(("a", "b", "one", "c")), np.array([24]), np.ones(1))], "inside the table"),
        ([Block(Clique(("b", "a", "one", "c")), np.array([0]), np.ones(1))], "order"),
        ([Block(Clique(("a", "b", "one", "c")), np.array([0, 1]), np.array([2.0, -1.0]))], "0 or more"),
        ([Block(Clique(("a", "b", "one", "c")), np.array([], dtype=int), np.array([]))], "at least one cell"),
    ],
)
def test_bad_blocks_are_refused(blocks, message):
    with pytest.raises(UsageError, match=message):
        BlockModel(DOMAIN, tuple(blocks), 1.0)


@pytest.mark.parametrize("total", [-1.0, float("nan"), float("inf")])
def test_bad_totals_are_refused(total):
    with pytest.raises(UsageError, match="total"):
        BlockModel.uniform(DOMAIN, (), total)
