"""Audit: does a method leak more than it claims? Real runs on neighbouring tables, and a lower bound on ε."""

import sys

from understudy.audit.audit import Audit, audit
from understudy.options import VerbPackage

__all__ = ["Audit", "audit"]

sys.modules[__name__].__class__ = VerbPackage
