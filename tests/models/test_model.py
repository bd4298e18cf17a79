"""Tests of `understudy.models.model`."""

from fractions import Fraction

import numpy as np
import pytest

from understudy.domain import Distribution, Domain
from understudy.errors import ReleaseError, ResourceError, UsageError
from understudy.models.model import (
    MARGINAL_CELLS,
    ModelFiles,
    chunk_generator,
    draw_chunks,
    misplaced_share,
    noise_sum_bound,
    query_clique,
    query_codes,
    read_model_files,
    write_model_files,
)
from understudy.models.product import BlockModel
from understudy.privacy.noise import discrete_gaussian, discrete_laplace

DOMAIN = Domain.of({"a": 3, "b": 10**5, "c": 10**5})


def test_a_clique_that_fits_is_spelled_in_schema_order() -> None:
    assert tuple(query_clique(DOMAIN, ["b", "a"])) == ("a", "b")


def test_a_table_too_large_to_hold_is_refused_with_its_size() -> None:
    with pytest.raises(ResourceError, match="marginal b × c") as refused:
        query_clique(DOMAIN, ["b", "c"])
    assert refused.value.needed_bytes == 8 * 10**10
    assert refused.value.limit_bytes == 8 * MARGINAL_CELLS


def test_codes_become_a_mask() -> None:
    assert query_codes(DOMAIN, "a", np.array([2, 0, 2])).tolist() == [True, False, True]
    assert not query_codes(DOMAIN, "a", []).any()


@pytest.mark.parametrize("code", [-1, 3])
def test_codes_that_do_not_exist_are_refused(code: int) -> None:
    with pytest.raises(UsageError, match="between 0 and 2"):
        query_codes(DOMAIN, "a", [code])


INTS = {"cells": np.dtype("<i8")}


def write(folder, **document):
    write_model_files(folder, ModelFiles({"kind": "k", **document}, {"cells": np.arange(3)}))


def test_any_kind_can_use_the_files(tmp_path):
    write(tmp_path, size=2.5)
    files = read_model_files(tmp_path, "k", INTS)
    assert files.number("size") == 2.5
    assert files.arrays["cells"].tolist() == [0, 1, 2]
    with pytest.raises(ReleaseError, match=r"model\.json: missing"):
        files.number("missing")
    with pytest.raises(ReleaseError, match="kind"):
        read_model_files(tmp_path, "other", INTS)


def test_unwritable_numbers_and_places_are_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path, size=float("nan"))
    with pytest.raises(UsageError, match="empty"):
        write(tmp_path / "missing")


def test_big_endian_arrays_are_stored_little_endian(tmp_path):
    write_model_files(tmp_path, ModelFiles({"kind": "k"}, {"cells": np.arange(3, dtype=">i8")}))
    assert read_model_files(tmp_path, "k", INTS).arrays["cells"].tolist() == [0, 1, 2]


MODEL = BlockModel.uniform(Domain.of({"a": 7, "b": 300}), (), 10.0)


def rows_of(rows, seed, chunk_rows=1000):
    chunks = list(draw_chunks(MODEL, rows, seed, chunk_rows))
    return [len(chunk.codes["a"]) for chunk in chunks], np.concatenate([chunk.codes["b"] for chunk in chunks])


def test_lengths_and_determinism():
    lengths, first = rows_of(2500, 7)
    assert lengths == [1000, 1000, 500]
    np.testing.assert_array_equal(first, rows_of(2500, 7)[1])
    assert not np.array_equal(first, rows_of(2500, 8)[1])
    assert not np.array_equal(first[:1000], first[1000:2000])


def test_a_chunk_can_be_made_alone():
    _, whole = rows_of(3000, 7)
    alone = MODEL.draw(1000, chunk_generator(7, 1))["b"]
    np.testing.assert_array_equal(whole[1000:2000], alone)


def test_no_rows_give_one_empty_chunk():
    assert rows_of(0, 1)[0] == [0]


@pytest.mark.parametrize(("rows", "seed", "chunk_rows"), [(-1, 0, 1), (1, -1, 1), (1, 0, 0)])
def test_bad_numbers_are_refused_before_the_first_chunk(rows, seed, chunk_rows):
    with pytest.raises(UsageError):
        draw_chunks(MODEL, rows, seed, chunk_rows)


# The bound holds as often as it says, is not wasteful, and is honest about small models.


DISTRIBUTIONS = [
    Distribution("laplace", Fraction(1, 2)),
    Distribution("laplace", Fraction(20)),
    Distribution("gaussian", Fraction(1, 2)),
    Distribution("gaussian", Fraction(400)),
    Distribution("gaussian", Fraction(10_000)),
]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
@pytest.mark.parametrize("cells", [1, 10, 1000])
def test_bound_holds_and_is_close(distribution: Distribution, cells: int) -> None:
    draw = discrete_laplace if distribution.kind == "laplace" else discrete_gaussian
    runs = 4000
    sums = np.abs(draw(runs * cells, distribution.parameter)).reshape(runs, cells).sum(axis=1)
    bound = noise_sum_bound(distribution, cells, 0.95)
    # 4,000 runs at 95 %: at most 5 % may lie above; six standard deviations are 2.1 points
    assert np.mean(sums > bound) < 0.05 + 0.021
    assert bound < 1.6 * np.quantile(sums, 0.95) + 3 * distribution.scale


def test_bound_grows_with_confidence_and_cells() -> None:
    distribution = Distribution("gaussian", Fraction(25))
    assert (
        noise_sum_bound(distribution, 10, 0.99)
        > noise_sum_bound(distribution, 10, 0.95)
        > noise_sum_bound(distribution, 9, 0.95)
    )


def test_misplaced_share_covers_the_true_distance() -> None:
    rng = np.random.default_rng(1)
    distribution = Distribution("gaussian", Fraction(100))
    exact = rng.integers(0, 500, 40)
    covered = 0
    for _ in range(200):
        noisy = exact + discrete_gaussian(40, distribution.parameter)
        model = np.maximum(noisy, 0) * rng.uniform(0.8, 1.2, 40)
        covered += np.abs(exact - model).sum() / (2 * model.sum()) <= misplaced_share(noisy, model, distribution)
    assert covered >= 190


def test_an_empty_model_can_be_wrong_about_everybody() -> None:
    assert misplaced_share([3, 4], [0, 0], Distribution("laplace", Fraction(1))) == 1.0
    assert misplaced_share([30000, 40000], [30000, 40000], Distribution("laplace", Fraction(1))) < 0.001
