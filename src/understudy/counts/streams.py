"""The bytes of a file as UTF-8 text: out of gzip, Zstandard or a zip, and out of the encoding that was declared.

Encodings
---------
Nothing is guessed. Bytes that are invalid in the declared encoding become bytes that are invalid in UTF-8, so that
the value which holds them is unreadable, as it is in any other source. A line is decoded by itself: encodings in
which bytes depend on those before them start anew at every line end, so that one row never changes how another is
read.

Bombs
-----
A small file can expand to more than anybody could read. So a compressed file may expand to at most 1,000 times its
size, or to 256 MiB if that is more, unless another limit is given. It is expanded once, to nothing, before anything
is charged; there damaged and truncated files are found too.

What that pass tells: whether the container is whole, which its own check sums say, and whether the table has more
bytes than a public limit. Both are facts of the whole file of the kind that its size, or a full disk, tells everybody
who handles it. No field is looked at, so two tables of the same size have the same outcome whatever their rows say,
and one person's rows can move it only if the table is within the length of these rows of the limit, which is far from
any file in use. The outcome is an error before the charge, seen by the steward alone, who has the file.

Spans
-----
Several threads can read one table at the same time, each a span of a file: Parquet is cut between row groups, text
where a line begins. Spans follow from the file's outside and, for text, from where lines end; every row lies in exactly
one of them. How many there are is told to nobody.
"""

import codecs
import contextlib
import itertools
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Literal, Protocol, TypeVar

import pyarrow as pa

from understudy.errors import InputError, size_text
from understudy.schema.schema import is_wide

Packing = Literal["", "gz", "zst", "zip"]
_CODECS = {"gz": "gzip", "zst": "zstd"}
_NAMES = {"gz": "gzip", "zst": "Zstandard", "zip": "zip"}
PIECE_BYTES = 1 << 20
LEAST_EXPANDED = 256 << 20
MOST_RATIO = 1000
_MOST_MEMBERS = 10_000
_LONGEST_LINE = 8 << 20
_PLAIN_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
PACKED_ERRORS = (
    pa.ArrowException, OSError, zipfile.BadZipFile, zlib.error, ValueError, EOFError, RuntimeError, NotImplementedError,
    KeyError, IndexError,
)  # fmt: skip

UNREADABLE = b"\xff"
"""No text in UTF-8, so no value that anything could be read from; in a column of ids it is as good as none."""
_UNREADABLE = "understudy.unreadable"
_LONE = 0xDC00  # half of a surrogate pair, which no UTF-8 has
_T = TypeVar("_T")


def _as_odd(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return _odd(error.object[error.start : error.end]), error.end


def _odd(raw: bytes) -> str:
    """Text for invalid bytes: as invalid in UTF-8, and different for different bytes, since ids may hold them."""
    return "".join(chr(_LONE + byte) for byte in raw)


codecs.register_error(_UNREADABLE, _as_odd)


class ByteStream(Protocol):
    """Bytes in order; fewer than asked for may come, and none only at the end."""

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        ...


def attempted(read: Callable[[], _T]) -> _T | None:
    """What the reader of a container gives; nothing if it fails, whose words might quote the file."""
    try:
        return read()
    except PACKED_ERRORS:
        return None


def read_up_to(stream: ByteStream, size: int) -> bytes:
    """That many bytes, or all there are."""
    pieces: list[bytes] = []
    while size > 0 and (piece := stream.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


@contextlib.contextmanager
def open_bytes(path: Path, packing: Packing = "", member: str = "") -> Iterator[ByteStream]:
    """The bytes of a file, expanded."""
    if packing == "":
        with path.open("rb") as file:
            yield file
    elif packing == "zip":
        with zipfile.ZipFile(path) as archive, archive.open(member) as part:
            yield part
    else:
        with pa.OSFile(str(path)) as file, pa.CompressedInputStream(file, _CODECS[packing]) as stream:
            yield stream


@contextlib.contextmanager
def open_text(path: Path, packing: Packing, member: str, encoding: str) -> Iterator[ByteStream]:
    """The same as UTF-8."""
    with open_bytes(path, packing, member) as stream:
        yield stream if encoding == "utf-8" else _Transcoded(stream, encoding)


@contextlib.contextmanager
def open_span(path: Path, start: int, stop: int) -> Iterator[ByteStream]:
    """The bytes of a file from one place to another."""
    with path.open("rb") as file:
        file.seek(start)
        yield _Limited(file, stop - start)


class _Limited:
    """As many bytes of a stream as were asked for at first."""

    def __init__(self, stream: ByteStream, size: int) -> None:
        self._stream = stream
        self._left = size

    def read(self, size: int, /) -> bytes:
        """The next bytes."""
        found = self._stream.read(min(size, self._left))
        self._left -= len(found)
        return found


class _Transcoded:
    """Bytes of another encoding as those of UTF-8."""

    def __init__(self, stream: ByteStream, encoding: str) -> None:
        self._stream = stream
        self._encoding = encoding
        self._tail = b""
        self._wide: codecs.IncrementalDecoder | None = None
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """The next bytes of UTF-8; there may be more of them than asked for."""
        while not self._ended:
            # Not just what is asked for: a few bytes at a time of a long line would be held and copied again and again.
            raw = self._stream.read(max(size, PIECE_BYTES))
            self._ended = not raw
            found = self._next(raw)
            if found:
                return found
        return b""

    def _next(self, raw: bytes) -> bytes:
        if is_wide(self._encoding):
            return self._widened(raw)
        if is_single_byte(self._encoding):
            return _utf8(raw, self._encoding)
        held = self._tail + raw
        # A line is cut only where it is longer than what is read of any line, so where does not matter.
        cut = len(held) if self._ended else _after_last_line(held) or (len(held) if len(held) > _LONGEST_LINE else 0)
        self._tail = held[cut:]
        return b"".join(_utf8_line(line, self._encoding) for line in held[:cut].splitlines(keepends=True))

    def _widened(self, raw: bytes) -> bytes:
        if self._wide is None:
            big = self._encoding.endswith("be") or (self._encoding == "utf-16" and raw[:2] == b"\xfe\xff")
            self._wide = codecs.getincrementaldecoder("utf-16-be" if big else "utf-16-le")(_UNREADABLE)
        return self._wide.decode(raw, self._ended).encode("utf-8", "surrogatepass")


def _after_last_line(held: bytes) -> int:
    return max(held.rfind(b"\n"), held.rfind(b"\r")) + 1


def _utf8_line(line: bytes, encoding: str) -> bytes:
    """A line with its own end: what is broken in front of it must not swallow it, and with it the next row."""
    body = line.rstrip(b"\r\n")
    return _utf8(body, encoding).replace(b"\n", UNREADABLE).replace(b"\r", UNREADABLE) + line[len(body) :]


def _utf8(raw: bytes, encoding: str) -> bytes:
    try:
        return raw.decode(encoding, _UNREADABLE).encode("utf-8", "surrogatepass")
    except (ValueError, RuntimeError):  # an encoding that will not go on after an error
        return "".join(chr(byte) if byte < 128 else _odd(bytes([byte])) for byte in raw).encode(
            "utf-8", "surrogatepass"
        )


def decoded(raw: bytes, encoding: str) -> bytes:
    """One value in UTF-8; what is invalid stays invalid."""
    if encoding == "utf-8":
        return raw
    return _utf8(raw, encoding)


@lru_cache(maxsize=64)
def is_single_byte(encoding: str) -> bool:
    """Whether every byte is a character by itself, so that text may be cut anywhere."""
    upper = bytes(range(128, 256))
    alone = [bytes([byte]).decode(encoding, "replace") for byte in upper]
    return all(len(one) == 1 for one in alone) and "".join(alone) == upper.decode(encoding, "replace")


def packed_member(path: Path) -> tuple[str, int]:
    """The one file in a zip and the size it is said to have.

    Raises:
        InputError: it is no zip, encrypted, or does not hold exactly one file.
    """
    names = attempted(lambda: _members(path))
    if names is None:
        rule = "is not a readable zip archive (damaged, truncated or in another format)."
        raise InputError(str(path), rule, "Check the file, or pack it again.")
    if len(names) != 1:
        rule = f"must hold exactly one table, and holds {len(names) or 'no'} file{'s' * (len(names) != 1)}."
        raise InputError(str(path), rule, "Unpack it and name the file that you mean.")
    (found,) = names
    if found.flag_bits & _ENCRYPTED:
        raise InputError(str(path), "is encrypted.", "Unpack it first.")
    if found.compress_type not in _PLAIN_METHODS:
        raise InputError(str(path), "is compressed by a method other than deflate.", "Unpack it first.")
    return found.filename, found.file_size


def _members(path: Path) -> list[zipfile.ZipInfo]:
    with zipfile.ZipFile(path) as archive:
        listed = archive.infolist()
        if len(listed) > _MOST_MEMBERS:
            raise ValueError("too many members")
        return [one for one in listed if not one.is_dir() and not _is_by_the_way(one.filename)]


def _is_by_the_way(name: str) -> bool:
    """Whether a desktop put the file there."""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith(".")


def most_expanded(path: Path, most_bytes: int | None) -> int:
    """The most bytes that a compressed file may expand to."""
    return max(LEAST_EXPANDED, MOST_RATIO * path.stat().st_size) if most_bytes is None else most_bytes


def check_expansion(path: Path, packing: Packing, member: str, most_bytes: int | None) -> int:
    """Expands a compressed file to nothing, up to the limit, and returns how many bytes it holds.

    Raises:
        InputError: it is damaged, or expands to more than the limit.
    """
    if packing == "":
        return path.stat().st_size
    limit, size = most_expanded(path, most_bytes), 0
    try:
        with open_bytes(path, packing, member) as stream:
            while size <= limit and (piece := stream.read(PIECE_BYTES)):
                size += len(piece)
    except PACKED_ERRORS:
        size = -1
    if size < 0:
        rule = f"is not a readable {_NAMES[packing]} file (damaged, truncated or in another format)."
        raise InputError(str(path), rule, "Check the file, or pack it again.")
    if size > limit:
        raise too_large(path, limit)
    return size


def check_wide(path: Path, size: int) -> None:
    """Refuses text of UTF-16 with half a character too many.

    Behind it every line would be read one byte off, so the line that has it would change all rows after it. Whoever
    writes text as UTF-16 cannot make one: it is damage to the file.

    Raises:
        InputError: the number of bytes is odd.
    """
    if size % 2:
        raise InputError(str(path), "has an odd number of bytes, which UTF-16 never has.", "Check that it is complete.")


def too_large(path: Path, limit: int) -> InputError:
    """The error about a file that expands to more than the limit."""
    rule = f"expands to more than {size_text(limit)}."
    return InputError(str(path), rule, "If that is right, give most_bytes= or unpack it first.")


def member_bytes(path: Path, member: str, limit: int) -> bytes:
    """A whole file out of a zip.

    Raises:
        InputError: it has more bytes than the limit.
    """
    with zipfile.ZipFile(path) as archive, archive.open(member) as part:
        found = part.read(limit + 1)
    if len(found) > limit:
        raise too_large(path, limit)
    return found


def zip_part(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """One part of an archive, if it is packed by a method that needs little memory."""
    info = archive.getinfo(name)
    if info.flag_bits & _ENCRYPTED or info.compress_type not in _PLAIN_METHODS:
        raise ValueError("another method of packing")
    return archive.open(info)


Span = tuple[Path, int, int]
"""A file and a span of it: of row groups, or of bytes."""

LEAST_SPAN_BYTES = 1 << 22
"""Least number of bytes of text that one thread reads."""
_HEAD_BYTES = 1 << 16
_STEP_BYTES = 1 << 20
_BLANK = b"\xef\xbb\xbf\r\n"


def line_spans(path: Path, most: int) -> list[tuple[Span, int]]:
    """A text file as at most that many spans that begin and end with lines, with the bytes of each.

    The header line is in the first span. So a file that begins with many empty lines, behind which it might lie, is one
    span.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        begun = len(head) - len(head.lstrip(_BLANK))  # within the header line
        whole = size < most * LEAST_SPAN_BYTES or begun == len(head)
        inner = [] if whole else [_line_start(file, max(begun, size * part // most)) for part in range(1, most)]
    bounds = [0, *(place for place in dict.fromkeys(inner) if place < size), size]
    return [((path, low, high), high - low) for low, high in itertools.pairwise(bounds)]


def _line_start(file: IO[bytes], place: int) -> int:
    """Where the first line begins that starts behind that place; the end of the file if none does.

    Between CR and LF an empty line may seem to begin, which is none by the rules of text.
    """
    file.seek(place)
    while piece := file.read(_STEP_BYTES):
        ends = [end for end in (piece.find(b"\n"), piece.find(b"\r")) if end >= 0]
        if ends:
            return place + min(ends) + 1
        place += len(piece)
    return place


def shared_out(sized: Sequence[tuple[Span, int]], most: int) -> list[list[Span]]:
    """Pieces for at most that many readers: in order, about as much for each, neighbours in a file as one.

    >>> one, other = Path("one"), Path("other")
    >>> [len(part) for part in shared_out([((one, 0, 1), 5), ((one, 1, 2), 5), ((other, 0, 1), 9)], 2)]
    [1, 1]
    """
    total, done = sum(size for _, size in sized), 0
    parts: list[list[Span]] = [[] for _ in range(most)]
    for (path, start, stop), size in sized:
        part = parts[min(most - 1, (2 * done + size) * most // max(1, 2 * total))]
        done += size
        if part and part[-1][0] == path and part[-1][2] == start:
            part[-1] = (path, part[-1][1], stop)
        else:
            part.append((path, start, stop))
    return [part for part in parts if part]
