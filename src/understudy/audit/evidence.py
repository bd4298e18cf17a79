"""What one run tells about which of two neighbouring tables it was made from: numbers that go up with the extra unit.

From the transcript, where the distribution of the noise is known: the log likelihood ratio of all answers, which is the
strongest evidence there is (Neyman and Pearson). The exact inputs of every query are known for both tables: the queries
of the run are put once more to the other table, with the answers that were given, as a replay does. So choices, trees
and scores count as noisy tables do. Whoever gets a release has no such inputs; an audit knows both tables.

From the rows, where it is not (a training, whose sampled units nobody sees) and beside it, as a check of everything
that might leave in another way: numbers of a black box, which knows the rows and the model of the release alone.

The functions see answers and both tables, never which of the two a run was made from; so whatever they compute is a
number that an adversary could compute, and any threshold on it is an event.
"""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from understudy.arrays import Floats, Ints
from understudy.counts.source import LabelCounts, OccupiedCells
from understudy.domain import RESIDUAL_UNIT, Distribution
from understudy.privacy.randomizer import contrasts
from understudy.release import Release
from understudy.testing.replay import Exchange, Record, split_loss, whitened

MOST = 1e3
"""No answer counts for more: beyond it lies certainty."""

_MASKED = np.iinfo(np.int64).min
_MOST_CELLS = 100_000


def is_known(log: Sequence[Exchange]) -> bool:
    """Whether the likelihood of these answers is known on both tables."""
    return all(exchange.request.kind != "train" for exchange in log)


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


def seen_from_outside(release: Release, record: Record) -> Floats:
    """The numbers of `BLACK_BOX` for one release."""
    fitted, rows = release.fits[0], release.tables[0]
    assert isinstance(rows, pa.Table), "a release of an Arrow table gives Arrow tables"
    codec, model = release.codec, fitted.model
    held = []
    for name in codec.domain.columns:
        origin = codec.origin(name)
        own = codec.encode(name, pa.chunked_array([pa.array([record[origin]], pa.string())]))[0]
        held.append((own, codec.encode(name, rows.column(origin)) == own))
    alike = np.logical_and.reduce([same for _, same in held])
    clique = codec.domain.everything()
    expected = 0.0
    if codec.domain.cells(clique) <= _MOST_CELLS:
        shape = codec.domain.shape(clique)
        place = np.ravel_multi_index(tuple(int(own) for own, _ in held), shape, mode="clip")
        expected = float(model.marginal(clique)[place]) * model.total
    return np.array([rows.num_rows, alike.sum(), sum(int(same.sum()) for _, same in held), expected], np.float64)
