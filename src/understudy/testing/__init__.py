"""The published contracts, for contributors and plug-ins: a method, metric, source or model is held against them.

One call each: `check_method`, `check_metric`, `check_source`, `check_model`. The message of a failure says for what,
what is wrong and what to do. The doubles of the noise that come along are NOT PRIVATE, and a release made with one
says so.
"""

from understudy.testing.contracts import check_metric, check_model, check_source
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.method_contract import MethodChecks, check_method
from understudy.testing.replay import Leak

__all__ = [
    "Leak",
    "MethodChecks",
    "NoNoise",
    "SeededRandomizer",
    "check_method",
    "check_metric",
    "check_model",
    "check_source",
]
