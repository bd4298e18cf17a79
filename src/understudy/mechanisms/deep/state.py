"""State of networks as named arrays, so that a training can be interrupted and taken up again.

Public seeds and noisy sums are all that goes into it: the generator kept here is that of starting weights and drawn
records, which follows from the option `structure_seed`; noise has no generator that could be kept.
"""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from understudy.errors import UsageError
from understudy.privacy.training.checkpoint import State

__all__ = ["Arrays", "array_of", "filed", "floats_of", "listed", "structure_draws", "structure_state", "taken"]

Arrays = dict[str, npt.NDArray[np.generic]]
Floats = npt.NDArray[np.float64]


def filed(group: str, parts: Mapping[str, npt.NDArray[np.generic]]) -> Arrays:
    """The arrays under names that begin with the group.

    >>> list(filed("critic", {"weights": np.zeros(1)}))
    ['critic.weights']
    """
    return {f"{group}.{name}": np.array(part) for name, part in parts.items()}


def taken(group: str, state: State) -> Arrays:
    """The arrays of a group under their own names, as copies."""
    head = f"{group}."
    return {name.removeprefix(head): np.array(part) for name, part in state.items() if name.startswith(head)}


def listed(parts: Sequence[npt.NDArray[np.generic]]) -> Arrays:
    """A list of arrays, named by their places."""
    return {str(place): part for place, part in enumerate(parts)}


def array_of(state: State, name: str) -> npt.NDArray[np.generic]:
    """One array of a state.

    Raises:
        UsageError: if it is not there.
    """
    if name not in state:
        raise UsageError("checkpoint", f"holds no {name!r}.", "It was written by another version of understudy.")
    return np.array(state[name])


def floats_of(state: State, group: str) -> list[Floats]:
    """The list of arrays that was filed under the group."""
    parts = taken(group, state)
    return [np.asarray(parts[str(place)], dtype=np.float64) for place in range(len(parts))]


def structure_state(draws: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Where the public generator of starting weights and drawn records stands."""
    return np.frombuffer(json.dumps(draws.bit_generator.state, sort_keys=True).encode(), dtype=np.uint8)


def structure_draws(stored: npt.NDArray[np.generic]) -> np.random.Generator:
    """A generator that goes on from there."""
    draws = np.random.Generator(np.random.PCG64(0))
    draws.bit_generator.state = json.loads(stored.astype(np.uint8).tobytes())
    return draws
