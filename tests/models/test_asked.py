import numpy as np
import pytest

from understudy.domain import Domain
from understudy.errors import ResourceError, UsageError
from understudy.models.model import MARGINAL_CELLS, query_clique, query_codes

DOMAIN = Domain.of({"a": 3, "b": 10**5, "c": 10**5})


def test_a_clique_that_fits_is_spelled_in_schema_order() -> None:
    assert tuple(query_clique(DOMAIN, ["b", "a"])) == ("a", "b")


def test_a_table_too_large_to_hold_is_refused_with_its_size() -> None:
    with pytest.raises(ResourceError, match="marginal b × c") as refused:
        query_clique(DOMAIN, ["b", "c"])
    assert refused.value.needed_bytes == 8 * 10**10
    assert refused.value.limit_bytes == 8 * MARGINAL_CELLS


def test_codes_become_a_mask() -> None:
    assert query_codes(DOMAIN, "a", np.array([2, 0, 2])).tolist() == [True, False, True]
    assert not query_codes(DOMAIN, "a", []).any()


@pytest.mark.parametrize("code", [-1, 3])
def test_codes_that_do_not_exist_are_refused(code: int) -> None:
    with pytest.raises(UsageError, match="between 0 and 2"):
        query_codes(DOMAIN, "a", [code])
