"""Frozen-noise replay: the same answers on a neighbouring table must give the same everything.

Run a pipeline on table D and record every request that reached the randomizer with its exact input and its answer.
Run it again on a neighbour D′ and answer exactly as before. If the pipeline is private then

1. the sequence of requests is the same (no question, scale or claim depends on the rows),
2. each exact input moved by at most the sensitivity its request claims, and the decisions of a growing tree taken
   together are not more likely on one table than its price allows,
3. the prices of the requests add up to no more than the cost that was granted,
4. everything that leaves is the same, byte for byte: rows, model, statement, messages, error type and text.

One pair of runs, no statistics. It says nothing about the shape of the noise: `lower_bound.py` and the sampler tests
do that.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeVar

import numpy as np
import pyarrow as pa

from understudy.audit.coins import coins_of
from understudy.audit.training_price import trainings_price
from understudy.audit.tree_loss import split_loss, tree_epsilon
from understudy.counts.source import Ints, LabelCounts, OccupiedCells, Records
from understudy.privacy.cost import UNIT, Cost
from understudy.privacy.randomizer import Bools, Randomizer, Request

__all__ = ["Exchange", "Leak", "Pipeline", "Recorder", "Replayer", "check_pair", "price"]

_ROUNDING = 1e-9
_PAID_IN_EPSILON = ("measure", "sparse")
"""Questions that get Laplace noise only if they are paid in ε."""
Exact = Ints | OccupiedCells | LabelCounts
Reply = TypeVar("Reply")
Pipeline = Callable[[pa.Table, Randomizer], tuple[bytes, Cost]]
"""Runs on a table with a randomizer; returns all released bytes and the cost it claims to have spent."""


class Leak(AssertionError):
    """Something that left the system depends on the private rows in a way nobody paid for."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request with its exact input and its answer. Private: never leaves a test."""

    request: Request
    exact: Exact
    answer: object


@dataclass(slots=True)
class Recorder:
    """Passes requests on to another randomizer and keeps what was said."""

    inner: Randomizer
    log: list[Exchange] = field(default_factory=list)
    private: bool = False

    def add_noise(self, request: Request, exact: Ints) -> Ints:
        """As the inner randomizer."""
        return self._keep(request, exact.copy(), self.inner.add_noise(request, exact))

    def add_sparse_noise(self, request: Request, occupied: OccupiedCells) -> OccupiedCells:
        """As the inner randomizer."""
        return self._keep(request, occupied, self.inner.add_sparse_noise(request, occupied))

    def keep_frequent(self, request: Request, exact: LabelCounts) -> LabelCounts:
        """As the inner randomizer."""
        return self._keep(request, exact, self.inner.keep_frequent(request, exact))

    def choose(self, request: Request, scores: Ints) -> int:
        """As the inner randomizer."""
        return self._keep(request, scores.copy(), self.inner.choose(request, scores))

    def choose_each(self, request: Request, scores: Ints, allowed: Bools) -> Ints:
        """As the inner randomizer."""
        chosen = self.inner.choose_each(request, scores, allowed)
        return self._keep(request, _masked(scores, allowed), chosen).copy()

    def split(self, request: Request, biased: Ints) -> Bools:
        """As the inner randomizer."""
        return self._keep(request, biased.copy(), self.inner.split(request, biased)).copy()

    def sample(self, request: Request, records: Records) -> Ints:
        """By a hash of each unit and not as the inner randomizer: on both tables a unit must have the same coin."""
        return coins_of(request, records)

    def _keep(self, request: Request, exact: Exact, answer: Reply) -> Reply:
        self.log.append(Exchange(request, exact, answer))
        return answer


@dataclass(slots=True)
class Replayer:
    """Answers from a record, whatever the table; raises `Leak` when the questions differ."""

    frozen: list[Exchange]
    log: list[Exchange] = field(default_factory=list)
    private: bool = False

    def add_noise(self, request: Request, exact: Ints) -> Ints:
        """The recorded answer."""
        return np.array(self._replay(request, exact.copy()), dtype=np.int64)

    def add_sparse_noise(self, request: Request, occupied: OccupiedCells) -> OccupiedCells:
        """The recorded answer."""
        answer = self._replay(request, occupied)
        assert isinstance(answer, OccupiedCells)
        return answer

    def keep_frequent(self, request: Request, exact: LabelCounts) -> LabelCounts:
        """The recorded answer."""
        answer = self._replay(request, exact)
        assert isinstance(answer, LabelCounts)
        return answer

    def choose(self, request: Request, scores: Ints) -> int:
        """The recorded answer."""
        answer = self._replay(request, scores.copy())
        assert isinstance(answer, int | np.integer)
        return int(answer)

    def choose_each(self, request: Request, scores: Ints, allowed: Bools) -> Ints:
        """The recorded answer."""
        return np.array(self._replay(request, _masked(scores, allowed)), dtype=np.int64)

    def split(self, request: Request, biased: Ints) -> Bools:
        """The recorded answer."""
        return np.array(self._replay(request, biased.copy()), dtype=np.bool_)

    def sample(self, request: Request, records: Records) -> Ints:
        """By the same hash as when it was recorded."""
        return coins_of(request, records)

    def _replay(self, request: Request, exact: Exact) -> object:
        position = len(self.log)
        if position >= len(self.frozen):
            raise Leak(f"question {position} was not asked on the neighbouring table: {request}")
        earlier = self.frozen[position]
        if earlier.request != request:
            raise Leak(f"question {position} differs between neighbours: {request} against {earlier.request}")
        self.log.append(Exchange(request, exact, earlier.answer))
        return earlier.answer


def check_pair(pipeline: Pipeline, table: pa.Table, neighbour: pa.Table, randomizer: Randomizer) -> None:
    """Raises `Leak` unless the pipeline treats the two neighbouring tables alike, given the same answers."""
    recorder = Recorder(randomizer)
    released, claimed = pipeline(table, recorder)
    replayer = Replayer(recorder.log)
    released_again, claimed_again = pipeline(neighbour, replayer)
    if len(replayer.log) != len(recorder.log):
        raise Leak(f"{len(recorder.log)} questions on one table, {len(replayer.log)} on its neighbour")
    for one, other in zip(recorder.log, replayer.log, strict=True):
        _check_distance(one, other)
    _check_trees(recorder.log, replayer.log)
    if claimed != claimed_again:
        raise Leak(f"claims differ between neighbours: {claimed} against {claimed_again}")
    asked = price([exchange.request for exchange in recorder.log], concentrated=claimed.rho > 0)
    if not asked.fits(claimed):
        raise Leak(f"the questions cost {asked}, the claim is {claimed}")
    if released != released_again:
        raise Leak(f"released bytes differ: {_first_difference(released, released_again)}")


def price(requests: list[Request], *, concentrated: bool) -> Cost:
    """What the requests cost by their own scales and sensitivities, rounded up; of δ only that of trainings is priced.

    In the concentrated currency a histogram with Laplace noise was paid in ε and counts there; other Laplace noise at ε
    counts ε²/2, and the exponential mechanism at ε counts ε²/8.
    """
    trainings = trainings_price(requests)
    epsilon_units = 0 if concentrated else sum(_up(epsilon) for epsilon, _ in trainings)
    rho_units = sum(_up(epsilon**2 / 2) for epsilon, _ in trainings) if concentrated else 0
    for request in requests:
        if request.kind == "train":
            continue
        entries = request.cells if request.kind == "score" else 1  # each score may move by the whole sensitivity
        if request.law is not None and request.law.kind == "gaussian":
            rho_units += _up(entries * request.sensitivity**2 / (2 * request.law.parameter))
            continue
        if request.law is None:
            epsilon, divisor = request.rate * request.sensitivity * (1 if request.monotone else 2), 8
        elif request.kind == "grow":
            epsilon, divisor = _tree_price(request), 2
        else:
            epsilon, divisor = entries * request.sensitivity / request.law.parameter, 2
        if concentrated and request.kind not in _PAID_IN_EPSILON:
            rho_units += _up(epsilon**2 / divisor)
        else:
            epsilon_units += _up(epsilon)
    return Cost(epsilon=epsilon_units, rho=rho_units, delta=sum(delta for _, delta in trainings))


def _tree_price(request: Request) -> Fraction:
    """The first layer carries the price of the whole tree."""
    epsilon = tree_epsilon(request)
    if epsilon is None:
        raise Leak(f"{request.name}: nodes are lowered by less than one row per level, so no price is proved")
    return epsilon if request.layer == 0 else Fraction(0)


def _up(amount: Fraction) -> int:
    return -((-amount.numerator * UNIT) // amount.denominator)


def _check_distance(one: Exchange, other: Exchange) -> None:
    request = one.request
    if request.kind == "select within":
        _check_cells(one, other)
        return
    changes = _changes(one.exact, other.exact)
    largest = Fraction(max((abs(change) for change in changes), default=0))
    if request.law is None or request.kind == "score":
        moved = largest
        if request.monotone and min(changes, default=0) < 0 < max(changes, default=0):
            raise Leak(f"{request.name}: scores claimed to be monotone moved in both directions")
    elif request.law.kind == "laplace":
        moved = Fraction(sum(abs(change) for change in changes))
    else:
        squares = sum(change * change for change in changes)
        if squares > request.sensitivity**2:
            raise Leak(f"{request.name}: input moved by √{squares}, claimed {request.sensitivity}")
        return
    if moved > request.sensitivity:
        raise Leak(f"{request.name}: input moved by {moved}, claimed {request.sensitivity}")


def _check_cells(one: Exchange, other: Exchange) -> None:
    """Choices within cells: the largest changes of the cells add up to no more than the sensitivity."""
    request, first, second = one.request, one.exact, other.exact
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray) or first.shape != second.shape:
        raise Leak(f"{request.name}: scores have different shapes on neighbouring tables")
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    changes = [[left - right for left, right in zip(*pair, strict=True)] for pair in pairs]
    if request.monotone and any(min(row, default=0) < 0 < max(row, default=0) for row in changes):
        raise Leak(f"{request.name}: scores claimed to be monotone moved in both directions")
    moved = sum(max(map(abs, row), default=0) for row in changes)
    if moved > request.sensitivity:
        raise Leak(f"{request.name}: scores moved by {moved} over all cells, claimed {request.sensitivity}")


def _check_trees(log: list[Exchange], again: list[Exchange]) -> None:
    """The decisions of each tree taken together: how much likelier they are on one table than on the other."""
    loss, layer = 0.0, 0
    for one, other in zip(log, again, strict=True):
        request = one.request
        if request.kind != "grow":
            continue
        if request.layer not in (0, layer):
            raise Leak(f"{request.name}: layer {request.layer} was asked where layer {layer} was due")
        loss = 0.0 if request.layer == 0 else loss
        layer = request.layer + 1
        assert isinstance(one.exact, np.ndarray)
        assert isinstance(other.exact, np.ndarray)
        assert isinstance(one.answer, np.ndarray)
        loss += split_loss(request, one.exact, other.exact, one.answer)
        epsilon = tree_epsilon(request)
        if epsilon is not None and abs(loss) > float(epsilon) + _ROUNDING:
            paid = f"e^{float(epsilon):.6g} is paid"
            raise Leak(f"{request.name}: the tree is e^{abs(loss):.6g} times likelier on one table, {paid}")


def _changes(one: Exact, other: Exact) -> list[int]:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.shape != other.shape:
            raise Leak("the exact inputs have different shapes on neighbouring tables")
        return [int(change) for change in (one - other) if change]
    first, second = _as_counts(one), _as_counts(other)
    return [first.get(key, 0) - second.get(key, 0) for key in {*first, *second}]


def _as_counts(exact: Exact) -> dict[object, int]:
    if isinstance(exact, OccupiedCells):
        return dict(zip(exact.indices.tolist(), exact.counts.tolist(), strict=True))
    if isinstance(exact, LabelCounts):
        return dict(zip(exact.labels, exact.counts.tolist(), strict=True))
    raise Leak("the exact inputs have different types on neighbouring tables")


def _masked(scores: Ints, allowed: Bools) -> Ints:
    """Scores with a mark where an option is not allowed: which ones are must not depend on rows either."""
    return np.where(allowed, scores, np.iinfo(np.int64).min)


def _first_difference(one: bytes, other: bytes) -> str:
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            around = slice(max(0, position - 40), position + 40)
            return f"at byte {position}: {one[around]!r} against {other[around]!r}"
    return f"{len(one)} bytes against {len(other)}"
