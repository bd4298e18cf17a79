"""Releases that wait: complete and paid for, but not in place, because their process ended just before the rename.

`synthesize` refuses to pay for another release of the same output while one waits, and `resume` puts it in place.
Nothing is drawn, read or charged for that. One charge yields one release: of a run that can be continued from a
checkpoint only the release that is on record in its ledger counts, since the run may have gone on without any other.
"""

import json
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from understudy.errors import UnderstudyError, UsageError
from understudy.privacy.ledger import Ledger
from understudy.release.checks.account import check_ledger
from understudy.release.checks.files import check_files
from understudy.release.folder import put_in_place, settle, waiting_folders
from understudy.release.release import Release
from understudy.release.statement import digest_of
from understudy.synthesizer.account import OWN_PREFIX, Account
from understudy.synthesizer.design import Copies, Design
from understudy.synthesizer.working import is_continuable, working_place

__all__ = ["check_none_waiting", "place_waiting"]

SPENT = "its ε and δ are spent all the same"


def check_none_waiting(target: Path) -> None:
    """Raises if a complete release of this output waits to be put in place."""
    for folder in waiting_folders(target):
        if _loaded(folder) is not None:
            rule = f"the release of an earlier run is complete in {str(folder)!r} and waits to be put in place."
            fix = f"Give the same command with --resume; nothing is charged. If you delete it instead, {SPENT}."
            raise UsageError(f"output {str(target)!r}", rule, fix)


def place_waiting(target: Path, design: Design, wanted: Copies, account: Account, *, seed: int | None) -> bool:
    """Puts the complete release of this output in place, if one waits; whether it did.

    Raises:
        UsageError: if it was made with other settings than these, or not charged to this ledger.
    """
    for folder in waiting_folders(target):
        release = _loaded(folder)
        if release is None:
            continue
        record = _Record.of(target, account, release.statement.run)
        if is_continuable(design) and record.outcome != "released":
            continue
        _check_same(folder, release, design, wanted, seed=seed)
        record.require_charge(folder)
        settle(folder)
        record.complete()
        put_in_place(folder, target)
        record.tidy(target)
        return True
    return False


def _loaded(folder: Path) -> Release | None:
    """The release in a folder if every file is there, unaltered, and agrees with its charge."""
    try:
        if check_files(folder):
            return None
        release = Release.load(folder)
        return None if check_ledger(release.statement, release.ledger) else release
    except (UnderstudyError, OSError):
        return None


@dataclass(frozen=True, slots=True)
class _Record:
    """What a ledger says about the run of a waiting release: the lasting one, or the one made for that run alone."""

    run: str
    ledger: Ledger | None
    own: Path | None
    charged: bool
    outcome: str

    @classmethod
    def of(cls, target: Path, account: Account, run: str) -> "_Record":
        ledger, own = (account.ledger, None) if account.ledger is not None else _own_ledger(target, run)
        entries = [entry for entry in ledger.entries() if entry.run == run] if ledger is not None else []
        charged = any(entry.kind == "charge" for entry in entries)
        return cls(run, ledger, own, charged, next((one.outcome for one in entries if one.kind == "finish"), ""))

    def require_charge(self, folder: Path) -> None:
        """Raises unless the run was charged to the ledger that was named; one made for it alone may be gone."""
        if self.ledger is not None and (not self.charged or self.outcome == "failed"):
            rule = f"the release in {str(folder)!r} is not one that this ledger was charged for."
            raise UsageError("resume", rule, "Name the same ledger and dataset as before.")

    def complete(self) -> None:
        """Notes that the release is complete, if its process could not."""
        if self.ledger is not None and not self.outcome:
            self.ledger.finish(self.run, "released")

    def tidy(self, target: Path) -> None:
        """Removes what was kept for that run alone."""
        shutil.rmtree(working_place(target), ignore_errors=True)
        if self.own is not None:
            shutil.rmtree(self.own, ignore_errors=True)


def _own_ledger(target: Path, run: str) -> tuple[Ledger | None, Path | None]:
    """The ledger made for a run alone, and its folder, if they are still beside the target."""
    parent = target.absolute().parent
    for place in (working_place(target), *sorted(parent.glob(f"{OWN_PREFIX}*"))):
        with suppress(UnderstudyError, OSError):
            ledger = Ledger.open(place / "ledger.db")
            if any(entry.run == run for entry in ledger.entries()):
                return ledger, place
    return None, None


def _check_same(folder: Path, release: Release, design: Design, wanted: Copies, *, seed: int | None) -> None:
    """Raises unless these settings are those of the release."""
    config, statement = release.config, release.statement
    pairs = {
        "method": (config.method, design.method.name),
        "options": (_plain(config.options), _plain(design.plan.options)),
        "budget": (statement.budget, design.budget),
        "schema": (statement.schema_digest, digest_of(design.schema)),
        "copies": ((config.copies, config.copies_mode), (wanted.count, wanted.mode)),
        "rows": (set(config.rows), {wanted.rows} if wanted.rows is not None else set(config.rows)),
        "seed": (config.seed, config.seed if seed is None else seed),
    }
    differs = [name for name, (made, asked) in pairs.items() if made != asked]
    if differs:
        rule = f"the release in {str(folder)!r} was made with other settings ({', '.join(differs)})."
        raise UsageError("resume", rule, "Give the same command as before; nothing was charged.")


def _plain(options: object) -> str:
    return json.dumps(options, sort_keys=True, default=str)
