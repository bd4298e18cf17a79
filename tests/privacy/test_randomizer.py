"""The randomizer of releases: integers in and out, no wrap, no seed, no private number in a message."""

import inspect
from fractions import Fraction

import numpy as np
import pytest

from tests.statistics.chi_square import laplace_distribution, z_score
from understudy.counts.source import LabelCounts, OccupiedCells
from understudy.domain import Distribution
from understudy.errors import UsageError
from understudy.privacy import noise
from understudy.privacy import randomizer as secure
from understudy.privacy.randomizer import LARGEST_ANSWER, Randomizer, Request, SecureRandomizer

LAPLACE, GAUSSIAN = Distribution("laplace", Fraction(2)), Distribution("gaussian", Fraction(9))
SILENT = Distribution("laplace", Fraction(1, 10**6))


def _request(
    cells: int, distribution: Distribution | None = LAPLACE, *, threshold: int = 0, rate: Fraction = Fraction(0)
) -> Request:
    return Request("measure", "age", cells, distribution, Fraction(1), rate, threshold)


def _ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_it_is_the_private_one_and_keeps_nothing() -> None:
    randomizer: Randomizer = SecureRandomizer()
    assert randomizer.private
    assert not vars(randomizer)
    assert not inspect.signature(SecureRandomizer).parameters


@pytest.mark.parametrize("distribution", [LAPLACE, GAUSSIAN], ids=lambda distribution: distribution.kind)
def test_noise_is_added_and_the_input_left_alone(distribution: Distribution) -> None:
    exact = np.full(50_000, 1000, dtype=np.int64)
    noisy = SecureRandomizer().add_noise(_request(50_000, distribution), exact)
    assert noisy.dtype == np.int64
    assert (exact == 1000).all()
    assert abs(noisy.mean() - 1000) < 6 * (distribution.variance / 50_000) ** 0.5
    assert noisy.var() == pytest.approx(distribution.variance, rel=0.1)
    assert not np.array_equal(noisy, SecureRandomizer().add_noise(_request(50_000, distribution), exact))


def test_nearly_no_noise_returns_the_counts() -> None:
    exact = _ints(0, 1, 2**31, 2**32 + 1, 2**53 - 1)
    assert np.array_equal(SecureRandomizer().add_noise(_request(5, SILENT), exact), exact)


def test_answers_are_cut_and_never_wrap() -> None:
    distribution = Distribution("laplace", Fraction(2**60))
    noisy = SecureRandomizer().add_noise(_request(4000, distribution), np.full(4000, 2**53 - 1, dtype=np.int64))
    assert noisy.max() == LARGEST_ANSWER
    assert noisy.min() == -LARGEST_ANSWER
    assert 0.3 < (noisy > 0).mean() < 0.7


def test_the_cut_hides_the_cut_of_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise that arrives as ±2⁶² must not show the count behind it."""
    monkeypatch.setattr(secure, "discrete_laplace", lambda size, scale: _ints(noise.LARGEST, -noise.LARGEST))
    for count in (0, 1, 2**53 - 1):
        noisy = SecureRandomizer().add_noise(_request(2), _ints(count, count))
        assert noisy.tolist() == [LARGEST_ANSWER, -LARGEST_ANSWER]


@pytest.mark.parametrize(
    "exact",
    [np.zeros(3), np.zeros(3, np.int32), np.zeros((3, 1), np.int64), _ints(0, 0), _ints(-7, 0, 0), _ints(2**53, 0, 0)],
    ids=["float", "int32", "matrix", "size", "negative", "huge"],
)
def test_broken_counts_are_refused_without_naming_them(exact: np.ndarray) -> None:
    with pytest.raises(UsageError, match="measure age") as caught:
        SecureRandomizer().add_noise(_request(3), exact)
    assert "7" not in str(caught.value)
    assert str(2**53) not in str(caught.value)


def test_a_request_needs_a_distribution() -> None:
    with pytest.raises(UsageError, match="distribution"):
        SecureRandomizer().add_noise(_request(1, None), _ints(1))


def test_sparse_cells_skip_the_occupied_ones() -> None:
    """Almost all cells pass at threshold 1 and scale 1000, so every gap in the numbering would show."""
    distribution = Distribution("laplace", Fraction(1000))
    occupied = OccupiedCells(_ints(0, 3, 4, 5, 98, 99), np.full(6, 2**40, dtype=np.int64))
    seen: set[int] = set()
    for _ in range(60):
        kept = SecureRandomizer().add_sparse_noise(_request(100, distribution, threshold=1), occupied)
        assert np.all(np.diff(kept.indices) > 0)
        assert kept.counts.min() >= 1
        assert set(kept.indices[kept.counts > 2**39].tolist()) == {0, 3, 4, 5, 98, 99}
        seen |= set(kept.indices.tolist())
    assert seen == set(range(100))


def test_sparse_noise_on_a_table_without_empty_or_without_occupied_cells() -> None:
    full = OccupiedCells(np.arange(5, dtype=np.int64), np.full(5, 10, dtype=np.int64))
    kept = SecureRandomizer().add_sparse_noise(_request(5, SILENT, threshold=1), full)
    assert kept.counts.tolist() == [10] * 5
    none = OccupiedCells(_ints(), _ints())
    kept = SecureRandomizer().add_sparse_noise(_request(10**15, SILENT, threshold=1), none)
    assert kept.indices.size == kept.counts.size == 0
    assert kept.indices.dtype == kept.counts.dtype == np.int64


@pytest.mark.parametrize("indices", [(-1, 2), (2, 2), (3, 1), (0, 10)])
def test_broken_cell_numbers_are_refused(indices: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="cells must increase"):
        SecureRandomizer().add_sparse_noise(_request(10, threshold=1), OccupiedCells(_ints(*indices), _ints(1, 1)))


def test_sparse_noise_refuses_gaussian_noise_and_floods() -> None:
    cells = OccupiedCells(_ints(1), _ints(1))
    with pytest.raises(UsageError, match="Laplace"):
        SecureRandomizer().add_sparse_noise(_request(10, GAUSSIAN, threshold=1), cells)
    with pytest.raises(UsageError, match="threshold of about"):
        SecureRandomizer().add_sparse_noise(_request(10**15, threshold=3), cells)


def test_frequent_labels_come_in_code_point_order() -> None:
    labels = LabelCounts(("z", "é", "Z", "a", "", "ä", "10", "9"), _ints(9, 9, 9, 2, 9, 9, 9, 9))
    kept = SecureRandomizer().keep_frequent(_request(0, SILENT, threshold=3), labels)
    assert kept.labels == ("", "10", "9", "Z", "z", "ä", "é")
    assert kept.counts.tolist() == [9] * 7


def test_counts_stay_with_their_labels_and_the_threshold_is_inclusive() -> None:
    labels = LabelCounts(("b", "a", "c"), _ints(5, 7, 4))
    kept = SecureRandomizer().keep_frequent(_request(0, SILENT, threshold=5), labels)
    assert kept.labels == ("a", "b")
    assert kept.counts.tolist() == [7, 5]
    empty = SecureRandomizer().keep_frequent(_request(0, threshold=5), LabelCounts((), _ints()))
    assert empty.labels == ()
    assert empty.counts.dtype == np.int64


def test_choose_takes_the_maximum_and_checks_its_scores() -> None:
    request = _request(3, None, rate=Fraction(1))
    assert SecureRandomizer().choose(request, _ints(-(2**62), 2**62, 0)) == 1
    for scores in (np.zeros(3), _ints(1, 2), np.zeros((3, 1), np.int64)):
        with pytest.raises(UsageError, match="scores"):
            SecureRandomizer().choose(request, scores)


def test_scores_may_be_negative_and_get_the_noise_of_their_distribution() -> None:
    distribution = Distribution("laplace", Fraction(5))
    exact = np.full(50_000, -(2**60), dtype=np.int64)
    noisy = SecureRandomizer().add_noise(Request("score", "x", exact.size, distribution, Fraction(1)), exact)
    assert z_score(noisy - exact, laplace_distribution(5.0)) < 6.0
    wide = Distribution("gaussian", Fraction(2**50))
    few = SecureRandomizer().add_noise(Request("score", "x", 3_000, wide, Fraction(1)), np.zeros(3_000, np.int64))
    assert 0.9 < few.std() / 2**25 < 1.1
    for bad in (np.full(2, 2**60 + 1), np.zeros((2, 1), np.int64), np.zeros(2)):
        with pytest.raises(UsageError):
            SecureRandomizer().add_noise(Request("score", "x", 2, distribution, Fraction(1)), bad)


def test_nodes_are_split_as_often_as_their_distribution_says() -> None:
    """At threshold 7: P(X > 7 − biased), for biased counts from far below to far above."""
    distribution = laplace_distribution(3.0)
    request = Request("grow", "x", 40_000, Distribution("laplace", Fraction(3)), Fraction(1), threshold=7)
    for biased in (0, 6, 7, 8, 12):
        probability = sum(part for noise, part in distribution.items() if biased + noise > 7)
        split = SecureRandomizer().split(request, np.full(40_000, biased))
        assert split.dtype == np.bool_
        assert abs(split.mean() - probability) < 6 * (probability * (1 - probability) / 40_000) ** 0.5
    with pytest.raises(UsageError, match="number of nodes"):
        SecureRandomizer().split(request, np.zeros(3, np.int64))


def test_choices_within_cells_need_the_announced_options() -> None:
    request = Request("select within", "x", 3, None, Fraction(1), Fraction(1))
    with pytest.raises(UsageError, match="number of options"):
        SecureRandomizer().choose_each(request, np.zeros((4, 2), np.int64), np.ones((4, 2), np.bool_))
    assert SecureRandomizer().choose_each(request, np.zeros((4, 3), np.int64), np.ones((4, 3), np.bool_)).size == 4
