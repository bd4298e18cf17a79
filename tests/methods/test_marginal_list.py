import pytest

from understudy.domain import Domain
from understudy.errors import UsageError
from understudy.methods.marginals import ListedTable, MarginalList, parse_tables, written

DOMAIN = Domain.of({"a": 3, "b": 4, "c": 60, "one": 1, "x, y": 2, "z[1]": 5})


def test_weights_of_columns_and_tables():
    listed = MarginalList.of("c:2, b×a:3, a*c, one", DOMAIN)
    assert dict(listed.columns) == {"c": 2.0, "one": 1.0}
    assert [(table.clique, table.weight) for table in listed.tables] == [(("a", "b"), 3.0), (("a", "c"), 1.0)]


def test_pairs_and_triples_mean_all_of_them():
    assert len(MarginalList.of("pairs", DOMAIN).tables) == 10
    assert len(MarginalList.of(" triples ", DOMAIN).tables) == 10
    assert MarginalList.of("pairs", Domain.of({"a": 3})).tables == ()


def test_groups_of_codes():
    (table,) = MarginalList.of("a×c[1 10 20 51]:6", DOMAIN).tables
    assert table == ListedTable(DOMAIN.clique("ac"), 6.0, {"c": (1, 10, 20, 51)})
    groups = table.groups("c", 60)
    assert [int(groups[code]) for code in (0, 1, 9, 10, 19, 20, 50, 51, 59)] == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert table.groups("a", 3).tolist() == [0, 1, 2]


def test_names_with_signs():
    listed = MarginalList.of('"x, y"×a, "x, y[1]"×b, z[1]×a, z[1][2 3]×b', DOMAIN)
    assert [dict(table.starts) for table in listed.tables] == [{}, {"x, y": (1,)}, {}, {"z[1]": (2, 3)}]


def test_columns_with_one_code_are_left_out():
    listed = MarginalList.of("a×b×one, one×c", DOMAIN)
    assert [table.clique for table in listed.tables] == [("a", "b")]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a×b, b×a", "listed twice"),
        ("a×b, a×b×one", "listed twice"),
        ("a:2, a", "listed twice"),
        ("a×a", "twice"),
        ("a×q", "not a modelled column"),
        ("a×q[1]", "not a modelled column"),
        ("a×c[0 3]", "from 1 to 59"),
        ("a×c[3 3]", "increasing"),
        ("a×c[60]", "from 1 to 59"),
        ("a×c[ ]", "increasing"),
        ("a×", "joined"),
    ],
)
def test_bad_lists_are_refused(text, fault):
    with pytest.raises(UsageError, match=fault):
        MarginalList.of(text, DOMAIN)


@pytest.mark.parametrize("name", ["plain", "a, b", 'quo"te', " lead", "x[1]", "m×n", "k:2"])
def test_written_lists_are_read_back(name):
    ((names, weight),) = parse_tables(written([[name, "other"]]))
    assert (names, weight) == ((name, "other"), 1.0)
