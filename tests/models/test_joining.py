"""Blocks: joined within shared codes, record by record otherwise, and never apart where a rule ties them."""

import numpy as np

from tests.models.moving import DOMAIN, RULE, counts, truth
from understudy.domain import Clique
from understudy.models.records import joined, separate


def test_blocks_tied_by_a_rule_become_one() -> None:
    blocks = [[Clique("ab")], [Clique("cd")], [Clique("d")]]
    assert separate(DOMAIN, blocks, []) == [Clique("ab"), Clique("cd"), Clique("d")]
    assert separate(DOMAIN, blocks, [RULE]) == [Clique("d"), Clique("abcd")]
    assert separate(DOMAIN, [[Clique("b")]], [RULE]) == [Clique("b")]


def test_shared_columns_keep_the_tables_of_both_blocks() -> None:
    real = truth(4_000)
    rng = np.random.default_rng(1)
    first = {name: real[name] for name in "ab"}
    order = rng.permutation(4_000)
    second = {name: real[name][order] for name in "bcd"}
    found = dict(joined(DOMAIN, real, [first, second], rng))
    assert np.array_equal(counts(found, Clique("ab")), counts(real, Clique("ab")))
    assert np.array_equal(counts(found, Clique("bcd")), counts(real, Clique("bcd")))


def test_two_shared_columns_are_matched_together_not_each_for_itself() -> None:
    """Codes (0, 1) and (1, 0) are different cells: a block joined by anything coarser loses the joint table."""
    real = truth(4_000)
    rng = np.random.default_rng(1)
    first = {name: real[name] for name in "abc"}
    order = rng.permutation(4_000)
    second = {name: real[name][order] for name in "bcd"}
    found = dict(joined(DOMAIN, real, [first, second], rng))
    assert np.array_equal(counts(found, Clique("abc")), counts(real, Clique("abc")))
    assert np.array_equal(counts(found, Clique("bcd")), counts(real, Clique("bcd")))


def test_blocks_without_shared_columns_are_independent() -> None:
    real = truth(4_000)
    found = dict(joined(DOMAIN, real, [{"a": real["a"]}, {"c": real["c"], "b": real["b"]}], np.random.default_rng(1)))
    assert np.array_equal(counts(found, Clique("bc")), counts(real, Clique("bc")))
    expected = np.outer(counts(real, Clique("a")), counts(real, Clique("c"))).ravel() / 4_000
    assert np.abs(counts(found, Clique("ac")) - expected).max() < 6.0 * np.sqrt(expected.max())
    assert np.array_equal(found["d"], real["d"]), "a column of no block stays as it was laid out"


def test_codes_that_a_block_lacks_are_filled_with_any_record() -> None:
    first = {"b": np.array([0, 1, 2, 2], np.uint8)}
    second = {"b": np.array([0, 0, 1, 1], np.uint8), "c": np.array([4, 4, 3, 3], np.uint8)}
    start = {name: np.zeros(4, np.uint8) for name in "abcd"}
    found = joined(DOMAIN, start, [first, second], np.random.default_rng(1))
    assert found["b"].tolist() == [0, 1, 2, 2]
    assert found["c"][:2].tolist() == [4, 3]
    assert set(found["c"][2:].tolist()) <= {3, 4}
