"""Compare: every method under the same light, to find out which one to use, and at which ε."""

import sys

from understudy.compare.choice import Choice, choose
from understudy.compare.compare import Comparison, compare
from understudy.options import VerbPackage

__all__ = ["Choice", "Comparison", "choose", "compare"]

sys.modules[__name__].__class__ = VerbPackage
