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

from understudy.errors import Problem, ReleaseError, SchemaError, UnderstudyError
from understudy.models.store import load_model
from understudy.release.checks.account import (
    check_charges,
    check_ledger,
    check_odd,
    check_settings,
    check_statement,
)
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
)
from understudy.release.unread import never_unreadable
from understudy.schema import Schema

__all__ = ["verify_release"]

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
        except (OSError, ValueError, TypeError, KeyError, IndexError, ArithmeticError, RecursionError) as error:
            self.problems.append(Problem(where, f"cannot be read ({type(error).__name__})."))
        return None

    def add(self, where: str, check: Callable[[], list[Problem]]) -> None:
        """Adds what a check finds."""
        self.problems += self.read(where, check) or []


def verify_release(folder: str | Path) -> list[Problem]:
    """Everything wrong with a release folder; an empty list means that nothing was found."""
    place = Path(folder)
    if not place.is_dir():
        return [Problem(str(folder), "is not a folder.", "Name the folder that synthesize wrote.")]
    if not (place / MANIFEST).is_file() and not (place / "statement.json").is_file():
        rule = f"is not a release folder: no {MANIFEST}."
        return [Problem(str(folder), rule, "Name the folder that synthesize wrote.")]
    findings = _Findings()
    findings.add("folder", lambda: check_files(place))
    schema = findings.read("schema.yaml", lambda: Schema.from_yaml(place / "schema.yaml"))
    config = findings.read("config.yaml", lambda: read_config(place / "config.yaml"))
    stated = findings.read("statement.json", lambda: check_statement(place))
    findings.add("card.html", lambda: check_page("card.html", _text(place / "card.html")))
    if stated:
        findings.problems += stated[1]
        findings.add("ledger.jsonl", lambda: check_ledger(stated[0], read_ledger(place)))
    if config:
        findings.add("folder", lambda: check_expected(place, expected_files(config)))
    if config and stated and schema:
        findings.add("config.yaml", lambda: check_settings(stated[0], config, schema))
        _check_runs(findings, place, schema, config, stated[0])
    return list(dict.fromkeys(findings.problems))


def _check_runs(findings: _Findings, folder: Path, schema: Schema, config: RunConfig, statement: Statement) -> None:
    """Answers, models and rows of every run."""
    runs = number_of_runs(config)
    transcripts = findings.read(
        "measurements.parquet", lambda: read_measurements(folder / "measurements.parquet", runs)
    )
    if transcripts:
        findings.add("measurements.parquet", lambda: check_charges(statement, transcripts))
    for copy in range(1, config.copies + 1):
        run = copy if runs > 1 else 1
        codec = findings.read(f"codes of run {run}", partial(load_codec, schema, folder, run))
        model = findings.read(model_name(run), partial(load_model, folder / model_name(run)))
        if codec and model and dict(model.domain.sizes) != dict(codec.domain.sizes):
            findings.problems.append(Problem(model_name(run), "speaks about other codes than the schema."))
        never_empty: frozenset[str] | None = None
        if codec and model and transcripts:
            fitted = Fitted(codec, transcripts[run - 1], model)
            never_empty = findings.read(model_name(run), partial(never_unreadable, codec, fitted.transcript, model))
            if copy == 1:
                findings.add("statement.json", partial(check_odd, statement, fitted))
        if codec:
            path, rows = folder / data_name(copy, config.copies), config.rows[copy - 1]
            findings.problems += check_rows(path, codec, rows, statement.run, never_empty or frozenset())


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
