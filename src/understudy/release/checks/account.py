"""The account of a release: charges that add up to the claim, noise that matches each charge, a ledger that agrees."""

from collections.abc import Sequence
from pathlib import Path

from understudy.errors import Problem, ReleaseError, UnderstudyError
from understudy.marginals.answer import (
    Answer,
    Discovery,
    Grown,
    NoisyScores,
    Selection,
    Selections,
    SparseMeasurement,
    Trained,
)
from understudy.marginals.transcript import Transcript
from understudy.models.plain_files import parse_json, read_json, read_plain
from understudy.privacy.calibrate import discovery_threshold, growth_rule, law_for, score_law, selection_rate
from understudy.privacy.cost import DELTA_UNIT, UNIT
from understudy.privacy.ledger import verify_extract
from understudy.privacy.training.accountant import course_parts, parts_epsilon
from understudy.release.config import RunConfig
from understudy.release.label import read_statement, statement_document, statement_markdown
from understudy.release.rows import Fitted
from understudy.release.statement import Charge, Statement, digest_of, unit_of
from understudy.release.unread import odd_values
from understudy.release.wording import charge_note
from understudy.schema import Schema

__all__ = ["check_charges", "check_ledger", "check_odd", "check_settings", "check_statement"]

NAME = "statement.json"
DISTRUST = "Do not rely on this folder; ask its publisher for the original."


def check_statement(folder: Path) -> tuple[Statement, list[Problem]]:
    """The statement, with everything in it that does not follow from its own charges."""
    document = read_json(folder / NAME)
    statement = read_statement(document)
    found = []
    if statement.refused:
        found.append(Problem(NAME, f"{statement.refused}. The folder makes no privacy claim.", "Do not publish it."))
    if not statement.spent.fits(statement.granted):
        found.append(Problem(NAME, "the charges add up to more than was granted.", DISTRUST))
    try:
        derived = statement_document(statement)
        text = statement_markdown(statement)
        claim = statement.claim
    except UnderstudyError:
        return statement, [*found, Problem(NAME, "the charges do not yield a claim under this budget.", DISTRUST)]
    stored = document if isinstance(document, dict) else {}
    wrong = sorted(key for key in {*derived, *stored} if derived.get(key) != stored.get(key) or key not in stored)
    found += [Problem(f"{NAME}: {key}", "does not follow from the charges and facts given.", DISTRUST) for key in wrong]
    if claim and (claim[0] > statement.budget.epsilon or claim[1] > statement.budget.delta):
        found.append(Problem(NAME, "the charges cost more than the budget that was granted.", DISTRUST))
    if read_plain(folder / "statement.md").decode("utf-8", errors="replace") != text:
        found.append(Problem("statement.md", "does not say what statement.json says.", DISTRUST))
    return statement, found


def check_charges(statement: Statement, transcripts: Sequence[Transcript]) -> list[Problem]:
    """Whether every answer was paid for, with the noise that its price buys."""
    found = []
    for run, transcript in enumerate(transcripts, start=1):
        charges = [charge for charge in statement.charges if charge.run == run]
        if len(charges) != len(transcript):
            rule = f"run {run} has {len(charges)} charges for {len(transcript)} answers."
            found.append(Problem("measurements.parquet", rule, DISTRUST))
            continue
        for position, (charge, answer) in enumerate(zip(charges, transcript, strict=True)):
            where = f"run {run}, answer {position}"
            if _noise_of(charge) != _noise_of(answer) or answer.name not in charge.step:
                found.append(Problem(where, "the answer's noise is not the noise that was charged.", DISTRUST))
            found += _answer_priced(where, charge, answer, statement.unit.sensitivity)
            if isinstance(answer, SparseMeasurement) and answer.values.size and answer.values.min() < answer.threshold:
                found.append(Problem(where, "a kept cell lies below the threshold.", DISTRUST))
    if any(not 1 <= charge.run <= len(transcripts) for charge in statement.charges):
        found.append(Problem(NAME, "a charge belongs to no run.", DISTRUST))
    return found


def _noise_of(one: Charge | Answer) -> tuple[object, ...]:
    """What a charge, or an answer, says about its noise."""
    if isinstance(one, Charge):
        return one.law, one.rate, one.sensitivity, one.monotone, one.unit
    if isinstance(one, Selection | Selections):
        return None, one.rate, one.sensitivity, one.monotone, unit_of(one)
    return one.law, None, None, False, unit_of(one)


def _answer_priced(where: str, charge: Charge, answer: Answer, unit_rows: int) -> list[Problem]:
    """Whether the noise of an answer follows from its price and from what the answer states about itself."""
    match answer:
        case Selection() | Selections():
            return _choice_priced(where, charge, answer)
        case NoisyScores() | Grown():
            return _whole_priced(where, charge, answer, unit_rows)
        case Trained():
            return _training_priced(where, charge, answer)
        case Discovery():
            return _priced(where, charge, unit_rows, answer.threshold)
        case _:
            return _priced(where, charge, unit_rows, None)


def _whole_priced(where: str, charge: Charge, answer: NoisyScores | Grown, unit_rows: int) -> list[Problem]:
    """Whether the noise of a list of scores, or noise and bias of a tree, follow from the price."""
    try:
        if isinstance(answer, NoisyScores):
            fits = charge.law == score_law(charge.cost, answer.values.size, answer.sensitivity, charge.step)
        else:
            law, bias = growth_rule(charge.cost, unit_rows, answer.decay, charge.step)
            fits = charge.law == law and answer.bias == bias
    except UnderstudyError:
        return [Problem(where, "its price buys no noise.", DISTRUST)]
    return [] if fits else [Problem(where, "its noise is smaller or larger than its price buys.", DISTRUST)]


def _training_priced(where: str, charge: Charge, answer: Trained) -> list[Problem]:
    """Whether a training with that noise costs no more than its price."""
    course = answer.course
    if (answer.first_law is None) != (course.first_share == 0):
        return [Problem(where, "the noise of its first look is missing or was not planned.", DISTRUST)]
    try:
        paid = parts_epsilon(course_parts(course, answer.first_law, answer.law), charge.cost.delta / DELTA_UNIT)
    except (UnderstudyError, ValueError, OverflowError, ZeroDivisionError):
        return [Problem(where, "its price buys no training.", DISTRUST)]
    price = charge.cost.epsilon / UNIT
    if charge.cost.rho or paid > price + 2e-9:  # what another machine may round otherwise; the bound holds 1e-9 in hand
        return [Problem(where, "its noise is smaller than its price buys.", DISTRUST)]
    return []


def _priced(where: str, charge: Charge, unit_rows: int, threshold: int | None) -> list[Problem]:
    """Whether the law of the noise follows from the price."""
    try:
        law = law_for(charge.cost, unit_rows, charge.step, laplace=threshold is not None)
        needed = None if threshold is None else discovery_threshold(law, unit_rows, charge.cost.delta, charge.step)
    except UnderstudyError:
        return [Problem(where, "its price buys no noise.", DISTRUST)]
    if charge.law != law or (needed is not None and threshold is not None and threshold < needed):
        return [Problem(where, "its noise is smaller or larger than its price buys.", DISTRUST)]
    return []


def _choice_priced(where: str, charge: Charge, answer: Selection | Selections) -> list[Problem]:
    """Whether the rate of a choice follows from its price and the stated sensitivity of its scores."""
    try:
        rate = selection_rate(charge.cost, answer.sensitivity, charge.step, monotone=answer.monotone)
    except UnderstudyError:
        return [Problem(where, "its price buys no choice.", DISTRUST)]
    return [] if answer.rate == rate else [Problem(where, "its rate is not what its price buys.", DISTRUST)]


def check_settings(statement: Statement, config: RunConfig, schema: Schema) -> list[Problem]:
    """Whether settings and schema are those of the statement."""
    pairs = {
        "config.yaml: method": (config.method, statement.method),
        "config.yaml: epsilon": (config.epsilon, statement.budget.epsilon),
        "config.yaml: delta": (config.delta, statement.budget.delta),
        "config.yaml: copies": (config.copies, statement.copies),
        "config.yaml: copies_mode": (config.copies_mode, statement.copies_mode),
        "schema.yaml: unit": (schema.unit, statement.unit),
        "schema.yaml: title": (schema.title, statement.title),
        "schema.yaml: unreadable": (schema.unreadable == "drop", statement.drops_unreadable),
        "schema.yaml": (digest_of(schema), statement.schema_digest),
    }
    differs = [where for where, (given, stated) in pairs.items() if given != stated]
    found = [Problem(where, "is not what the statement says.", DISTRUST) for where in differs]
    if statement.currency == "pure" and any(charge.cost.rho for charge in statement.charges):
        found.append(Problem(NAME, "a pure run has a charge in ρ.", DISTRUST))
    return found


def check_odd(statement: Statement, fitted: Fitted) -> list[Problem]:
    """Whether what is said about unreadable values follows from answers and model; the first format said nothing."""
    if not fitted.codec.unreadable and not statement.drops_unreadable:
        return []
    derived = {(one.column, one.meaning): one for one in odd_values(fitted.codec, fitted.transcript, fitted.model)}
    stated = {(one.column, one.meaning): one for one in statement.odd}
    # Another machine may round a share otherwise in its last digit.
    close = derived.keys() == stated.keys() and all(
        abs(one.share - stated[key].share) < 0.002 and one.labelled == stated[key].labelled
        for key, one in derived.items()
    )
    return [] if close else [Problem(f"{NAME}: odd_values", "does not follow from the noisy answers.", DISTRUST)]


def check_ledger(statement: Statement, lines: Sequence[str]) -> list[Problem]:
    """Whether the extract holds together and ends with the charge of this run."""
    name = "ledger.jsonl"
    try:
        entries = [parse_json(line.encode("utf-8", "replace"), name) for line in lines]
    except ReleaseError:
        return [Problem(name, "is not a list of JSON lines.", DISTRUST)]
    listed = [entry for entry in entries if isinstance(entry, dict)]
    if not listed or len(listed) != len(entries):
        return [Problem(name, "holds no entry.", DISTRUST)]
    found = list(verify_extract(listed, name))
    last = listed[-1]
    cost = tuple(last.get(f"cost_{part}") for part in ("epsilon", "rho", "delta"))
    granted = statement.granted
    budget = (last.get("budget_epsilon"), last.get("budget_delta"))
    facts = {
        "kind": (last.get("kind"), "charge"),
        "run": (last.get("run"), statement.run),
        "hash": (last.get("hash"), statement.ledger.head),
        "releases": (last.get("releases"), statement.ledger.releases),
        "method": (last.get("method"), statement.method),
        "note": (last.get("note"), charge_note(statement.schema_digest)),
        "cost": (cost, (granted.epsilon, granted.rho, granted.delta)),
        "budget": (budget, (statement.budget.epsilon_units, statement.budget.delta_units)),
    }
    if statement.ledger.dataset is not None:
        facts["dataset"] = (last.get("dataset"), statement.ledger.dataset)
    wrong = [key for key, (given, stated) in facts.items() if given != stated]
    return found + [Problem(f"{name}: {key}", "is not what the statement says.", DISTRUST) for key in wrong]
