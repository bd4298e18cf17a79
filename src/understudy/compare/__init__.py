"""Compare: every method under the same light, to find out which one to use, and at which ε."""

import sys

from understudy import _VerbPackage
from understudy.compare.choice import Choice, choose
from understudy.compare.compare import Comparison, compare

__all__ = ["Choice", "Comparison", "choose", "compare"]

sys.modules[__name__].__class__ = _VerbPackage
