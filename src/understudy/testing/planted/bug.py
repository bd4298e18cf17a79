"""A planted bug: what it is called, how it is planted, and the net that must catch it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from unittest import mock

__all__ = ["Plant", "PlantedBug", "patched"]

Plant = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A bug, how to plant it, and the net that must catch it."""

    name: str
    net: str
    plant: Plant


def patched(target: object, name: str, wrong: object) -> Plant:
    """The bug of putting something else in the place of a name."""
    return lambda: mock.patch.object(target, name, wrong)
