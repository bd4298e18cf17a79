"""Estimation by entropic mirror descent: the model is multiplied by exp(−rate · gradient) until the loss is low.

The step is accepted if the loss falls by half of what its gradient promises; the rate halves after a failure and grows
after a success: by half until the first failure, by a little from then on. The whole loop is compiled once, whatever
the structure. A fit can start from an earlier one, and it stops after a number of steps or as soon as the loss is what
the noise alone explains: going on would fit noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.marginals.clique import Clique
from understudy.models.graphical.interpreter import run
from understudy.models.graphical.loss import Folded, evaluate
from understudy.models.graphical.program import FLOOR, Program

__all__ = ["Fit", "Potentials", "Stopping", "descend"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Potentials = Mapping[Clique, Floats]

_DEEPEST = 32.0
"""Most that one update may lower the logarithm of a cell."""
_FAILURES = 40


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """How a fit ended: its loss, steps taken, last rate, and the log-potentials another fit can start from."""

    loss: float
    steps: int
    rate: float
    potentials: Potentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """When to stop: after `steps`, or once the loss is at most `enough`."""

    steps: int
    enough: float = -np.inf


def descend(program: Program, folded: Folded, total: float, stopping: Stopping, start: Fit | None = None) -> Fit:
    """Fits the program's state, which must have been reset, to the folded tables; a start's rate of 0 is no rate."""
    theta = _inherited(program, start)
    if theta.any():
        _apply(program.forward, program.accept, program.offsets, program.data, theta)
    steepest = float(folded.precision.max(initial=0.0))
    steepest += sum(float(folded.group_precision[row[3] : row[3] + row[4]].max(initial=0.0)) for row in folded.sums)
    rate = start.rate if start is not None and start.rate > 0.0 else 2.0 / (max(steepest, 1e-300) * total)
    loss, steps, rate = _descend(
        program.forward,
        program.accept,
        program.offsets,
        program.data,
        program.bounds,
        program.marginals_at,
        folded,
        theta,
        total,
        stopping.steps,
        stopping.enough,
        rate,
    )
    pieces = zip(program.parameters, program.bounds[:-1], program.bounds[1:], strict=True)
    potentials = {clique: program.outward(clique, theta[low:high]) for clique, low, high in pieces}
    return Fit(float(loss), int(steps), float(rate), potentials)


def _inherited(program: Program, start: Fit | None) -> Floats:
    """Log-potentials of the earlier fit, each added to the first parameter that contains its clique."""
    theta = np.zeros(program.parameter_cells)
    sizes = program.tree.domain.sizes
    for clique, table in (start.potentials if start is not None else {}).items():
        for number, parameter in enumerate(program.parameters):
            if set(clique) <= set(parameter):
                axes = program.axes(parameter)
                piece = theta[program.bounds[number] : program.bounds[number + 1]].reshape([sizes[a] for a in axes])
                piece += program.inward(clique, table).reshape([sizes[a] if a in clique else 1 for a in axes])
                break
    return theta


@compiled()  # pragma: no cover
def _exponential(exponents, result):  # type: ignore[no-untyped-def]
    """exp of numbers in [−32, 0] to 11 digits: a polynomial of x/64 squared six times, which vectorises."""
    for i in range(exponents.size):
        x = exponents[i] * (1.0 / 64.0)
        y = 1.0 + x * (1.0 / 11.0)
        y = 1.0 + x * y * (1.0 / 10.0)
        y = 1.0 + x * y * (1.0 / 9.0)
        y = 1.0 + x * y * (1.0 / 8.0)
        y = 1.0 + x * y * (1.0 / 7.0)
        y = 1.0 + x * y * (1.0 / 6.0)
        y = 1.0 + x * y * (1.0 / 5.0)
        y = 1.0 + x * y * (1.0 / 4.0)
        y = 1.0 + x * y * (1.0 / 3.0)
        y = 1.0 + x * y * (1.0 / 2.0)
        y = 1.0 + x * y
        y *= y
        y *= y
        y *= y
        y *= y
        y *= y
        result[i] = y * y


@compiled()  # pragma: no cover
def _update(gradient, rate, bounds, change):  # type: ignore[no-untyped-def]
    """change = −rate · gradient, shifted to at most 0 in every table and cut at the deepest allowed."""
    for table in range(bounds.size - 1):
        piece = gradient[bounds[table] : bounds[table + 1]]
        least = piece.min()
        result = change[bounds[table] : bounds[table + 1]]
        for cell in range(piece.size):
            result[cell] = max(rate * (least - piece[cell]), -_DEEPEST)


@compiled()  # pragma: no cover
def _marginals(data, bounds, start, total, result):  # type: ignore[no-untyped-def]
    """The marginals that the last run left behind, each scaled to the total."""
    for table in range(bounds.size - 1):
        low, high = bounds[table], bounds[table + 1]
        mass = 0.0
        for cell in range(low, high):
            mass += data[start + cell]
        scale = total / mass
        for cell in range(low, high):
            result[cell] = data[start + cell] * scale


@compiled()  # pragma: no cover
def _apply(forward, accept, offsets, data, theta):  # type: ignore[no-untyped-def]
    """Multiplies the state by exp(theta), in steps that neither under- nor overflow."""
    deepest = 0.0
    for value in theta:
        deepest = max(deepest, abs(value))
    pieces = int(deepest / (0.5 * _DEEPEST)) + 1
    for _ in range(pieces):
        for cell in range(theta.size):
            data[cell] = np.exp(theta[cell] / pieces)
        run(forward, offsets, data, FLOOR)
        run(accept, offsets, data, FLOOR)


@compiled()  # pragma: no cover
def _descend(  # type: ignore[no-untyped-def]
    forward, accept, offsets, data, bounds, start, folded, theta, total, steps, enough, rate
):
    size = theta.size
    current, trial, change = np.empty(size), np.empty(size), np.empty(size)
    gradient, slope = np.empty(size), np.empty(size)
    data[:size] = 1.0
    run(forward, offsets, data, FLOOR)
    _marginals(data, bounds, start, total, current)
    loss = evaluate(folded, current, gradient)
    failures, failed = 0, False
    step = 0
    while step < steps and loss > enough and failures < _FAILURES:
        step += 1
        _update(gradient, rate, bounds, change)
        _exponential(change, data[:size])
        run(forward, offsets, data, FLOOR)
        _marginals(data, bounds, start, total, trial)
        reached = evaluate(folded, trial, slope)
        promised = 0.0
        for cell in range(size):
            promised += gradient[cell] * (current[cell] - trial[cell])
        if promised <= 0.0:
            break
        if loss - reached >= 0.5 * promised:
            run(accept, offsets, data, FLOOR)
            for cell in range(size):
                theta[cell] += change[cell]
            current, trial = trial, current
            gradient, slope = slope, gradient
            loss = reached
            rate *= 1.02 if failed else 1.5
            failures = 0
        else:
            rate *= 0.5
            failures += 1
            failed = True
    return loss, step, rate
