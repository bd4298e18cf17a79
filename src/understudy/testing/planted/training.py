"""Planted blunders with training: bounds that do not bind, batches that tell, coins that are none, prices too low."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from understudy.marginals.answer import Course
from understudy.mechanisms.deep import wgan
from understudy.mechanisms.deep.critic import contributions
from understudy.mechanisms.deep.wgan import WganTrainer
from understudy.privacy import curator, secure
from understudy.privacy.cost import Cost
from understudy.privacy.training import accountant, train
from understudy.privacy.training.accountant import rate_of, training_laws
from understudy.privacy.training.train import Contributions, bounded_sum
from understudy.testing.planted.bug import PlantedBug, patched

__all__ = ["TRAINING"]


def _unbounded(given: Contributions, starts: Any, _: int, cells: int) -> Any:
    return bounded_sum(given, starts, 2**20, cells)


@contextmanager
def _no_clipping() -> Iterator[None]:
    """Gradients as they are, and a door that does not look at their length."""

    def as_they_are(critic: Any, blocks: Any, most_norm: float, radius: float) -> Contributions:
        return contributions(critic, blocks, most_norm / 1000, radius * 4)

    with mock.patch.object(train, "bounded_sum", _unbounded), mock.patch.object(wgan, "contributions", as_they_are):
        yield


@contextmanager
def _clip_per_tensor() -> Iterator[None]:
    """Each array of weights cut to the whole bound by itself, as published programs did."""

    def by_itself(critic: Any, blocks: Any, most_norm: float, radius: float) -> Contributions:
        given = contributions(critic, blocks, most_norm, radius)
        lengths = [np.sqrt((part.astype(float) ** 2).sum(axis=1, keepdims=True)) for part in (given.shared, given.own)]
        stretched = [
            np.rint(part * (radius / np.maximum(length, 1.0))).astype(np.int32)
            for part, length in zip((given.shared, given.own), lengths, strict=True)
        ]
        return Contributions(given.blocks, *stretched)

    with mock.patch.object(train, "bounded_sum", _unbounded), mock.patch.object(wgan, "contributions", by_itself):
        yield


@contextmanager
def _observed_batch() -> Iterator[None]:
    """The noisy sum divided by how many rows were sampled, not by how many were expected."""
    contribute, step, seen = WganTrainer.contribute, WganTrainer.step, [1]

    def counting(self: WganTrainer, codes: Any) -> Contributions:
        seen[0] = len(codes)
        return contribute(self, codes)

    def dividing(self: WganTrainer, noisy: Any) -> None:
        step(self, noisy // max(1, seen[0]))

    with mock.patch.object(WganTrainer, "contribute", counting), mock.patch.object(WganTrainer, "step", dividing):
        yield


@contextmanager
def _centred_in_the_batch() -> Iterator[None]:
    """Gradients relative to their mean over the batch, then at full length: in bounds, but rows move each other."""

    def centred(critic: Any, blocks: Any, most_norm: float, radius: float) -> Contributions:
        given = contributions(critic, blocks, most_norm, radius)
        if not len(blocks):
            return given
        shared, own = given.shared - given.shared.mean(axis=0), given.own - given.own.mean(axis=0)
        length = np.sqrt(blocks.shape[1] * (shared**2).sum(axis=1) + (own**2).sum(axis=1))[:, np.newaxis]
        factor = radius / np.maximum(length, 1.0)
        return Contributions(blocks, *(np.rint(part * factor).astype(np.int32) for part in (shared, own)))

    with mock.patch.object(wgan, "contributions", centred):
        yield


def _half_the_steps(cost: Cost, course: Course, step: str) -> Any:
    return training_laws(cost, replace(course, steps=max(1, course.steps // 2)), step)


def _everybody(limit: int, _: Fraction) -> Any:
    """No coins at all, while the price counts on them."""
    return np.arange(limit, dtype=np.int64)


def _fixed_batches(limit: int, gap: Fraction) -> Any:
    """Batches of a fixed size, as shuffling gives, while the price counts on independent coins."""
    size = round(limit * -np.expm1(-1 / float(gap)))
    return np.sort(np.random.default_rng().permutation(limit)[:size]).astype(np.int64)


def _low_rate(gap: Fraction) -> float:
    return 0.97 * rate_of(gap)


TRAINING: tuple[PlantedBug, ...] = (
    PlantedBug("gradients not clipped", "training replay", _no_clipping),
    PlantedBug("gradients clipped tensor by tensor", "training replay", _clip_per_tensor),
    PlantedBug("observed batch size", "training replay", _observed_batch),
    PlantedBug("gradients centred in their batch", "training replay", _centred_in_the_batch),
    PlantedBug("half of the steps priced", "training replay", patched(curator, "training_laws", _half_the_steps)),
    PlantedBug("amplification without sampling", "training", patched(secure, "sampled_positions", _everybody)),
    PlantedBug("fewer rows priced than take part", "training", patched(accountant, "rate_of", _low_rate)),
    PlantedBug("shuffled batches priced as coins", "training", patched(secure, "sampled_positions", _fixed_batches)),
)
