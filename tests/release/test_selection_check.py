"""verify checks choices, scores and trees too: noise that does not follow from the cost is found."""

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import cast
from unittest import mock

import pyarrow.compute as pc
import pytest

from tests.nets.doubles import Chooser, Grower
from understudy.domain import (
    GROWTH_UNIT,
    SCORE_UNIT,
    Answer,
    Distribution,
    Grown,
    NoisyScores,
    ResidualTable,
    Selection,
    Selections,
    Transcript,
)
from understudy.methods.method import METHODS
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.privacy.randomizer import SecureRandomizer
from understudy.release import Release, verify_release
from understudy.release.statement import Charge, statement_document
from understudy.release.verify import check_charges
from understudy.release.wording import NEWEST_FORMAT, SENTENCES
from understudy.schema import Unit
from understudy.testing import cases as tables
from understudy.testing.cases import Case


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("choice") / "release"
    schema = tables.small()
    with mock.patch.dict(METHODS.built_in, {"chooser": Chooser}):
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
    charges = tuple(replace(c, **change) if c.distribution is None else c for c in release.statement.charges)  # type: ignore[arg-type]
    problems = check_charges(replace(release.statement, charges=charges), [Transcript(answers)])
    assert [problem.rule for problem in problems] == ["its rate does not follow from its cost."]
    (problem,) = check_charges(replace(release.statement, charges=charges), [release.transcript])
    assert problem.rule == "the answer's noise is not the noise that was charged."


def test_an_auditor_can_relate_rate_and_cost(release: Release) -> None:
    (charge,) = (charge for charge in release.statement.charges if charge.distribution is None)
    text = release.statement.markdown()
    (epsilon,) = (float(found) for found in re.findall(r"chose 1 of 3, ε \\?= (\S+)", text))
    assert epsilon**2 / 8 == pytest.approx(charge.cost.rho / UNIT, rel=1e-4)
    (written,) = (one for one in _charges(release) if one["rate"] is not None)
    rate, moved = Fraction(str(written["rate"])), Fraction(str(written["sensitivity"]))
    assert float(2 * rate * moved) == pytest.approx(epsilon, rel=1e-4)
    assert SENTENCES[NEWEST_FORMAT].choices in text
    assert "sensitivity" not in tables_only(release)


def _charges(release: Release) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", statement_document(release.statement)["charges"])


def test_the_number_of_options_is_checked(release: Release) -> None:
    charges = tuple(replace(c, options=4) if c.distribution is None else c for c in release.statement.charges)
    (problem,) = check_charges(replace(release.statement, charges=charges), [release.transcript])
    assert problem.rule == "the answer's noise is not the noise that was charged."


def tables_only(release: Release) -> str:
    """The statement without its choices."""
    kept = tuple(charge for charge in release.statement.charges if charge.distribution is not None)
    return replace(release.statement, charges=kept).markdown()


def test_the_folder_form_is_part_of_the_release(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "again")
    assert Release.load(tmp_path / "again").transcript.of(Selection) == release.transcript.of(Selection)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("tree") / "release"
    schema = tables.several_rows()
    with mock.patch.dict(METHODS.built_in, {"grower": Grower}):
        case = Case(schema, "grower", Budget(1.0, 1e-6))
        case.release(tables.some_rows(schema, 50, seed=1), SecureRandomizer(), out=folder)
    assert verify_release(folder) == []
    return Release.load(folder)


def test_scores_and_trees_come_back_from_the_folder(grown: Release) -> None:
    units = [charge.unit for charge in grown.statement.charges]
    assert units == [GROWTH_UNIT, 1, SCORE_UNIT, 1, 1, 1]
    (tree,), (scores,) = grown.transcript.of(Grown), grown.transcript.of(NoisyScores)
    assert scores.sensitivity == 3 * SCORE_UNIT
    shown = [charge.scale for charge in grown.statement.charges]
    assert shown[0] == f"b = {tree.distribution.scale / GROWTH_UNIT:.6g}"
    assert shown[2] == f"σ = {scores.distribution.scale / SCORE_UNIT:.6g}"


def test_the_card_says_what_they_are(grown: Release) -> None:
    from understudy.release.card import card_facts

    assert grown.folder is not None
    told = [(one.kind, one.half_width) for one in card_facts(grown, grown.folder / "data.parquet").measured[:3]]
    layers = len(grown.transcript.of(Grown)[0].layers)
    assert told == [
        (f"tree of {layers} layers", None),
        ("choice among 3 in every cell", None),
        ("scores of options", None),
    ]


def _changed(release: Release, kind: type[Answer], **changes: object) -> list[str]:
    answers = [replace(a, **changes) if isinstance(a, kind) else a for a in release.transcript]  # type: ignore[arg-type]
    charges = list(release.statement.charges)
    at = next(place for place, answer in enumerate(answers) if isinstance(answer, kind))
    stated = {name: value for name, value in changes.items() if name == "distribution" or kind is Selections}
    charges[at] = replace(charges[at], **stated)  # type: ignore[arg-type]
    problems = check_charges(replace(release.statement, charges=tuple(charges)), [Transcript(answers)])
    return [problem.rule for problem in problems]


NOT_BOUGHT = "its noise is smaller or larger than its cost allows."


def test_scores_and_trees_that_were_not_paid_for_are_found(grown: Release) -> None:
    less = Distribution("laplace", Fraction(1))
    assert _changed(grown, Grown, distribution=less) == [NOT_BOUGHT]
    assert _changed(grown, Grown, bias=0) == [NOT_BOUGHT]
    assert _changed(grown, Grown, decay=Fraction(4)) == [NOT_BOUGHT]
    assert _changed(grown, NoisyScores, distribution=less) == [NOT_BOUGHT]
    assert _changed(grown, NoisyScores, sensitivity=Fraction(1)) == [NOT_BOUGHT]
    assert _changed(grown, Selections, sensitivity=Fraction(1)) == ["its rate does not follow from its cost."]
    assert _changed(grown, Grown, decay=Fraction(1)) == ["its cost allows no noise that protects."]


@pytest.fixture(scope="module")
def accounted_as_gaussian(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("gaussian") / "release"
    case = Case(tables.small(), "ensemble", Budget(1.0, 1e-6), {"components": "5", "steps": "10", "threshold": "0"})
    rows = tables.some_rows(tables.small(), 8_000, seed=1)
    alike = rows.filter(pc.equal(rows["registered"], rows["voted"]))
    case.release(alike, SecureRandomizer(), out=folder)  # a relation that no noise hides
    assert verify_release(folder) == []
    return Release.load(folder)


def test_a_run_of_gaussian_answers_is_accounted_as_such(accounted_as_gaussian: Release) -> None:
    statement = accounted_as_gaussian.statement
    assert statement.currency == "gaussian"
    assert "Gaussian differential privacy" in statement.variant
    assert statement.claim == (1.0, 1e-6)
    assert statement.granted.rho > 1.1 * Budget(1.0, 1e-6).cost("zcdp").rho
    (residuals, *_) = accounted_as_gaussian.transcript.of(ResidualTable)
    stated = next(charge for charge in statement.charges if charge.step == f"measure residuals of {residuals.name}")
    assert stated.scale == f"σ = {residuals.variance**0.5:.6g}"


def test_the_card_lists_pairs_known_by_residuals_as_measured(accounted_as_gaussian: Release) -> None:
    from understudy.release.card import card_facts

    release = accounted_as_gaussian
    assert release.folder is not None
    facts = card_facts(release, release.folder / "data.parquet")
    asked = {answer.columns for answer in release.transcript.of(ResidualTable)}
    assert {(pair.first, pair.second) for pair in facts.pairs} == asked
    assert facts.together[0].startswith(f"{len(asked)} of ")


def test_gaussian_answers_that_were_not_paid_for_are_found(accounted_as_gaussian: Release) -> None:
    less = Distribution("gaussian", Fraction(1))
    assert NOT_BOUGHT in _changed(accounted_as_gaussian, ResidualTable, distribution=less)
    statement, transcript = accounted_as_gaussian.statement, accounted_as_gaussian.transcript
    narrow = [problem.rule for problem in check_charges(replace(statement, currency="zcdp"), [transcript])]
    assert narrow == [NOT_BOUGHT] * len(statement.charges), "no answer has the noise that zCDP alone would give it"


def test_a_choice_in_a_run_accounted_as_gaussian_is_found(release: Release) -> None:
    claimed = replace(release.statement, currency="gaussian")
    rules = {problem.rule for problem in check_charges(claimed, [release.transcript])}
    assert "has no Gaussian noise, in a run accounted as Gaussian." in rules


def test_scores_passed_off_as_counts_are_found(grown: Release) -> None:
    charges = tuple(replace(charge, unit=1) for charge in grown.statement.charges)
    problems = check_charges(replace(grown.statement, charges=charges), [grown.transcript])
    assert {problem.rule for problem in problems} == {"the answer's noise is not the noise that was charged."}


def test_scores_are_not_summed_like_counts(grown: Release) -> None:
    """The exact sum is about histograms: a run with Gaussian scores keeps the claim by ρ."""
    cost, distribution = Cost(rho=UNIT // 100), Distribution("gaussian", Fraction(50))
    counted = Charge(1, "measure pair", cost, distribution)
    statement = replace(grown.statement, charges=(counted,), as_planned=True, unit=Unit())
    assert statement.claim is not None
    by_cost = statement.budget.claim(cost)
    assert statement.claim[0] < by_cost[0]
    assert replace(statement, charges=(replace(counted, unit=SCORE_UNIT),)).claim == by_cost
