"""Linear, logistic and Firth regression on model matrices of any height.

Model matrices
--------------
A matrix is given by its terms, each stored as one level and at most one value per row. A factor of ten thousand levels
costs as much as one of two, because no dummy column is ever written out; products of terms are terms again, so
interactions need nothing new. The cross product X'WX of a row with T terms touches T² entries, however many columns the
matrix has. Columns that are linear combinations of earlier ones are found from it and left out.

Normal equations
----------------
They are solved by elimination on one thread. Fits solve systems of a few hundred unknowns many times; libraries spread
such small systems over threads that wait for each other, which on a busy machine takes a hundred times as long as the
arithmetic. Rows are updated as a whole, so that the compiler vectorises them; sums keep their order.

Logistic regression
-------------------
By Newton's method. Levels that occur with one outcome only have no finite estimate; their fitted probabilities still
converge, and that is what propensity measures use. When even those run to 0 and 1 throughout (the two tables are
perfectly told apart), a small ridge keeps the fit finite and is reported.

Firth's logistic regression
---------------------------
A penalty of half the log determinant of the information keeps estimates finite. Steps solve
X'WX δ = X'(y − p + h(½ − p)), with h the diagonal of the weighted hat matrix, limited in length and halved until the
penalised likelihood does not fall. Wald intervals come from the inverse information; profile intervals hold one
coefficient and maximise over the others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit
from scipy.stats import chi2

from understudy.arrays import Bools, Floats, Integers, Ints, Shorts
from understudy.codec.table import TableCodec
from understudy.compiled import compiled
from understudy.evaluate.metric import Rows
from understudy.schema.columns import NumberColumn


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """Columns of a model matrix of which each row has at most one that is not zero.

    `level` says which (−1: none, the row is at the reference), `value` what stands there (None: 1).
    """

    names: tuple[str, ...]
    level: Shorts
    value: Floats | None = None


def factor(names: Sequence[str], codes: Integers, reference: int | None = None) -> Term:
    """Indicators of every code that occurs but the reference (the first that occurs when not given)."""
    present = np.flatnonzero(np.bincount(codes, minlength=len(names)))
    if reference is None:
        reference = int(present[0]) if len(present) else 0
    kept = present[present != reference]
    table = np.full(len(names), -1, np.int32)
    table[kept] = np.arange(len(kept), dtype=np.int32)
    return Term(tuple(names[code] for code in kept.tolist()), table[codes])


def slope(name: str, values: Floats) -> Term:
    """One numeric column."""
    return Term((name,), np.zeros(len(values), np.int32), values)


def product(first: Term, second: Term) -> Term:
    """The interaction: every product of a column of one with a column of the other that occurs in some row."""
    width = len(second.names)
    both = (first.level >= 0) & (second.level >= 0)
    joint = np.where(both, first.level.astype(np.int64) * width + second.level, -1)
    present = np.unique(joint[both])
    level = np.full(len(joint), -1, np.int32)
    level[both] = np.searchsorted(present, joint[both]).astype(np.int32)
    names = tuple(f"{first.names[place // width]}:{second.names[place % width]}" for place in present.tolist())
    values = [value for value in (first.value, second.value) if value is not None]
    return Term(names, level, None if not values else values[0] if len(values) == 1 else values[0] * values[1])


def column_terms(rows: Rows, name: str) -> list[Term]:
    """The terms of one column of the table for telling tables apart.

    A number gets a standardised slope, with 0 where it is missing or special, and an indicator for each of those
    states. Everything else is a factor in which missing is a level like any other.
    """
    codec = rows.codec
    parts = [part for part in codec.domain.columns if codec.origin(part) == name]
    if not isinstance(codec.schema.column(name), NumberColumn):
        return [factor(_labels(codec, part), rows.codes[part]) for part in parts]
    numbers = rows.numbers[name]
    odd = np.isnan(numbers)
    known = numbers[~odd]
    spread = float(known.std()) if len(known) else 0.0
    terms = []
    if spread > 0:
        terms.append(slope(name, np.where(odd, 0.0, (numbers - known.mean()) / spread)))
    states = np.where(odd, rows.codes[parts[0]].astype(np.int64) + 1, 0)
    if odd.any():
        terms.append(factor(["number", *_labels(codec, parts[0])], states, reference=0))
    return [term for term in terms if term.names]


def propensity_terms(rows: Rows, *, interactions: bool) -> list[Term]:
    """Main effects of every column, and if wanted all products of two columns."""
    names = list(dict.fromkeys(rows.codec.origin(part) for part in rows.domain.columns))
    by_column = [column_terms(rows, name) for name in names]
    terms = [term for found in by_column for term in found if term.names]
    if interactions:
        for place, first in enumerate(by_column):
            for second in by_column[place + 1 :]:
                terms += [product(one, other) for one in first for other in second]
    return [term for term in terms if term.names]


def _labels(codec: TableCodec, part: str) -> list[str]:
    return [f"{part}={codec.describe(part, code)}" for code in range(codec.domain.sizes[part])]


TOLERANCE = 1e-10


@compiled()  # pragma: no cover
def _sweep(matrix, tolerance, kept):  # type: ignore[no-untyped-def]
    """Cholesky by columns; a column whose remaining diagonal is next to nothing is left out."""
    width = matrix.shape[0]
    factor = np.zeros((width, width))
    for j in range(width):
        left = matrix[j, j]
        for k in range(j):
            left -= factor[j, k] * factor[j, k]
        if left <= tolerance * matrix[j, j] or matrix[j, j] <= 0.0:
            kept[j] = False
            continue
        kept[j] = True
        root = np.sqrt(left)
        factor[j, j] = root
        for i in range(j + 1, width):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = total / root


def independent_columns(cross: Floats) -> Bools:
    """True for each column that is not (up to rounding) a combination of the columns before it.

    >>> x = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    >>> independent_columns(x.T @ x).tolist()
    [True, True, False]
    """
    kept = np.zeros(len(cross), np.bool_)
    _sweep(np.ascontiguousarray(cross), TOLERANCE, kept)
    return kept


@compiled()  # pragma: no cover
def _solve(matrix, vector):  # type: ignore[no-untyped-def]
    """Overwrites the vector with the solution; False if the matrix is not positive definite. Uses the upper half."""
    size = vector.size
    for k in range(size):
        pivot = matrix[k, k]
        if not pivot > 0.0:
            return False
        row = matrix[k]
        for i in range(k + 1, size):
            factor = row[i] / pivot
            if factor != 0.0:
                other = matrix[i]
                for j in range(i, size):
                    other[j] -= factor * row[j]
                vector[i] -= factor * vector[k]
    for k in range(size - 1, -1, -1):
        total = vector[k]
        for j in range(k + 1, size):
            total -= matrix[k, j] * vector[j]
        vector[k] = total / matrix[k, k]
    return True


def solve_positive(matrix: Floats, vector: Floats) -> Floats | None:
    """x with matrix · x = vector; None if the matrix is not positive definite.

    >>> solve_positive(np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([2.0, 5.0])).tolist()
    [-0.5, 2.0]
    """
    solution = vector.copy()
    return solution if _solve(np.array(matrix, np.float64, order="C"), solution) else None


INTERCEPT = "(intercept)"


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
class ModelMatrix:
    """A model matrix: column names, and for each row the columns that are not zero (terms with values first)."""

    names: tuple[str, ...]
    places: Shorts
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

    def take(self, index: Ints) -> "ModelMatrix":
        """The same columns for these rows."""
        return ModelMatrix(self.names, self.places[index], self.values[index])


def design_of(terms: Sequence[Term], rows: int) -> ModelMatrix:
    """The matrix with an intercept and the columns of these terms, in their order."""
    names = [INTERCEPT]
    shifted: list[tuple[Shorts, Floats | None]] = [(np.zeros(rows, np.int32), None)]
    for term in terms:
        shifted.append((np.where(term.level >= 0, term.level + len(names), -1).astype(np.int32), term.value))
        names += term.names
    shifted.sort(key=lambda entry: entry[1] is None)  # stable: terms with values first
    places = np.stack([place for place, _ in shifted], axis=1)
    values = [value for _, value in shifted if value is not None]
    return ModelMatrix(tuple(names), places, np.stack(values, axis=1) if values else np.empty((rows, 0)))


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """Coefficients (0 where left out), which columns were kept, their covariance, degrees of freedom left over."""

    coefficients: Floats
    kept: Bools
    covariance: Floats
    residual_variance: float
    degrees: int


def fit_linear(design: ModelMatrix, outcomes: Floats) -> LinearFit | None:
    """The least squares estimate; None if there are no more rows than coefficients."""
    cross = design.cross(np.ones(design.rows))
    kept = independent_columns(cross)
    columns = np.flatnonzero(kept)
    degrees = design.rows - len(columns)
    if degrees < 1:
        return None
    solver = cho_factor(cross[np.ix_(columns, columns)], lower=True)
    coefficients = np.zeros(design.width)
    centre = float(outcomes.mean())
    coefficients[columns] = cho_solve(solver, design.collect(outcomes - centre)[columns])
    for _ in range(2):  # refinement: the normal equations square the condition number
        residuals = outcomes - centre - design.predict(coefficients)
        coefficients[columns] += cho_solve(solver, design.collect(residuals)[columns])
    residuals = outcomes - centre - design.predict(coefficients)
    coefficients[0] += centre
    variance = float(residuals @ residuals) / degrees
    covariance = variance * cho_solve(solver, np.eye(len(columns)))
    return LinearFit(coefficients, kept, covariance, variance, degrees)


RIDGE = 0.01
MOST_STEPS = 50
MOST_HALVINGS = 12
CLOSE = 1e-7
SEPARATED = 1e-4  # deviance per row below which the outcomes count as perfectly told apart
RUNAWAY = 12.0  # a linear predictor beyond this means a probability within 1e-5 of 0 or 1


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """Coefficients (0 where left out), which columns were kept, fitted probabilities, and how it went."""

    coefficients: Floats
    kept: Bools
    probabilities: Floats
    penalty: Floats
    converged: bool

    @property
    def ridge(self) -> float:
        """The ridge that was needed; 0 for plain maximum likelihood."""
        return float(self.penalty.max(initial=0.0))

    @property
    def parameters(self) -> int:
        """Number of estimated coefficients, the intercept included."""
        return int(self.kept.sum())

    def covariance(self, design: ModelMatrix) -> Floats | None:
        """Covariance of the estimates that were kept, from the information at the maximum; None if that is singular."""
        columns = np.flatnonzero(self.kept)
        weights = self.probabilities * (1 - self.probabilities)
        information = design.cross(weights)[np.ix_(columns, columns)] + np.diag(self.penalty)
        try:
            return np.asarray(cho_solve(cho_factor(information, lower=True), np.eye(len(columns))), np.float64)
        except LinAlgError:
            return None

    @property
    def runaway(self) -> bool:
        """Whether some fitted probability ran to 0 or 1: an estimate that is not finite."""
        edge = float(expit(-RUNAWAY))
        return bool(((self.probabilities < edge) | (self.probabilities > 1 - edge)).any())


def fit_logistic(design: ModelMatrix, outcomes: Floats, kept: Bools | None = None) -> LogisticFit:
    """Maximum likelihood; with a small ridge if the outcomes are perfectly told apart.

    Args:
        design: the model matrix.
        outcomes: 0 or 1 for each row, both of them present.
        kept: columns known to be linearly independent, if that was found out before.
    """
    if kept is None:
        kept = independent_columns(design.cross(np.ones(design.rows)))
    fit = _newton(design, outcomes, kept, 0.0)
    if fit is None or _deviance(fit.probabilities, outcomes) < SEPARATED * design.rows:
        fit = _newton(design, outcomes, kept, RIDGE)
    assert fit is not None  # a ridge makes every system positive definite
    return fit


def _newton(design: ModelMatrix, outcomes: Floats, kept: Bools, ridge: float) -> LogisticFit | None:
    """None if the equations cannot be solved without a ridge."""
    columns = np.flatnonzero(kept)
    penalty = np.full(len(columns), ridge)
    penalty[columns == 0] = 0.0
    coefficients = np.zeros(design.width)
    share = float(outcomes.mean())
    coefficients[0] = np.log(share / (1 - share))
    probabilities = np.full(design.rows, share)
    loss = _loss(probabilities, outcomes, coefficients[columns], penalty)
    converged = False
    for _ in range(MOST_STEPS):
        information = design.cross(probabilities * (1 - probabilities))[np.ix_(columns, columns)] + np.diag(penalty)
        score = design.collect(outcomes - probabilities)[columns] - penalty * coefficients[columns]
        step = solve_positive(information, score)
        if step is None:
            return None
        found = _searched(design, outcomes, coefficients, columns, step=step, penalty=penalty, loss=loss)
        if found is None:
            converged = True
            break
        coefficients, probabilities, better = found
        finished = loss - better <= CLOSE * (abs(better) + 0.1)
        loss = better
        if finished:
            converged = True
            break
    return LogisticFit(coefficients, kept, probabilities, penalty, converged)


def _searched(
    design: ModelMatrix, outcomes: Floats, start: Floats, columns: npt.NDArray[np.intp], *,
    step: Floats, penalty: Floats,
    loss: float,
) -> tuple[Floats, Floats, float] | None:  # fmt: skip
    """The longest halving of the step that does not raise the loss; None if none does."""
    for halving in range(MOST_HALVINGS):
        tried = start.copy()
        tried[columns] += step / 2**halving
        probabilities = expit(design.predict(tried))
        reached = _loss(probabilities, outcomes, tried[columns], penalty)
        if np.isfinite(reached) and reached <= loss:
            return tried, probabilities, reached
    return None


def _deviance(probabilities: Floats, outcomes: Floats) -> float:
    chosen = np.where(outcomes > 0.5, probabilities, 1 - probabilities)
    return float(-2 * np.log(np.maximum(chosen, 1e-300)).sum())


def _loss(probabilities: Floats, outcomes: Floats, coefficients: Floats, penalty: Floats) -> float:
    return _deviance(probabilities, outcomes) + float(penalty @ coefficients**2)


MOST_FIRTH_STEPS = 200
MOST_FIRTH_HALVINGS = 20
LONGEST_STEP = 5.0
FIRTH_CLOSE = 1e-8
FURTHEST = 200.0  # widest profile interval looked at, in standard errors


@dataclass(frozen=True, slots=True, eq=False)
class FirthFit:
    """Coefficients (0 where left out), which columns were kept, their covariance, the penalised likelihood."""

    coefficients: Floats
    kept: Bools
    covariance: Floats
    likelihood: float
    converged: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Point:
    """Everything known at one vector of coefficients."""

    coefficients: Floats
    probabilities: Floats
    inverse: Floats
    likelihood: float


def fit_firth(design: ModelMatrix, outcomes: Floats) -> FirthFit:
    """The penalised maximum likelihood estimate."""
    kept = independent_columns(design.cross(np.ones(design.rows)))
    columns = np.flatnonzero(kept)
    point, converged = _climb(design, outcomes, columns, np.zeros(design.width), held=None)
    return FirthFit(point.coefficients, kept, point.inverse, point.likelihood, converged)


def profile_interval(
    design: ModelMatrix, outcomes: Floats, fit: FirthFit, place: int, *, level: float = 0.95
) -> tuple[float, float] | None:
    """The coefficient values at which the penalised likelihood, maximised over the others, falls by the χ² bound."""
    columns = np.flatnonzero(fit.kept)
    position = int(np.flatnonzero(columns == place)[0])
    spread = math.sqrt(fit.covariance[position, position])
    target = fit.likelihood - float(chi2.ppf(level, 1)) / 2
    ends = []
    for side in (-1.0, 1.0):
        inner, outer, start = 0.0, 1.0, fit.coefficients

        def likelihood(distance: float, side: float = side, start: Floats = start) -> float:
            held = fit.coefficients[place] + side * distance * spread
            return _climb(design, outcomes, columns, start, held=(place, held))[0].likelihood

        while likelihood(outer) > target:
            inner, outer = outer, outer * 2
            if outer > FURTHEST:
                return None
        for _ in range(40):
            middle = (inner + outer) / 2
            inner, outer = (middle, outer) if likelihood(middle) > target else (inner, middle)
            if outer - inner < 1e-7:
                break
        ends.append(float(fit.coefficients[place] + side * (inner + outer) / 2 * spread))
    return ends[0], ends[1]


def _climb(
    design: ModelMatrix,
    outcomes: Floats,
    columns: npt.NDArray[np.intp],
    start: Floats,
    *,
    held: tuple[int, float] | None,
) -> tuple[_Point, bool]:
    """Maximises the penalised likelihood; a held coefficient stays where it is put."""
    coefficients = start.copy()
    free = np.ones(len(columns), np.bool_)
    if held is not None:
        coefficients[held[0]] = held[1]
        free[columns == held[0]] = False
    point = _at(design, outcomes, columns, coefficients)
    if point is None:
        point = _at(design, outcomes, columns, np.zeros(design.width))
    assert point is not None  # at zero the information is a quarter of X'X, which has full rank on these columns
    for _ in range(MOST_FIRTH_STEPS):
        weights = point.probabilities * (1 - point.probabilities)
        full = np.zeros((design.width, design.width))
        full[np.ix_(columns, columns)] = point.inverse
        hats = weights * design.quadratic(full)
        score = design.collect(outcomes - point.probabilities + hats * (0.5 - point.probabilities))[columns]
        if not free.any() or float(np.abs(score[free] * np.sqrt(np.diagonal(point.inverse))[free]).max()) < FIRTH_CLOSE:
            return point, True
        step = _step(design, point, columns, free, score)
        better = _halved(design, outcomes, columns, point, step)
        if better is None:
            return point, True
        point = better
    return point, False


def _step(design: ModelMatrix, point: _Point, columns: npt.NDArray[np.intp], free: Bools, score: Floats) -> Floats:
    """Newton's step over the free coefficients, no longer than allowed."""
    step = np.zeros(design.width)
    if free.all():
        moved = point.inverse @ score
    else:
        information = np.linalg.inv(point.inverse)[np.ix_(free, free)]
        moved = np.linalg.solve(information, score[free])
    step[columns[free]] = moved
    longest = float(np.abs(step).max())
    return step * min(1.0, LONGEST_STEP / longest) if longest > 0 else step


def _halved(
    design: ModelMatrix, outcomes: Floats, columns: npt.NDArray[np.intp], point: _Point, step: Floats
) -> _Point | None:
    for halving in range(MOST_FIRTH_HALVINGS):
        tried = _at(design, outcomes, columns, point.coefficients + step / 2**halving)
        if tried is not None and tried.likelihood > point.likelihood - 1e-12 * abs(point.likelihood):
            return tried if tried.likelihood > point.likelihood or halving == 0 else None
    return None


def _at(design: ModelMatrix, outcomes: Floats, columns: npt.NDArray[np.intp], coefficients: Floats) -> _Point | None:
    probabilities = expit(design.predict(coefficients))
    information = design.cross(probabilities * (1 - probabilities))[np.ix_(columns, columns)]
    try:
        factor, lower = cho_factor(information, lower=True)
    except LinAlgError:
        return None
    chosen = np.where(outcomes > 0.5, probabilities, 1 - probabilities)
    logs = np.log(np.maximum(chosen, 1e-300)).sum() + np.log(np.diagonal(factor)).sum()
    inverse = cho_solve((factor, lower), np.eye(len(columns)))
    return _Point(coefficients, probabilities, inverse, float(logs))
