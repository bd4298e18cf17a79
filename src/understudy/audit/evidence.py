"""What one run tells about which of two neighbouring tables it was made from: numbers that go up with the extra unit.

From the transcript, where the distribution of the noise is known: the log likelihood ratio of all answers, which is the
strongest evidence there is (Neyman and Pearson). The exact inputs of every query are known for both tables: the queries
of the run are put once more to the other table, with the answers that were given, as a replay does. So choices, trees
and scores count as noisy tables do. Whoever gets a release has no such inputs; an audit knows both tables.

A step of a training is a noisy sum over units whose coins nobody sees. Its likelihood is a sum over all that the coins
may have been: units that hold the same rows contribute the same vector, so what counts is how many of each kind took
part, binomial numbers at the public rate. It is exact, for the few units that the tables of an audit hold.

From the rows and the model, as a check of everything that might leave in another way: numbers of a black box, which
knows the rows and the model of the releases alone.

The functions see answers and both tables, never which of the two a run was made from; so whatever they compute is a
number that an adversary could compute, and any threshold on it is an event.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from scipy.stats import binom

from understudy.arrays import Floats, Ints
from understudy.codec.table import TableCodec
from understudy.counts.source import LabelCounts, OccupiedCells
from understudy.domain import RESIDUAL_UNIT, Distribution
from understudy.privacy.randomizer import Request, contrasts
from understudy.release import Release
from understudy.release.release import Fitted
from understudy.testing.replay import Exchange, Record, split_loss, whitened

MOST = 1e3
"""No answer counts for more: beyond it lies certainty."""

_MASKED = np.iinfo(np.int64).min
_MOST_CELLS = 100_000


def is_sampled(request: Request) -> bool:
    """Whether an answer is a noisy sum over units that were sampled."""
    return request.kind == "train" and request.rate > 0


def sampled_ratio(exchange: Exchange, vectors: Sequence[Floats], counts: tuple[Sequence[int], Sequence[int]]) -> float:
    """ln of how much likelier the answer of a step is with the extra unit.

    Args:
        exchange: the step and what was answered.
        vectors: what a unit of each kind contributes.
        counts: how many units of each kind there are, without and with the extra unit.
    """
    without, with_unit = (_log_of_sum(exchange, vectors, held) for held in counts)
    return min(max(with_unit - without, -MOST), MOST)


def _log_of_sum(exchange: Exchange, vectors: Sequence[Floats], held: Sequence[int]) -> float:
    """ln of the density of a noisy sum over sampled units, up to a constant: over all numbers of units of each kind."""
    request, answer = exchange.request, np.asarray(exchange.answer, np.float64)
    assert request.distribution is not None
    rate, twice = -math.expm1(-float(request.rate)), 2 * request.distribution.scale**2
    found = []
    for taken in itertools.product(*(range(most + 1) for most in held)):
        away = answer - sum((number * one for number, one in zip(taken, vectors, strict=True)), np.zeros(answer.size))
        coins = sum(binom.logpmf(number, most, rate) for number, most in zip(taken, held, strict=True))
        found.append(float(coins) - float(away @ away) / twice)
    return float(np.logaddexp.reduce(found))


def log_ratio(without: Exchange, with_unit: Exchange) -> float:
    """ln of how much likelier an answer is with the extra unit than without it, from the exact inputs of both."""
    request, answer = with_unit.request, with_unit.answer
    one, other = with_unit.exact, without.exact
    if isinstance(one, OccupiedCells):
        assert isinstance(other, OccupiedCells)
        assert isinstance(answer, OccupiedCells)
        found = _censored(without, _as_dict(one), _as_dict(other), _as_dict(answer))
    elif isinstance(one, LabelCounts):
        assert isinstance(other, LabelCounts)
        assert isinstance(answer, LabelCounts)
        found = _censored(without, _by_label(one), _by_label(other), _by_label(answer))
    else:
        assert not isinstance(other, OccupiedCells | LabelCounts)
        if request.kind == "grow":
            found = split_loss(request, one, other, np.asarray(answer, np.bool_))
        elif request.distribution is None:
            found = _chosen(float(request.rate), one, answer) - _chosen(float(request.rate), other, answer)
        else:
            found = _noisy(without, one, other)
    return min(max(found, -MOST), MOST) if math.isfinite(found) else math.copysign(MOST, found)


def _noisy(exchange: Exchange, one: Ints, other: Ints) -> float:
    """The log likelihood ratio of noisy counts, noisy scores and noisy residuals."""
    request, answer = exchange.request, np.asarray(exchange.answer, np.int64)
    distribution = request.distribution
    assert distribution is not None
    if request.kind == "residuals":
        near, far = (
            whitened(answer - contrasts(exact * RESIDUAL_UNIT, request.shape), request.shape) for exact in (one, other)
        )
    else:
        moved = one != other
        near, far = (answer - one)[moved].astype(np.float64), (answer - other)[moved].astype(np.float64)
    if distribution.kind == "laplace":
        return float((np.abs(far) - np.abs(near)).sum() / distribution.scale)
    return float((far**2 - near**2).sum() / (2 * distribution.scale**2))


def _chosen(rate: float, scores: Ints, answer: object) -> float:
    """ln of the probability of one choice, or of one in each row; options with the least score were not allowed."""
    rows = np.atleast_2d(scores)
    picks = np.atleast_1d(np.asarray(answer, np.int64))
    allowed = rows != _MASKED
    best = np.where(allowed, rows, -(2**62)).max(axis=1, keepdims=True)
    weights = np.where(allowed, rate * (np.where(allowed, rows, best) - best).astype(np.float64), -np.inf)
    return float((weights[np.arange(picks.size), picks] - np.logaddexp.reduce(weights, axis=1)).sum())


def _censored(exchange: Exchange, one: dict[object, int], other: dict[object, int], shown: dict[object, int]) -> float:
    """The log likelihood ratio of noisy counts above a threshold; a label that nobody holds is never shown."""
    request = exchange.request
    distribution = request.distribution
    assert distribution is not None
    labels = isinstance(exchange.exact, LabelCounts)
    total = 0.0
    for place in {*one, *other}:
        near, far = one.get(place, 0), other.get(place, 0)
        if near == far:
            continue
        value = shown.get(place)
        chances = [
            0.0 if labels and not count and value is None
            else -math.inf if labels and not count
            else _log_shown(distribution, value, count, request.threshold)
            for count in (near, far)
        ]  # fmt: skip
        total += chances[0] - chances[1]
    return total


def _log_shown(distribution: Distribution, value: int | None, count: int, threshold: int) -> float:
    """ln of the chance of a noisy count, up to a constant, or of one below the threshold; Laplace noise."""
    rate = 1 / distribution.scale
    constant = math.log1p(-math.exp(-rate)) - math.log1p(math.exp(-rate))
    if value is not None:
        return constant - abs(value - count) * rate
    below = threshold - 1 - count
    if below < 0:
        return below * rate - math.log1p(math.exp(-rate))
    return math.log1p(-math.exp(-(below + 1) * rate) / (1 + math.exp(-rate)))


def _as_dict(cells: OccupiedCells) -> dict[object, int]:
    return dict(zip(cells.indices.tolist(), cells.counts.tolist(), strict=True))


def _by_label(found: LabelCounts) -> dict[object, int]:
    return dict(zip(found.labels, found.counts.tolist(), strict=True))


BLACK_BOX = (
    "the number of synthetic rows",
    "the number of synthetic rows that equal the unit's",
    "the number of values that the synthetic rows share with the unit's",
    "the number of rows that the model expects where the unit lies",
)
"""What is read off the rows and the model, in the order of `seen_from_outside`."""


def seen_from_outside(releases: Sequence[Release], record: Record) -> Floats:
    """The numbers of `BLACK_BOX`, over all models and copies of these releases together."""
    found = np.zeros(len(BLACK_BOX))
    for release in releases:
        found[:3] += np.sum([_in_rows(release, rows, record) for rows in release.tables], axis=0)
        found[3] += sum(_expected(fitted, record) for fitted in release.fits)
    return found


def _in_rows(release: Release, rows: object, record: Record) -> list[int]:
    """How many rows there are, how many equal the record, and how many values agree with it."""
    assert isinstance(rows, pa.Table), "a release of an Arrow table gives Arrow tables"
    codec = release.codec
    names = codec.domain.columns
    same = [codec.encode(name, rows.column(codec.origin(name))) == _code(codec, name, record) for name in names]
    return [rows.num_rows, int(np.logical_and.reduce(same).sum()), sum(int(one.sum()) for one in same)]


def _expected(fitted: Fitted, record: Record) -> float:
    """How many rows a model expects where the record lies; 0 where its cells are too many to write out."""
    domain, model = fitted.codec.domain, fitted.model
    clique = domain.everything()
    if domain.cells(clique) > _MOST_CELLS:
        return 0.0
    codes = tuple(_code(fitted.codec, name, record) for name in domain.columns)
    place = np.ravel_multi_index(codes, domain.shape(clique), mode="clip")
    return float(model.marginal(clique)[place]) * model.total


def _code(codec: TableCodec, name: str, record: Record) -> int:
    own = pa.chunked_array([pa.array([record[codec.origin(name)]], pa.string())])
    return int(codec.encode(name, own)[0])
