"""Synthesizer: the same run in the shape of an estimator. Settings first, then `fit`, then `sample`."""

import warnings
from dataclasses import fields
from typing import Self

from understudy.errors import UnderstudyWarning, UsageError, nearest
from understudy.release.frames import Frame
from understudy.release.release import Where
from understudy.synthesizer.pipeline import RunSettings, run

_NAMES = [setting.name for setting in fields(RunSettings) if not setting.name.startswith("_")]


class Synthesizer(RunSettings):
    """A synthesizer shaped like an estimator: settings at construction, `fit` to a table, then `sample`.

    Settings are the arguments of `synthesize`, stored as given and checked when `fit` is called. Every `fit` is a
    release of its own: it is charged in full, and costs of several fits to the same people add up.
    """

    def fit(self, data: object, y: None = None) -> Self:
        """Charges the budget, measures the table and fits a model; returns itself with `release_` filled in.

        Costs (ε, δ) at every call: a second call is a second release, and says so with a warning.
        """
        if hasattr(self, "release_"):
            warnings.warn(
                "fit was called again: the budget was charged again, and the costs of all fits add up.",
                UnderstudyWarning,
                stacklevel=2,
            )
        self.release_ = run(data, self)
        self.statement_ = self.release_.statement
        self.transcript_ = self.release_.transcript
        self.model_ = self.release_.model
        return self

    def sample(self, rows: int | None = None, *, seed: int | None = None, where: Where | None = None) -> Frame:
        """Synthetic rows of the fitted model, free of charge; as many as the noisy total when not given."""
        if not hasattr(self, "release_"):
            raise UsageError("sample", "needs a fitted model.", "Call fit first.")
        return self.release_.sample(rows, seed=self.seed if seed is None else seed, where=where)

    def get_params(self, *, deep: bool = True) -> dict[str, object]:
        """The settings by name."""
        return {name: getattr(self, name) for name in _NAMES}

    def set_params(self, **settings: object) -> Self:
        """Changes settings; they are checked at the next `fit`."""
        for name, value in settings.items():
            if name not in _NAMES:
                raise UsageError(f"setting {name!r}", "is not known.", nearest(name, _NAMES))
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"Synthesizer(method={self.method!r}, epsilon={self.epsilon!r}, delta={self.delta!r})"
