import pytest

from understudy.domain import Domain
from understudy.errors import UsageError


def test_cells_are_exact_beyond_machine_integers() -> None:
    domain = Domain.of({f"c{number}": 1000 for number in range(60)})
    assert domain.cells(domain.everything()) == 10**180


def test_empty_clique_is_the_total() -> None:
    domain = Domain.of({"a": 3})
    assert domain.cells(()) == 1
    assert domain.shape(()) == ()


@pytest.mark.parametrize("size", [0, -1, 2.0, "2"])
def test_a_column_needs_a_code(size: object) -> None:
    with pytest.raises(UsageError, match="at least one code"):
        Domain.of({"a": size})  # type: ignore[dict-item]


def test_sizes_cannot_be_changed() -> None:
    domain = Domain.of({"a": 3})
    with pytest.raises(TypeError):
        domain.sizes["a"] = 4  # type: ignore[index]


def test_clique_follows_schema_order() -> None:
    assert tuple(Domain.of({"b": 2, "a": 2}).clique(["a", "b"])) == ("b", "a")
