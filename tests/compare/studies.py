"""A made-up study, for what is computed from outcomes alone."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from understudy.compare.runs import Found, Outcome
from understudy.compare.study import Candidate, Cell, Finished, Study, StudySettings

__all__ = ["made_up", "put_first"]


def made_up(
    errors: dict[str, list[float]],
    *,
    repeats: int = 3,
    other: Mapping[str, float | list[float | None] | None] | None = None,
    epsilons: tuple[float, ...] = (1.0,),
    seconds: dict[str, float] | None = None,
) -> Study:
    """Methods with these errors, one per repeat and at every ε; a repeat without one was still running.

    `other` is a second score that is better when higher, the same in all repeats or one per repeat; None is a score
    without a number. `seconds` is what a run of a method took, 1 if not said.
    """
    settings = StudySettings(
        tuple(Candidate(name, "independent") for name in errors),
        epsilons,
        repeats=repeats,
        metrics=("marginals", "nist"),
    )
    runs = []
    for cell in settings.cells:
        name, place = cell.candidate.name, cell.repeat - 1
        if len(errors[name]) <= place:
            runs.append(Finished(cell, Outcome("time", "was still running.", 9.0, 0.0, 0)))
            continue
        scores = [Found("marginals", "2-way", errors[name][place], 0.01, "lower", 0.0, "")]
        if other is not None:
            own = other[name]
            value = own[place] if isinstance(own, list) else own
            scores.append(Found("nist", "score", value, None, "higher", 1e6, "" if value is not None else "no triples"))
        runs.append(Finished(cell, Outcome("done", "", (seconds or {}).get(name, 1.0), 2.0, 2**20, tuple(scores))))
    return Study(settings, tuple(runs), confidential=True, title="made up")


def put_first(study: Study, found: Callable[[Cell], Found]) -> Study:
    """The same study, with one more score at the head of every finished run."""
    runs = tuple(
        replace(run, outcome=replace(run.outcome, scores=(found(run.cell), *run.outcome.scores)))
        if run.outcome.status == "done"
        else run
        for run in study.runs
    )
    return replace(study, runs=runs)
