"""Did the noise follow the laws that were asked for? Every answer as numbers that are uniform if it did.

The probability transform: an answer X with distribution function F gives u = F(X−) + V·P(X) with V uniform on [0, 1].
If X was drawn from F, given all that was answered before, then u is uniform and independent of all earlier ones. So
answers of all kinds, scales and questions can be put into one sequence and tested together:

* u itself, and how far it lies from the middle (too much and too little noise),
* u minus that of the question before, cell by cell and modulo 1 (noise used twice in one run),
* u minus that of the run before, modulo 1 (noise used again in the next run).

Each is uniform again. The distance of its empirical distribution from the uniform one is held against the bound of
Dvoretzky, Kiefer, Wolfowitz and Massart, P(D > d) ≤ 2·exp(−2nd²), which holds for every n. A tree decides by its
answers how many questions follow, so n may depend on what is tested: of each sequence as many are used as the largest
power of two allows, and the level is divided among all powers. Which empty cells of a sparse table show is not tested
here, only how many do and with which counts. The V come from a seed; they are part of the test and not of any answer.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from understudy.audit.replay import Exchange, Leak
from understudy.counts.source import LabelCounts, OccupiedCells
from understudy.marginals.answer import Law

__all__ = ["LEVEL", "check_noise", "draws_of", "uniforms"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEVEL = 1e-8
"""How likely correct noise fails one call of `check_noise`, at most: a hundred calls cry wolf once in a million."""

_TESTS = 4
_POWERS = 40
_WIDEST_TABLE = 2000.0
_MASKED = np.iinfo(np.int64).min


def check_noise(runs: Sequence[Sequence[Exchange]], *, fewest: int, seed: int = 0) -> None:
    """Raises `Leak` unless the answers of these runs follow the laws of their requests, each drawn afresh.

    `fewest` is the number of draws below which the audit would have no power, and refuses to pass.
    """
    rng = np.random.default_rng(seed)
    found = [[uniforms(exchange, rng) for exchange in run] for run in runs]
    whole = [np.concatenate([np.zeros(0), *parts]) for parts in found]
    pooled = np.concatenate([np.zeros(0), *whole])
    if pooled.size < fewest:
        raise Leak(f"the audit of the noise has no power: {pooled.size} draws, it needs {fewest}")
    earlier = [_apart(parts) for parts in found]
    _check_uniform(pooled, "does not follow its law")
    _check_uniform(np.abs(2 * pooled - 1), "is too small or too large for its law")
    _check_uniform(np.concatenate([np.zeros(0), *earlier]), "is that of the question before")
    _check_uniform(_apart(whole), "is that of the run before")


def draws_of(exchange: Exchange) -> int:
    """How many draws of noise are behind an answer, as far as they are tested."""
    return sum(below.size for below, _ in _intervals(exchange))


def uniforms(exchange: Exchange, rng: np.random.Generator) -> Floats:
    """One number per draw of noise behind this answer, uniform and independent if it followed the request."""
    below, mass = (np.concatenate(parts) for parts in zip(*_intervals(exchange), strict=True))
    return np.asarray(below + rng.random(below.size) * mass, np.float64)


def _apart(parts: Sequence[Floats]) -> Floats:
    """Each part minus the one before, as far as both go, modulo 1."""
    pairs = [(one[: other.size], other[: one.size]) for one, other in pairwise(parts)]
    return np.concatenate([np.zeros(0), *((other - one) % 1.0 for one, other in pairs)])


def _check_uniform(sequence: Floats, fault: str) -> None:
    if not sequence.size:
        return
    draws = 1 << (sequence.size.bit_length() - 1)
    ordered = np.sort(sequence[:draws])
    steps = np.arange(draws + 1) / draws
    distance = max(float((steps[1:] - ordered).max()), float((ordered - steps[:-1]).max()))
    limit = math.sqrt(math.log(2 * _TESTS * _POWERS / LEVEL) / (2 * draws))
    if distance > limit:
        raise Leak(f"the noise {fault}: distance {distance:.3f} in {draws:,} draws, allowed {limit:.3f}")


def _intervals(exchange: Exchange) -> Iterator[tuple[Floats, Floats]]:
    """P(X < x) and P(X = x) of every draw, where x is what was answered."""
    request, exact, answer = exchange.request, exchange.exact, exchange.answer
    if isinstance(exact, OccupiedCells):
        assert isinstance(answer, OccupiedCells)
        yield from _sparse(exchange, exact, answer)
    elif isinstance(exact, LabelCounts):
        assert isinstance(answer, LabelCounts)
        kept = dict(zip(answer.labels, answer.counts.tolist(), strict=True))
        shown = np.array([kept.get(label, request.threshold - 1) for label in exact.labels], dtype=np.int64)
        yield _censored(_law_of(exchange), exact.counts, shown, request.threshold)
    elif request.kind == "select":
        yield _choices(float(request.rate), exact.reshape(1, -1), np.array([answer], dtype=np.int64))
    elif request.kind == "select within":
        yield _choices(float(request.rate), exact, np.asarray(answer, dtype=np.int64))
    elif request.kind == "grow":
        stays = _cumulative(_law_of(exchange), request.threshold - exact)
        split = np.asarray(answer, dtype=np.bool_)
        yield np.where(split, stays, 0.0), np.where(split, 1 - stays, stays)
    else:
        assert isinstance(answer, np.ndarray)
        residual = answer - exact
        below = _cumulative(_law_of(exchange), residual - 1)
        yield below, _cumulative(_law_of(exchange), residual) - below


def _sparse(exchange: Exchange, exact: OccupiedCells, answer: OccupiedCells) -> Iterator[tuple[Floats, Floats]]:
    """The occupied cells, how many empty ones show, and by how much those exceed the threshold."""
    from scipy.stats import binom

    law, threshold = _law_of(exchange), exchange.request.threshold
    kept = dict(zip(answer.indices.tolist(), answer.counts.tolist(), strict=True))
    shown = np.array([kept.pop(cell, threshold - 1) for cell in exact.indices.tolist()], dtype=np.int64)
    yield _censored(law, exact.counts, shown, threshold)
    ratio = math.exp(-1 / law.scale)
    empty = binom(exchange.request.cells - exact.indices.size, ratio**threshold / (1 + ratio))
    yield np.array([empty.cdf(len(kept) - 1)]), np.array([empty.pmf(len(kept))])
    beyond = ratio ** (np.array(list(kept.values()), dtype=np.float64) - threshold)
    yield 1 - beyond, beyond * (1 - ratio)


def _censored(law: Law, exact: Ints, shown: Ints, threshold: int) -> tuple[Floats, Floats]:
    """Noisy counts of which those below the threshold show as one less than it."""
    hidden = shown < threshold
    below = np.where(hidden, 0.0, _cumulative(law, shown - 1 - exact))
    return below, _cumulative(law, shown - exact) - below


def _choices(rate: float, scores: Ints, chosen: Ints) -> tuple[Floats, Floats]:
    """Of every row one option, with probability ∝ exp(rate × score)."""
    allowed = scores != _MASKED
    best = np.where(allowed, scores, -(2**62)).max(axis=1, keepdims=True)
    lowered = np.where(allowed, scores, best) - best
    weights = np.where(allowed, np.exp(rate * lowered.astype(np.float64)), 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    mass = np.take_along_axis(weights, chosen[:, np.newaxis], axis=1)[:, 0]
    return np.take_along_axis(np.cumsum(weights, axis=1), chosen[:, np.newaxis], axis=1)[:, 0] - mass, mass


def _law_of(exchange: Exchange) -> Law:
    law = exchange.request.law
    assert law is not None
    return law


def _cumulative(law: Law, places: Ints) -> Floats:
    """P(noise ≤ place): closed form for Laplace, summed for Gaussian noise, whose sum is its integral where wide."""
    at = places.astype(np.float64)
    if law.kind == "laplace":
        ratio = math.exp(-1 / law.scale)
        with np.errstate(over="ignore"):
            return np.where(at < 0, ratio**-at, 1 + ratio - ratio ** (at + 1)) / (1 + ratio)
    if law.scale > _WIDEST_TABLE:
        return np.asarray(ndtr((at + 0.5) / law.scale), np.float64)
    table = _summed(law)
    reach = (table.size - 1) // 2
    return np.asarray(np.where(at < -reach, 0.0, table[np.clip(places, -reach, reach) + reach]), np.float64)


@lru_cache(maxsize=64)
def _summed(law: Law) -> Floats:
    """P(noise ≤ k) of integer Gaussian noise for k = −reach, …, reach."""
    reach = math.ceil(12 * law.scale) + 2
    points = np.arange(-reach, reach + 1, dtype=np.float64)
    weights = np.exp(-(points**2) / (2 * law.scale**2))
    return np.asarray(np.cumsum(weights) / weights.sum(), np.float64)
