"""Folders made to stall or crash whoever opens them: every command ends soon, in little memory, and says why."""

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.processes import Forked
from tests.release.people import copied, relisted
from understudy.errors import ReleaseError, ResourceError, SchemaError, UsageError
from understudy.release import Release, verify_release
from understudy.release.parquet import open_parquet
from understudy.release.store import METADATA_KEY, TIDY
from understudy.release.verify import inspect_release

MOST_KILOBYTES = 2**20
MOST_SECONDS = 60
WATCHED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))
from understudy.cli.app import app
for words in ["verify", sys.argv[2]], ["sample", sys.argv[2], "-o", sys.argv[3]]:
    try:
        app(words)
    except SystemExit as ended:
        print(f"<{words[0]} ended with {ended.code or 0}>", flush=True)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
used = resource.getrusage(resource.RUSAGE_SELF)
print(f"<used {used.ru_utime + used.ru_stime} s and {peak.split()[1]} KiB>", flush=True)
"""


def _config(folder: Path, **changes: object) -> None:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))


def _aliases(folder: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    (folder / "config.yaml").write_text("\n".join(lines) + "\nrows: *a11\n")


def _linked(name: str, to: str) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        place = folder / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
        place.symlink_to(to)

    return build


def _pipe(name: str) -> Callable[[Path], None]:
    def build(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return build


def _written(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None  # type: ignore[return-value]


def _holes(name: str, size: int) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / name, size)


def _constant_rows(folder: Path) -> None:
    """Millions of valid rows in a few kilobytes, as the settings say."""
    path = folder / "data.parquet"
    one = pq.read_table(path).slice(0, 1)
    piece = one.take(pa.array(np.zeros(2**20, np.int64)))
    with pq.ParquetWriter(path, one.schema, compression="zstd") as writer:
        for _ in range(120):
            writer.write_table(piece)
    _config(folder, rows=[120 * 2**20])


def _constant_answers(folder: Path) -> None:
    path = folder / "measurements.parquet"
    header = json.loads(pq.read_schema(path).metadata[METADATA_KEY])[0]
    schema = TIDY.with_metadata({METADATA_KEY: json.dumps([header | {"rows": 20 * 2**20}]).encode()})
    piece = pq.read_table(path, schema=TIDY).slice(0, 1).take(pa.array(np.zeros(2**20, np.int64))).combine_chunks()
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(piece.replace_schema_metadata(schema.metadata))


def _large_page(folder: Path) -> None:
    path = folder / "data.parquet"
    table = pa.table({name: np.zeros(2**24, np.int64) for name in pq.read_schema(path).names})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, data_page_size=2**30, row_group_size=2**24)


def _long_text(folder: Path) -> None:
    path = folder / "data.parquet"
    table = pq.read_table(path)
    place = table.column_names.index("sex")
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(table.num_rows, np.int32)), pa.array(["x" * 2**25]))
    changed = table.set_column(place, "sex", text).replace_schema_metadata(table.schema.metadata)
    pq.write_table(changed, path, compression="zstd")


def _footer(entry: bytes, count: int) -> bytes:
    """A Parquet file whose footer is a list of that many row groups, each as given."""
    length, varint = count, b""
    while length > 127:
        varint, length = varint + bytes([length & 127 | 128]), length >> 7
    footer = b"\x15\x02\x39\xfc" + varint + bytes([length]) + entry * count + b"\x00"
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _charge(folder: Path, parameter: str) -> None:
    document = json.loads((folder / "statement.json").read_text())
    document["charges"][0]["distribution"]["parameter"] = parameter
    (folder / "statement.json").write_text(json.dumps(document))


def _deep_folder(folder: Path) -> None:
    inner = folder
    for _ in range(200):
        inner = inner / "d"
        inner.mkdir()


def _array(header: str) -> bytes:
    text = header.ljust(118 - 10 - 1) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


HOSTILE: dict[str, Callable[[Path], object]] = {
    "aliases": _aliases,
    "settings linked to a device": _linked("config.yaml", "/dev/zero"),
    "rows linked to a device": _linked("data.parquet", "/dev/zero"),
    "card linked to a device": _linked("card.html", "/dev/zero"),
    "manifest linked to a device": _linked("manifest.json", "/dev/zero"),
    "folder linked away": _linked("model", "/dev"),
    "statement is a pipe": _pipe("statement.json"),
    "text is a pipe": _pipe("statement.md"),
    "array is a pipe": _pipe("model/1/probabilities.npy"),
    "ledger is a pipe": _pipe("ledger.jsonl"),
    "millions of constant answers": _constant_answers,
    "large page": _large_page,
    "long text": _long_text,
    "footer of row groups": _written("data.parquet", _footer(b"\x00", 30_000_000)),
    "footer of chunks": _written(
        "measurements.parquet", _footer(b"\x19\xfc\xff\x7f" + b"\x26\x02\x00" * 16383 + b"\x00", 900)
    ),
    "array of holes": _holes("model/1/probabilities.npy", 2**42),
    "rows of holes": _holes("data.parquet", 2**42),
    "manifest of holes": _holes("manifest.json", 2**40),
    "shape beyond measure": _written(
        "model/1/probabilities.npy", _array("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 40 + ",), }")
    ),
    "deep nesting": _written("statement.json", b"[" * 10**6),
    "many values": _written("statement.json", b"[" + b"[]," * 20_000_000 + b"[]]"),
    "one long number": _written("manifest.json", b"9" * 10**7),
    "giant manifest": _written("manifest.json", json.dumps({"files": {str(n): 1 for n in range(10**6)}}).encode()),
    "large power": lambda folder: _charge(folder, "1e999999999"),
    "long settings": _written("config.yaml", b"- a\n" * 2**14),
    "long schema": _written("schema.yaml", b"- a\n" * 2**15),
    "page of open tags": _written("card.html", b"<a " * 10**6),
    "page of open quotes": _written("card.html", b'<a b=">' * 10**6),
    "page of style sheets": _written("card.html", b"<style>" * 10**6),
    "deep folder": _deep_folder,
    "control characters": lambda folder: (folder / "a\x1b[2J\nb\u202e").touch(),
}
LISTED = {"aliases", "large page", "long text", "millions of constant answers", "large power", "deep nesting"}
"""Made with a manifest that fits, as a careful forger would."""


def _run(folder: Path) -> tuple[str, float, int]:
    """What verifying and sampling print, their processor seconds, and the most memory in KiB that the process held.

    The process looks itself: what the system says of a child counts the memory of whoever started it.
    """
    ended = Forked(WATCHED, 2 * MOST_SECONDS, folder, folder.with_name("rows.csv")).ended()
    assert ended.status == 0, ended
    (used,) = re.findall(r"<used ([\d.]+) s and (\d+) KiB>", ended.said)
    return ended.said, float(used[0]), int(used[1])


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_folder_is_refused_soon_and_in_little_memory(kind: str, plain_folder: Path, tmp_path: Path) -> None:
    folder = copied(plain_folder, tmp_path / "release")
    HOSTILE[kind](folder)
    if kind in LISTED:
        relisted(folder)
    said, seconds, kilobytes = _run(folder)
    assert (seconds < MOST_SECONDS, kilobytes < MOST_KILOBYTES) == (True, True), (seconds, kilobytes)
    named = "<verify ended with 0>" in said and "Not checked, because it would take too long" in said
    assert "<verify ended with 2>" in said or named, said
    assert "ended with 1>" not in said
    assert "\x1b" not in said
    assert "\u202e" not in said


def test_rows_beyond_the_effort_are_named_and_not_read(plain_folder: Path, tmp_path: Path) -> None:
    folder = copied(plain_folder, tmp_path / "release")
    _constant_rows(folder)
    relisted(folder)
    (tmp_path / "rows.csv").touch()  # so that no rows are drawn
    said, seconds, kilobytes = _run(folder)
    assert (seconds < MOST_SECONDS, kilobytes < MOST_KILOBYTES) == (True, True), (said, seconds, kilobytes)
    assert "of 125,829,120 rows of data.parquet" in said
    assert "--everything" in said


def test_no_more_files_are_listed_than_a_release_can_have(plain_folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("understudy.release.files.MOST_ENTRIES", 20)
    folder = copied(plain_folder, tmp_path / "release")
    for number in range(300):
        (folder / "model" / f"{number}.npy").touch()
    assert any("more than 20 files" in problem.rule for problem in verify_release(folder))
    with pytest.raises(ReleaseError, match="more than 20 files"):
        Release.load(folder)


def test_what_is_checked_in_part_is_found_in_full(plain_folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("understudy.release.files.CELLS", 30)
    monkeypatch.setattr("understudy.release.verify.batch_rows", lambda _: 5)
    found = inspect_release(plain_folder)
    rows = Release.load(plain_folder).config.rows[0]
    assert (found.problems, found.unchecked) == ((), (f"{rows - 10:,} of {rows:,} rows of data.parquet",))
    folder = copied(plain_folder, tmp_path / "release")
    table = pq.read_table(folder / "data.parquet")
    sexes = [*table["sex"].to_pylist()[:-1], "X"]
    changed = table.set_column(table.column_names.index("sex"), table.schema.field("sex"), pa.array(sexes))
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), folder / "data.parquet")
    relisted(folder)
    assert verify_release(folder) == []
    assert "outside its domain" in str(verify_release(folder, everything=True))


def test_files_with_few_rows_and_none_are_read(tmp_path: Path) -> None:
    table = pa.table({"label": ["a", None, "b"], "number": [1, 2, None], "share": [0.5, 1.5, 2.5]})
    for rows in (0, 1, 3):
        with pq.ParquetWriter(tmp_path / f"{rows}.parquet", table.schema, compression="zstd") as writer:
            writer.write_table(table.slice(0, rows))
        with open_parquet(tmp_path / f"{rows}.parquet", ["label"]) as stored:
            read = pa.Table.from_batches(stored.iter_batches(2), schema=stored.schema_arrow)
        assert read.cast(table.schema).equals(table.slice(0, rows))


def _damaged(content: bytes, probability: random.Random) -> bytes:
    """The content cut off, or with some bytes flipped, lost or doubled."""
    place = probability.randrange(max(len(content), 1))
    match probability.randrange(5):
        case 0:
            return content[:place]
        case 1:
            return content[:place] + content[place + probability.randrange(1, 40) :]
        case 2:
            return content[:place] + content[max(0, place - probability.randrange(1, 40)) :]
        case 3:
            return content[:place] + bytes([probability.randrange(256)]) + content[place + 1 :]
        case _:
            start = probability.randrange(min(len(content), 200) + 1)  # headers come first
            return content[:start] + bytes(probability.randrange(256) for _ in range(4)) + content[start + 4 :]


@pytest.mark.parametrize("times", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_damage_to_any_file_is_told_as_such(times: int, plain_folder: Path, tmp_path: Path) -> None:
    """Whether its manifest shows the damage or was made to fit."""
    probability = random.Random(13)
    folder = copied(plain_folder, tmp_path / "release")
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    manifest = (folder / "manifest.json").read_bytes()
    for name in names:
        whole = (folder / name).read_bytes()
        for _ in range(times):
            (folder / name).write_bytes(_damaged(whole, probability))
            verify_release(folder)
            if name != "manifest.json":
                relisted(folder)
                verify_release(folder)
            with suppress(ReleaseError, SchemaError, UsageError, ResourceError):  # status 2 or 4, and never 1
                release = Release.load(folder)
                assert release.sample(5, seed=1).num_rows == 5
                assert release.table.num_rows == release.config.rows[0]
        (folder / name).write_bytes(whole)
        (folder / "manifest.json").write_bytes(manifest)
    assert verify_release(folder) == []
