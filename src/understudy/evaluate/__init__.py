"""How close is the stand-in to the real table, and for what? Confidential: everything here reads the real rows.

The package bears the name of its one verb. Once any file of it is loaded, `understudy.evaluate` is this module rather
than the function, so the module can be called as well.
"""

import sys
from types import ModuleType

from understudy.evaluate.suite import Evaluation, evaluate

__all__ = ["Evaluation", "evaluate"]


class _Room(ModuleType):
    """This module, when it is called: its verb."""

    def __call__(self, real: object, synthetic: object, *more: object, **settings: object) -> Evaluation:
        return evaluate(real, synthetic, *more, **settings)  # type: ignore[arg-type]


sys.modules[__name__].__class__ = _Room
