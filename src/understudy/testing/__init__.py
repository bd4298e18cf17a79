"""The safety net, published for contributors and plug-ins: contracts, doubles of the noise, replay, planted bugs.

Nothing in this room protects anybody. It is here so that a new source, model or mechanism can be held against the
same published contract as ours.
"""

from understudy.testing.contracts import check_model, check_source
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.method_contract import MethodChecks, check_method

__all__ = ["MethodChecks", "NoNoise", "SeededRandomizer", "check_method", "check_model", "check_source"]
