"""A small job for everything that moves rows: exact pairs of dependent columns, and rows with the columns alone."""

import itertools

import numpy as np

from understudy.domain import Clique, Domain, StructuralZeros
from understudy.models.records import Target

DOMAIN = Domain.of({"a": 4, "b": 3, "c": 5, "d": 2})
NO_SUCH_CELL = np.zeros((4, 5), dtype=bool)
NO_SUCH_CELL[1, 2:] = True
RULE = StructuralZeros(Clique("ac"), NO_SUCH_CELL.ravel())


def truth(rows: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Rows that obey the rule and whose columns depend on each other."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 4, rows)
    c = np.where(a == 1, rng.integers(0, 2, rows), (a + rng.integers(0, 3, rows)) % 5)
    b = np.where(rng.random(rows) < 0.7, a % 3, rng.integers(0, 3, rows))
    d = ((b + c) % 2 ^ (rng.random(rows) < 0.1)).astype(np.int64)
    return {name: codes.astype(np.uint8) for name, codes in zip("abcd", (a, b, c, d), strict=True)}


def counts(codes: dict[str, np.ndarray], clique: Clique) -> np.ndarray:
    cells = np.ravel_multi_index([codes[n].astype(np.int64) for n in clique], DOMAIN.shape(clique))
    return np.bincount(cells, minlength=DOMAIN.cells(clique)).astype(np.float64)


def pairs(codes: dict[str, np.ndarray]) -> list[Target]:
    return [Target(Clique(pair), counts(codes, Clique(pair))) for pair in itertools.combinations("abcd", 2)]


def shuffled(codes: dict[str, np.ndarray], seed: int = 2) -> dict[str, np.ndarray]:
    """The same columns, otherwise independent; a and c stay together so that the rule holds."""
    rng = np.random.default_rng(seed)
    order = {name: rng.permutation(len(codes["a"])) for name in "bd"}
    return {name: codes[name][order[name]] if name in order else codes[name] for name in "abcd"}


def distance(codes: dict[str, np.ndarray], targets: list[Target]) -> float:
    rows = len(codes["a"])
    return sum(np.abs(counts(codes, t.clique) - t.wanted(rows)).sum() for t in targets) / rows / len(targets) / 2
