"""Runs tests against mutants: one process that has collected all tests, and a fork of it for every mutant.

First all tests run once on modules that note which of their blocks are entered (`Reached`). A mutant then meets the
tests that enter its block, those first that killed its neighbours, then the quick ones, until one of them fails. A
mutant that no test fails on survives; so does one whose tests take longer than the time that is granted, unless a test
hangs that did not hang before.
"""

import ast
import hashlib
import json
import math
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from tests.house.tree import ROOT
from tests.mutation.mutants import Mutant
from tests.mutation.patching import NotInPlaceError, affected_kernels, is_kernel, put_in_place, replace_module
from tests.mutation.targets import path_of, source_of

KEPT_EVERY = 60.0
"""Seconds of tests after which what they entered is written down, so that a run that is stopped goes on there."""
SLOWER = 20.0
"""How much slower than usual no test becomes; beyond, it has lost its way, and the mutant is killed."""
SPARE = 20.0
"""Seconds of processor time that every trial may take besides, for kernels that are compiled anew."""
HANGS = 120.0
"""Seconds beyond a hundred times what it usually takes after which a test that waits is ended, and so its mutant."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: killed (by which test), survived, or why it could not be tried."""

    name: str
    verdict: str
    by: str
    seconds: float
    mutant: str


@dataclass(frozen=True)
class Reached:
    """For each test how long it took, and the first lines of the blocks of each module that it entered."""

    seconds: dict[str, float]
    blocks: dict[str, dict[str, list[int]]]
    """Module → test → lines."""
    failing: list[str] = field(default_factory=list)
    """What does not pass on the modules as they are, and so says nothing about a mutant."""
    sources: dict[str, str] = field(default_factory=dict)
    """Digests of the files that this was noted of: the modules, and every file of tests."""

    @classmethod
    def read(cls, path: Path, modules: Sequence[str]) -> "Reached":
        """What is kept of it, less what was noted of files that have changed since."""
        found = cls({}, {module: {} for module in modules})
        if path.exists():
            found = cls(**json.loads(path.read_text(encoding="utf-8")))
        if any(found.sources.get(module) not in (None, _digest(path_of(module))) for module in modules):
            return cls({}, {module: {} for module in modules})
        changed = {
            name for name, digest in found.sources.items() if name not in modules and digest != _digest(ROOT / name)
        }
        found.forget({name for name in (*found.seconds, *found.failing) if name.partition("::")[0] in changed})
        for name in changed:
            del found.sources[name]
        return found

    def forget(self, tests: Collection[str]) -> None:
        """Drops what is known of these tests."""
        for name in tests:
            self.seconds.pop(name, None)
            for entered in self.blocks.values():
                entered.pop(name, None)
        self.failing[:] = [name for name in self.failing if name not in tests]

    def keep(self, path: Path) -> None:
        """Writes it in one step."""
        for name in {test.partition("::")[0] for test in (*self.seconds, *self.failing)} - set(self.sources):
            self.sources[name] = _digest(ROOT / name)
        self.sources.update({module: _digest(path_of(module)) for module in self.blocks})
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(self)), encoding="utf-8")
        draft.rename(path)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.exists() else ""


class Server:
    """A pytest plugin: collects as usual, then tries mutants instead of running tests."""

    def __init__(
        self, modules: Sequence[str], mutants: Sequence[Mutant], kept: Path, report: Callable[[Verdict], None],
        *, cpu_seconds: float, most_seconds: float, jobs: int = 1, before: Mapping[str, Counter[str]] | None = None,
    ) -> None:  # fmt: skip
        self._modules, self._mutants, self._kept, self._report = modules, mutants, kept, report
        self._left, self._most, self._jobs = cpu_seconds, most_seconds, jobs
        self._kills: defaultdict[str, Counter[str]] = defaultdict(Counter, before or {})

    def pytest_configure(self, config: pytest.Config) -> None:
        """Nobody reads why a test failed."""
        config.option.tbstyle = "no"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Tries every mutant while there is time."""
        items = {item.nodeid: item for item in session.items}
        _warm()
        reached = self._reached(items)
        items = {name: item for name, item in items.items() if name in reached.seconds}
        waiting = list(reversed(self._mutants))
        running: list[Trial] = []
        while running or (waiting and self._left > 0):
            while waiting and self._left > 0 and len(running) < self._jobs:
                mutant = waiting.pop()
                order = [items[name] for name in self._order(mutant, reached, items)]
                if order:
                    running.append(Trial(mutant, order, reached.seconds, self._most))
                else:
                    self._report(Verdict(mutant.name, "survived", "no test comes here", 0.0, str(mutant)))
            running = [trial for trial in running if not self._ended(trial)]
            time.sleep(0.05)
        return True

    def _ended(self, trial: "Trial") -> bool:
        """Whether the trial is over; then it is reported."""
        found = trial.look()
        if found is None:
            return False
        self._left -= found.seconds
        if found.verdict == "killed":
            self._kills[trial.mutant.function][found.by] += 1
        self._report(found)
        return True

    def _order(self, mutant: Mutant, reached: Reached, items: Iterable[str]) -> list[str]:
        entered = reached.blocks[mutant.module]
        block = _block_of(mutant)
        names = [name for name in items if (name in entered if block is None else block in entered.get(name, ()))]
        kills = self._kills[mutant.function]
        return sorted(names, key=lambda name: (-kills[name], reached.seconds[name]))

    def _reached(self, items: dict[str, pytest.Item]) -> Reached:
        """From the file, as far as it goes; what it does not know is run once."""
        known = Reached.read(self._kept, self._modules)
        new = {name: item for name, item in items.items() if name not in known.seconds and name not in known.failing}
        if new:
            process = os.fork()
            if not process:
                _in_child(lambda: _run_all(self._modules, new, known, self._kept))
            _, status = os.waitpid(process, 0)
            if status:
                raise RuntimeError(f"what tests enter could not be noted (status {status}); what is known is kept.")
        return Reached.read(self._kept, self._modules)


def _warm() -> None:
    """Loads what every fork would load anew."""
    from understudy.codec.table import TableCodec
    from understudy.testing import cases

    TableCodec.of(cases.small())


def _in_child(work: Callable[[], int]) -> None:
    """Does the work and ends this process, whatever happens."""
    status = 70
    said = os.dup(2)
    try:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        status = work()
    except Exception:
        os.write(said, traceback.format_exc().encode())
    finally:
        os._exit(status)


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Whether the test passes; what it shares with the following one (a release, say) is kept for that."""
    reports = runtestprotocol(item, nextitem=following, log=False)
    return all(report.outcome != "failed" for report in reports)


def _first_failure(
    mutant: Mutant, items: Sequence[pytest.Item], usual: Mapping[str, float], write: int, most_seconds: float
) -> int:
    """Tells the parent which test runs, and ends with 1 where one fails."""
    began = _used()
    try:
        put_in_place(mutant)
    except NotInPlaceError:
        return 3
    except BaseException:
        return 1
    # An endless loop in Python or in a kernel ends here, however little of a processor it gets.
    longest = max(usual.get(item.nodeid, 1.0) for item in items)
    limit = math.ceil(began + most_seconds + SLOWER * longest + SPARE)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    for item, following in zip(items, [*items[1:], None], strict=True):
        if _used() - began > most_seconds:
            break
        os.write(write, f"{item.nodeid}\n".encode())
        if not _passes(item, following):
            return 1
    return 0


class Trial:
    """A process that meets one mutant with one test after the other, and is ended if one of them hangs."""

    def __init__(
        self, mutant: Mutant, items: Sequence[pytest.Item], usual: dict[str, float], most_seconds: float
    ) -> None:
        self.mutant, self._usual = mutant, usual
        self._read, write = os.pipe()
        self._process = os.fork()
        if not self._process:
            os.close(self._read)
            _in_child(lambda: _first_failure(mutant, items, usual, write, most_seconds))
        os.close(write)
        os.set_blocking(self._read, False)
        self._at, self._text, self._began = "", "", time.monotonic()

    def look(self) -> Verdict | None:
        """The verdict, once there is one."""
        ended, status, used = os.wait4(self._process, os.WNOHANG)
        with suppress(BlockingIOError):
            self._text += os.read(self._read, 1 << 16).decode(errors="replace")
        last = self._text.rstrip("\n").rpartition("\n")[2]
        if last != self._at:
            self._at, self._began = last, time.monotonic()
        if ended:
            return self._verdict(os.waitstatus_to_exitcode(status), used)
        if time.monotonic() - self._began <= 100 * self._usual.get(self._at, 1.0) + HANGS:
            return None
        os.killpg(self._process, signal.SIGKILL)
        _, _, used = os.wait4(self._process, 0)
        return self._verdict(-signal.SIGKILL, used)

    def _verdict(self, code: int, used: resource.struct_rusage) -> Verdict:
        os.close(self._read)
        verdict = {0: "survived", 3: "not in place"}.get(code, "killed")
        by = "" if verdict != "killed" else self._at or "loading"
        seconds = round(used.ru_utime + used.ru_stime, 2)
        return Verdict(self.mutant.name, verdict, by, seconds, str(self.mutant))


def _run_all(modules: Sequence[str], items: dict[str, pytest.Item], known: Reached, out: Path) -> int:
    """Runs these tests with modules that note which blocks are entered, and adds what they entered to what is known."""
    entered: dict[str, set[int]] = {module: set() for module in modules}
    for module in modules:
        replace_module(module, _noting(module), _hit=entered[module].add)
    following = [*list(items.values())[1:], None]
    kept = _used()
    for (name, item), after in zip(items.items(), following, strict=True):
        _forget(modules)
        for lines in entered.values():
            lines.clear()
        began = _used()
        if not _passes(item, after):
            known.failing.append(name)
            continue
        known.seconds[name] = round(_used() - began, 3)
        for module, lines in entered.items():
            if lines:
                known.blocks[module][name] = sorted(lines)
        if _used() - kept > KEPT_EVERY:
            known.keep(out)
            kept = _used()
    known.keep(out)
    return 0


def _used() -> float:
    """Seconds of processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _forget(modules: Sequence[str]) -> None:
    """Empties caches, so that what a test needs is computed in it."""
    for module in modules:
        loaded = sys.modules[f"understudy.{module}"]
        places = [loaded.__dict__, *(vars(found) for found in vars(loaded).values() if isinstance(found, type))]
        for place in places:
            for found in list(place.values()):
                if hasattr(found, "cache_clear"):
                    found.cache_clear()


def _noting(module: str) -> ast.Module:
    """The module, every block of whose functions begins with a note; kernels are left as they are."""
    tree = ast.parse(source_of(module))
    kernels = [node for node in tree.body if isinstance(node, ast.FunctionDef) and is_kernel(node)]
    inside = {id(part) for node in kernels for part in ast.walk(node)}
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and id(node) not in inside]:
        for block in _blocks(node):
            note = ast.parse(f"_hit({block[0].lineno})").body[0]
            place = 1 if block is node.body and ast.get_docstring(node) and len(block) > 1 else 0
            block.insert(place, ast.copy_location(note, block[0]))
    return ast.fix_missing_locations(tree)


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """Lists of statements that run or do not run together."""
    found: list[list[ast.stmt]] = []
    for part in ast.walk(node):
        if isinstance(part, ast.ClassDef | ast.FunctionDef) and part is not node:
            continue
        for name in ("body", "orelse", "finalbody"):
            block = getattr(part, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                found.append(block)
    return found


def _block_of(mutant: Mutant) -> int | None:
    """The first line of the block that the mutant stands in; None where entering it is not noted."""
    source = source_of(mutant.module)
    tree = ast.parse(source)
    if affected_kernels(source, mutant.function) or not _in_function(tree, mutant):
        return None
    node: ast.AST = tree
    line = None
    for name, place in mutant.path:
        value = getattr(node, name)
        if isinstance(node, ast.FunctionDef) and name != "body":
            return None  # a default: it is in force wherever the function is called, or earlier
        if isinstance(value, list) and name in ("body", "orelse", "finalbody") and isinstance(value[0], ast.stmt):
            line = value[0].lineno if not isinstance(node, ast.Module | ast.ClassDef) else None
        node = value if place is None else value[place]
    return line


def _in_function(tree: ast.Module, mutant: Mutant) -> bool:
    node: ast.AST = tree
    for name, place in mutant.path:
        if isinstance(node, ast.FunctionDef):
            return True
        value = getattr(node, name)
        node = value if place is None else value[place]
    return False
