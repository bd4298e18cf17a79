"""Progress: the silent listener says nothing; the record of charges says what is true at the moment it is asked."""

from pathlib import Path

import pytest

from understudy.progress import STAGES, Standing, recorded, silent, standing


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    for name in STAGES:
        silent.stage(name, 0.5)
    assert capsys.readouterr() == ("", "")


def _charged(*runs: str) -> Standing:
    found = Standing()
    for run in runs:
        found.charging(run, "ε = 1", Path("ledger.db"))
        found.charged(run, stands=True)
    return found


def test_a_charge_that_is_not_settled_is_not_denied() -> None:
    found = Standing()
    assert found.sentence() == "Nothing was charged."
    found.charging("a", "ε = 1", Path("ledger.db"))
    assert found.is_charged
    assert "is not known whether" in found.sentence()
    found.charged("a", stands=None)
    assert "is not known whether" in found.sentence()
    found.charged("a", stands=False)
    assert (found.is_charged, found.sentence()) == (False, "Nothing was charged.")


def test_several_charges_are_all_named() -> None:
    told = _charged("a", "b").sentence()
    assert told == "The charges of ε = 1 (run a), ε = 1 (run b) in ledger.db stand; no release was written."


def test_a_folder_counts_under_whichever_name_it_has(tmp_path: Path) -> None:
    found, staging, final = _charged("a"), tmp_path / "staging", tmp_path / "final"
    staging.mkdir()
    found.completing(staging, final)
    assert found.complete == [staging]
    staging.rename(final)
    assert found.sentence() == f"The release is complete in {final}; the charge of ε = 1 (run a) stands."


def test_the_folder_of_somebody_else_under_our_name_is_not_our_release(tmp_path: Path) -> None:
    found, staging, final = _charged("a"), tmp_path / "staging", tmp_path / "final"
    staging.mkdir()
    found.completing(staging, final)
    final.mkdir()
    staging.rmdir()
    assert "no release was written" in found.sentence()


def test_a_record_inside_another_is_the_same_one() -> None:
    with recorded() as outer, recorded() as inner:
        assert inner is outer is standing()
    assert standing() is not outer
