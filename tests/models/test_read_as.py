"""Values from files that may come from a stranger: of the declared form, or refused."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import pytest

from understudy.models.model import read_as


@dataclass
class Pair:
    name: str
    share: float | None


GOOD: dict[Any, list[object]] = {
    str: ["a"],
    int: [3],
    float: [1.5, 2],
    bool: [True],
    Fraction: ["2/3"],
    tuple[int, ...]: [[1, 2]],
    Literal["a", "b"]: ["a"],
    Pair: [{"name": "x", "share": None}, {"name": "x", "share": 1, "more": 0}],
}
BAD: dict[Any, list[object]] = {
    str: [3, None],
    int: [True, 3.0, "3"],
    float: [True, "1"],
    bool: [1],
    Fraction: ["1e999999999", 2, "1/" + "9" * 1001],
    tuple[int, ...]: [[1, "2"], 3, {"0": 1}],
    Literal["a", "b"]: ["c", ["a"]],
    Pair: [{"name": "x"}, {"name": 1, "share": None}, ["x", None], {"name": "x", "share": "1"}],
}


@pytest.mark.parametrize("form", GOOD, ids=str)
def test_values_of_the_declared_form_are_read_and_no_others(form: Any) -> None:
    for value in GOOD[form]:
        read_as(form, value)
    for value in BAD[form]:
        with pytest.raises((TypeError, ValueError, KeyError)):
            read_as(form, value)
