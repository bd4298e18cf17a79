"""Ledger: what each dataset has spent over all its releases, on disk before anything private is read.

A steward opens a ledger once, with a cap (ε, δ) per dataset. Every run charges it first: the check against the cap and
the new entry are one transaction, synced before `charge` returns, and whoever holds no `Receipt` must not read rows.
A charge is never taken back, whatever becomes of the run. Entries are never changed or removed; each is tied to the
ones before by a hash, and `verify` finds any change. Amounts are integers. `bookkeeping/balance.py` proves that what
is granted stays within the cap, however runs are chosen.

What it cannot do: a copy of the file is a second ledger that knows nothing of the first, so a copied ledger is a
forked ledger, and the caps of the two add up. Each release prints the hash of its charge; `verify` can be asked whether
those hashes are still in the chain, which uncovers a fork or a return to an old copy. Nothing here stops somebody who
rewrites the file on purpose.

A run that was interrupted may be continued under its charge while nothing was released from it: by one process at a
time, and from the newest state that it kept (`bookkeeping/hold.py`). Continuing is a line of its own, free of charge.

Nothing in a ledger comes from rows: names, prices and dates are fixed before they are read. Every line carries the date
alone: two charges with the time of day would tell how long the run between them took (ledgers of version 0.1 hold such
lines, and still verify). How a run went on and ended stays out of the extracts that go into releases.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal, get_args

from understudy.errors import BudgetError, LedgerError, Problem, UsageError, nearest
from understudy.privacy.bookkeeping.balance import FAILURE_SHARE, Balance, Composition, in_full, require_claim
from understudy.privacy.bookkeeping.chain import balance_after, check_chain, check_extract
from understudy.privacy.bookkeeping.entry import NOTHING_BEFORE, Entry, Kind
from understudy.privacy.bookkeeping.hold import (
    BEGINNING,
    Mark,
    check_newest,
    check_open,
    check_rising,
    holder_of,
    newest_mark,
)
from understudy.privacy.bookkeeping.store import Store, create_file, reading, writing
from understudy.privacy.cost import Budget, Cost
from understudy.progress import standing

__all__ = ["Balance", "Composition", "Entry", "Ledger", "Mark", "Outcome", "Receipt", "verify_extract"]

Outcome = Literal["released", "failed"]
WAIT_SECONDS = 60.0
LOOK_SECONDS = 2.0
MOST_NAME = 200
MOST_NOTE = 2000


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a run's charge is on disk: only its holder may read private rows.

    `cost` is what the run may spend inside, `price` what it took from the dataset's limit, `balance` what is left.
    `holder` is the hash of the line by which the run is held: that of its charge, or of its last continuation.
    """

    sequence: int
    hash: str
    previous: str
    dataset: str
    run: str
    made: str
    cost: Cost
    price: Cost
    balance: Balance
    holder: str


class Ledger:
    """An open ledger. It holds a path only: every call reads and writes the file anew."""

    def __init__(self, path: Path, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self.path, self._wait = path, wait_seconds

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        dataset: str,
        cap: Budget,
        composition: Composition = "basic",
        *,
        failure_share: Fraction = FAILURE_SHARE,
    ) -> "Ledger":
        """A new ledger file, readable by its owner only, with its first dataset; never replaces a file.

        `failure_share` matters in the concentrated composition alone: the part of δ kept for steps that may fail.
        """
        ledger = cls(Path(path))
        create_file(ledger.path, _opening(dataset, cap, composition, failure_share).sealed())
        return ledger

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, wait_seconds: float = WAIT_SECONDS) -> "Ledger":
        """The ledger at that path, known to be one; a busy file is waited for up to `wait_seconds`."""
        ledger = cls(Path(path), wait_seconds=wait_seconds)
        with reading(ledger.path, wait_seconds) as store:
            store.head()
        return ledger

    @classmethod
    def single_use(cls, path: str | os.PathLike[str], budget: Budget, *, dataset: str = "table") -> "Ledger":
        """A new ledger that covers exactly one run of this budget, for a run that belongs to no lasting ledger."""
        return cls.create(path, dataset, budget)

    def add_dataset(
        self,
        dataset: str,
        cap: Budget,
        composition: Composition = "basic",
        *,
        failure_share: Fraction = FAILURE_SHARE,
    ) -> None:
        """Opens one more dataset in this file. Its cap stands from then on."""
        opening = _opening(dataset, cap, composition, failure_share)
        with writing(self.path, self._wait) as store:
            if store.opening(dataset):
                fix = f"See `understudy ledger show {self.path}`. Another name for a table is a second, unknown budget."
                raise UsageError(f"dataset {dataset!r}", "is in this ledger already, and its cap stands.", fix)
            store.append(_tied(opening, store, NOTHING_BEFORE))

    def charge(
        self,
        dataset: str,
        *,
        run: str,
        method: str,
        cost: Cost,
        budget: Budget,
        variances: tuple[Fraction, ...] = (),
        unit: str = "",
        note: str = "",
    ) -> Receipt:
        """A receipt, once the charge is on disk; private rows may be read after that and not before.

        `budget` is the (ε, δ) the run claims, `cost` what it spends to keep that claim (`variances`, where the claim
        rests on the exact laws of Gaussian answers, see `require_claim`). `unit` says who is protected,
        in the same words for every run of a dataset. Raises BudgetError if the cap does not cover the run, LedgerError
        if the file cannot be used or the run was charged before; neither leaves a trace.
        """
        _check_name("run", run)
        _check_name("method", method)
        _check_text("unit", unit, MOST_NAME)
        _check_text("note", note, MOST_NOTE)
        require_claim(cost, budget, variances)
        said = _Said(run, method, unit, note, budget.epsilon_units, budget.delta_units)
        record, granted = standing(), False
        record.charging(run, str(Cost(epsilon=said.epsilon, delta=said.delta)), self.path)
        try:
            with writing(self.path, self._wait) as store:
                opening, latest = _dataset(store, dataset)
                _check_run(store, run)
                _check_unit(dataset, unit, latest)
                before = balance_after(opening, latest)
                price = before.price(cost, budget_epsilon=said.epsilon, budget_delta=said.delta)
                after = before.after(price)
                granted = after.is_within_limit()
                if granted:
                    entry = said.entry(dataset, before.composition)
                    entry = _tied(_priced(entry, cost, after), store, latest.hash)
                    store.append(entry)
            record.charged(run, stands=granted)
        except BaseException:  # a signal may strike just after the charge is on disk
            record.charged(run, stands=granted and self._holds(run))
            raise
        if not granted:
            raise _refusal(dataset, run, before, cost, budget)
        return _receipt(entry, price, after, entry.hash)

    def _holds(self, run: str) -> bool | None:
        """Whether the run is charged; None if the file cannot be read."""
        try:
            with reading(self.path, LOOK_SECONDS) as store:
                return store.of_run("charge", run) is not None
        except LedgerError:
            return None

    def finish(self, run: str, outcome: Outcome, *, holder: str | None = None) -> None:
        """Notes, with the date alone, how a charged run ended. Changes no total: nothing is ever paid back.

        `holder` must be given for a run that was continued: only whoever holds it may end it, and it ends once.
        """
        if outcome not in get_args(Outcome):
            raise UsageError("outcome", f"must be released or failed, got {outcome!r}.")
        with writing(self.path, self._wait) as store:
            charge = _charge_of(store, run)
            check_open(store, charge, holder)
            store.append(_tied(_line("finish", charge, outcome=outcome), store, NOTHING_BEFORE))

    def checkpoint(self, run: str, mark: Mark, *, holder: str | None = None) -> None:
        """Notes that a state of the run was kept; it must lie behind all earlier ones, and come from the holder."""
        with writing(self.path, self._wait) as store:
            charge = _charge_of(store, run)
            check_open(store, charge, holder)
            check_rising(store, run, mark)
            store.append(_tied(_line("checkpoint", charge, note=mark.note), store, holder or charge.hash))

    def newest(self, run: str) -> Mark | None:
        """The newest state that a charged run has kept; None if it kept none."""
        with reading(self.path, self._wait) as store:
            return newest_mark(store, _charge_of(store, run).run)

    def take_up(self, run: str, mark: Mark | None) -> Receipt:
        """The receipt of an interrupted run's charge, held by the caller from now on. Nothing is charged.

        `mark` is the state that the caller goes on from. Raises LedgerError unless it is the newest one (None: no
        state was kept), and if the run has ended: one charge yields one release. Whoever held the run before can
        neither keep states nor end it any more.
        """
        with writing(self.path, self._wait) as store:
            charge = _charge_of(store, run)
            before = holder_of(store, charge)
            check_open(store, charge, before)
            check_newest(store, run, mark)
            opening, _ = _dataset(store, charge.dataset)
            after = balance_after(opening, charge)
            line = _line("continue", charge, note=mark.note if mark else BEGINNING)
            line = _tied(line, store, before)
            store.append(line)
        record = standing()
        record.charging(run, str(Cost(epsilon=charge.budget_epsilon, delta=charge.budget_delta)), self.path)
        record.charged(run, stands=True)
        price = after.price(charge.cost, budget_epsilon=charge.budget_epsilon, budget_delta=charge.budget_delta)
        return _receipt(charge, price, after, line.hash)

    def datasets(self) -> list[str]:
        """Names of the datasets, in the order they were opened."""
        return [entry.dataset for entry in self.entries() if entry.kind == "dataset"]

    def balance(self, dataset: str) -> Balance:
        """Cap, spending and rest of a dataset."""
        with reading(self.path, self._wait) as store:
            return balance_after(*_dataset(store, dataset))

    def entries(self, dataset: str | None = None) -> list[Entry]:
        """Every line in order, or those of one dataset."""
        with reading(self.path, self._wait) as store:
            if dataset is not None:
                _dataset(store, dataset)
            return [entry for entry in store.all() if dataset in (None, entry.dataset)]

    def extract(self, *, dataset: str | None = None, run: str | None = None) -> list[dict[str, str | int]]:
        """Opening and charges of one dataset, up to a run's charge if a run is named: lines that verify on their own.

        Meant to be published: holds nothing that came after private rows were read.
        """
        if (dataset is None) == (run is None):
            raise UsageError("extract", "needs either a dataset or a run.")
        with reading(self.path, self._wait) as store:
            last = _charge_of(store, run) if run is not None else _dataset(store, dataset or "")[1]
            return [entry.to_json() for entry in store.of_dataset(last.dataset, last.sequence)]

    def head(self) -> str:
        """Hash of the last line: it stands for the whole ledger."""
        with reading(self.path, self._wait) as store:
            return store.head().hash

    def verify(self, known: Iterable[str] = ()) -> list[Problem]:
        """Everything wrong with the ledger; empty if it holds together.

        `known` are hashes printed in earlier releases: each must still be in the chain.
        """
        where = str(self.path)
        try:
            with reading(self.path, self._wait, guards=False) as store:
                problems = [Problem(where, fault, "Restore the file.") for fault in store.structure_faults()]
                lines = list(store.lines())
        except LedgerError as error:
            return [error.problem]
        if not lines:
            problems.append(Problem(where, "holds no entry.", "Restore the file from a trusted copy."))
        problems += check_chain(lines, where)
        missing = sorted(set(known) - {str(line["hash"]) for line in lines})
        fix = "This is another copy of the ledger, or an old one: find the one that was charged."
        return problems + [Problem(where, f"does not hold the entry with hash {hashed}.", fix) for hashed in missing]


def verify_extract(lines: Sequence[Mapping[str, object]], where: str = "ledger.jsonl") -> list[Problem]:
    """Everything wrong with an extract, read without its ledger; empty if it holds together."""
    return check_extract(lines, where)


@dataclass(frozen=True, slots=True)
class _Said:
    """What the caller says about a run."""

    run: str
    method: str
    unit: str
    note: str
    epsilon: int
    delta: int

    def entry(self, dataset: str, composition: Composition) -> Entry:
        return Entry(
            sequence=0,
            kind="charge",
            dataset=dataset,
            made=_today(),
            run=self.run,
            composition=composition,
            unit=self.unit,
            method=self.method,
            note=self.note,
            budget_epsilon=self.epsilon,
            budget_delta=self.delta,
        )


def _opening(dataset: str, cap: Budget, composition: Composition, failure_share: Fraction) -> Entry:
    _check_name("dataset", dataset)
    balance = Balance.opened(cap, composition, failure_share)
    entry = Entry(
        sequence=1,
        kind="dataset",
        dataset=dataset,
        made=_today(),
        composition=composition,
        budget_epsilon=balance.cap.epsilon,
        budget_delta=balance.cap.delta,
    )
    return _priced(entry, balance.limit, balance)


def _priced(entry: Entry, cost: Cost, balance: Balance) -> Entry:
    return replace(
        entry,
        cost_epsilon=cost.epsilon,
        cost_rho=cost.rho,
        cost_delta=cost.delta,
        total_epsilon=balance.spent.epsilon,
        total_rho=balance.spent.rho,
        total_delta=balance.spent.delta,
        releases=balance.releases,
    )


def _tied(entry: Entry, store: Store, earlier: str) -> Entry:
    head = store.head()
    return replace(entry, sequence=head.sequence + 1, previous=head.hash, earlier=earlier).sealed()


def _line(kind: Kind, charge: Entry, *, note: str = "", outcome: str = "") -> Entry:
    """A line about a charged run that changes no total."""
    day = _today()
    return Entry(sequence=0, kind=kind, dataset=charge.dataset, made=day, run=charge.run, note=note, outcome=outcome)


def _receipt(charge: Entry, price: Cost, after: Balance, holder: str) -> Receipt:
    told = (charge.sequence, charge.hash, charge.previous, charge.dataset, charge.run, charge.made, charge.cost)
    return Receipt(*told, price, after, holder)


def _dataset(store: Store, dataset: str) -> tuple[Entry, Entry]:
    """Opening and latest line of a dataset."""
    opening = store.opening(dataset) if _is_plain(dataset) else None
    if opening is None:
        known = [entry.dataset for entry in store.all() if entry.kind == "dataset"]
        raise UsageError(f"dataset {dataset!r}", "is not in this ledger.", nearest(dataset, known))
    return opening, store.latest(dataset)


def _charge_of(store: Store, run: str) -> Entry:
    charge = store.of_run("charge", run) if _is_plain(run) else None
    if charge is None:
        raise UsageError(f"run {run!r}", "was not charged to this ledger.", "Charge it first.")
    return charge


def _check_run(store: Store, run: str) -> None:
    if store.of_run("charge", run):
        fix = "A run is charged once and never paid back; give a new run a new name."
        raise LedgerError(f"run {run!r}", "was charged before.", fix)


def _check_unit(dataset: str, unit: str, latest: Entry) -> None:
    if latest.kind == "charge" and latest.unit != unit:
        rule = f"is charged for the unit {latest.unit!r}, got {unit!r}."
        raise UsageError(f"dataset {dataset!r}", rule, "Protect the same unit in all releases of a dataset.")


def _refusal(dataset: str, run: str, balance: Balance, cost: Cost, budget: Budget) -> BudgetError:
    largest, left = balance.largest_in_words(cost, budget), balance.left
    if largest is None:
        fix = "The cap of this dataset covers no further run."
    else:
        fix = f"The largest request that would pass: {largest}"
        short = balance.composition == "concentrated" and cost.delta > left.delta
        fix += f", with at most {in_full(Cost(delta=left.delta))} for steps that may fail." if short else "."
    claimed = Cost(epsilon=budget.epsilon_units, delta=budget.delta_units)
    price = balance.price(cost, budget_epsilon=claimed.epsilon, budget_delta=claimed.delta)
    return BudgetError(f"dataset {dataset!r}, run {run!r}", in_full(price), in_full(left), fix)


def _check_name(what: str, name: str) -> None:
    if not name or name != name.strip():
        raise UsageError(what, f"must be a name without blanks around it, got {name!r}.")
    _check_text(what, name, MOST_NAME)


def _check_text(what: str, text: str, most: int) -> None:
    if len(text) > most:
        raise UsageError(what, f"must have at most {most} characters, got {len(text)}.")
    if not _is_plain(text):
        raise UsageError(what, f"must hold printable characters only, got {text!r}.")


def _is_plain(text: str) -> bool:
    # Control and format characters make two names look alike; lone surrogates cannot be stored.
    return text.isprintable()


def _today() -> str:
    # The day alone: the times of two charges would tell how long the run between them took, which depends on its rows.
    return time.strftime("%Y-%m-%d", time.gmtime(time.time()))
