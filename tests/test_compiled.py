"""Kernels on disk: several processes that start cold at once never run machine code made for other types.

And whatever is wrong with the disk, kernels still run: they are compiled anew.
"""

import errno
import fcntl
import importlib.util
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from unittest import mock

import numba
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numba.core.caching import IndexDataCacheFile

from understudy import compiled as module
from understudy.compiled import compiled, within_kernels

KERNEL = """
from understudy.compiled import compiled, within_kernels

@compiled()
def total(values):
    result = values[0] * 0
    for value in values:
        result += value
    return result
"""
PROGRAM = """
import sys
import numba
import numpy as np
from kernel import total

kinds = [np.uint8, np.int16, np.float32, np.float64]
shift = int(sys.argv[1])
for kind in kinds[shift:] + kinds[:shift]:
    assert total(np.arange(50, dtype=kind)) == 1225, kind
"""
KINDS = (np.uint8, np.int16, np.float32, np.float64)


def _loaded(folder: Path) -> Any:
    """The kernel of that folder as a process that starts there has it: nothing is compiled, and the disk is asked."""
    found = importlib.util.spec_from_file_location("kernel", folder / "kernel.py")
    assert found is not None
    assert found.loader is not None
    made = sys.modules["kernel"] = importlib.util.module_from_spec(found)  # machine code names its module
    found.loader.exec_module(made)
    return made.total


def test_processes_that_start_cold_together_agree(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "program.py"]
    running = [
        subprocess.Popen([*command, str(shift)], cwd=tmp_path, stderr=subprocess.PIPE, text=True) for shift in range(3)
    ]
    for process in running:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    assert len(list(tmp_path.rglob("*.nbc"))) == len(KINDS), "one file of machine code per kind"
    left = _loaded(tmp_path)
    for kind in KINDS:
        assert left(np.arange(50, dtype=kind)) == 1225
    assert sum(left.stats.cache_hits.values()) == len(KINDS)


class SlowFile(IndexDataCacheFile):  # type: ignore[misc]
    """numba's own file, with time to collide between taking a number and writing it down."""

    def _save_index(self, overloads: object) -> None:
        time.sleep(0.2)
        super()._save_index(overloads)


def test_two_writers_never_take_the_same_number(tmp_path: Path) -> None:
    files = [module._LockedFile(SlowFile(str(tmp_path), "kernel", "stamp")) for _ in range(2)]
    writers = [Thread(target=file.save, args=(f"key {place}", f"code {place}")) for place, file in enumerate(files)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [files[0].load(f"key {place}") for place in range(2)] == ["code 0", "code 1"]


def test_a_cache_that_cannot_be_guarded_is_not_used() -> None:
    with mock.patch.object(module, "_can_lock", return_value=False):

        @compiled()
        def double(value: int) -> int:
            return 2 * value

    assert double(21) == 42
    assert not double.stats.cache_hits
    assert type(double._cache).__name__ == "NullCache"


def _hits(folder: Path) -> int:
    """How many of the kernel's variants are found on the disk by who needs one."""
    total = _loaded(folder)
    assert total(np.arange(50)) == 1225
    return sum(total.stats.cache_hits.values())


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "kernel.py").write_text(KERNEL, encoding="utf-8")
    return tmp_path


def test_without_any_place_for_the_cache_kernels_still_run(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel / "__pycache__").write_text("a file where the folder would be, which stops root as well", encoding="utf-8")
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "/dev/null")
    for _ in range(2):
        assert _hits(kernel) == 0
    assert sorted(path.name for path in kernel.iterdir()) == ["__pycache__", "kernel.py"]


def test_a_limit_on_file_sizes_does_not_stop_a_kernel(kernel: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))  # the index fits, the machine code does not
    try:
        assert _hits(kernel) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(kernel.rglob("*.nbi"))
    assert not list(kernel.rglob("*.nbc"))
    assert [_hits(kernel) for _ in range(2)] == [0, 1], "the index named a file that was not there"


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"rubbish\n", pickle.dumps(7)], ids=["no pickle", "another object"])
def test_a_damaged_cache_is_begun_anew(kernel: Path, suffix: str, content: bytes) -> None:
    _hits(kernel)
    (damaged,) = kernel.rglob(f"*.{suffix}")
    whole = damaged.read_bytes()
    if suffix == "nbi":  # numba reads a version first: damage what comes after it as well
        content = whole[: whole.index(b".") + 1] + content
    damaged.write_bytes(content)
    assert [_hits(kernel) for _ in range(2)] == [0, 1]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EIO, errno.EMFILE])
def test_a_lock_that_fails_does_not_stop_a_kernel(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    @compiled()
    def triple(value: int) -> int:
        return 3 * value

    def refuse(handle: int, operation: int) -> None:
        raise OSError(number, "no lock")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert triple(14) == 42


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.ESTALE])
@pytest.mark.parametrize("name", ["load", "save"])
def test_a_disk_that_fails_does_not_stop_a_kernel(number: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @compiled()
    def half(value: float) -> float:
        return value / 2

    def fail(*_: object) -> None:
        raise OSError(number, "failed")

    monkeypatch.setattr(IndexDataCacheFile, name, fail)
    assert half(84.0) == 42.0


def test_machine_code_of_an_earlier_source_is_never_taken_for_a_new_one(tmp_path: Path) -> None:
    earlier = module._LockedFile(IndexDataCacheFile(str(tmp_path), "kernel", "earlier source"))
    earlier.save("types", "earlier code")
    later = module._LockedFile(IndexDataCacheFile(str(tmp_path), "kernel", "later source"))
    full = OSError(errno.ENOSPC, "full")
    with mock.patch.object(IndexDataCacheFile, "_save_data", side_effect=full), pytest.raises(OSError, match="full"):
        later.save("types", "later code")
    assert later.load("types") is None


def test_a_service_account_gets_its_release(tmp_path: Path) -> None:
    """Neither the installation nor the home can be written: plain files stand where folders would be made."""
    copy = tmp_path / "installed"
    source = Path(module.__file__).parent
    shutil.copytree(source, copy / "understudy", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [path for path in copy.rglob("*") if path.is_dir()]:
        (folder / "__pycache__").touch()
    (tmp_path / "schema.yaml").write_text(
        "understudy: 1\nunit: row\ncolumns:\n  sex: {kind: category, labels: [F, M], note: code book}\n",
        encoding="utf-8",
    )
    pq.write_table(pa.table({"sex": ["F", "M"] * 20}), tmp_path / "people.parquet")  # text takes kernels of its own
    command = [sys.executable, "-m", "understudy", "synthesize", "people.parquet", "--schema", "schema.yaml"]
    homeless = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "NUMBA_CACHE_DIR": "", "PYTHONPATH": str(copy)}
    shown = subprocess.run(
        [*command, "--method", "independent", "--epsilon", "1", "--out", "release"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | homeless | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert shown.returncode == 0, shown.stderr
    assert (tmp_path / "release" / "manifest.json").is_file()


def test_no_kernel_may_reorder_sums() -> None:
    source = Path(module.__file__).parent
    assert not [path.name for path in source.rglob("*.py") if "fastmath=" in path.read_text(encoding="utf-8")]


@compiled(allocates=False)
def _last_of_each(values, starts, found):  # type: ignore[no-untyped-def]
    for place in range(found.size):
        found[place] = _last(values, starts[place], starts[place + 1])


@within_kernels()
def _last(values, start, stop):  # type: ignore[no-untyped-def]
    for place in range(stop - 1, start - 1, -1):
        if values[place] >= 0:
            return values[place]
    return -1


def test_a_kernel_that_makes_no_array_counts_no_references() -> None:
    values, starts, found = np.array([3, -1, -1, 5]), np.array([0, 2, 2, 4]), np.zeros(3, np.int64)
    before = [sys.getrefcount(array) for array in (values, starts, found)]
    _last_of_each(values, starts, found)
    assert found.tolist() == [3, -1, 5]
    assert [sys.getrefcount(array) for array in (values, starts, found)] == before
    fresh = numba.njit(**module._BARE)(_last_of_each.py_func)
    fresh(values, starts, found)
    assert "NRT_incref" not in fresh.inspect_llvm(fresh.signatures[0])


def test_without_the_option_kernels_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    real = numba.njit

    def older(*given: Any, **options: Any) -> Any:
        if "_nrt" in options:
            raise TypeError("Unrecognized options: {'_nrt'}")
        return real(*given, **options)

    monkeypatch.setattr(numba, "njit", older)
    assert module._bare_options() == {"nogil": True}


CALLED = """
from understudy.compiled import within_kernels

FACTOR = 2

@within_kernels()
def changed(value):
    return FACTOR * value
"""
CALLER = """
from called import FACTOR, changed
from understudy.compiled import compiled

@compiled()
def total(values):
    return between(values[0]) + FACTOR

from understudy.compiled import within_kernels

@within_kernels()
def between(value):
    return changed(value)
"""


def test_a_kernel_is_compiled_anew_if_what_it_calls_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in another file, and a constant: numba looks at the file of the kernel alone."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "kernel.py").write_text(CALLER, encoding="utf-8")
    found = []
    for called in (CALLED, CALLED, CALLED.replace("= 2", "= 5"), CALLED.replace("* value", "* value + 1")):
        (tmp_path / "called.py").write_text(called, encoding="utf-8")
        monkeypatch.delitem(sys.modules, "called", raising=False)
        total = _loaded(tmp_path)
        found.append((total(np.arange(3, 5)), sum(total.stats.cache_hits.values())))
    monkeypatch.delitem(sys.modules, "called")
    assert found == [(8, 0), (8, 1), (20, 0), (9, 0)]


@pytest.fixture
def shipped(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a package whose one kernel came compiled, with nothing kept on this machine yet."""
    assert _hits(kernel) == 0
    folder = kernel / "machine_code"
    (kernel / "__pycache__").rename(folder)
    contents = {
        "numba": numba.__version__,
        "machine": os.uname().machine,
        "features": [],
        "sources": {"kernel.py": module.source_digest(kernel / "kernel.py")},
    }
    (folder / module.CONTENTS).write_text(json.dumps(contents), encoding="utf-8")
    os.utime(kernel / "kernel.py", (1, 1))  # installing gives the source another time, by which numba would go
    monkeypatch.setattr(module, "PACKAGE", kernel)
    monkeypatch.setattr(module, "SHIPPED", folder)
    module._usable.cache_clear()
    yield kernel
    module._usable.cache_clear()


def test_machine_code_of_the_wheel_is_used_and_nothing_is_compiled(shipped: Path) -> None:
    assert _hits(shipped) == 1
    assert not list((shipped / "__pycache__").glob("*.nb?"))


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("numba", "0.1"),
        ("machine", "another"),
        ("features", ["a feature of no processor"]),
        ("sources", {"kernel.py": "of another source"}),
    ],
)
def test_machine_code_for_something_else_is_not_used(shipped: Path, key: str, other: object) -> None:
    path = shipped / "machine_code" / module.CONTENTS
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), key: other}), encoding="utf-8")
    assert _hits(shipped) == 0


def test_machine_code_for_other_arguments_is_not_used(shipped: Path) -> None:
    total = _loaded(shipped)
    assert total(np.arange(50, dtype=np.float32)) == 1225
    assert not total.stats.cache_hits


def test_damaged_machine_code_is_compiled_anew(shipped: Path) -> None:
    for path in (shipped / "machine_code").glob("*.nbc"):
        path.write_bytes(path.read_bytes()[:100])
    assert _hits(shipped) == 0
