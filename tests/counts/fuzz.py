"""Mutated files of every container, and what reading one of them comes to.

`python -m tests.counts.fuzz 100000` tries that many with a fresh seed, which it prints and takes as a second word.
"""

import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from tests.counts.containers import CONTAINERS
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.errors import UnderstudyError
from understudy.schema import Category, Float, Integer, Schema, Unit
from understudy.schema.document import schema_from_text
from understudy.schema.schema import Dialect, parted
from understudy.schema.yaml_text import schema_to_text

SCHEMA = Schema(
    columns=(
        Category(name="city", labels=("Rome", "Oslo"), other="elsewhere"),
        Integer(name="age", lower=0, upper=9),
        Float(name="rate", lower=0.0, upper=1.0),
    ),
    unit=Unit(column="who", rows=2),
)
ROWS = pa.table(
    {
        "city": ["Rome", "Oslo", "Köln", None],
        "age": [1, 2, None, 4],
        "rate": [0.5, None, 0.25, 1.0],
        "who": ["a", "b", "c", "d"],
    }
)
MARKS = (b"\0", b"\xff" * 4, b"\xff\xff\xff\x7f", b"\0\0\0\0", b'"', b"\n", b"\x80", b"<", b"&a;", b"{", b"[" * 50)


def seeds(folder: Path) -> dict[str, tuple[str, bytes]]:
    """For every container, the location of a small table in it and the bytes of its file."""
    found = {}
    for name, make in CONTAINERS.items():
        location = make(ROWS, folder)
        if isinstance(location, str):
            place = Path(parted(location)[0].partition("::")[0])
            found[name] = (location.replace(str(place), "{place}" + place.suffix), place.read_bytes())
    return found


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with one to four small changes."""
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(0, len(data) + 1))
        length = int(rng.integers(1, 9))
        match int(rng.integers(0, 6)):
            case 0:
                data = data[:at] + bytes([int(rng.integers(256))]) + data[at + 1 :]
            case 1:
                data = data[:at] + MARKS[int(rng.integers(len(MARKS)))] + data[at + length :]
            case 2:
                data = data[:at] + rng.bytes(length) + data[at:]
            case 3:
                data = data[:at] + data[at + length :]
            case 4:
                data = data[:at] + data[max(0, at - 20) : at] + data[at:]
            case _:
                data = data[: max(1, at)] if rng.integers(4) == 0 else data
    return data


def outcome(location: str, schema: Schema) -> str:
    """What reading comes to: "read", or the name of one of our own errors; anything else is raised."""
    try:
        table = open_table(location, schema, memory_bytes=64 << 20, threads=1)
        codec = TableCodec.of(schema)
        everything = codec.domain.everything()
        table.bind(codec).counts([everything])
    except UnderstudyError as error:
        return type(error).__name__
    return "read"


def schema_outcome(text: bytes) -> str:
    """The same for the text of a schema file."""
    try:
        schema_from_text(text.decode("utf-8", "replace"), "schema.yaml")
    except UnderstudyError as error:
        return type(error).__name__
    return "read"


def tried(inputs: int, seed: int, folder: Path) -> Iterator[tuple[str, str]]:
    """The container of each mutated input and what reading it came to."""
    rng = np.random.default_rng(seed)
    found = seeds(folder)
    dialect = Dialect(";", "latin-1", ",", ("city", "age", "rate", "who"), True)
    written = schema_to_text(replace(SCHEMA, file=dialect, missing_values=("NA", "-9"))).encode()
    names = [*found, "schema"]
    for number in range(inputs):
        name = names[number % len(names)]
        if name == "schema":
            yield name, schema_outcome(mutated(written, rng))
            continue
        location, data = found[name]
        place = folder / "mutated"
        suffixes = "".join(Path(location.partition("::")[0]).suffixes)
        Path(f"{place}{suffixes}").write_bytes(mutated(data, rng))
        yield name, outcome(location.format(place=place), SCHEMA)


if __name__ == "__main__":
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else secrets.randbits(63)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as work:
        for (container, ending), times in sorted(Counter(tried(int(sys.argv[1]), seed, Path(work))).items()):
            print(f"{container:20} {ending:15} {times:>8,}")
