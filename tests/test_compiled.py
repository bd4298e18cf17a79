"""Kernels on disk: several processes that start cold at once never run machine code made for other types."""

import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from unittest import mock

from numba.core.caching import IndexDataCacheFile

from understudy import compiled as module
from understudy.compiled import compiled

KERNEL = """
from understudy.compiled import compiled

@compiled()
def total(values):
    result = values[0] * 0
    for value in values:
        result += value
    return result
"""
PROGRAM = """
import sys
import numpy as np
from kernel import total

kinds = [np.uint8, np.int16, np.int32, np.int64, np.float32, np.float64]
shift = int(sys.argv[1])
for kind in kinds[shift:] + kinds[:shift] + kinds:
    assert total(np.arange(50, dtype=kind)) == 1225, kind
"""


def test_processes_that_start_cold_together_agree(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    for _ in range(2):  # cold, then from what the cold ones left behind
        running = [
            subprocess.Popen(
                [sys.executable, "program.py", str(shift)], cwd=tmp_path, stderr=subprocess.PIPE, text=True
            )
            for shift in range(4)
        ]
        for process in running:
            _, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
    assert len(list(tmp_path.rglob("*.nbc"))) == 6, "one file of machine code per kind"


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


def test_no_kernel_may_reorder_sums() -> None:
    source = Path(module.__file__).parent
    assert not [path.name for path in source.rglob("*.py") if "fastmath=" in path.read_text(encoding="utf-8")]
