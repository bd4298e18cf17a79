"""What wide columns hang on, the tables they are drawn by, and how their codes are attached to rows."""

import numpy as np
import pytest

from understudy.domain import Clique, Domain
from understudy.methods.known_columns import WideColumns, attached, attached_to_two

DOMAIN = Domain.of({"wide": 300, "a": 4, "wider": 400, "b": 3, "one": 1})
COUNTS = {name: np.full(size, 1200.0 / size) for name, size in DOMAIN.sizes.items()}
COLUMNS = WideColumns(DOMAIN, frozenset({"wide", "wider"}), COUNTS, 1200.0)


def test_pairs_hold_a_wide_column_and_another_that_tells_something():
    assert [tuple(pair) for pair in COLUMNS.pairs] == [
        ("wide", "a"),
        ("wide", "wider"),
        ("wide", "b"),
        ("a", "wider"),
        ("wider", "b"),
    ]


def test_the_tree_grows_from_columns_that_are_not_wide():
    scores = dict(zip(COLUMNS.pairs, [5.0, 90.0, 2.0, 1.0, 8.0], strict=True))
    assert COLUMNS.tree(scores) == [Clique(("wider", "b")), Clique(("wide", "wider"))]
    assert COLUMNS.tree({Clique(("wide", "wider")): 90.0}) == [], "two wide columns alone hang on nothing"


def test_only_scores_that_noise_does_not_explain_are_clear():
    scores = dict(zip(COLUMNS.pairs, [5.0, 90.0, 2.0, 1.0, 8.0], strict=True))
    assert set(COLUMNS.clear(scores, 1.5).values()) == {90.0, 8.0}


def test_wanted_tables_have_both_columns_and_no_negative_counts():
    rng = np.random.default_rng(0)
    columns = WideColumns(
        Domain.of({"wide": 300, "a": 4}),
        frozenset({"wide"}),
        {"wide": np.full(300, 40.0), "a": np.array([6000.0, 3000.0, 2000.0, 1000.0])},
        12_000.0,
    )
    pair = Clique(("wide", "a"))
    exact = np.zeros((300, 4))
    exact[np.arange(300), rng.choice(4, 300, p=[0.5, 0.25, 1 / 6, 1 / 12])] = 40.0
    noisy = exact - columns.expected(pair) + rng.normal(0.0, 5.0, exact.shape)
    table = columns.wanted(pair, noisy - noisy.mean(axis=0) - noisy.mean(axis=1)[:, None] + noisy.mean(), 25.0)
    assert table.min() >= 0.0
    assert table.sum(axis=0) == pytest.approx(columns.counts["a"], rel=0.01)
    assert table.sum(axis=1) == pytest.approx(columns.counts["wide"], rel=0.5), "as far as cells of 0 allow"
    assert np.abs(table - exact).sum() < 0.3 * np.abs(columns.expected(pair) - exact).sum()


def test_rows_get_codes_by_the_shares_of_their_other_code_up_to_rounding():
    table = np.array([[30.0, 0.0, 0.0], [10.0, 5.0, 0.0]])
    others = np.repeat([0, 1, 2], [400, 7, 90])
    found = attached(table, others, np.random.default_rng(0))
    assert abs(int((found[:400] == 0).sum()) - 300) <= 1
    assert (found[400:407] == 1).all()
    assert abs(int((found[407:] == 0).sum()) - 60) <= 1, "a code that the table knows nothing of goes by all rows"
    assert not np.array_equal(found[:400], np.sort(found[:400])), "in random order"


def test_a_second_pair_is_one_whose_rows_do_not_follow_from_the_first():
    tree = [Clique(("wide", "a"))]
    rows = {Clique(("a", "b")): 100.0}
    follows = {Clique(("wide", "a")): 900.0, Clique(("wide", "b")): 190.0, Clique(("wide", "wider")): 5_000.0}
    assert COLUMNS.beside(tree, follows, rows) == {}
    more = follows | {Clique(("wide", "b")): 700.0}
    assert COLUMNS.beside(tree, more, rows) == {Clique(("wide", "a")): (Clique(("wide", "b")), 500.0)}
    assert COLUMNS.beside([Clique(("wide", "wider"))], more, rows) == {}, "wide columns beside each other are too large"


def test_rows_get_codes_by_both_columns_that_they_go_with():
    """a tells code 0 or 1 from 2 or 3, b tells 0 or 2 from 1 or 3; both leave one row in ten to chance."""
    near = np.array([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]]) * 1_000.0
    tables = [near, near[[0, 2, 1, 3]]]
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(4), 1_000)
    a, b = (((codes // 2) ^ (rng.random(4_000) < 0.1)), ((codes % 2) ^ (rng.random(4_000) < 0.1)))
    found = attached_to_two(tables, [a, b], rng)
    for others, table in zip((a, b), tables, strict=True):
        made = np.histogram2d(found, others, bins=[4, 2])[0]
        assert np.abs(made - table).sum() / 2 < 200, "of 4,000 rows"
    nowhere = attached_to_two([np.eye(2), np.array([[0.0, 1.0], [0.0, 1.0]])], [np.array([1]), np.array([0])], rng)
    assert nowhere.tolist() == [1], "where they do not agree, the first column decides"
