"""From a private table to a release: plan without data, check, charge, measure, and only then draw rows."""

from understudy.synthesizer.design import plan
from understudy.synthesizer.pipeline import Environment, synthesize
from understudy.synthesizer.synthesizer import Synthesizer

__all__ = ["Environment", "Synthesizer", "plan", "synthesize"]
