"""compiled: numba kernels whose machine code is kept on disk, safely for several processes at once.

numba's own disk cache numbers the variants of a function without locking. Two processes that compile different
variants at the same time can both take the same number, and a third (or one of them, later) then loads machine code
made for other argument types. Results are silently wrong. So every read and write of the cache happens under a lock of
its folder. Where the cache cannot be guarded (an unknown numba, a system without `fcntl`) or has no place (a read-only
installation and a home that cannot be written), it is not used: kernels are then compiled anew in every process, which
is slow and right. The same holds for every single failure of the cache (a full disk, a file system without locks, a
limit of the process, a damaged file): kernels are compiled in the middle of a run that was charged, and whether their
machine code could be kept must not decide whether a release is made.

numba keeps machine code until the file of its kernel changes. But a kernel has parts of other files within it, as they
were when it was compiled: functions that it calls, and constants. So machine code is kept with a digest of all that the
kernel is made of (`made_of`), and taken up only where that is still the same.

A wheel for one Python may bring machine code of its own (UNDERSTUDY_KERNELS=1 when it is built), so that the first run
on a new machine need not compile. It is used only where it is certain to be right: by the numba and the Python that
made it, for the very sources it was compiled from, and on a processor that has all it was compiled for. Everywhere
else kernels are compiled.
"""

import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Literal, Protocol

import numba
import numpy as np
from llvmlite import ir  # what numba writes machine code with; it comes with every numba
from numba import types
from numba.extending import intrinsic

PACKAGE = Path(__file__).parent
SHIPPED = PACKAGE / "machine_code"
"""What the wheel brought: `contents.json`, and numba's files in a folder for each folder of the package."""
CONTENTS = "contents.json"
_OURS = "understudy."


class _CacheFile(Protocol):
    """What numba asks of the file behind a function's cache."""

    _cache_path: str
    _index_path: str
    _source_stamp: object

    def _load_index(self) -> dict[object, str]: ...

    def load(self, key: object) -> object: ...

    def save(self, key: object, data: object) -> None: ...

    def flush(self) -> None: ...


def compiled(*, allocates: bool = True) -> Callable[[Callable[..., object]], Any]:
    """Decorates a kernel: compiled on first call for each combination of argument types, without the interpreter lock.

    A kernel that makes no array of its own says so (`allocates=False`). numba then leaves out counting the references
    to its arrays, which happens at every call of a function within it and can take ten times as long as the work.
    Whoever calls a kernel holds its arrays meanwhile, so nothing needs that count.

    Sums of floats are never reordered ("fastmath"). The compiler would then make two versions of a loop and pick one by
    how close together the arrays happen to lie in memory, so the same numbers could give different last digits, and a
    line search different models: releases from the same answers would no longer be the same.
    """

    options: dict[str, Any] = {"nogil": True} if allocates else _BARE

    def decorate(function: Callable[..., object]) -> Any:  # what numba makes of a function has no useful static type
        with suppress(Exception):  # numba raises RuntimeError where no folder can be written, OSError if one vanishes
            cached = numba.njit(cache=True, **options)(function)
            if _guard(cached):
                return cached
        return numba.njit(**options)(function)

    return decorate


def _bare_options() -> dict[str, Any]:
    """The options of kernels without references, as far as this numba knows them: one of them is not public."""
    options: dict[str, Any] = {"nogil": True, "_nrt": False}
    try:
        numba.njit(**options)(lambda: None)
    except Exception:  # noqa: BLE001 - an option that is not known: kernels are then slower and the same
        return {"nogil": True}
    return options


_BARE = _bare_options()


def within_kernels(*, inline: Literal["never", "always"] = "never") -> Callable[[Callable[..., object]], Any]:
    """Decorates a function that only kernels call, and that makes no array."""
    # By LLVM, which takes no longer to compile for it, as numba's own inlining does. Calls are a large part of a loop
    # over bytes.
    return numba.njit(inline=inline, forceinline=True, **_BARE)  # type: ignore[no-any-return]


def _load_word(_typing, array, _place):  # type: ignore[no-untyped-def]  # pragma: no cover
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load(_word_at(context, builder, signature, arguments), align=1)

    return types.uint64(array, types.intp), generate


def _store_word(_typing, array, _place, _word):  # type: ignore[no-untyped-def]  # pragma: no cover
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.store(arguments[2], _word_at(context, builder, signature, arguments), align=1)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.uint64), generate


def _marks_of(_typing, array, _place, _first, _second):  # type: ignore[no-untyped-def]  # pragma: no cover
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        wide = ir.VectorType(ir.IntType(8), 64)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        found = builder.load(builder.bitcast(builder.gep(data, [arguments[1]]), wide.as_pointer()), align=1)
        marks = []
        for byte in arguments[2:]:
            alone = builder.insert_element(ir.Constant(wide, ir.Undefined), byte, ir.Constant(ir.IntType(32), 0))
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), 64), None)
            spread = builder.shuffle_vector(alone, ir.Constant(wide, ir.Undefined), everywhere)
            marks.append(builder.icmp_unsigned("==", found, spread))
        every = functools.reduce(builder.or_, marks)
        return builder.bitcast(every, ir.IntType(64))

    byte = types.uint8
    return types.uint64(array, types.intp, byte, byte), generate


def _lowest_bit(_typing, _word):  # type: ignore[no-untyped-def]  # pragma: no cover
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]  # noqa: ARG001
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


MARKED_BYTES = 64
marks_of: Any = intrinsic(_marks_of)
"""In a kernel, marks_of(bytes, place, a, b): which of the 64 bytes from a place on are one of two, as bits.

They must lie within the array. The lowest bit is that of the first byte.
"""
lowest_bit: Any = intrinsic(_lowest_bit)
"""In a kernel, lowest_bit(word): the place of the lowest bit that is set; one must be."""
load_word: Any = intrinsic(_load_word)
"""In a kernel, load_word(bytes, place): the eight bytes from a place on as a number; they must lie within the array.

Loops over single bytes are the slowest part of reading short texts.
"""
store_word: Any = intrinsic(_store_word)
"""In a kernel, store_word(bytes, place, word): writes eight bytes, which must lie within the array."""


def _word_at(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    word = context.get_value_type(types.uint64).as_pointer()
    return builder.bitcast(builder.gep(data, [arguments[1]]), word)


def _guard(kernel: Any) -> bool:
    """Puts the lock around the kernel's cache and makes its failures harmless; False if this cannot be done."""
    cache: Any = getattr(kernel, "_cache", None)
    file: Any = getattr(cache, "_cache_file", None)
    needed = ("_cache_path", "_index_path", "_load_index", "load", "save", "flush")
    known = all(hasattr(file, name) for name in needed)
    if not known or not all(hasattr(cache, name) for name in ("load_overload", "save_overload")) or not _can_lock():
        return False
    cache._cache_file = _LockedFile(file, kernel.py_func)
    kernel._cache = _HarmlessCache(cache)
    return True


class _HarmlessCache:
    """numba's cache of one kernel, whose failures mean no more than that there is nothing to load and nothing is kept.

    Also what cannot be unpickled or linked any more counts as not there: the kernel is compiled and kept anew.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def load_overload(self, signature: object, context: object) -> object:
        """The compiled kernel for these argument types, if it was kept, or came with the wheel, and can be read."""
        with suppress(Exception):
            kept = self._cache.load_overload(signature, context)
            if kept is not None:
                return kept
        with suppress(Exception):
            return self._shipped(signature, context)
        return None

    def _shipped(self, signature: object, context: Any) -> object:
        """The kernel as the wheel brought it; numba's key names the processor, which `_usable` has compared."""
        source = Path(self._cache._py_func.__code__.co_filename)
        if not source.is_relative_to(PACKAGE) or not _usable(SHIPPED):
            return None
        folder, index = SHIPPED / source.parent.relative_to(PACKAGE), Path(self._cache._cache_file.index_path)
        stamp = _AnyTime(made_of(self._cache._py_func))
        file = type(self._cache._cache_file.inner)(str(folder), index.stem, stamp)
        asked, _, code = self._cache._index_key(signature, context.codegen())
        for (made_for, _, made_from), name in file._load_index().items():
            if made_for == asked and made_from == code:
                return self._cache._impl.rebuild(context, file._load_data(name))
        return None

    def save_overload(self, signature: object, compiled_kernel: object) -> None:
        """Keeps a compiled kernel, if that is possible; a damaged index is thrown away and begun anew."""
        try:
            self._cache.save_overload(signature, compiled_kernel)
        except OSError:
            return
        except Exception:  # noqa: BLE001 - what a damaged pickle raises is not foreseeable
            with suppress(Exception):
                self._cache.flush()
                self._cache.save_overload(signature, compiled_kernel)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


@dataclass(frozen=True, slots=True, eq=False)
class _AnyTime:
    """Equal to the stamp of a kernel that is made of the same, whatever the time of its source: installing sets it."""

    made_of: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and other[1:] == (self.made_of,)

    __hash__ = None  # type: ignore[assignment]


class _LockedFile:
    """The cache's file, with every access under a lock of its folder, for what a kernel is made of now."""

    def __init__(self, file: _CacheFile, kernel: FunctionType | None = None) -> None:
        self._unstamped = file
        self._kernel = kernel

    @cached_property
    def _file(self) -> _CacheFile:
        # Not earlier: what a kernel calls may stand below it.
        if self._kernel is not None:
            self._unstamped._source_stamp = (self._unstamped._source_stamp, made_of(self._kernel))
        return self._unstamped

    @property
    def inner(self) -> Any:
        """numba's own file."""
        return self._unstamped

    @property
    def index_path(self) -> str:
        """The file that lists for which argument types there is machine code."""
        return self._unstamped._index_path

    def load(self, key: object) -> object:
        """The machine code under that key, if there is any."""
        with _locked(self._file._cache_path, exclusive=False):
            return self._file.load(key)

    def save(self, key: object, data: object) -> None:
        """Keeps machine code under that key."""
        with _locked(self._file._cache_path, exclusive=True):
            self._drop_stale()
            self._file.save(key, data)

    def flush(self) -> None:
        """Forgets everything."""
        with _locked(self._file._cache_path, exclusive=True):
            self._file.flush()

    def _drop_stale(self) -> None:
        """Removes machine code of an earlier source, or raises.

        numba writes the number of a new file into the index before the file itself. If the second write fails, an old
        file of that number would be taken for the new one.
        """
        index = Path(self._file._index_path)
        known = set(self._file._load_index().values())
        name = re.compile(re.escape(index.stem) + r"\.\d+\.nbc")
        for path in index.parent.iterdir():
            if name.fullmatch(path.name) and path.name not in known:
                path.unlink()


@cache
def _usable(folder: Path) -> bool:
    """Whether machine code of the wheel fits this numba, these sources and this processor; asked once a process."""
    import llvmlite.binding

    contents = json.loads((folder / CONTENTS).read_text(encoding="utf-8"))
    if contents["numba"] != numba.__version__ or contents["machine"] != os.uname().machine:
        return False
    has = llvmlite.binding.get_host_cpu_features()
    if not all(has.get(feature) for feature in contents["features"]):
        return False
    return all(source_digest(PACKAGE / name) == digest for name, digest in contents["sources"].items())


def made_of(kernel: FunctionType) -> str:
    """A digest of the code of a kernel, of all that it calls, and of the constants they use, in whatever file."""
    digest, seen = hashlib.sha256(), set[FunctionType]()
    waiting = [kernel]
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        code = [function.__code__]
        while code:
            one = code.pop()
            nested = [part for part in one.co_consts if isinstance(part, CodeType)]
            plain = [part for part in one.co_consts if not isinstance(part, CodeType)]
            digest.update(repr((one.co_code, one.co_names, plain)).encode())
            code += nested
            for name in one.co_names:
                value = function.__globals__.get(name)
                inner = getattr(value, "py_func", getattr(value, "_defn", value))  # of a kernel, of an intrinsic
                if isinstance(inner, FunctionType) and (inner is not value or inner.__module__.startswith(_OURS)):
                    waiting.append(inner)
                elif isinstance(value, np.ndarray):
                    digest.update(repr((name, value.dtype.str, value.shape, value.tobytes())).encode())
                elif isinstance(value, bool | int | float | str | tuple | np.generic):
                    digest.update(repr((name, value)).encode())
    return digest.hexdigest()


def source_digest(path: Path) -> str:
    """What tells whether a source is the one that was compiled."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _can_lock() -> bool:
    try:
        import fcntl
    except ImportError:
        return False
    return hasattr(fcntl, "flock")


@contextmanager
def _locked(folder: str, *, exclusive: bool) -> Iterator[None]:
    import fcntl

    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # the folder is not there yet: nothing to read, and whoever writes creates it first
        os.makedirs(folder, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)
