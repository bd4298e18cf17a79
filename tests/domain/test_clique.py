import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.domain import Clique
from understudy.errors import UsageError

ORDER = tuple("abcdef")


@given(st.lists(st.sampled_from(ORDER), max_size=12))
def test_a_set_of_columns_has_one_spelling(columns: list[str]) -> None:
    clique = Clique.of(columns, ORDER)
    assert clique == Clique.of(reversed(columns), ORDER)
    assert list(clique) == sorted(set(columns))


def test_unknown_column_names_the_closest() -> None:
    with pytest.raises(UsageError, match='Did you mean "income"'):
        Clique.of(["incme"], ["income", "age"])


def test_contains() -> None:
    assert Clique.of("abc", ORDER).contains("ca")
    assert not Clique.of("ab", ORDER).contains("c")
    assert Clique.of("ab", ORDER).contains(())
