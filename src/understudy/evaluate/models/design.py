"""Design: a model matrix given by its terms, and the three products that every fit needs.

The cross product X'WX of a row with T terms touches T² entries, however many columns the matrix has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.compiled import compiled
from understudy.evaluate.models.terms import Term

__all__ = ["INTERCEPT", "Design", "design_of"]

INTERCEPT = "(intercept)"
Floats = npt.NDArray[np.float64]


@compiled()  # pragma: no cover
def _predict(places, values, coefficients, out):  # type: ignore[no-untyped-def]
    weighted = values.shape[1]
    for i in range(places.shape[0]):
        total = 0.0
        for s in range(places.shape[1]):
            place = places[i, s]
            if place >= 0:
                if s < weighted:
                    total += coefficients[place] * values[i, s]
                else:
                    total += coefficients[place]
        out[i] = total


@compiled()  # pragma: no cover
def _collect(places, values, residuals, out):  # type: ignore[no-untyped-def]
    weighted = values.shape[1]
    for i in range(places.shape[0]):
        for s in range(places.shape[1]):
            place = places[i, s]
            if place >= 0:
                out[place] += residuals[i] * (values[i, s] if s < weighted else 1.0)


@compiled()  # pragma: no cover
def _cross(places, values, weights, out):  # type: ignore[no-untyped-def]
    weighted = values.shape[1]
    for i in range(places.shape[0]):
        for s in range(places.shape[1]):
            place = places[i, s]
            if place < 0:
                continue
            scaled = weights[i] * (values[i, s] if s < weighted else 1.0)
            for t in range(s + 1):
                other = places[i, t]
                if other >= 0:
                    out[place, other] += scaled * (values[i, t] if t < weighted else 1.0)


@compiled()  # pragma: no cover
def _quadratic(places, values, matrix, out):  # type: ignore[no-untyped-def]
    weighted = values.shape[1]
    for i in range(places.shape[0]):
        total = 0.0
        for s in range(places.shape[1]):
            place = places[i, s]
            if place < 0:
                continue
            mine = values[i, s] if s < weighted else 1.0
            for t in range(places.shape[1]):
                other = places[i, t]
                if other >= 0:
                    total += mine * matrix[place, other] * (values[i, t] if t < weighted else 1.0)
        out[i] = total


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """A model matrix: column names, and for each row the columns that are not zero (terms with values first)."""

    names: tuple[str, ...]
    places: npt.NDArray[np.int32]
    values: Floats

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.places)

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.names)

    def predict(self, coefficients: Floats) -> Floats:
        """X b."""
        out = np.empty(self.rows)
        _predict(self.places, self.values, coefficients, out)
        return out

    def collect(self, residuals: Floats) -> Floats:
        """X' r."""
        out = np.zeros(self.width)
        _collect(self.places, self.values, residuals, out)
        return out

    def cross(self, weights: Floats) -> Floats:
        """X' diag(w) X."""
        out = np.zeros((self.width, self.width))
        _cross(self.places, self.values, weights, out)
        whole = out + out.T
        np.fill_diagonal(whole, np.diagonal(out))
        return whole

    def quadratic(self, matrix: Floats) -> Floats:
        """x' M x of every row."""
        out = np.empty(self.rows)
        _quadratic(self.places, self.values, np.ascontiguousarray(matrix), out)
        return out

    def take(self, index: npt.NDArray[np.int64]) -> "Design":
        """The same columns for these rows."""
        return Design(self.names, self.places[index], self.values[index])


def design_of(terms: Sequence[Term], rows: int) -> Design:
    """The matrix with an intercept and the columns of these terms, in their order."""
    names = [INTERCEPT]
    shifted: list[tuple[npt.NDArray[np.int32], Floats | None]] = [(np.zeros(rows, np.int32), None)]
    for term in terms:
        shifted.append((np.where(term.level >= 0, term.level + len(names), -1).astype(np.int32), term.value))
        names += term.names
    shifted.sort(key=lambda entry: entry[1] is None)  # stable: terms with values first
    places = np.stack([place for place, _ in shifted], axis=1)
    values = [value for _, value in shifted if value is not None]
    return Design(tuple(names), places, np.stack(values, axis=1) if values else np.empty((rows, 0)))
