import numpy as np
import pytest

from understudy.domain import Domain
from understudy.errors import UsageError
from understudy.models.model import chunk_generator, draw_chunks
from understudy.models.product import BlockModel

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
