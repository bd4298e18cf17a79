"""Rare labels: those of low noisy count share one code, so that no method spends noise and cells on each of them.

Every column whose schema says `rare: private` is counted with noise once, over all its labels: a histogram, ε or ρ,
and no δ (the labels are public). Labels whose noisy count is below three standard deviations of that noise are pooled,
unless there are fewer than two. A row of the common code is written as one of them, drawn in proportion to their noisy
counts, which are first brought to 0 or more with the sum kept. Nothing after the noisy answer looks at a row again.
"""

import math
from collections.abc import Mapping

import numpy as np

from understudy.codec.pool.pool_codec import Pool
from understudy.codec.table_codec import TableCodec
from understudy.marginals.answer import Measurement
from understudy.mechanisms.forecast import noisy_step
from understudy.mechanisms.mechanism import Step
from understudy.models.nonnegative import norm_sub
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator
from understudy.schema import Category, Schema

__all__ = ["THRESHOLD", "chosen_pools", "pool_of", "rare_columns", "rare_steps"]

THRESHOLD = 3.0
"""A label stays if its noisy count is at least this many standard deviations of the noise."""


def rare_columns(schema: Schema) -> list[Category]:
    """The columns whose rare labels are to be pooled."""
    return [column for column in schema.modelled if isinstance(column, Category) and column.rare == "private"]


def rare_steps(schema: Schema, costs: Mapping[str, Cost]) -> list[Step]:
    """The questions `chosen_pools` will ask; raises where a share is too small."""
    names = [column.name for column in rare_columns(schema)]
    domain = TableCodec.of(schema, columns=names).domain if names else None
    return [
        noisy_step(f"measure {name}", costs[name], domain.sizes[name], schema.unit.sensitivity)
        for name in names
        if domain is not None
    ]


def chosen_pools(curator: Curator, schema: Schema, costs: Mapping[str, Cost]) -> dict[str, Pool]:
    """The rare labels of each such column, where there are at least two; settles the curator on all labels."""
    columns = rare_columns(schema)
    if not columns:
        return {}
    curator.settle(TableCodec.of(schema, columns=[column.name for column in columns]))
    pools = {}
    for column in columns:
        (answer,) = curator.measure([curator.domain.clique([column.name])], costs[column.name])
        pool = pool_of(column.labels, answer)
        if len(pool) > 1:
            pools[column.name] = pool
    return pools


def pool_of(labels: tuple[str, ...], answer: Measurement) -> Pool:
    """The labels whose noisy count is low, with the share of each. Codes of labels come first in the answer."""
    noisy = answer.values[: len(labels)].astype(np.float64)
    rare = np.flatnonzero(noisy < THRESHOLD * math.sqrt(answer.law.variance))
    if not rare.size:
        return ()
    shares = norm_sub(noisy[rare], max(float(noisy[rare].sum()), 1.0))
    return tuple((labels[place], float(share)) for place, share in zip(rare.tolist(), shares, strict=True))
