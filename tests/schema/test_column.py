import dataclasses

import pyarrow as pa
import pytest

from understudy.schema import Category, Cut, Float, GivenBins, Integer
from understudy.schema.columns import STORAGE

ODD_NAMES = {"double": pa.float64(), "float": pa.float32(), "date32": pa.date32()}


def test_lists_become_tuples_so_that_equal_declarations_are_equal() -> None:
    assert Category(name="c", labels=["a"]) == Category(name="c", labels=("a",))
    assert Integer(name="n", lower=0, upper=1, special=[9]).special == (9,)
    assert Float(name="n", lower=0, upper=1, special=[9.0]).special == (9.0,)
    assert GivenBins([0, 1]) == GivenBins((0, 1))
    assert Cut("a", [0, 1], ["x"]) == Cut("a", (0, 1), ("x",))
    assert Category(name="c", labels="abc").labels == "abc", "text is no list; the check refuses it"


def test_columns_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Category(name="c", labels=("a",)).name = "d"  # type: ignore[misc]


@pytest.mark.parametrize("name", sorted({name for names in STORAGE.values() for name in names}))
def test_every_storage_is_an_arrow_type(name: str) -> None:
    known = ODD_NAMES.get(name) or pa.type_for_alias(name)
    assert isinstance(known, pa.DataType)
    assert str(known).startswith(name)
