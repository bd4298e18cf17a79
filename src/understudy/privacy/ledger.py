"""Ledger: what each dataset has spent over all its releases, on disk before anything private is read.

A steward opens a ledger once, with a cap (ε, δ) per dataset. Every run charges it first: the check against the cap and
the new entry are one transaction, synced before `charge` returns, and whoever holds no `Receipt` must not read rows.
A charge is never taken back, whatever becomes of the run. Entries are never changed or removed; each is tied to the
ones before by a hash, and `verify` finds any change. Amounts are integers.

What it cannot do: a copy of the file is a second ledger, in which charges to the first are missing, so a copied ledger
is a forked ledger, and the caps of the two add up. Each release prints the hash of its charge; `verify` can be asked
whether those hashes are still in the chain, which uncovers a fork or a return to an old copy. Nothing here stops
somebody who rewrites the file on purpose.

Nothing in a ledger comes from rows: names, costs and dates are fixed before they are read. Every line carries the date
alone: two charges with the time of day would tell how long the run between them took (ledgers of version 0.1 hold such
lines, and still verify). How a run went on and ended stays out of the extracts that go into releases.

Why adding up is allowed
------------------------
Runs follow one another, and whoever plans the next one has seen all earlier releases. So not only queries but costs
are chosen adaptively, and a rule that grants or refuses must hold for every such strategy (a *privacy filter*: Rogers,
Roth, Ullman, Vadhan 2016). Both rules here have the same shape: a limit L, fixed when the dataset is opened; each run
has a cost p; it is granted iff (sum of earlier costs) + p ≤ L in every component. Refused runs read nothing.

*basic* — L = (ε, δ) of the cap; the cost is the (ε_i, δ_i) the run claims.
  Claim: all granted runs together are (ε, δ)-DP. By induction on how many runs may follow, with "what is left" for L.
  None: nothing is released. Otherwise the next cost p depends only on releases already made; the run is p-DP by its
  claim, and, whatever it releases, the rest of the strategy faces the limit L − p with one run fewer, hence is
  (L − p)-DP. The composition of a p-DP step with continuations that are each (L − p)-DP is L-DP (Dwork et al. 2006;
  Dwork and Lei 2009).

*zcdp* — L = (ρ, φ); the cost of a run is its ρ_i plus ε_i²/2 for steps paid in pure ε (an ε-DP step is
  ε²/2-zCDP: Bun and Steinke 2016, proposition 1.4), rounded up, together with the δ_i that its steps fail outright.
  The same induction, with two-step composition of δ-approximate ρ-zCDP (ibid., lemma 8.2), shows that all granted runs
  together are φ-approximate ρ-zCDP. With ρ = ρ(ε, δ − φ) of `cost.py`, rounded down, this gives (ε, δ)-DP
  for the cap (ε, δ).
  φ is a share of δ set aside when the dataset is opened and never moved afterwards. A rule that recomputed ρ from the
  failure δ spent so far would let a strategy trade one for the other *depending on what it saw*; the induction needs
  one fixed limit from which costs are taken away, and we know of no proof for the trade.

The cost of a run in one composition says nothing about the other, so a dataset keeps the composition it was opened
with. All runs of a dataset must protect the same unit: guarantees for different neighbours do not add up.

Runs that are continued
-----------------------
A run that was interrupted may be continued under its charge while nothing was released from it: by one process at a
time, and from the newest state that it kept. Continuing is a line of its own, free of charge.

A run that trains for hours keeps its state from time to time. Each kept state is a line of the ledger: the number of
steps behind it and the SHA-256 of its bytes. After an interruption the run may be continued without a new charge, from
the newest of these states and from no other. Whoever continues is the holder from then on. Only the holder may keep
further states or end the run, and a run ends once. Every rule is checked in the transaction that writes the line.

So the states of one charge, in the order of their lines, form a single sequence with rising steps: no two branches
are ever recorded, whatever is copied, restored or started twice. One charge yields one release, because the end is
recorded before a release may be seen (`synthesizer/pipeline.py`). Why continuing costs nothing: `training.py`. The
lines hold nothing but public numbers and a digest of noisy answers, and their day without the hour.

The check of a chain
--------------------
It reads lines only, no data and no file, so it serves a whole ledger and the extract in a release alike. It finds any
change to a line (its hash), a line left out, added or moved (the two chains), totals that do not follow from the
charges, and runs that were continued by somebody who did not hold them or from a state that was not the newest. It
cannot find that the last lines were cut off, or that all hashes were made anew: for that, hold the hash printed in an
earlier release against the chain.
"""

import math
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Literal, get_args

from understudy.errors import BudgetError, LedgerError, Problem, UnderstudyError, UsageError, nearest
from understudy.notebook import shown_as_html
from understudy.privacy.composition import tight_epsilon
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost, Currency, epsilon_of_rho, rho_of_epsilon
from understudy.privacy.ledger_file import NOTHING_BEFORE, Entry, Kind, Store, create_file, reading, writing
from understudy.progress import standing

Composition = Literal["basic", "zcdp"]
_WRITTEN: dict[Composition, str] = {"basic": "basic", "zcdp": "concentrated"}
"""Composition → its word in ledger files, which is older than the one used everywhere else."""
# Fixed when a dataset is opened and never moved: we know of no proof for trading δ against ρ later.
FAILURE_SHARE = Fraction(1, 10)
_ROUNDING = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class Balance:
    """A dataset's cap (ε, δ), the limit that stands for it, what has been spent of the limit, and by how many runs.

    In the basic composition cap and limit are the same; in the zCDP one the limit is in ρ and failure δ.
    """

    composition: Composition
    cap: Cost
    limit: Cost
    spent: Cost = field(default_factory=Cost)
    releases: int = 0

    @classmethod
    def opened(cls, cap: Budget, composition: Composition, failure_share: Fraction = FAILURE_SHARE) -> "Balance":
        """The untouched balance of a dataset with this cap. `concentrated` is the name that `zcdp` had first."""
        if composition == _WRITTEN["zcdp"]:
            composition = "zcdp"
        if composition not in get_args(Composition):
            known = nearest(str(composition), get_args(Composition))
            raise UsageError("composition", f"must be basic or zcdp, got {composition!r}.", known)
        whole = Cost(epsilon=cap.epsilon_units, delta=cap.delta_units)
        if composition == "basic":
            return cls(composition, whole, whole)
        if not 0 <= failure_share < 1:
            raise UsageError("failure share", f"must be at least 0 and below 1, got {float(failure_share)!r}.")
        # Rounded down twice: what failing steps may use of δ, and the ρ that the rest of it buys.
        return cls(composition, whole, cap.cost("zcdp", math.floor(whole.delta * failure_share)))

    @property
    def left(self) -> Cost:
        """What later runs may cost in all."""
        return self.limit - self.spent

    def deduction(self, cost: Cost, *, budget_epsilon: int, budget_delta: int) -> Cost:
        """What a run that spends `cost` under this claim takes from the limit, rounded up."""
        # The claim and not the cost: (ε, δ) of what ran cannot be added up at less than was claimed for it.
        if self.composition == "basic":
            return Cost(epsilon=budget_epsilon, delta=budget_delta)
        return Cost(rho=_rho_units(cost), delta=cost.delta)

    def after(self, deduction: Cost) -> "Balance":
        """The balance once one more run has been charged."""
        return replace(self, spent=self.spent + deduction, releases=self.releases + 1)

    def is_within_limit(self) -> bool:
        """Whether the cap still covers all that was spent."""
        return self.spent.fits(self.limit)

    def claim(self) -> Cost:
        """The (ε, δ) that holds for all charged runs together, in units, rounded up."""
        if self.composition == "basic" or not self.releases:
            return self.spent
        rest = Fraction(self.cap.delta - self.limit.delta, DELTA_UNIT)
        # Up: a steward must never read a smaller ε than the one that holds.
        epsilon = math.ceil(epsilon_of_rho(Fraction(self.spent.rho, UNIT), rest) * UNIT)
        # The conversion's rounding must not report more than the cap that the limit was derived from.
        return Cost(epsilon=min(epsilon, self.cap.epsilon), delta=self.cap.delta - self.limit.delta + self.spent.delta)

    def largest(self, cost: Cost, budget: Budget) -> Cost | None:
        """About the largest (ε, δ) that a run like this one could still claim, in units; None if no run fits any more.

        Exactly, unless exact distributions or Gaussian accounting let the run spend more ρ than zCDP alone does. In the
        zCDP composition δ stays as asked for, and so does the part of it set aside for failing steps.
        """
        left = self.left
        if self.composition == "basic":
            return Cost(epsilon=left.epsilon, delta=left.delta) if left.epsilon else None
        if not left.rho:
            return None
        failure = min(cost.delta, left.delta)
        if not cost.rho:
            epsilon = math.isqrt(2 * UNIT * left.rho)
        else:
            pure = Fraction(cost.epsilon, budget.epsilon_units)
            rho = math.floor(left.rho * min(Fraction(1), Fraction(_rho_alone(cost, budget), cost.rho)))
            epsilon = _largest_epsilon(rho, budget.delta_units - failure, budget.epsilon_units, pure)
        return Cost(epsilon=min(epsilon, budget.epsilon_units), delta=budget.delta_units) if epsilon else None

    def largest_in_words(self, cost: Cost, budget: Budget) -> str | None:
        """The same to the last unit, as text; "about" where exact distributions are summed, whose factor moves with
        ε."""
        largest = self.largest(cost, budget)
        if largest is None:
            return None
        by_exact_distributions = self.composition == "zcdp" and cost.rho > _rho_alone(cost, budget)
        return ("about " if by_exact_distributions else "") + in_full(largest)


def require_claim(
    cost: Cost, budget: Budget, variances: tuple[Fraction, ...] = (), *, currency: Currency | None = None
) -> None:
    """Refuses a cost that does not imply the claimed (ε, δ).

    `variances` are those of all answers that are not paid in ε, if they all have Gaussian noise of scales fixed
    beforehand, on histograms of one row per unit; then the claim may also rest on the sum of their exact distributions.
    In the Gaussian currency it may rest on Gaussian differential privacy.
    """
    if cost == Cost():
        raise UsageError("charge", "must cost something.", "A run that reads nothing needs no charge.")
    if not cost.delta <= budget.delta_units:
        raise UsageError("charge", f"steps may fail with {in_full(Cost(delta=cost.delta))}, above the claimed δ.")
    if not cost.rho:
        holds = cost.epsilon <= budget.epsilon_units
    else:
        holds = (
            # Any one of these accounts is enough, because each is a theorem about the same run.
            _rho_units(cost) <= budget.cost("zcdp", cost.delta).rho
            or _holds_beside(cost, budget)
            or _holds_exactly(cost, budget, variances)
            or (currency == "gaussian" and cost.fits(budget.cost("gaussian")))
        )
    if not holds:
        claimed = in_full(Cost(epsilon=budget.epsilon_units, delta=budget.delta_units))
        raise UsageError("charge", f"a cost of {in_full(cost)} does not give the claimed {claimed}.")


def _rho_alone(cost: Cost, budget: Budget) -> int:
    """Units of ρ that the claim allows beside the ε and δ of the cost, unless exact distributions are summed."""
    if not cost.rho:
        return 0
    return budget.cost("zcdp", cost.delta, pure=min(cost.epsilon, budget.epsilon_units - 1)).rho


def _holds_beside(cost: Cost, budget: Budget) -> bool:
    """Whether pure ε and the ε of ρ add up to the claim (proof in `cost.py`)."""
    if cost.epsilon >= budget.epsilon_units:
        return False
    return cost.rho <= budget.cost("zcdp", cost.delta, pure=cost.epsilon).rho


def _holds_exactly(cost: Cost, budget: Budget, variances: tuple[Fraction, ...]) -> bool:
    # Shares of a cost are rounded down, so up to a unit per answer may have been granted and is never spent.
    bought = sum((Fraction(UNIT) / (2 * variance) for variance in variances), Fraction(len(variances)))
    # ρ that these variances do not explain could pay for another answer, of which the sum knows nothing.
    if cost.delta or cost.rho > bought * (1 + _ROUNDING):  # other answers than these would be paid by it
        return False
    found = tight_epsilon(variances, Fraction(budget.delta_units, DELTA_UNIT)) if variances else None
    return found is not None and Fraction(found) <= Fraction(budget.epsilon_units - cost.epsilon, UNIT)


def in_full(cost: Cost) -> str:
    """The amounts to the last unit, as decimals that can be typed back.

    >>> in_full(Cost(epsilon=299_999_999_999, delta=10**9))
    'ε = 0.299999999999, δ = 1e-09'
    """
    parts = []
    if cost.epsilon or cost == Cost():
        parts.append(f"ε = {(Decimal(cost.epsilon) / UNIT).normalize():f}")
    if cost.rho:
        parts.append(f"ρ = {(Decimal(cost.rho) / UNIT).normalize():f}")
    if cost.delta:
        digits, power = f"{(Decimal(cost.delta) / DELTA_UNIT).normalize():e}".split("e")
        parts.append(f"δ = {digits}e{int(power):+03}")  # as floats are written everywhere else
    return ", ".join(parts)


def _rho_units(cost: Cost) -> int:
    return cost.rho + math.ceil(Fraction(cost.epsilon**2, 2 * UNIT))


def _largest_epsilon(rho: int, delta: int, below: int, pure: Fraction) -> int:
    """Largest ε units, under `below`, that cost at most `rho` units of ρ at `delta` units of δ; 0 if none does.

    A share `pure` of ε is spent as it is.
    """
    if delta < 1:
        return 0
    low, high = 0, below
    while high - low > 1:
        # The cost rises with ε, so halving finds the largest that fits.
        middle = (low + high) // 2
        kept = math.floor(middle * pure)
        needed = math.floor(rho_of_epsilon(Fraction(middle - kept, UNIT), Fraction(delta, DELTA_UNIT)) * UNIT)
        low, high = (middle, high) if _rho_units(Cost(kept, needed)) <= rho else (low, middle)
    return low


BEGINNING = "from the beginning"
_NOTE = re.compile(r"step ([0-9]{1,10}), sha256 ([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Mark:
    """A kept state: how many steps lie behind it, and the digest of its bytes."""

    step: int
    digest: str

    @property
    def note(self) -> str:
        """The words of its line."""
        return f"step {self.step}, sha256 {self.digest}"


def mark_of(note: str) -> Mark | None:
    """The mark that these words stand for; None for the beginning.

    Raises:
        ValueError: for any other words.

    >>> mark_of("step 20, sha256 " + "0" * 64).step
    20
    """
    if note == BEGINNING:
        return None
    found = _NOTE.fullmatch(note)
    if found is None:
        raise ValueError("does not name a checkpoint")
    return Mark(int(found[1]), found[2])


def holder_of(store: Store, charge: Entry) -> str:
    """Hash of the line by which the run is held: its last continuation, or else its charge."""
    # The hash is the token of the holder: each continuation makes a new one, and with the old one nothing can be
    # written.
    return next((line.hash for line in reversed(store.held(charge.run)) if line.kind == "continue"), charge.hash)


def newest_mark(store: Store, run: str) -> Mark | None:
    """The newest kept state of a run, if there is one."""
    notes = [line.note for line in store.held(run) if line.kind == "checkpoint"]
    return mark_of(notes[-1]) if notes else None


def check_open(store: Store, charge: Entry, holder: str | None) -> None:
    """Raises LedgerError if the run has ended, or is held by somebody else than `holder` (None: by its charge)."""
    where = f"run {charge.run!r}"
    if store.of_run("finish", charge.run):
        raise LedgerError(where, "is finished already.", "A run ends once, and one charge yields one release.")
    if holder_of(store, charge) != (holder or charge.hash):
        raise LedgerError(where, "was continued by another process since.", "Leave it to that one.")


def check_rising(store: Store, run: str, mark: Mark) -> None:
    """Raises LedgerError unless the mark lies behind the newest one."""
    newest = newest_mark(store, run)
    if newest is not None and mark.step <= newest.step:
        rule = f"has a checkpoint of step {newest.step} already, got one of step {mark.step}."
        raise LedgerError(f"run {run!r}", rule, "Go on from the newest one.")


def check_newest(store: Store, run: str, mark: Mark | None) -> None:
    """Raises LedgerError unless `mark` is the newest one (None: there is none yet)."""
    newest = newest_mark(store, run)
    if mark != newest:
        rule = "can be continued from its newest checkpoint only" + (f", step {newest.step}." if newest else ".")
        raise LedgerError(f"run {run!r}", rule, "Restore that checkpoint; an older one would be a second branch.")


CONVERSION_SLACK = Fraction(1, 10**11)
RESTORE = "Restore the file from a trusted copy."


@dataclass(slots=True)
class _Dataset:
    """A dataset, as the lines read so far describe it."""

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
        """What is wrong with the next line; the state moves on, so that one fault is reported once."""
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
            # Only between neighbours: an extract leaves out the lines of other datasets.
            expected = self.last.hash if self.last else NOTHING_BEFORE
            if entry.previous != expected:
                yield "is not tied to the entry before it."

    def _opening_faults(self, entry: Entry) -> Iterator[str]:
        if entry.dataset in self.datasets:
            yield "opens a dataset a second time."
            return
        if entry.earlier != NOTHING_BEFORE or entry.total != Cost() or entry.releases:
            yield "opens a dataset that already has entries."
        if entry.composition not in _WRITTEN.values():
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
        # The second chain, within a dataset, is what makes an extract complete: a charge left out breaks it.
        if entry.earlier != dataset.latest:
            yield "is not tied to the entry before it in its dataset: a charge is missing or moved."
        if dataset.unit not in (None, entry.unit):
            yield "protects another unit than the charges before it."
        claimed = {"budget_epsilon": entry.budget_epsilon, "budget_delta": entry.budget_delta}
        after = dataset.balance.after(dataset.balance.deduction(entry.cost, **claimed))
        if (after.spent, after.releases) != (entry.total, entry.releases):
            yield "has totals that do not follow from the charges."
        elif not after.is_within_limit():
            yield "exceeds the cap of its dataset."
        if entry.composition != _WRITTEN[after.composition]:
            yield "names another composition than its dataset."
        # Taken over even if it was wrong, so that one altered line is one finding and not one for every line behind it.
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
                yield "continues from a checkpoint other than the newest."
            self.holders[entry.run] = entry.hash
            return
        if mark is None or (newest is not None and mark.step <= newest.step):
            yield "does not come after the checkpoint before it."
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
    composition: Composition = "basic" if opening.composition == _WRITTEN["basic"] else "zcdp"
    cap = Cost(epsilon=opening.budget_epsilon, delta=opening.budget_delta)
    return Balance(composition, cap, opening.cost, latest.total, latest.releases)


def check_chain(lines: Iterable[Mapping[str, object]], where: str) -> list[Problem]:
    """Everything wrong with the lines of a whole ledger, in order; empty if they hold together."""
    return _check(lines, where, _Reader(whole=True))


def verify_extract(lines: Iterable[Mapping[str, object]], where: str = "ledger.jsonl") -> list[Problem]:
    """Everything wrong with an extract: one dataset from its opening on, charges only; empty if it is consistent.

    It is read without its ledger.
    """
    reader = _Reader(whole=False)
    problems = _check(lines, where, reader)
    if len(reader.datasets) != 1:
        rule = f"must list the charges of one dataset from its opening on, got {len(reader.datasets)} openings."
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


Outcome = Literal["released", "failed"]
WAIT_SECONDS = 60.0
# A run that failed should not keep anybody waiting just to say whether its charge stands.
LOOK_SECONDS = 2.0
MOST_NAME = 200
MOST_NOTE = 2000


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a run's charge is on disk: only its holder may read private rows.

    `cost` is what the run may spend inside, `deduction` what it took from the dataset's limit, `balance` what is left.
    `holder` is the hash of the line by which the run is held: that of its charge, or of its last continuation.
    """

    sequence: int
    hash: str
    previous: str
    dataset: str
    run: str
    made: str
    cost: Cost
    deduction: Cost
    balance: Balance
    holder: str


class Ledger:
    """An open ledger. It holds a path only: every call reads and writes the file anew."""

    def __init__(self, path: Path, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self.path, self._wait = path, wait_seconds

    def __repr__(self) -> str:
        return f"<Ledger: {self.path}>"

    def _repr_html_(self) -> str:
        """For notebooks: cap, spending and rest of every dataset."""
        balances = {name: self.balance(name) for name in self.datasets()}
        rows = [
            (name, one.composition, one.cap, one.claim(), one.left, f"{one.releases:,}")
            for name, one in balances.items()
        ]
        return shown_as_html(
            f"Ledger {self.path}", (), ("dataset", "composition", "cap", "spent", "left", "charges"), rows
        )

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

        `failure_share` matters in the zCDP composition alone: the part of δ kept for steps that may fail.
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
    def single_use(cls, path: str | os.PathLike[str], budget: Budget) -> "Ledger":
        """A new ledger that covers exactly one run of this budget, for a run that belongs to no lasting ledger."""
        return cls.create(path, "table", budget)

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
                fix = (
                    f"See `understudy ledger show {self.path}`. The same table under another name would have a second "
                    "budget that nobody adds to this one."
                )
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
        currency: Currency | None = None,
        unit: str = "",
        note: str = "",
    ) -> Receipt:
        """A receipt, once the charge is on disk; private rows may be read after that and not before.

        `budget` is the (ε, δ) the run claims, `cost` what it spends to keep that claim (`variances`, where the claim
        rests on the exact distributions of Gaussian answers, `currency`, where it is the Gaussian one: see
        `require_claim`). `unit` says who is protected, in the same words for every run of a dataset. Raises BudgetError
        if the cap does not cover the run, LedgerError if the file cannot be used or the run was charged before; neither
        leaves a trace.
        """
        _check_name("run", run)
        _check_name("method", method)
        _check_text("unit", unit, MOST_NAME)
        _check_text("note", note, MOST_NOTE)
        require_claim(cost, budget, variances, currency=currency)
        said = _Said(run, method, unit, note, budget.epsilon_units, budget.delta_units)
        record, granted = standing(), False
        record.charging(run, str(Cost(epsilon=said.epsilon, delta=said.delta)), self.path)
        try:
            with writing(self.path, self._wait) as store:
                opening, latest = _dataset(store, dataset)
                _check_run(store, run)
                _check_unit(dataset, unit, latest)
                # Balance and entry in one transaction. Apart, two runs at once would both find room for one.
                before = balance_after(opening, latest)
                deduction = before.deduction(cost, budget_epsilon=said.epsilon, budget_delta=said.delta)
                after = before.after(deduction)
                granted = after.is_within_limit()
                if granted:
                    entry = said.entry(dataset, before.composition)
                    entry = _tied(_paid_for(entry, cost, after), store, latest.hash)
                    store.append(entry)
            record.charged(run, stands=granted)
        except BaseException:  # a signal may strike just after the charge is on disk
            record.charged(run, stands=granted and self._holds(run))
            raise
        if not granted:
            raise _refusal(dataset, run, before, cost, budget)
        return _receipt(entry, deduction, after, entry.hash)

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
            # Inside the transaction that writes: a second process could otherwise end the run in between.
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
        deduction = after.deduction(charge.cost, budget_epsilon=charge.budget_epsilon, budget_delta=charge.budget_delta)
        return _receipt(charge, deduction, after, line.hash)

    def datasets(self) -> list[str]:
        """Names of the datasets, in the order they were opened."""
        return [entry.dataset for entry in self.entries() if entry.kind == "dataset"]

    def balance(self, dataset: str) -> Balance:
        """Cap, spending and remainder of a dataset."""
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
            # Openings and charges only. Later lines tell how runs went on, which depends on private rows.
            return [entry.to_json() for entry in store.of_dataset(last.dataset, last.sequence)]

    def head(self) -> str:
        """Hash of the last line: it stands for the whole ledger."""
        with reading(self.path, self._wait) as store:
            return store.head().hash

    def verify(self, known: Iterable[str] = ()) -> list[Problem]:
        """Everything wrong with the ledger; empty if it is consistent.

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
            composition=_WRITTEN[composition],
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
        composition=_WRITTEN[composition],
        budget_epsilon=balance.cap.epsilon,
        budget_delta=balance.cap.delta,
    )
    return _paid_for(entry, balance.limit, balance)


def _paid_for(entry: Entry, cost: Cost, balance: Balance) -> Entry:
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


def _receipt(charge: Entry, deduction: Cost, after: Balance, holder: str) -> Receipt:
    fields = (charge.sequence, charge.hash, charge.previous, charge.dataset, charge.run, charge.made, charge.cost)
    return Receipt(*fields, deduction, after, holder)


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
        short = balance.composition == "zcdp" and cost.delta > left.delta
        fix += f", with at most {in_full(Cost(delta=left.delta))} for steps that may fail." if short else "."
    claimed = Cost(epsilon=budget.epsilon_units, delta=budget.delta_units)
    deduction = balance.deduction(cost, budget_epsilon=claimed.epsilon, budget_delta=claimed.delta)
    return BudgetError(f"dataset {dataset!r}, run {run!r}", in_full(deduction), in_full(left), fix)


def _check_name(what: str, name: str) -> None:
    if not name or name != name.strip():
        raise UsageError(what, f"must be a name without spaces around it, got {name!r}.")
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
