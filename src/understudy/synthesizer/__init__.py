"""From a private table to a release: plan without data, check, charge, measure, and only then draw rows."""

from understudy.synthesizer.design import plan
from understudy.synthesizer.environment import Environment
from understudy.synthesizer.pipeline import synthesize
from understudy.synthesizer.synthesizer import Synthesizer

__all__ = ["Environment", "Synthesizer", "plan", "synthesize"]
