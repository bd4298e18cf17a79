"""Everything that can be wrong with a study, found before its folder exists and before anything runs.

Plans follow from public facts; of the tables, headers are looked at, and whether the table has a row at all, which is
no leak because a comparison is confidential. A method that is too large for the machine stays in the study as a
refused run, as long as another one can run; every mistake of use raises.
"""

import os
from pathlib import Path

from understudy.compare.settings import Candidate, StudySettings
from understudy.compare.study import Tables
from understudy.compare.watch import Limits
from understudy.counts.open import open_table
from understudy.errors import InputError, ResourceError, UsageError
from understudy.evaluate.suite import check_metrics, chosen_metrics
from understudy.release.folder import refuse_release_folder
from understudy.schema import Schema
from understudy.synthesizer.design import Copies, Design, check_memory
from understudy.synthesizer.public_schema import check_without_public, public_schema

__all__ = ["check_place", "check_study"]

LEAST_BYTES = 2**20


def check_study(tables: Tables, schema: Schema, settings: StudySettings, limits: Limits) -> None:
    """Raises unless the study can be run as it is asked for.

    Raises:
        UsageError, SchemaError: for a mistake in what is asked, or a table that cannot be read under the schema.
        ResourceError: if no method can run on this machine at any ε.
    """
    numbers = all(isinstance(one, int | float) for one in (limits.seconds, limits.bytes))
    if not numbers or not limits.seconds > 0 or not limits.bytes >= LEAST_BYTES:
        given = f"{limits.seconds!r} s and {limits.bytes!r} bytes"
        raise UsageError("limits", f"must be above 0 s and 1 MiB, got {given}.")
    _check_metrics(settings, schema)
    _check_table(tables.data, schema)
    _check_plans(tables, schema, settings)


def check_place(place: Path) -> None:
    """Raises unless a study may live there: in a folder, new or not, that can be written and is no release.

    Raises:
        UsageError: with what to do instead.
    """
    refuse_release_folder(place)
    where = f"output {str(place)!r}"
    if (place.exists() or place.is_symlink()) and not place.is_dir():
        raise UsageError(where, "is a file or a broken link, but a study is a folder.", "Name a new folder.")
    known = next((parent for parent in (place, *place.absolute().parents) if parent.exists()), place)
    if not known.is_dir():
        raise UsageError(where, f"cannot be made, because {str(known)!r} is a file.", "Name another folder.")
    if not os.access(known, os.W_OK | os.X_OK):
        raise UsageError(where, f"cannot be made or written in {str(known)!r}.", "Name a folder you may write in.")


def _check_metrics(settings: StudySettings, schema: Schema) -> None:
    check_metrics(chosen_metrics(settings.metrics, settings.metric_options, settings.formula), schema)


def _check_table(data: object, schema: Schema) -> None:
    table = open_table(data, schema)
    if not any(rows for rows, _ in table.batches([])):
        raise InputError("table", "has no rows, so there is nothing to compare with.", "Name a table with rows.")


def _check_plans(tables: Tables, schema: Schema, settings: StudySettings) -> None:
    if tables.public is not None and not any(one.uses_public for one in settings.candidates):
        rule = "is given, but none of these methods uses a public table."
        raise UsageError("public", rule, "Drop it or add a method that uses one; `understudy methods` tells.")
    refused: list[ResourceError] = []
    pairs = [(one, epsilon) for one in settings.candidates for epsilon in settings.epsilons]
    for one, epsilon in pairs:
        try:
            _check_plan(one, epsilon, tables, schema, settings)
        except ResourceError as error:
            refused.append(error)
        except InputError:
            raise
        except UsageError as error:
            told = error.problem.where
            where = f"{one.name} at ε = {epsilon:g}" + ("" if told == f"method {one.method}" else f", {told}")
            raise UsageError(where, error.problem.rule, error.problem.fix) from None
    if len(refused) == len(pairs):
        raise refused[0]


def _check_plan(one: Candidate, epsilon: float, tables: Tables, schema: Schema, settings: StudySettings) -> None:
    """Raises what `synthesize` would raise before it reads a row."""
    wanted = Copies(settings.copies, settings.copies_mode, settings.rows, settings.seed)
    budget, public = settings.budget(one, epsilon), tables.public_for(one)
    design = Design.of(schema, one.method, budget, options=dict(one.options), runs=wanted.runs, public=public)
    if public is None:
        check_without_public(design)
    else:
        open_table(public, public_schema(design))
    check_memory(design.plan, None)
