"""The account: costs and noise that do not belong together are found, whatever else agrees."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from understudy.domain import Discovery, Distribution, Measurement, Transcript
from understudy.privacy.cost import Cost
from understudy.release.release import Release
from understudy.release.statement import Statement
from understudy.release.verify import check_charges, check_ledger, check_settings


def _recharged(statement: Statement, position: int, **changes: object) -> Statement:
    charges = list(statement.charges)
    charges[position] = replace(charges[position], **changes)  # type: ignore[arg-type]
    return replace(statement, charges=tuple(charges))


def test_honest_releases_have_no_findings(full_release: Release, plain_release: Release) -> None:
    for release in (full_release, plain_release):
        assert check_charges(release.statement, [release.transcript]) == []
        assert check_ledger(release.statement, release.ledger) == []
        assert check_settings(release.statement, release.config, release.schema) == []


@pytest.mark.parametrize(
    "change", [{"cost": Cost(rho=1)}, {"distribution": Distribution("gaussian", Fraction(1, 9))}, {"cost": Cost()}]
)
def test_noise_that_does_not_follow_from_the_cost_is_found(full_release: Release, change: dict[str, object]) -> None:
    statement = _recharged(full_release.statement, 3, **change)
    assert check_charges(statement, [full_release.transcript])


def test_noise_lowered_in_charge_and_answer_alike_is_found(full_release: Release) -> None:
    distribution = Distribution("gaussian", Fraction(1, 9))
    answers = list(full_release.transcript)
    assert isinstance(answers[3], Measurement)
    answers[3] = replace(answers[3], distribution=distribution)
    problems = check_charges(_recharged(full_release.statement, 3, distribution=distribution), [Transcript(answers)])
    assert [problem.rule for problem in problems] == ["its noise is smaller or larger than its cost allows."]


def test_a_lowered_threshold_is_found(full_release: Release) -> None:
    answers = list(full_release.transcript)
    assert isinstance(answers[0], Discovery)
    answers[0] = replace(answers[0], threshold=answers[0].threshold - 1)
    assert check_charges(full_release.statement, [Transcript(answers)])


def test_charges_of_no_run_are_found(full_release: Release) -> None:
    statement = _recharged(full_release.statement, 0, run=2)
    assert check_charges(statement, [full_release.transcript])


def test_the_ledger_must_end_with_this_charge(full_release: Release) -> None:
    statement, lines = full_release.statement, full_release.ledger
    assert check_ledger(statement, lines[:1])
    assert check_ledger(statement, ["{", *lines])
    assert check_ledger(replace(statement, run="other"), lines)
    assert check_ledger(replace(statement, granted=Cost(rho=1)), lines)
    assert check_ledger(replace(statement, ledger=replace(statement.ledger, dataset="mine")), lines)
    forged = json.loads(lines[-1]) | {"note": "another schema"}
    assert check_ledger(statement, [*lines[:-1], json.dumps(forged)])
