"""verify prices choices too: a rate that the price does not buy is found."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from unittest import mock

import pytest

from understudy.marginals.answer import Selection
from understudy.marginals.transcript import Transcript
from understudy.mechanisms import registry
from understudy.privacy.cost import Budget
from understudy.privacy.secure import SecureRandomizer
from understudy.release import Release, verify_release
from understudy.release.checks.account import check_charges
from understudy.testing import tables
from understudy.testing.chooser import Chooser
from understudy.testing.pipeline import Case


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("choice") / "release"
    schema = tables.small()
    with mock.patch.dict(registry._BUILT_IN, {"chooser": Chooser}):
        case = Case(schema, "chooser", Budget(1.0, 1e-6))
        case.release(tables.some_rows(schema, 50, seed=1), SecureRandomizer(), out=folder)
    assert verify_release(folder) == []
    return Release.load(folder)


def test_a_choice_comes_back_from_the_folder(release: Release) -> None:
    (choice,) = release.transcript.of(Selection)
    assert choice.sensitivity == 2**20
    assert not choice.monotone
    assert choice.options == 3


@pytest.mark.parametrize("change", [{"rate": Fraction(1)}, {"sensitivity": Fraction(2)}, {"monotone": True}])
def test_a_choice_that_was_not_paid_for_is_found(release: Release, change: dict[str, object]) -> None:
    answers = [replace(a, **change) if isinstance(a, Selection) else a for a in release.transcript]  # type: ignore[arg-type]
    charges = release.statement.charges
    if "rate" in change:
        charges = tuple(replace(c, rate=change["rate"]) if c.law is None else c for c in charges)  # type: ignore[arg-type]
    problems = check_charges(replace(release.statement, charges=charges), [Transcript(answers)])
    assert [problem.rule for problem in problems] == ["its rate is not what its price buys."]


def test_the_folder_form_is_part_of_the_release(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "again")
    assert Release.load(tmp_path / "again").transcript.of(Selection) == release.transcript.of(Selection)
