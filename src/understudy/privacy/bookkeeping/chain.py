"""The check of a chain: does every line say what was written, in the order it was written, and add up?

It reads lines only, no data and no file, so it serves a whole ledger and the extract in a release alike. It finds any
change to a line (its hash), a line left out, added or moved (the two chains), totals that do not follow from the
charges, and runs that were continued by somebody who did not hold them or from a state that was not the newest. It
cannot find that the last lines were cut off, or that all hashes were made anew: for that, hold the hash printed in an
earlier release against the chain.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import get_args

from understudy.errors import Problem, UnderstudyError
from understudy.privacy.bookkeeping.balance import Balance, Composition
from understudy.privacy.bookkeeping.entry import NOTHING_BEFORE, Entry
from understudy.privacy.bookkeeping.hold import BEGINNING, mark_of
from understudy.privacy.conversion import rho_of_epsilon
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost

__all__ = ["balance_after", "check_chain", "check_extract"]

CONVERSION_SLACK = Fraction(1, 10**11)
RESTORE = "Restore the file from a trusted copy."


@dataclass(slots=True)
class _Dataset:
    """A dataset as far as the lines have told."""

    balance: Balance
    latest: str
    unit: str | None = None


@dataclass(slots=True)
class _Reader:
    """State of one pass over the lines."""

    whole: bool
    last: Entry | None = None
    datasets: dict[str, _Dataset] = field(default_factory=dict)
    charged: dict[str, str] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    holders: dict[str, str] = field(default_factory=dict)
    newest: dict[str, str] = field(default_factory=dict)
    """The words of the newest checkpoint of a run."""

    def faults(self, entry: Entry) -> Iterator[str]:
        """What is wrong with the next line; the state moves on, so that one fault is told once."""
        if not entry.is_intact():
            yield "does not match its hash: its content or its hash was changed."
        yield from self._order_faults(entry)
        self.last = entry
        if entry.kind == "dataset":
            yield from self._opening_faults(entry)
        elif entry.kind == "charge":
            yield from self._charge_faults(entry)
        elif entry.kind in ("checkpoint", "continue"):
            yield from self._held_faults(entry)
        else:
            yield from self._finish_faults(entry)

    def _order_faults(self, entry: Entry) -> Iterator[str]:
        before = self.last.sequence if self.last else 0
        if self.whole and entry.sequence != before + 1:
            yield f"follows entry {before}: lines are missing or moved."
        elif entry.sequence <= before:
            yield f"follows entry {before}: lines were moved."
        if entry.sequence == before + 1:
            expected = self.last.hash if self.last else NOTHING_BEFORE
            if entry.previous != expected:
                yield "is not tied to the entry before it."

    def _opening_faults(self, entry: Entry) -> Iterator[str]:
        if entry.dataset in self.datasets:
            yield "opens a dataset a second time."
            return
        if entry.earlier != NOTHING_BEFORE or entry.total != Cost() or entry.releases:
            yield "opens a dataset that already has a past."
        if entry.composition not in get_args(Composition):
            yield "names an unknown composition."
            return
        balance = balance_after(entry, entry)
        if not _limit_follows(balance):
            yield "sets a limit above what its cap allows."
        self.datasets[entry.dataset] = _Dataset(balance, entry.hash)

    def _charge_faults(self, entry: Entry) -> Iterator[str]:
        dataset = self.datasets.get(entry.dataset)
        if entry.run in self.charged:
            yield "charges a run a second time."
        self.charged[entry.run] = entry.dataset
        self.holders[entry.run] = entry.hash
        if dataset is None:
            yield "charges a dataset that was not opened before."
            return
        if entry.earlier != dataset.latest:
            yield "is not tied to the entry before it in its dataset: a charge is missing or moved."
        if dataset.unit not in (None, entry.unit):
            yield "protects another unit than the charges before it."
        claimed = {"budget_epsilon": entry.budget_epsilon, "budget_delta": entry.budget_delta}
        after = dataset.balance.after(dataset.balance.price(entry.cost, **claimed))
        if (after.spent, after.releases) != (entry.total, entry.releases):
            yield "has totals that do not follow from the charges."
        elif not after.is_within_limit():
            yield "exceeds the cap of its dataset."
        if entry.composition != after.composition:
            yield "names another composition than its dataset."
        self.datasets[entry.dataset] = _Dataset(after, entry.hash, entry.unit)

    def _held_faults(self, entry: Entry) -> Iterator[str]:
        """Faults of a checkpoint or of a continuation."""
        if not self.whole:
            yield "does not belong in an extract."
        if self.charged.get(entry.run) != entry.dataset:
            yield "belongs to a run that was not charged before."
        if entry.run in self.finished:
            yield "comes after the end of its run."
        if entry.earlier != self.holders.get(entry.run):
            yield "does not come from the process that held its run."
        if entry.cost != Cost() or entry.total != Cost() or entry.budget_epsilon or entry.budget_delta:
            yield "carries amounts."
        mark, newest = mark_of(entry.note), mark_of(self.newest.get(entry.run, BEGINNING))
        if entry.kind == "continue":
            if mark != newest:
                yield "goes on from another checkpoint than the newest."
            self.holders[entry.run] = entry.hash
            return
        if mark is None or (newest is not None and mark.step <= newest.step):
            yield "does not lie behind the checkpoint before it."
        self.newest[entry.run] = entry.note

    def _finish_faults(self, entry: Entry) -> Iterator[str]:
        if not self.whole:
            yield "does not belong in an extract."
        if self.charged.get(entry.run) != entry.dataset:
            yield "finishes a run that was not charged before."
        if entry.run in self.finished:
            yield "finishes a run a second time."
        self.finished.add(entry.run)


def balance_after(opening: Entry, latest: Entry) -> Balance:
    """The dataset's balance after its line `latest`."""
    composition: Composition = "concentrated" if opening.composition == "concentrated" else "basic"
    cap = Cost(epsilon=opening.budget_epsilon, delta=opening.budget_delta)
    return Balance(composition, cap, opening.cost, latest.total, latest.releases)


def check_chain(lines: Iterable[Mapping[str, object]], where: str) -> list[Problem]:
    """Everything wrong with the lines of a whole ledger, in order; empty if they hold together."""
    return _check(lines, where, _Reader(whole=True))


def check_extract(lines: Iterable[Mapping[str, object]], where: str) -> list[Problem]:
    """Everything wrong with an extract: one dataset from its opening on, charges only; empty if it holds together."""
    reader = _Reader(whole=False)
    problems = _check(lines, where, reader)
    if len(reader.datasets) != 1:
        rule = f"must tell the charges of one dataset from its opening on, found {len(reader.datasets)} openings."
        problems.append(Problem(where, rule, RESTORE))
    return problems


def _check(lines: Iterable[Mapping[str, object]], where: str, reader: _Reader) -> list[Problem]:
    problems = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = Entry.from_json(line)
            found = [(entry.sequence, fault) for fault in reader.faults(entry)]
        except (ValueError, UnderstudyError) as error:
            found = [(number, f"cannot be read: {error}.")]
        problems += [Problem(f"{where}: entry {place}", fault, RESTORE) for place, fault in found]
    return problems


def _limit_follows(balance: Balance) -> bool:
    if balance.composition == "basic":
        return balance.limit == balance.cap
    rest = balance.cap.delta - balance.limit.delta
    if rest < 1 or balance.limit.epsilon:
        return False
    most = rho_of_epsilon(Fraction(balance.cap.epsilon, UNIT), Fraction(rest, DELTA_UNIT))
    # The conversion searches its order in floats, so another machine may find a ρ lower by one part in 10¹².
    return balance.limit.rho <= most * UNIT * (1 + CONVERSION_SLACK)
