"""compiled: numba kernels whose machine code is kept on disk, safely for several processes at once.

numba's own disk cache numbers the variants of a function without locking. Two processes that compile different
variants at the same time can both take the same number, and a third (or one of them, later) then loads machine code
made for other argument types. Results are silently wrong. So every read and write of the cache happens under a lock of
its folder. Where the cache cannot be guarded (an unknown numba, a system without `fcntl`), it is not used: kernels are
then compiled anew in every process, which is slow and right.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numba

__all__ = ["compiled"]


class _CacheFile(Protocol):
    """What numba asks of the file behind a function's cache."""

    _cache_path: str

    def load(self, key: object) -> object: ...

    def save(self, key: object, data: object) -> None: ...

    def flush(self) -> None: ...


def compiled() -> Callable[[Callable[..., object]], Any]:
    """Decorates a kernel: compiled on first call for each combination of argument types, without the interpreter lock.

    Sums of floats are never reordered ("fastmath"). The compiler would then make two versions of a loop and pick one by
    how close together the arrays happen to lie in memory, so the same numbers could give different last digits, and a
    line search different models: releases from the same answers would no longer be the same.
    """

    def decorate(function: Callable[..., object]) -> Any:  # what numba makes of a function has no useful static type
        cached = numba.njit(cache=True, nogil=True)(function)
        return cached if _guard(cached) else numba.njit(nogil=True)(function)

    return decorate


def _guard(kernel: object) -> bool:
    """Puts the lock around the kernel's cache; False if there is nothing to put it around."""
    cache = getattr(kernel, "_cache", None)
    file = getattr(cache, "_cache_file", None)
    if not all(hasattr(file, name) for name in ("_cache_path", "load", "save", "flush")) or not _can_lock():
        return False
    cache._cache_file = _LockedFile(file)  # type: ignore[union-attr, arg-type]
    return True


class _LockedFile:
    """The cache's file, with every access under a lock of its folder."""

    def __init__(self, file: _CacheFile) -> None:
        self._file = file

    def load(self, key: object) -> object:
        """The machine code under that key, if there is any."""
        with _locked(self._file._cache_path, exclusive=False):
            return self._file.load(key)

    def save(self, key: object, data: object) -> None:
        """Keeps machine code under that key."""
        with _locked(self._file._cache_path, exclusive=True):
            self._file.save(key, data)

    def flush(self) -> None:
        """Forgets everything."""
        with _locked(self._file._cache_path, exclusive=True):
            self._file.flush()


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
