"""How much of a draft is left to a person, on the real tables beside the checkout."""

from pathlib import Path

import pytest
from benchmarks.drafts import Burden, measured

from tests.real.shared_tables import FOLDER

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the shared tables are not here")


@pytest.mark.slow
def test_at_most_a_third_of_all_columns_needs_more_than_a_confirmation(tmp_path: Path) -> None:
    found: list[tuple[Burden, Burden, Burden]] = [burdens for _, *burdens in measured(FOLDER, tmp_path)]  # type: ignore[misc]
    columns = sum(names.columns for names, _, _ in found)
    for place, most in ((0, 1 / 3), (1, 1 / 3), (2, 0.0)):
        left = sum(len(burdens[place].open) + len(burdens[place].wrong) for burdens in found)
        assert left <= most * columns
