"""The safety net, published for contributors and plug-ins: contracts, doubles of the noise, replay, planted bugs.

Nothing in this room protects anybody. It is here so that a new source, model or mechanism can be held against the
same published contract as ours.
"""

from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.mechanism_contract import MechanismChecks, check_mechanism
from understudy.testing.model_contract import check_model
from understudy.testing.source_contract import check_source

__all__ = ["MechanismChecks", "NoNoise", "SeededRandomizer", "check_mechanism", "check_model", "check_source"]
