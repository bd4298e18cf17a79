import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from tests.counts.places import people
from understudy.codec.table import TableCodec
from understudy.counts import streaming as chunked_source
from understudy.counts.streaming import Chunk, ChunkedSource
from understudy.domain import Clique
from understudy.errors import ResourceError, UsageError
from understudy.schema import Category, Integer, Schema, Unit


class Listed(ChunkedSource):
    """Chunks from a list, and how often they were asked for."""

    def __init__(self, codec: TableCodec, chunks: Sequence[Chunk], table_bytes: int = 1 << 20) -> None:
        super().__init__(codec, table_bytes)
        self.chunks, self.queries = chunks, 0

    def _chunks(self, columns: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        self.queries += 1
        for chunk in self.chunks:
            yield len(chunk["sex"]), {name: chunk[name] for name in columns}


@dataclasses.dataclass(frozen=True)
class Parity:
    columns: Clique
    name: str = "parity"
    cells: int = 2

    def assign(self, codes: Mapping[str, npt.NDArray[np.integer]]) -> npt.NDArray[np.int64]:
        return np.asarray(sum(column.astype(np.int64) for column in codes.values()) % 2, np.int64)


def chunks(codec: TableCodec, counts: Sequence[int]) -> list[Chunk]:
    rng = np.random.default_rng(3)
    return [
        {name: rng.integers(0, size, rows).astype(codec.dtype(name)) for name, size in codec.domain.sizes.items()}
        for rows in counts
    ]


@pytest.fixture
def codec() -> TableCodec:
    return TableCodec.of(people())


def test_chunks_add_up(codec: TableCodec) -> None:
    parts = chunks(codec, [5, 0, 17, 1])
    source = Listed(codec, parts)
    whole = {name: np.concatenate([part[name] for part in parts]).astype(np.int64) for name in codec.domain.columns}
    everything = codec.domain.everything()
    shape = codec.domain.shape(everything)
    index = np.ravel_multi_index([whole[name] for name in everything], shape)
    expected = np.bincount(index, minlength=int(np.prod(shape)))
    assert source.counts([everything])[everything].tolist() == expected.tolist()
    occupied = source.occupied(everything)
    assert occupied.indices.tolist() == np.flatnonzero(expected).tolist()
    assert occupied.counts.tolist() == expected[expected > 0].tolist()
    parity = source.partition_counts([Parity(everything), Parity(codec.domain.clique(["age"]))])
    assert parity[0].tolist() == np.bincount(sum(whole.values()) % 2, minlength=2).tolist()
    assert parity[1].tolist() == np.bincount(whole["age"] % 2, minlength=2).tolist()


def test_the_empty_clique_is_the_number_of_rows(codec: TableCodec) -> None:
    source = Listed(codec, chunks(codec, [5, 17]))
    total = Clique()
    assert source.counts([total])[total].tolist() == [22]
    assert source.counts([codec.domain.clique(["sex"]), total])[total].tolist() == [22]
    assert source.occupied(total).counts.tolist() == [22]
    assert source.counts([]) == {}
    assert Listed(codec, []).occupied(codec.domain.everything()).indices.tolist() == []


def test_many_cliques_share_one_pass_and_tight_memory_takes_more(codec: TableCodec) -> None:
    parts = chunks(codec, [50])
    names = codec.domain.columns
    cliques = [codec.domain.clique(pair) for pair in (names[:2], names[1:], names[::2])]
    roomy, tight = Listed(codec, parts), Listed(codec, parts, table_bytes=2700)
    found = roomy.counts(cliques)
    assert roomy.queries == 1
    assert {clique: counts.tolist() for clique, counts in tight.counts(cliques).items()} == {
        clique: counts.tolist() for clique, counts in found.items()
    }
    with pytest.raises(ResourceError):
        Listed(codec, parts, table_bytes=500).counts(cliques)


def test_sparse_counting_of_huge_tables_is_exact() -> None:
    columns = tuple(Integer(name=f"c{position}", lower=0, upper=99, missing=False) for position in range(9))
    codec = TableCodec.of(Schema(columns=columns, unit=Unit(), unreadable="drop"))
    rng = np.random.default_rng(5)
    codes = {name: rng.integers(98, 100, 4000).astype(np.uint8) for name in codec.domain.columns}
    source = Listed(codec, [{**codes, "sex": codes["c0"]}] * 3)
    occupied = source.occupied(codec.domain.everything())
    expected = np.zeros(4000, object)
    for column in codes.values():
        expected = expected * 100 + column.astype(object)
    indices, counts = np.unique(expected.astype(np.int64), return_counts=True)
    assert occupied.indices.tolist() == indices.tolist()
    assert occupied.counts.tolist() == (3 * counts).tolist()


def test_sparse_cells_are_merged_as_they_grow(codec: TableCodec, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = chunks(codec, [9] * 40)
    expected = Listed(codec, parts).occupied(codec.domain.everything())
    monkeypatch.setattr(chunked_source, "LEAST_MERGE", 4)
    merged = Listed(codec, parts).occupied(codec.domain.everything())
    assert merged.indices.tolist() == expected.indices.tolist()
    assert merged.counts.tolist() == expected.counts.tolist()


def test_limits_are_refused_before_rows_are_asked_for() -> None:
    columns = tuple(Category(name=f"c{position}", labels=tuple("abcdefgh")) for position in range(30))
    codec = TableCodec.of(Schema(columns=columns, unit=Unit()))
    source = Listed(codec, [])
    with pytest.raises(UsageError, match="2⁶²"):
        source.occupied(codec.domain.everything())
    with pytest.raises(ResourceError):
        source.partition_counts([Parity(codec.domain.clique(["c0"]), cells=1 << 30)])
    assert source.queries == 0
