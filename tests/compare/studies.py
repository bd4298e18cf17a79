"""A made-up study, for what is computed from outcomes alone."""

from understudy.compare.job import Found, Outcome
from understudy.compare.settings import Candidate, StudySettings
from understudy.compare.study import Finished, Study

__all__ = ["made_up"]


def made_up(errors: dict[str, list[float]], *, repeats: int = 3, other: dict[str, float] | None = None) -> Study:
    """Methods with these errors at ε = 1, one per repeat; `other` is a second score that is better when higher."""
    settings = StudySettings(
        tuple(Candidate(name, "independent") for name in errors), (1.0,), repeats=repeats, metrics=("marginals", "nist")
    )
    runs = []
    for cell in settings.cells:
        values = errors[cell.candidate.name]
        if len(values) < cell.repeat:
            runs.append(Finished(cell, Outcome("time", "was still running.", 9.0, 0.0, 0)))
            continue
        scores = [Found("marginals", "2-way", values[cell.repeat - 1], 0.01, "lower", 0.0, "")]
        if other is not None:
            scores.append(Found("nist", "score", other[cell.candidate.name], None, "higher", 1e6, ""))
        runs.append(Finished(cell, Outcome("done", "", 1.0, 2.0, 2**20, tuple(scores))))
    return Study(settings, tuple(runs), confidential=True, title="made up")
