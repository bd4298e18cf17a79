"""The contract of models: equal to enumeration, exact under conditions, the same after a trip through files."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from understudy.errors import UnderstudyError
from understudy.models.model import Codes, Model

__all__ = ["check_draws", "check_model"]

MOST_Z = 6.0
DRAWS = 20_000
Floats = npt.NDArray[np.float64]


def check_model(model: Model, joint: Floats) -> None:
    """Raises AssertionError where the model differs from `joint`, its full table of probabilities (flat row-major)."""
    domain = model.domain
    table = joint.reshape(domain.shape(domain.everything()))
    assert model.total >= 0
    _check_marginals(model, table)
    check_draws(model, table, seed=1)
    _check_conditions(model, table)
    _check_files(model)


def _check_marginals(model: Model, table: Floats) -> None:
    names = model.domain.columns
    for width in range(min(3, len(names)) + 1):
        for columns in itertools.combinations(names, width):
            clique = model.domain.clique(columns)
            others = tuple(axis for axis, name in enumerate(names) if name not in clique)
            expected = table.sum(axis=others).reshape(-1)
            np.testing.assert_allclose(model.marginal(clique), expected, rtol=1e-9, atol=1e-12)


def check_draws(model: Model, table: Floats, *, seed: int) -> None:
    """Rows follow the table (chi-square, fixed level), reproducibly, and never fall where it is zero."""
    codes = model.draw(DRAWS, np.random.default_rng(seed))
    observed = _count(codes, model, table)
    expected = table.reshape(-1) * DRAWS
    assert observed.sum() == DRAWS
    assert not observed[expected == 0].any(), "a record where none can be"
    large = expected >= 5
    cells_observed = np.append(observed[large], observed[~large].sum())
    cells_expected = np.append(expected[large], expected[~large].sum())
    used = cells_expected > 0
    statistic = float((((cells_observed - cells_expected) ** 2)[used] / cells_expected[used]).sum())
    freedom = max(1, int(used.sum()) - 1)
    assert (statistic - freedom) / np.sqrt(2 * freedom) < MOST_Z
    again = model.draw(DRAWS, np.random.default_rng(seed))
    assert all(np.array_equal(codes[name], again[name]) for name in model.domain.columns)


def _count(codes: Codes, model: Model, table: Floats) -> npt.NDArray[np.int64]:
    columns = tuple(np.asarray(codes[name]).astype(np.int64) for name in model.domain.columns)
    return np.bincount(np.ravel_multi_index(columns, table.shape), minlength=table.size)


def _check_conditions(model: Model, table: Floats) -> None:
    names = model.domain.columns
    for axis, name in enumerate(names):
        for wanted in (np.array([0]), np.arange(table.shape[axis])[::2]):
            mask = np.zeros(table.shape[axis], dtype=bool)
            mask[wanted] = True
            shape = [1] * table.ndim
            shape[axis] = -1
            restricted = np.where(mask.reshape(shape), table, 0.0)
            if restricted.sum() <= 0:
                _expect_refusal(model, name, wanted)
                continue
            conditioned = model.condition({name: wanted})
            restricted = restricted / restricted.sum()
            everything = model.domain.everything()
            np.testing.assert_allclose(conditioned.marginal(everything), restricted.reshape(-1), rtol=1e-9, atol=1e-12)
            check_draws(conditioned, restricted, seed=2)


def _expect_refusal(model: Model, name: str, wanted: npt.NDArray[np.integer]) -> None:
    try:
        model.condition({name: wanted})
    except UnderstudyError:
        return
    raise AssertionError("a condition that cannot happen must be refused")


def _check_files(model: Model) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model"
        target.mkdir()
        model.save(target)
        loaded = type(model).load(target)
        assert loaded.total == model.total
        assert dict(loaded.domain.sizes) == dict(model.domain.sizes)
        first = model.draw(500, np.random.default_rng(3))
        second = loaded.draw(500, np.random.default_rng(3))
        assert all(np.array_equal(first[name], second[name]) for name in model.domain.columns)
