"""Rows in chunks, for outputs larger than memory.

The layout is fixed: chunk i holds rows i·chunk_rows onward and draws from its own generator, made from the seed and
i alone. So the rows depend on the model, the seed, the number of rows and the chunk length, and on nothing else: not
on the number of threads, not on the order in which chunks are made.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from understudy.errors import UsageError
from understudy.models.model import Codes

__all__ = ["CHUNK_ROWS", "Chunk", "Draws", "chunk_generator", "draw_chunks"]

CHUNK_ROWS = 2**18
"""Default rows per chunk; part of what a seed means, so it stays as it is."""


class Draws(Protocol):
    """What rows are drawn from: a model."""

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` records."""
        ...


class Chunk(NamedTuple):
    """Coded records and the generator to use for whatever else this chunk needs (values inside bins)."""

    codes: Codes
    rng: np.random.Generator


def chunk_generator(seed: int, number: int) -> np.random.Generator:
    """The generator of one chunk, independent of all others."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,))))


def draw_chunks(model: Draws, rows: int, seed: int, chunk_rows: int = CHUNK_ROWS) -> Iterator[Chunk]:
    """Chunks of records that add up to `rows`; one empty chunk if `rows` is 0, so that a header can be written."""
    if rows < 0:
        raise UsageError("rows", f"must be 0 or more, got {rows}.")
    if seed < 0:
        raise UsageError("seed", f"must be 0 or more, got {seed}.")
    if chunk_rows < 1:
        raise UsageError("chunk rows", f"must be 1 or more, got {chunk_rows}.")
    return _chunks(model, rows, seed, chunk_rows)


def _chunks(model: Draws, rows: int, seed: int, chunk_rows: int) -> Iterator[Chunk]:
    for number, start in enumerate(range(0, max(rows, 1), chunk_rows)):
        rng = chunk_generator(seed, number)
        yield Chunk(model.draw(min(chunk_rows, rows - start), rng), rng)
