"""Groups of codes, blocks of records, and the way back to codes."""

import numpy as np
import pytest

from understudy.methods.networks import Encoding, cut_evenly, one_hot_blocks

COUNTS = [np.array([60.0, 40.0]), np.array([5.0, -3.0, 40.0, 2.0, 3.0, 45.0, 5.0])]


def test_few_codes_stay_as_they_are() -> None:
    assert cut_evenly(np.array([0.9, 0.1]), 16).tolist() == [0, 1]


def test_frequent_codes_stand_alone_and_rare_neighbours_share() -> None:
    groups = cut_evenly(np.array([0.01] * 10 + [0.4] + [0.01] * 10 + [0.4]), 4)
    assert len(set(groups.tolist())) <= 4
    assert (np.diff(groups) >= 0).all()
    assert np.count_nonzero(groups == groups[-1]) == 1


@pytest.mark.parametrize("most", [1, 2, 5, 16])
def test_there_are_never_more_groups_than_allowed(most) -> None:
    rng = np.random.default_rng(most)
    for _ in range(20):
        groups = cut_evenly(rng.dirichlet(np.full(40, 0.2)), most)
        assert sorted(set(groups.tolist())) == list(range(int(groups.max()) + 1))
        assert groups.max() < most


def test_shares_are_positive_and_close_to_the_counts() -> None:
    encoding = Encoding.of(COUNTS, 4)
    for shares in encoding.shares:
        assert shares.min() > 0
        assert shares.sum() == pytest.approx(1.0)
    assert encoding.shares[0].tolist() == pytest.approx([0.6, 0.4], abs=1e-5)
    assert encoding.shares[1][1] < 1e-5


def test_nothing_but_noise_still_gives_shares() -> None:
    encoding = Encoding.of([np.array([-5.0, -9.0, -7.0])], 2)
    assert encoding.shares[0].min() > 0


def test_blocks_name_the_group_of_each_column_and_the_bias() -> None:
    encoding = Encoding.of(COUNTS, 3)
    codes = np.array([[0, 0], [1, 5], [1, 6]], dtype=np.uint8)
    found = encoding.blocks(codes)
    bounds = encoding.bounds
    for row, (first, second) in enumerate(codes.tolist()):
        assert found[row].tolist() == [first, bounds[1] + encoding.groups[1][second], bounds[2]]
    assert encoding.column_of_block.tolist() == [0, 0] + [1] * (bounds[2] - 2)
    assert encoding.blocks(codes[:0]).shape == (0, 3)


def test_groups_fall_apart_as_the_noisy_counts_say() -> None:
    encoding = Encoding.of(COUNTS, 3)
    shares = np.concatenate(encoding.group_shares())[np.newaxis]
    for found, expected in zip(encoding.code_probabilities(shares), encoding.shares, strict=True):
        assert found[0].tolist() == pytest.approx(expected.tolist())


def test_one_hot_blocks_number_codes_through() -> None:
    assert one_hot_blocks(np.array([[1, 2], [0, 0]], dtype=np.uint8), (2, 3)).tolist() == [[1, 4], [0, 2]]
