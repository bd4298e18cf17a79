"""verify, with the plan made again: whether a run asked what a fixed plan asks is computed, not believed.

A statement says of itself whether all queries and costs were fixed before the first answer (`as_planned`). If so, its
ε may be computed from the noise that was drawn, and be smaller than what was granted; if not, a smaller ε named after
the fact would be no differential privacy (`release/statement.py`). Whoever says it wrongly claims too much. So the plan
is made again here, from the schema, the settings and the budget in the folder, without data.

A plan of this version need not be the one that another version made, and one that looked at a public table cannot be
made without it. Where such a release differs from the plan made here, that is named as not checked, not as wrong.

The folder may come from a stranger, who can write options and schemas of which a plan takes hours. So only methods that
have fixed plans are asked for one, for one run first, and for schemas of many columns only if everything is to be
checked (`PLANNED_COLUMNS` in `release/files.py`).
"""

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

from understudy.errors import Problem, UnderstudyError
from understudy.methods.method import method_named
from understudy.privacy.cost import Cost
from understudy.release.release import RunConfig
from understudy.release.statement import Statement
from understudy.release.verify import Inspection
from understudy.release.verify import inspect_release as inspect_alone
from understudy.schema import Schema
from understudy.synthesizer.design import Design


def verify_release(folder: str | Path, *, everything: bool = False) -> list[Problem]:
    """Everything wrong with a release folder; an empty list means that nothing was found.

    Of folders with more than about 100 million values a part is checked, drawn at random, unless `everything` is
    asked for; `inspect_release` says what was left out.
    """
    return list(inspect_release(folder, everything=everything).problems)


def inspect_release(folder: str | Path, *, everything: bool = False) -> Inspection:
    """What is wrong with a release folder and what was not checked; its plan is made again."""
    return inspect_alone(folder, everything=everything, replan=planned_costs)


def planned_costs(schema: Schema, config: RunConfig, statement: Statement) -> Sequence[Cost] | None:
    """The costs of all queries of this run, in order, if its plan fixes them; none if it does not.

    None where this installation cannot tell.
    """
    try:
        method = method_named(config.method, config.options)
        planned = _planned(schema, config, statement) if method.can_be_fixed else []
    except (UnderstudyError, ArithmeticError, ValueError, TypeError):  # no plan here: another version, a public table
        return None
    differs = [charge.cost for charge in statement.charges] != planned
    elsewhere = statement.versions.get("understudy") != version("understudy") or method.uses_public
    return None if differs and elsewhere else planned


def _planned(schema: Schema, config: RunConfig, statement: Statement) -> Sequence[Cost]:
    """What is planned for all runs, if one run would ask as many queries as the statement has for each.

    So work grows with what is in the folder, and not with a number of copies that is merely written there.
    """
    check = statement.check
    make = partial(
        Design.of,
        schema,
        config.method,
        statement.budget,
        options=config.options,
        check_share=None if check is None else check.share,
        criteria=None if check is None else check.criteria,
    )
    design, runs = make(), 1 if config.copies_mode == "resample" else config.copies
    queries = len(design.plan.steps) * runs + len(design.check_steps)
    if not design.fixed or queries != len(statement.charges):
        return []
    if runs > 1:
        design = make(runs=runs)
    return design.planned if design.fixed else []
