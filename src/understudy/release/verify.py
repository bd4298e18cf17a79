"""verify: whether a release folder is whole, consistent and valid, found out without the private table.

What it can show: the folder is as it was published, the statement follows from the charges, each noise from its
price, the ledger's extract holds together, the rows obey the schema. What it cannot show: that the noise was drawn
honestly or that the private table was the one named. Whoever can rewrite every file can forge a folder; compare the
ledger's head with the publisher's.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from understudy.codec.table_codec import TableCodec
from understudy.errors import Problem, ReleaseError, ResourceError, SchemaError, UnderstudyError
from understudy.marginals.transcript import Transcript
from understudy.models.model import Model
from understudy.models.plain_files import read_plain
from understudy.models.store import load_model
from understudy.release.checks.account import (
    check_charges,
    check_ledger,
    check_odd,
    check_settings,
    check_statement,
)
from understudy.release.checks.effort import Effort
from understudy.release.checks.files import check_expected, check_files
from understudy.release.checks.page import check_page
from understudy.release.checks.values import check_rows
from understudy.release.config import RunConfig, read_config
from understudy.release.folder import MANIFEST
from understudy.release.measurements import read_measurements
from understudy.release.release import data_name
from understudy.release.rows import Fitted
from understudy.release.statement import Statement
from understudy.release.store import (
    expected_files,
    load_codec,
    model_name,
    number_of_runs,
    read_ledger,
    read_schema,
)
from understudy.release.unread import never_unreadable
from understudy.schema import Schema

__all__ = ["Inspection", "inspect_release", "verify_release"]

MOST_PROBLEMS = 200

Content = TypeVar("Content")


@dataclass(slots=True)
class _Findings:
    """Problems so far; a check that cannot even read its file becomes a problem, not a crash."""

    problems: list[Problem] = field(default_factory=list)

    def read(self, where: str, read: Callable[[], Content]) -> Content | None:
        """What `read` returns, or None and a problem."""
        try:
            return read()
        except (ReleaseError, SchemaError) as error:
            self.problems += error.problems
        except UnderstudyError as error:
            self.problems.append(Problem(where, f"cannot be used: {error}"))
        except Exception as error:  # noqa: BLE001 - whatever a damaged file leads to is a finding
            self.problems.append(Problem(where, f"cannot be read ({type(error).__name__})."))
        return None

    def add(self, where: str, check: Callable[[], list[Problem]]) -> None:
        """Adds what a check finds."""
        self.problems += self.read(where, check) or []


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is wrong with a folder, and what was not looked at because there is too much of it."""

    problems: tuple[Problem, ...]
    unchecked: tuple[str, ...] = ()


def verify_release(folder: str | Path, *, everything: bool = False) -> list[Problem]:
    """Everything wrong with a release folder; an empty list means that nothing was found.

    Of folders with more than about 100 million values a part is checked, drawn at random, unless `everything` is
    asked for; `inspect_release` says what was left out.
    """
    return list(inspect_release(folder, everything=everything).problems)


def inspect_release(folder: str | Path, *, everything: bool = False) -> Inspection:
    """What is wrong with a release folder and what was not checked.

    The folder may come from a stranger: unless `everything` is asked for, it takes at most a minute and a GiB of
    memory, whatever the folder holds.
    """
    place = Path(folder)
    if not place.is_dir():
        return Inspection((Problem(str(folder), "is not a folder.", "Name the folder that synthesize wrote."),))
    if not (place / MANIFEST).is_file() and not (place / "statement.json").is_file():
        rule = f"is not a release folder: no {MANIFEST}."
        return Inspection((Problem(str(folder), rule, "Name the folder that synthesize wrote."),))
    effort = Effort() if everything else Effort.limited()
    findings = _Findings()
    findings.add("folder", lambda: check_files(place, effort))
    schema = findings.read("schema.yaml", lambda: read_schema(place))
    config = findings.read("config.yaml", lambda: read_config(place / "config.yaml"))
    stated = findings.read("statement.json", lambda: check_statement(place))
    findings.add("card.html", lambda: check_page("card.html", read_plain(place / "card.html").decode("utf-8")))
    if stated:
        findings.problems += stated[1]
        findings.add("ledger.jsonl", lambda: check_ledger(stated[0], read_ledger(place)))
    if config:
        findings.add("folder", lambda: check_expected(place, expected_files(config)))
    if config and stated and schema:
        findings.add("config.yaml", lambda: check_settings(stated[0], config, schema))
        _check_runs(findings, place, schema, config, (stated[0], effort))
    return Inspection(_shown(findings.problems), tuple(effort.unchecked))


def _shown(problems: list[Problem]) -> tuple[Problem, ...]:
    """Each problem once, and no more of them than somebody reads."""
    each = tuple(dict.fromkeys(problems))
    if len(each) <= MOST_PROBLEMS:
        return each
    return (*each[:MOST_PROBLEMS], Problem("folder", f"has {len(each) - MOST_PROBLEMS:,} more findings."))


def _check_runs(
    findings: _Findings, folder: Path, schema: Schema, config: RunConfig, stated: tuple[Statement, Effort]
) -> None:
    """Answers, models and rows of every run."""
    statement, effort = stated
    runs = number_of_runs(config)
    path = folder / "measurements.parquet"
    transcripts = findings.read(path.name, lambda: _answers(path, runs, effort))
    if transcripts:
        findings.add(path.name, lambda: check_charges(statement, transcripts))
    loaded = [_checked_model(findings, folder, schema, run, effort) for run in range(1, runs + 1)]
    for copy in range(1, config.copies + 1):
        run = copy if runs > 1 else 1
        codec, model = loaded[run - 1]
        if codec is None:
            continue
        never_empty: frozenset[str] | None = None
        if model is not None and transcripts:
            fitted = Fitted(codec, transcripts[run - 1], model)
            never_empty = findings.read(model_name(run), partial(never_unreadable, codec, fitted.transcript, model))
            if copy == 1:
                findings.add("statement.json", partial(check_odd, statement, fitted))
        name, rows = data_name(copy, config.copies), config.rows[copy - 1]
        check = partial(check_rows, folder / name, codec, rows, statement.run, effort)
        findings.add(name, partial(check, never_empty=never_empty or frozenset()))


def _answers(path: Path, runs: int, effort: Effort) -> list[Transcript]:
    """The noisy answers of every run; none if there are more than may be read."""
    try:
        return read_measurements(path, runs, effort.noisy_values)
    except ResourceError:
        effort.unchecked.append(f"the answers in {path.name}")
        return []


def _checked_model(
    findings: _Findings, folder: Path, schema: Schema, run: int, effort: Effort
) -> tuple[TableCodec | None, Model | None]:
    """Codes and model of a run, as far as they can be read; the model must be about the same codes."""
    codec = findings.read(f"codes of run {run}", lambda: load_codec(schema, folder, run))
    place = folder / model_name(run)
    size = findings.read(model_name(run), lambda: sum(entry.lstat().st_size for entry in place.iterdir())) or 0
    if size > effort.model_bytes:
        effort.unchecked.append(f"the numbers in {model_name(run)}")
        return codec, None
    model = findings.read(model_name(run), lambda: load_model(place))
    if codec and model and dict(model.domain.sizes) != dict(codec.domain.sizes):
        findings.problems.append(Problem(model_name(run), "speaks about other codes than the schema."))
        return codec, None
    return codec, model
