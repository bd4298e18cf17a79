"""Every way to read a table, against the contract of count sources."""

from pathlib import Path

import pytest

from tests.counts.places import PLACES
from understudy.counts.open import open_table
from understudy.testing import check_source


@pytest.mark.parametrize("place", PLACES)
def test_source(place: str, tmp_path: Path) -> None:
    check_source(lambda table, schema: open_table(PLACES[place](table, tmp_path), schema))
