"""Progress: the silent listener accepts everything and says nothing."""

import pytest

from understudy.progress import STAGES, silent


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    for name in STAGES:
        silent.stage(name, 0.5)
    assert capsys.readouterr() == ("", "")
