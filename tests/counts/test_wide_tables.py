from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.arrays import Ints
from understudy.counts import wide_tables
from understudy.counts.wide_tables import WideTables
from understudy.domain import Clique, Domain

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4, "d": 2, "e": 50, "f": 1, "g": 90})
ROWS = np.random.default_rng(2).integers(0, 1 << 30, (400, 7)) % np.array(list(DOMAIN.sizes.values()))


class Asked:
    """A source that counts the plain way and notes what it was asked."""

    domain = DOMAIN

    def __init__(self) -> None:
        self.cliques: list[Clique] = []

    def counts(self, cliques: Sequence[Clique]) -> Mapping[Clique, Ints]:
        self.cliques += cliques
        return {clique: plain(clique) for clique in cliques}


def plain(clique: Clique) -> Ints:
    cells = np.zeros(len(ROWS), np.int64)
    for name in clique:
        cells = cells * DOMAIN.sizes[name] + ROWS[:, DOMAIN.columns.index(name)]
    return np.bincount(cells, minlength=DOMAIN.cells(clique)).astype(np.int64)


CLIQUES = st.lists(st.sets(st.sampled_from(DOMAIN.columns), max_size=4).map(DOMAIN.clique), max_size=12)


@given(st.lists(CLIQUES, max_size=5), st.sampled_from([0, 4_000, 1 << 28]), st.sampled_from([0, 1 << 22]))
@settings(max_examples=60, deadline=None)
def test_counts_are_those_of_the_source_whatever_was_asked_before(
    questions: list[list[Clique]], room: int, most: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wide_tables, "MOST_WIDE_CELLS", most)
        tables = WideTables(Asked())  # type: ignore[arg-type]
        for cliques in questions:
            found = tables.counts(cliques, room)
            assert found.keys() == set(cliques)
            for clique, counts in found.items():
                assert counts.dtype == np.int64
                np.testing.assert_array_equal(counts, plain(clique))
            assert tables.bytes <= room


def test_rows_are_not_read_again_for_parts_of_what_was_counted() -> None:
    source = Asked()
    tables = WideTables(source)  # type: ignore[arg-type]
    tables.counts([DOMAIN.clique(("a", "b")), DOMAIN.clique(("a", "b", "c"))], 1 << 20)
    assert len(source.cliques) == 1
    asked = list(source.cliques)
    for clique in (("b", "c"), ("a",), ("a", "c")):
        np.testing.assert_array_equal(tables.counts([DOMAIN.clique(clique)], 1 << 20)[DOMAIN.clique(clique)],
                                      plain(DOMAIN.clique(clique)))  # fmt: skip
    assert source.cliques == asked
    assert tables.known(Clique(("e",))) is None
    assert tables.known(Clique()) is None


def test_nothing_is_kept_without_room() -> None:
    source = Asked()
    tables = WideTables(source)  # type: ignore[arg-type]
    for _ in range(2):
        tables.counts([Clique(("a",))], 0)
    assert len(source.cliques) == 2
