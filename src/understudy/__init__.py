"""understudy: synthetic stand-ins for private tables, under a differential-privacy guarantee that holds end to end.

Public names load on first use, so that `import understudy` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy import demo, errors, schema
    from understudy.audit.audit import audit
    from understudy.compare.choice import choose
    from understudy.compare.compare import compare
    from understudy.counts.databases import read_database
    from understudy.counts.files import read_table
    from understudy.counts.opening import open_table
    from understudy.evaluate import Evaluation, evaluate
    from understudy.evaluate.metric import metrics
    from understudy.evaluate.pooling import pool
    from understudy.methods.leaf_size import leaf_size
    from understudy.methods.method import methods
    from understudy.privacy.cost import Budget, Cost
    from understudy.privacy.ledger import Ledger
    from understudy.release import Release, Statement
    from understudy.schema import Schema, Unit
    from understudy.synthesizer import Synthesizer, plan, synthesize
    from understudy.synthesizer.verifying import verify_release as verify

__version__ = "0.2.0"

__all__ = [
    "Budget",
    "Cost",
    "Evaluation",
    "Ledger",
    "Release",
    "Schema",
    "Statement",
    "Synthesizer",
    "Unit",
    "__version__",
    "audit",
    "choose",
    "compare",
    "demo",
    "errors",
    "evaluate",
    "leaf_size",
    "methods",
    "metrics",
    "open_table",
    "plan",
    "pool",
    "read_database",
    "read_table",
    "schema",
    "synthesize",
    "verify",
]

_PLACES = {
    "Budget": ("understudy.privacy.cost", "Budget"),
    "Cost": ("understudy.privacy.cost", "Cost"),
    "Evaluation": ("understudy.evaluate", "Evaluation"),
    "Ledger": ("understudy.privacy.ledger", "Ledger"),
    "Release": ("understudy.release", "Release"),
    "Schema": ("understudy.schema", "Schema"),
    "Statement": ("understudy.release", "Statement"),
    "Synthesizer": ("understudy.synthesizer", "Synthesizer"),
    "Unit": ("understudy.schema", "Unit"),
    "audit": ("understudy.audit", "audit"),
    "choose": ("understudy.compare", "choose"),
    "compare": ("understudy.compare", "compare"),
    "demo": ("understudy.demo", None),
    "errors": ("understudy.errors", None),
    "evaluate": ("understudy.evaluate.suite", "evaluate"),
    "leaf_size": ("understudy.methods.leaf_size", "leaf_size"),
    "methods": ("understudy.methods.method", "methods"),
    "metrics": ("understudy.evaluate.metric", "metrics"),
    "open_table": ("understudy.counts.opening", "open_table"),
    "plan": ("understudy.synthesizer", "plan"),
    "pool": ("understudy.evaluate.pooling", "pool"),
    "read_database": ("understudy.counts.databases", "read_database"),
    "read_table": ("understudy.counts.files", "read_table"),
    "schema": ("understudy.schema", None),
    "synthesize": ("understudy.synthesizer", "synthesize"),
    "verify": ("understudy.synthesizer.verifying", "verify_release"),
}


def __getattr__(name: str) -> object:
    """A public name, loaded when it is first asked for."""
    if name not in _PLACES:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    module, attribute = _PLACES[name]
    loaded = import_module(module)
    value: object = loaded if attribute is None else getattr(loaded, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
