"""Tests of the challenge are drawn by seed, kept, and read back."""

from pathlib import Path

import numpy as np
import pytest

from tests.evaluate.examples import mixed, mixed_frame, rows_of
from understudy.errors import UsageError
from understudy.evaluate.nist import ChallengeTests, draw_tests

ROWS = rows_of(mixed_frame(100), mixed())


def _drawn(seed: int) -> ChallengeTests:
    return draw_tests(ROWS, np.random.default_rng(seed), include_last=False, probability=0.3)


def test_seeds() -> None:
    assert _drawn(1) == _drawn(1)
    assert _drawn(1) != _drawn(2)


def test_round_trip(tmp_path: Path) -> None:
    tests = _drawn(1)
    tests.save(tmp_path / "tests.json")
    assert ChallengeTests.load(tmp_path / "tests.json") == tests


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": "x", "triples": [], "conjunctions": []}', '{"triples": 3}']
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "tests.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="challenge tests"):
        ChallengeTests.load(tmp_path / "tests.json")
