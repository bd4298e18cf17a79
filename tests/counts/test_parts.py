"""Several threads, and codes kept on disk, change no count."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.counts.places import every_clique, people
from understudy.codec.table import TableCodec
from understudy.counts import frames, readers, streaming, streams
from understudy.counts.files import FileReader, file_batches, file_parts
from understudy.counts.kernels import TableCounter
from understudy.counts.opening import open_table
from understudy.counts.readers import Header, RowReader, StreamedTable
from understudy.counts.source import Batch, CountSource, NamelessFile
from understudy.counts.streaming import KeptCodes, side_by_side
from understudy.counts.streams import line_spans, shared_out
from understudy.errors import InputError
from understudy.schema import Schema, Unit

ROWS = 5_000


def some_rows(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(8)
    return pa.table(
        {
            "sex": pa.array(["F", "M", None, "?"]).take(pa.array(rng.integers(0, 4, rows))),
            "age": pa.array(rng.integers(-2, 14, rows), mask=rng.random(rows) < 0.1),
            "city": pa.array(["Rome", "Oslo", "", "x"]).take(pa.array(rng.integers(0, 4, rows))),
        }
    )


def all_counts(source: CountSource) -> dict[tuple[str, ...], list[int]]:
    cliques = every_clique(TableCodec.of(people()))
    return {tuple(clique): counts.tolist() for clique, counts in source.counts(cliques).items()}


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "BATCH_ROWS", 1024)
    monkeypatch.setattr(streams, "LEAST_SPAN_BYTES", 1)


def as_text(table: pa.Table) -> bytes:
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in table.to_pylist()]
    return "\n".join(["sex,age,city", *lines]).encode() + b"\n"


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("suffix", [".parquet", ".csv", "several"])
@pytest.mark.parametrize("unreadable", ["keep", "drop"])
def test_any_number_of_threads_gives_the_same_counts(tmp_path: Path, suffix: str, unreadable: str) -> None:
    table = some_rows()
    schema = Schema(columns=people().columns, unit=Unit(), unreadable=unreadable)
    place = str(tmp_path / "*.parquet")
    if suffix == ".csv":
        place = str(tmp_path / "t.csv")
        Path(place).write_bytes(as_text(table))
    elif suffix == ".parquet":
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=300)
    else:
        for number, start in enumerate((0, 7, 4_000)):
            part = table.slice(start, (7, 3_993, 1_000)[number])
            pq.write_table(part, tmp_path / f"t{number}.parquet", row_group_size=450)
    codec = TableCodec.of(schema)
    expected = all_counts(open_table(table, schema).bind(codec))
    kept = [open_table(table, schema).bind(codec).records().codes.tolist()]
    for threads in (1, 2, 5):
        source = open_table(place, schema, threads=threads).bind(codec)
        for _ in range(2):  # the second time from the codes that were kept
            assert all_counts(source) == expected
        kept.append(source.records().codes.tolist())
    assert all(codes == kept[0] for codes in kept)


@pytest.mark.parametrize(("rows", "expected"), [(ROWS, 1), (5 * ROWS, 3)])
def test_threads_have_tables_of_their_own_where_rows_are_worth_it(
    monkeypatch: pytest.MonkeyPatch, rows: int, expected: int
) -> None:
    monkeypatch.setattr(frames, "LEAST_ROWS_PER_THREAD", 1)
    source = open_table(some_rows(rows), people(), threads=3).bind(TableCodec.of(people()))
    all_counts(source)  # from now on the number of rows is known
    made: list[TableCounter] = []
    monkeypatch.setattr(streaming, "TableCounter", lambda *given: made.append(TableCounter(*given)) or made[-1])
    all_counts(source)
    assert len(made) == expected


@pytest.mark.usefixtures("small_batches")
def test_parts_are_several_and_hold_every_row_once_in_order(tmp_path: Path) -> None:
    table = some_rows()
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=300)
    (tmp_path / "t.csv").write_bytes(as_text(table))
    for name in ("t.parquet", "t.csv"):
        reader = FileReader(tmp_path / name, people())
        whole = [
            batch["city"].cast(pa.string()).to_pylist()
            for _, batch in reader.batches(["city"], memory_bytes=1 << 26, threads=1)
        ]
        parts = reader.parts(["city"], memory_bytes=1 << 26, threads=3)
        assert len(parts) == 3
        read = [batch["city"].cast(pa.string()).to_pylist() for part in parts for _, batch in part]
        assert list(chain(*read)) == list(chain(*whole))


HOSTILE = b'a\n"x\n1\r\n\r\n"y\n\xef\xbb\xbf2\r' + b"z" * 50 + b'\r\n"q""\n",\n\n\n3'


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n\n\r"])
def test_text_cut_anywhere_has_the_rows_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: bytes, named: bool
) -> None:
    monkeypatch.setattr(streams, "LEAST_SPAN_BYTES", 1)
    path = tmp_path / "t.csv"
    path.write_bytes(start + HOSTILE)
    container = FileReader(path).container
    if not named:
        container = replace(container, dialect=replace(container.dialect, header=False, names=("a",)))

    def bytes_of(batches: Iterator[Batch]) -> list[bytes | None]:
        return [value for _, batch in batches for value in batch["a"].cast(pa.large_binary()).to_pylist()]

    expected = bytes_of(file_batches(container, ["a"], memory_bytes=1 << 26, threads=1))
    for most in (2, 3, 7, 40):
        parts = file_parts(container, ["a"], most=most)
        assert len(parts) > 1
        assert list(chain(*map(bytes_of, parts))) == expected


def test_what_cannot_be_cut_for_certain_is_one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "LEAST_SPAN_BYTES", 1)
    path = tmp_path / "t.csv"
    path.write_bytes(as_text(some_rows(500)))
    given = {"memory_bytes": 1 << 26, "threads": 4}
    assert len(FileReader(path, people()).parts(["sex"], **given)) == 4
    assert len(FileReader(f"{path}::multiline", people()).parts(["sex"], **given)) == 1
    path.write_bytes(b"\n" * 70_000 + as_text(some_rows(50)))
    assert [piece[1:] for piece, _ in line_spans(path, 3)] == [(0, path.stat().st_size)]


def test_pieces_are_shared_out_whole_and_in_order() -> None:
    one, other = Path("one"), Path("other")
    sized = [((one, group, group + 1), 10) for group in range(5)] + [((other, 0, 1), 1), ((other, 1, 2), 90)]
    for most in range(1, 9):
        found = [piece for part in shared_out(sized, most) for piece in part]
        spread = [(path, group) for path, start, stop in found for group in range(start, stop)]
        assert spread == [(one, 0), (one, 1), (one, 2), (one, 3), (one, 4), (other, 0), (other, 1)]
    assert shared_out([], 3) == []


class Broken(RowReader):
    where, engine = "a table", "nothing"

    def __init__(self, ended: threading.Event) -> None:
        self._ended = ended

    @property
    def header(self) -> Header:
        return tuple((name, "string") for name in people().names)

    def batches(self, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Iterator[Batch]:
        try:
            while True:
                yield 2, {name: pa.array(["F", "M"]) for name in columns}
        finally:
            self._ended.set()

    def parts(self, columns: Sequence[str], *, memory_bytes: int, threads: int) -> Sequence[Iterator[Batch]]:
        def fails() -> Iterator[Batch]:
            yield 2, {name: pa.array(["F", "M"]) for name in columns}
            raise RuntimeError("a server quotes Ada Lovelace")

        return [self.batches(columns, memory_bytes=0, threads=1), fails()]


def test_one_part_that_fails_stops_the_others_and_says_nothing() -> None:
    ended = threading.Event()
    source = StreamedTable(Broken(ended), people(), threads=2).bind(TableCodec.of(people()))
    with pytest.raises(InputError) as caught:
        source.counts([source.domain.clique(["sex"])])
    assert "Lovelace" not in str(caught.value)
    assert caught.value.__context__ is None
    assert ended.is_set()


def test_work_that_fails_in_a_thread_is_raised() -> None:
    def work(number: int, rows: int, chunk: object) -> None:
        if number == 1:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        side_by_side([iter([(1, {})]), iter([(1, {})])], work)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("trouble", ["none", "no room", "full disk"])
def test_codes_beyond_memory_are_kept_on_disk_or_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    table = some_rows()
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=300)
    codec = TableCodec.of(people())
    expected = all_counts(open_table(table, people()).bind(codec))
    written: list[int] = []
    original = NamelessFile.append

    def append(self: NamelessFile, array: np.ndarray) -> int:
        if trouble == "full disk" and len(written) > 4:
            raise OSError(28, "No space left on device")
        written.append(array.nbytes)
        return original(self, array)

    monkeypatch.setattr(NamelessFile, "append", append)
    monkeypatch.setattr(streaming, "SPARE_BYTES", 1 << 62 if trouble == "no room" else 0)
    source = open_table(tmp_path / "t.parquet", people(), threads=2).bind(codec)
    source._cache_bytes = 4_000  # type: ignore[attr-defined]
    for _ in range(3):
        assert all_counts(source) == expected
    kept = source._cache  # type: ignore[attr-defined]
    assert (kept is not None) == (trouble == "none")
    assert bool(written) == (trouble != "no room")
    if trouble == "none":
        assert sum(written) <= 3 * ROWS


def test_kept_codes_are_complete_only_when_every_part_is() -> None:
    kept = KeptCodes(["a", "b"], 2, 10)
    for part in (1, 0):
        kept.append(part, 4, [np.full(4, part, np.uint8), np.arange(4, dtype=np.uint16)])
        assert not kept.complete
        kept.close(part)
    assert kept.complete
    for most in (1, 2, 5):
        streams = kept.split(["b", "a"], most)
        assert [column[1].tolist() for stream in streams for _, column in stream] == [[0] * 4, [1] * 4]
