"""Planted bugs: leaks and blunders that were seen in this field, put into our own code one at a time.

A safety net that catches nothing proves nothing. Every bug here must be caught by the net it names; a bug that
survives is a hole in the net and fails the suite. Bugs are patches that last as long as their context.
"""

from understudy.testing.planted.bug import PlantedBug
from understudy.testing.planted.leaks import LEAKS
from understudy.testing.planted.ledger import UNPAID
from understudy.testing.planted.noise import BLUNDERS
from understudy.testing.planted.scores import UNDERSTATED
from understudy.testing.planted.sources import MISREAD
from understudy.testing.planted.training import TRAINING

__all__ = ["PLANTED", "PlantedBug"]

PLANTED: tuple[PlantedBug, ...] = (*LEAKS, *BLUNDERS, *UNDERSTATED, *UNPAID, *TRAINING, *MISREAD)
