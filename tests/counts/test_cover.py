import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.counts.kernels import check_memory, counting_bytes, cover_for, passes, projected, table_bytes
from understudy.domain import Clique, Domain
from understudy.errors import ResourceError, UsageError


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 5000), min_size=1, max_size=9), st.data())
def test_every_clique_lies_in_its_table(sizes: list[int], data: st.DataObject) -> None:
    domain = Domain.of({f"c{position}": size for position, size in enumerate(sizes)})
    subsets = st.sets(st.sampled_from(domain.columns), max_size=3)
    cliques = [domain.clique(part) for part in data.draw(st.lists(subsets, max_size=12))]
    cover = cover_for(domain, cliques)
    assert set(cover.source) == {clique for clique in cliques if clique}
    for clique, table in cover.source.items():
        assert cover.tables[table].contains(clique)
    for table in cover.tables:  # type: ignore[assignment]
        assert domain.cells(table) <= max(1 << 15, max(domain.cells(clique) for clique in cliques))
        assert list(table) == sorted(table, key=domain.columns.index)  # type: ignore[call-overload]


def test_pairs_share_tables() -> None:
    sizes = (2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 20, 25, 32, 42, 64, 85, 100)
    domain = Domain.of({f"c{position:02d}": size for position, size in enumerate(sizes)})
    pairs = [domain.clique(pair) for pair in itertools.combinations(domain.columns, 2)]
    assert len(cover_for(domain, pairs).tables) < 60 < len(pairs)


def test_projection_sums_the_other_columns_out() -> None:
    domain = Domain.of({"a": 2, "b": 3, "c": 4})
    counts = np.arange(24, dtype=np.int64)
    cube = counts.reshape(2, 3, 4)
    names = "abc"
    cliques = [Clique(part) for size in (1, 2, 3) for part in itertools.combinations(names, size)]
    found = dict(projected(domain, Clique(names), counts, cliques))
    assert set(found) == set(cliques)
    for clique in cliques:
        away = tuple(axis for axis, name in enumerate(names) if name not in clique)
        assert found[clique].tolist() == cube.sum(axis=away).ravel().tolist()


def test_passes_fit_the_limit_and_lose_no_table() -> None:
    domain = Domain.of(dict.fromkeys("abcdef", 10))
    tables = [domain.clique(pair) for pair in itertools.combinations("abcdef", 2)]
    batches = passes(domain, tables, 3 * table_bytes(100))
    assert [len(batch) for batch in batches] == [3] * 5
    assert sorted(itertools.chain(*batches)) == list(range(15))
    assert len(passes(domain, tables, 1)) == 15


def test_memory_is_refused_from_the_domain_alone_with_exact_numbers() -> None:
    domain = Domain.of({f"c{position}": 1000 for position in range(60)})
    everything = domain.everything()
    assert counting_bytes(domain, [everything]) == 20 * 1000**60
    with pytest.raises(ResourceError) as caught:
        check_memory(domain, [everything], 1 << 30)
    assert caught.value.needed_bytes == 20 * math.prod([1000] * 60)
    check_memory(domain, [domain.clique(["c0"])], 1 << 30)


def smallest_holding(domain: Domain, tables: tuple[Clique, ...], clique: Clique) -> int:
    return min((domain.cells(table), place) for place, table in enumerate(tables) if table.contains(clique))[1]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=9), st.data())
def test_a_clique_is_summed_out_of_the_smallest_table_that_holds_it(sizes: list[int], data: st.DataObject) -> None:
    domain = Domain.of({f"c{position}": size for position, size in enumerate(sizes)})
    subsets = st.sets(st.sampled_from(domain.columns), min_size=1, max_size=4)
    cover = cover_for(domain, [domain.clique(part) for part in data.draw(st.lists(subsets, max_size=20))])
    assert all(smallest_holding(domain, cover.tables, clique) == place for clique, place in cover.source.items())


def test_all_pairs_of_hundreds_of_columns_are_covered_in_little_memory() -> None:
    """44,850 pairs: a matrix of pairs × tables, or of pairs × columns in floats, would take gigabytes."""
    domain = Domain.of({f"c{position:03d}": 12 for position in range(300)})
    pairs = [Clique(pair) for pair in itertools.combinations(domain.columns, 2)]
    cover_for(domain, pairs[:1])  # compiles
    tracemalloc.start()
    try:
        cover = cover_for(domain, pairs)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(cover.source) == len(pairs)
    assert taken < 2**26


def test_unknown_column() -> None:
    with pytest.raises(UsageError, match="not part of the domain"):
        check_memory(Domain.of({"a": 2}), [Clique(("b",))], 1 << 30)
