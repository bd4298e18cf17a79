"""A campaign of faults: commands that are struck at any moment, and what must be true afterwards.

    python -m tests.faults.campaign --kills 1000 --seed 7

kills commands at random moments, one after the other, in places of their own. After every kill, and every other fault
of `test_*.py` here, the same things must hold:

* where the output should be there is nothing, or a whole release that `verify` finds nothing wrong with;
* the ledger's chain verifies, begins with the very lines that it had, and rows were read only under a charge in it;
* a command that ended by itself says truly what was charged and what exists, in one panel, with no value of a row;
* the same command, given again as its message says, ends with a whole release, and nothing is left beside it. It
  charges nothing if a release was complete.
"""

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from tests.faults.struck import Strike
from tests.processes import Ended, Forked
from understudy.errors import UnderstudyError
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.release import verify_release
from understudy.release.files import check_files, waiting_folders

SECRET = "Zaphod-7731"
SCHEMA = """\
understudy: 1
unit: row
columns:
  sex: {kind: category, labels: [F, M], other: else, missing: false}
  ward: {kind: category, labels: [a, b, c], other: else, missing: false}
"""
ROWS = 40
STANDS = re.compile(r"[Tt]he charges? of ε = ")
UNKNOWN = "is not known whether"
SMALL = ["steps=60", "hidden=4", "latent=2", "batch=8"]
ATTEMPTS = 3
"""How often a command is given again until it must have ended well."""


class Broken(AssertionError):
    """Something that must be true after a fault is not."""


@dataclass
class Site:
    """A steward's folder for one kind of command; the output, ledger and all lie in `place`."""

    kind: str
    root: Path
    lasting: bool = True
    words: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, kind: str, root: Path) -> "Site":
        site = cls(kind, root, kind != "alone")
        site.place.mkdir(parents=True)
        values = {"sex": ["F", "M", SECRET, "F"], "ward": ["a", "b", "c", SECRET]}
        pacsv.write_csv(pa.table({name: cells * (ROWS // 4) for name, cells in values.items()}), root / "people.csv")
        (root / "schema.yaml").write_text(SCHEMA, encoding="utf-8")
        site.words = site._words()
        if site.lasting and kind != "ledger":
            Ledger.create(site.ledger, "people", Budget(10_000.0, 1e-3))
        return site

    @property
    def place(self) -> Path:
        return self.root / "place"

    @property
    def ledger(self) -> Path:
        return self.place / "ledger.db"

    @property
    def out(self) -> Path:
        return self.place / "out"

    def _words(self) -> list[str]:
        table = [str(self.root / "people.csv"), "--schema", str(self.root / "schema.yaml")]
        account = ["--ledger", str(self.ledger), "--dataset", "people"] if self.lasting else []
        if self.kind == "ledger":
            return ["ledger", "init", str(self.ledger), "--dataset", "people", "--epsilon", "9"]
        if self.kind == "compare":
            methods = ["--method", "independent", "--method", "laplace", "--repeats", "1"]
            return ["compare", *table, *methods, "--epsilon", "1", "-o", str(self.out)]
        if self.kind == "choose":
            methods = ["--method", "independent", "--method", "laplace", "--choose", "1"]
            return ["compare", *table, *methods, "--epsilon", "1", *account, "-o", str(self.out)]
        how = ["--method", "independent", "--epsilon", "1"]
        if self.kind == "train":
            how = ["--method", "dpwgan", "--epsilon", "1", "--delta", "1e-6", "--rows-hint", "100000"]
            how += [word for one in SMALL for word in ("--set", one)]
        return ["synthesize", *table, *how, "--yes", "--rows", "30", *account, "--out", str(self.out)]

    def start(self, strike: Strike | None = None, *more: str) -> Forked:
        """The command, about to be struck."""
        script, *words = (strike or Strike(str(self.place))).words()
        return Forked(script, *words, *self.words, *more)

    def lines(self) -> list[str]:
        """Hashes of the ledger's lines, in order; none if there is no ledger."""
        return [entry.hash for entry in Ledger.open(self.ledger).entries()] if self._has_ledger() else []

    def charges(self) -> int:
        return sum(entry.kind == "charge" for entry in Ledger.open(self.ledger).entries()) if self._has_ledger() else 0

    def _has_ledger(self) -> bool:
        return self.lasting and self.ledger.exists() and self.ledger.stat().st_size > 0

    def releases(self) -> list[Path]:
        """The release folders that are in place."""
        if self.kind in ("compare", "ledger"):
            return []
        if self.kind == "choose":
            return sorted(one.parent for one in self.out.glob("*/manifest.json") if not one.parent.name.startswith("."))
        return [self.out] if self.out.exists() else []

    def is_done(self) -> bool:
        """Whether what the command is for is there."""
        if self.kind == "ledger":
            return self._has_ledger()
        return (self.out / {"compare": "index.html", "choose": "choice.json"}.get(self.kind, "manifest.json")).exists()


@dataclass(frozen=True)
class Before:
    """What there was before a command: lines of the ledger, charges, and whether rows had been read."""

    lines: list[str]
    charges: int

    @classmethod
    def of(cls, site: Site) -> "Before":
        (site.root / "rows-read").unlink(missing_ok=True)
        return cls(site.lines(), site.charges())


def check_after(site: Site, before: Before, ended: Ended) -> None:
    """What must be true after any fault; raises Broken."""
    for release in site.releases():
        problems = verify_release(release)
        _require(not problems, f"{release.name} is in place and not whole: {problems}")
    check_ledger(site, before)
    if ended.status >= 0:
        check_words(site, before, ended)


def check_ledger(site: Site, before: Before) -> None:
    """The ledger is whole, nothing left it, and rows were read under a charge only."""
    read = (site.root / "rows-read").exists()
    if site.kind == "compare":
        return
    if not site.lasting:
        own = list(site.place.glob(".understudy-*/ledger.db"))
        charged = any(
            entry.kind == "charge" for one in own if one.stat().st_size for entry in Ledger.open(one).entries()
        )
        _require(charged or site.out.exists() or not read, "rows were read without a charge on disk")
        return
    try:
        problems = Ledger.open(site.ledger).verify() if site._has_ledger() else []
        lines, charges = site.lines(), site.charges()
    except UnderstudyError as error:
        if site.kind == "ledger" and "is empty" in str(error):  # it was cut short before its first line
            return
        raise Broken(f"the ledger cannot be used: {error}") from error
    _require(not problems, f"the ledger does not verify: {problems}")
    _require(lines[: len(before.lines)] == before.lines, "lines of the ledger were changed or removed")
    resumed = any(entry.kind == "continue" for entry in Ledger.open(site.ledger).entries()) if lines else False
    _require(
        charges > before.charges or resumed or not read or site.kind == "choose", "rows were read without a charge"
    )


def check_words(site: Site, before: Before, ended: Ended) -> None:
    """What a command that ended by itself said."""
    said = ended.words
    _require(SECRET not in said, f"a value of a row was printed: {said}")
    _require("Traceback" not in said, f"a traceback was printed: {said}")
    if ended.status == 0:
        return
    _require(ended.said.count("╭") == 1, f"status {ended.status} without one panel: {said}")
    if site.kind in ("compare", "ledger") or not site.lasting:
        return
    fresh = site.charges() - before.charges
    stands = bool(STANDS.search(said))
    if UNKNOWN in said:
        return
    _require(("Nothing was charged" in said or not stands) == (fresh == 0), f"{fresh} charges, but: {said}")
    if fresh and site.kind != "choose":
        complete = bool(site.releases()) or _waits(site)
        _require(("no release was written" in said) != complete, f"complete: {complete}, but: {said}")


def _waits(site: Site) -> bool:
    return any(not check_files(one) for one in waiting_folders(site.out)) if site.kind != "choose" else False


def check_finished(site: Site) -> int:
    """Gives the command again until it has done its work, and says how many charges that took; raises Broken."""
    charged = site.charges()
    may_continue = (site.place / ".out.working" / "run.json").exists()
    complete = _waits(site) and not may_continue
    more: list[str] = []
    said = ""
    for _ in range(ATTEMPTS):
        if site.is_done():
            break
        before = Before.of(site)
        ended = site.start(None, *more).ended()
        check_after(site, before, ended)
        said = ended.words
        if ended.status == 0:
            continue
        _require("is now in place" in ended.said or "--resume" in ended.words or "elete" in ended.words, ended.words)
        more = ["--resume"] if "--resume" in ended.words and not more else []
        if "was interrupted before it was charged" in ended.words or "was not charged to this ledger" in ended.words:
            _as_told(site)
    _require(site.is_done(), f"the command did not finish: {said}")
    taken = site.charges() - charged
    _require(not (complete and taken), "a release that was complete was paid for again")
    if site.kind == "choose" and _left(site):  # it was killed after the choice was written: the next command tidies up
        again = site.start().ended()
        _require("holds a finished choice" in again.words, f"a finished choice was not known as one: {again.words}")
    _require(not _left(site), f"left behind: {_left(site)}")
    return taken


def _left(site: Site) -> list[str]:
    """What lies beside the output; but for the lock, an empty file that no command that is refused removes."""
    return [one.name for one in site.place.iterdir() if one.name.startswith(".out.") and one.name != ".out.reserved"]


def _as_told(site: Site) -> None:
    """Does what the message said: the folder of a run that was never charged is deleted."""
    import shutil

    shutil.rmtree(site.place / ".out.working")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


WEIGHTS = {"synthesize": 34, "alone": 16, "train": 16, "choose": 14, "ledger": 17, "compare": 3}
"""How often each kind of command is killed: that of compare starts whole interpreters, and takes longest."""


class Campaign:
    """Kills commands one after the other, and counts what they left."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root, self._chance, self._number = root, random.Random(seed), 0
        self._seconds: dict[str, float] = {}
        self._calls: dict[str, int] = {}
        self.seen: Counter[str] = Counter()
        self.weights = WEIGHTS

    def kill_one(self) -> None:
        """One kill, in a place of its own."""
        kind = self._chance.choices(list(self.weights), list(self.weights.values()))[0]
        self._number += 1
        site = Site.of(kind, self._root / str(self._number))
        if kind not in self._seconds:
            self._measure(Site.of(kind, self._root / f"whole-{kind}"))
        by_call = self._chance.random() < 0.5 and self._calls[kind] > 0
        strike = Strike(str(site.place), self._chance.randint(1, self._calls[kind]) if by_call else None)
        before = Before.of(site)
        running = site.start(strike)
        if not by_call:
            time.sleep(self._chance.uniform(0, 1.1 * self._seconds[kind]))
            running.send(9)
        ended = running.ended()
        try:
            check_after(site, before, ended)
            self._note(site, before, ended)
            check_finished(site)
        except Broken as error:
            raise Broken(f"kill {self._number}, {kind} in {site.root}, {strike}: {error}") from error

    def _measure(self, site: Site) -> None:
        begun = time.monotonic()
        ended = site.start().ended()
        _require(ended.status == 0, f"{site.kind} cannot be run: {ended.words}")
        self._seconds[site.kind] = time.monotonic() - begun
        self._calls[site.kind] = int(ended.said.rsplit("calls=", 1)[1])
        _require(site.is_done(), f"{site.kind} left nothing")

    def _note(self, site: Site, before: Before, ended: Ended) -> None:
        state = "ended first" if ended.status >= 0 else "killed"
        if site.is_done():
            left = "whole"
        elif site.charges() > before.charges or list(site.place.glob(".understudy-*/ledger.db")):
            left = "complete, not in place" if _waits(site) else "charged, no release"
        else:
            left = "nothing"
        self.seen[f"{site.kind}: {state}, {left}"] += 1


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Kills commands at random moments and checks what they leave.")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    asked = parser.parse_args(words)
    print(f"{asked.kills} kills, seed {asked.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="faults-") as root:
        campaign = Campaign(Path(root), asked.seed)
        for done in range(asked.kills):
            if done and done % 50 == 0:
                print(f"{done} kills", flush=True)
            campaign.kill_one()
    for what, times in sorted(campaign.seen.items()):
        print(f"{times:6d}  {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
