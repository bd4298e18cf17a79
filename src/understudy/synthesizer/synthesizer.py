"""Synthesizer: the same run in the shape of an estimator. Settings first, then `fit`, then `sample`."""

import warnings
from typing import Self

from understudy.errors import UnderstudyWarning, UsageError, nearest
from understudy.privacy.ledger import Ledger
from understudy.release.release import Frame, Where
from understudy.schema import Schema
from understudy.synthesizer.account import Place
from understudy.synthesizer.design import Options
from understudy.synthesizer.pipeline import synthesize

_SETTINGS = ("schema", "epsilon", "delta", "method", "options", "ledger", "dataset", "seed", "memory_bytes")


class Synthesizer:
    """A synthesizer shaped like an estimator: settings at construction, `fit` to a table, then `sample`.

    Every `fit` is a release of its own: it is charged in full, and costs of several fits to the same people add up.
    Settings are stored as given and checked when `fit` is called.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        epsilon: float,
        delta: float = 0.0,
        method: str = "auto",
        options: Options | None = None,
        ledger: Ledger | Place | None = None,
        dataset: str | None = None,
        seed: int | None = None,
        memory_bytes: int | None = None,
    ) -> None:
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.options = options
        self.ledger = ledger
        self.dataset = dataset
        self.seed = seed
        self.memory_bytes = memory_bytes

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
        self.release_ = synthesize(
            data,
            self.schema,
            method=self.method,
            epsilon=self.epsilon,
            delta=self.delta,
            options=self.options,
            ledger=self.ledger,
            dataset=self.dataset,
            seed=self.seed,
            memory_bytes=self.memory_bytes,
        )
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
        return {name: getattr(self, name) for name in _SETTINGS}

    def set_params(self, **settings: object) -> Self:
        """Changes settings; they are checked at the next `fit`."""
        for name, value in settings.items():
            if name not in _SETTINGS:
                raise UsageError(f"setting {name!r}", "is not known.", nearest(name, _SETTINGS))
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"Synthesizer(method={self.method!r}, epsilon={self.epsilon!r}, delta={self.delta!r})"
