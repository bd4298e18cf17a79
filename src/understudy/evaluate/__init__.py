"""How close is the stand-in to the real table, and for what? Confidential: everything here reads the real rows."""

import sys

from understudy.evaluate.suite import Evaluation, evaluate
from understudy.options import VerbPackage

__all__ = ["Evaluation", "evaluate"]

sys.modules[__name__].__class__ = VerbPackage
