"""Training on sampled units: what it costs, its checkpoints, and the one query that hands rows to an optimiser.

The query
---------
Neighbours differ by one unit, at most k rows. In every step each unit takes part by a coin of its own, with the same
public probability; the rows of a unit come and go together. The trainer turns rows into integer vectors, each row by
itself: a row's vector may depend on that row and on what the trainer was told before (noisy sums, public settings), on
nothing else. The curator adds up the vectors of each unit, leaves a unit out whose sum is longer than `clip` in L2 norm
(exact integers: a comparison, not a matter of rounding), adds up the units, puts discrete Gaussian noise on every
coordinate and hands the noisy sum back. How many units took part is never said.

All that is asked of a trainer is that it keeps rows apart. If it does not, the bound on each unit still holds, but a
unit could change what others contribute; so contributions are computed row by row, without sums over a batch in
floating point, and replay on neighbouring tables looks at the exact sums.

The number of steps, the coins' probability and the noise are fixed before the first row is read. Nothing here ends
early, and no message depends on a row.

What training costs
-------------------
Rényi divergences of noisy sums over sampled units are added up over steps and turned into (ε, δ).

One step. Every unit is sampled on its own with probability q at most; the units sampled add integer vectors of L2 norm
at most C to a sum; every coordinate of the sum gets discrete Gaussian noise of variance s². Claim: at every integer
order α ≥ 2 neighbours have Rényi divergence at most log(A_α) / (α − 1) in both directions, where with c = C²/(2s²)

    A_α = Σ_k binom(α, k) (1 − q)^(α−k) q^k e^((k² − k)·c).

Proof. Fix the coins and contributions of all other units: they have the same distribution in both tables, and x^α
y^(1−α) is jointly convex, so it is enough to compare, for one fixed sum (moved to 0), the distribution P of the noise
alone with Q = (1 − q)·P + q·P_μ, where P_μ is P moved by the extra unit's vector μ. Let r = P_μ/P = e^((2⟨x,μ⟩ −
‖μ‖²)/(2s²)).

(1) E_P[r^k] = e^((k²−k)‖μ‖²/(2s²)) exactly: completing the square leaves the sum of e^(−‖x − kμ‖²/(2s²)) over the
    integer lattice, and kμ is a lattice vector, so that sum is the normaliser of P. Expanding L = 1 − q + q·r gives
    E_P[(Q/P)^α] = E_P[L^α] = Σ_k binom(α, k)(1−q)^(α−k) q^k E_P[r^k] ≤ A_α, because every term rises with ‖μ‖ ≤ C. It
    rises with q as well: E_P[(1 + q(r−1))^α] is convex in q with slope 0 at q = 0. So an upper bound of q is safe.
(2) The other direction, E_Q[(P/Q)^α] = E_P[L^(1−α)], is no larger. The reflection x → μ − x of the lattice swaps P and
    P_μ, so E_P[g(r)] = E_P[r·g(1/r)] for every g. Averaging both forms, E_P[L^α − L^(1−α)] ≥ 0 follows from

        f(a) + r·f(b) ≥ 0,   f(x) = x^α − x^(1−α) = 2√x·sinh((α − ½) log x),   a = 1 − q + qr,   b = 1 − q + q/r.

    Let r ≥ 1 (else exchange r and 1/r). Then a ≥ 1 ≥ b, f(b) = −b·f(1/b), and a·b = 1 + q(1−q)(r + 1/r − 2) ≥ 1, so
    a ≥ 1/b ≥ 1. The quotient f(a) / (r·b·f(1/b)) is a positive number times sinh(βx)/sinh(βy) with β = α − ½ and
    x = log a ≥ y = log(1/b) ≥ 0; that rises with β, and at α = 1 it is (a − 1)/(r − r·b) = 1. So it is at least 1.

Steps. A unit's vector may depend on the unit and on all earlier noisy sums, which are public: Rényi divergences of one
order add up (Mironov 2017). A look at every unit (q = 1) with noise of its own is a step with A_α = e^((α²−α)·c).

(ε, δ). D_α ≤ R implies (ε, δ)-DP for ε = R + log(1 − 1/α) − (log δ + log α)/(α − 1) (Canonne, Kamath, Steinke 2020,
Proposition 12). Every order gives a valid ε; the best of a fixed list is taken.

Arithmetic. Floats. A_α − 1 is summed instead of A_α (the terms k = 0 and 1 cancel), so that all terms are positive and
nothing is lost to cancellation; each logarithm of a term is off by less than 10⁻⁸ for α ≤ 2¹⁶. Divergences are raised
by one part in 10⁶ and ε by 10⁻⁹, far above all rounding. σ is found by bisection, and accepted by this bound alone.

Checkpoints: what a training needs to go on after an interruption, and why going on costs nothing
-------------------------------------------------------------------------------------------------
What it holds. The number of steps done, the noisy sum of the first look, and the trainer's state, which the trainer
makes of noisy sums, public settings and a public seed (it sees rows only to make contributions of them). So a
checkpoint is a function of the noisy sums so far and of public facts: no exact count, no number of rows, no batch, no
coin, no noise by itself, nothing of the secure generator, which has no state. Replay on neighbouring tables compares
checkpoints byte by byte.

When. After the first look, after every tenth of the steps, and after the last one: by the plan, not by the data and
not by the clock.

Why continuing costs nothing. Steps since the newest recorded checkpoint are lost with the process. The run goes on from
that checkpoint, with fresh coins and fresh noise for every step. Claim: all recorded checkpoints and the release
together have the distribution of an uninterrupted run's, whose cost was charged, provided that whoever interrupts has
seen at most what was recorded. Proof, by induction over the recorded checkpoints: the ledger takes one sequence of them
for a charge, with rising steps, each made from the one before (`ledger.py`: only the holder may add to it,
and only from the newest may it be continued). Given the recorded ones, the steps up to the next one are drawn anew at
every attempt. Assume that whether an attempt is interrupted does not depend on its own coins and noise; then the
attempt that gets through has the distribution of an attempt that nobody could interrupt. (A machine so short of memory
that it stops large batches, or a time limit that does, would break the assumption: give the run room before it is
continued.) The release follows from the last checkpoint, the schema and the recorded seed of drawing rows, so an
interruption while it is written changes nothing.

The proviso is about working memory. A checkpoint is written to a temporary file, made durable, renamed, and only then
recorded: for that moment, and in the memory of the process, there are steps that may be lost. Somebody who reads them,
interrupts and reads again sees steps that were not paid for, at most a tenth of the course (and before the first
checkpoint the first look) for each interruption; the ledger counts the interruptions. Whoever can do that can read the
private table too. Files of a run are confidential until its release is complete, and for their owner only.

An older copy of a checkpoint is refused (it is not the newest one), and so is a second release from one charge. Copying
the ledger along with the checkpoint forks the ledger, with all that follows from that (`ledger.py`).

The table may have changed in between: every step bounds what a unit adds to it, whatever the table is by then, so the
cost stays the same. That the table is the one the charge was made for is the steward's word, as for every charge;
a digest of the rows would be a private number and is not kept.

Files. A checkpoint is written under a temporary name with mode 0600, synced, renamed to its digest, its folder synced;
then the ledger takes its mark; then older files go. A kill at any moment leaves the newest recorded checkpoint in
place. Files that the ledger does not know are never read.
"""

import functools
import hashlib
import io
import itertools
import json
import math
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from understudy.arrays import Floats, Ints, Shorts, Unsigned
from understudy.compiled import compiled
from understudy.counts.source import Records
from understudy.domain import Course, Distribution, Trained
from understudy.errors import LedgerError, UsageError
from understudy.folders import write_durably
from understudy.privacy.cost import DELTA_UNIT, UNIT, Cost
from understudy.privacy.ledger import Ledger, Mark, Receipt
from understudy.privacy.noise import LARGEST_VARIANCE
from understudy.privacy.randomizer import Randomizer, Request
from understudy.progress import Progress, silent

ORDERS: tuple[int, ...] = tuple(
    sorted({*range(2, 65), *(round(64 * 1.1**power) for power in range(1, 73)), 200, 2**16})
)
"""Orders that are tried: all up to 64, then steps of a tenth."""

_RAISED = 1 + 1e-6
_ABOVE = 1e-9
_GRID = 2**10
_LEAST_VARIANCE = Fraction(1, _GRID)
_BISECTIONS = 40


@dataclass(frozen=True, slots=True)
class TrainingPart:
    """`steps` noisy sums over units sampled at `rate`, with noise of `multiplier` times the bound of a contribution."""

    rate: float
    multiplier: float
    steps: int = 1


def renyi(part: TrainingPart, order: int) -> float:
    """Rényi divergence of that integer order for all steps of the part, both directions, rounded up."""
    if not 0 < part.rate <= 1 or not part.multiplier > 0 or part.steps < 0 or order < 2:
        raise UsageError("training", "needs a rate above 0 and at most 1, noise above 0 and orders of 2 or more.")
    half = 1 / (2 * part.multiplier**2)
    if part.rate == 1:
        return part.steps * order * half * _RAISED
    exponents = _pairs(order) * half
    small = np.minimum(exponents, 40.0)  # beyond, e^x − 1 is e^x to the last digit
    logs = _log_binomial(order, part.rate) + np.where(exponents > 40.0, exponents, np.log(np.expm1(small)))
    log_excess = float(np.logaddexp.reduce(logs))
    log_moment = log_excess + math.log1p(math.exp(-log_excess)) if log_excess > 30 else math.log1p(math.exp(log_excess))
    return part.steps * log_moment / (order - 1) * _RAISED


def epsilon_of(divergence: float, order: int, delta: float, *, tight: bool = True) -> float:
    """ε that a Rényi divergence of that order gives beside δ; the classical conversion is for comparison only."""
    if tight:
        return divergence + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    return divergence - math.log(delta) / (order - 1)


def parts_epsilon(
    parts: Sequence[TrainingPart], delta: float, orders: Sequence[int] = ORDERS, *, tight: bool = True
) -> float:
    """The smallest ε over the orders, for all parts together, rounded up; never below 0."""
    if not 0 < delta < 1:
        raise UsageError("training", "needs δ above 0 and below 1.", "Give delta=, for example 1e-9.")

    @functools.cache
    def at(place: int) -> float:
        order = orders[place]
        return epsilon_of(sum(renyi(part, order) for part in parts), order, delta, tight=tight)

    # Any order is valid. The curve falls and then rises, so a coarse scan and its neighbourhood find the best.
    stride = max(1, math.isqrt(len(orders)))
    best = min(range(0, len(orders), stride), key=at)
    near = range(max(0, best - stride), min(len(orders), best + stride + 1))
    return max(0.0, min(map(at, near))) + _ABOVE


def course_parts(course: Course, first: Distribution | None, distribution: Distribution) -> list[TrainingPart]:
    """What a course with that noise consists of."""
    parts = [] if first is None else [TrainingPart(1.0, first.scale / course.clip)]
    return [*parts, TrainingPart(rate_of(course.gap), distribution.scale / course.clip, course.steps)]


@functools.lru_cache(maxsize=256)
def training_distributions(cost: Cost, course: Course, step: str) -> tuple[Distribution | None, Distribution]:
    """Noise of the first look (none without one) and of every step, at which the whole course costs `cost`.

    The first look gets the noise that would cost `first_share` of ε by itself; the steps get the least noise with which
    everything together still keeps to (ε, δ).
    """
    _check(cost, course, step)
    epsilon, delta = cost.epsilon / UNIT, cost.delta / DELTA_UNIT
    first = None
    if course.first_share:
        share = float(course.first_share) * epsilon
        alone = _quietest(
            lambda distribution: parts_epsilon([TrainingPart(1.0, distribution.scale / course.clip)], delta) <= share
        )
        first = _found(alone, step)
    distribution = _quietest(
        lambda distribution: parts_epsilon(course_parts(course, first, distribution), delta) <= epsilon
    )
    return first, _found(distribution, step)


def _quietest(allowed: Callable[[Distribution], bool]) -> Distribution | None:
    """The Gaussian distribution of least variance (on a grid) that is allowed; None if even the largest is not."""
    # The search may take any way; what is returned was itself found to be allowed.
    low, high = _LEAST_VARIANCE, LARGEST_VARIANCE
    if allowed(Distribution("gaussian", low)):
        return Distribution("gaussian", low)
    if not allowed(Distribution("gaussian", high)):
        return None
    for _ in range(_BISECTIONS):
        middle = Fraction(max(1, round(math.sqrt(low * high) * _GRID)), _GRID)
        if not low < middle < high:
            break
        if allowed(Distribution("gaussian", middle)):
            high = middle
        else:
            low = middle
        if high / low < 1 + Fraction(1, 10**5):
            break
    return Distribution("gaussian", high)


def _found(distribution: Distribution | None, step: str) -> Distribution:
    if distribution is None:
        fix = "Raise the budget, or plan fewer steps or a lower rate."
        raise UsageError(step, "the budget is too small: no noise within reach keeps to it.", fix)
    return distribution


def _check(cost: Cost, course: Course, step: str) -> None:
    if cost.rho or not cost.epsilon or not 0 < cost.delta < DELTA_UNIT:
        raise UsageError(step, "is paid in ε and δ, both above 0.", "Give delta=, for example 1e-9.")
    if not 1 <= course.clip <= 2**20:
        raise UsageError(step, f"the bound of a contribution must lie between 1 and 2²⁰, got {course.clip}.")
    if not 1 <= course.steps <= 10**7:
        raise UsageError(step, f"the number of steps must lie between 1 and 10⁷, got {course.steps}.")
    if not Fraction(1, 8) <= course.gap <= 2**40:
        raise UsageError(step, "the mean gap between sampled units must lie between 1/8 and 2⁴⁰.")
    if not 0 <= course.first_share < 1:
        raise UsageError(step, "the first look may take a share of ε from 0 to below 1.")


def rate_of(gap: Fraction) -> float:
    """The probability 1 − e^(−1/gap) with which a unit takes part, rounded up."""
    # An upper bound of the rate is safe: the moment rises with q (part (1) of the proof).
    return min(1.0, -math.expm1(-1 / float(gap)) * (1 + 1e-12))


@functools.lru_cache(maxsize=256)
def _pairs(order: int) -> Floats:
    places = np.arange(2, order + 1, dtype=np.float64)
    return places * (places - 1)


@functools.lru_cache(maxsize=512)
def _log_binomial(order: int, rate: float) -> Floats:
    """Logarithms of binom(order, k)·(1 − rate)^(order−k)·rate^k for k = 2, 3, …, order."""
    from scipy.special import gammaln

    places = np.arange(2, order + 1, dtype=np.float64)
    ways = gammaln(order + 1) - gammaln(places + 1) - gammaln(order - places + 1)
    return np.asarray(ways + (order - places) * math.log1p(-rate) + places * math.log(rate))


State = Mapping[str, npt.NDArray[np.generic]]

FORMAT = "understudy checkpoint, format 1"
PARTS = 10
_ABOUT, _FIRST = "about", "first"


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """The steps done, the noisy sum of the first look (empty without one), and the trainer's state after them."""

    step: int
    first: Ints
    state: State


class Keeper(Protocol):
    """Keeps checkpoints where they survive the process."""

    def newest(self) -> Checkpoint | None:
        """What the run goes on from; None at the beginning."""
        ...

    def keep(self, checkpoint: Checkpoint) -> None:
        """Returns once the checkpoint is on disk and recorded."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """A trainer that can be put back where it was."""

    def state(self) -> State:
        """Everything it learned since the first look was told, as arrays."""
        ...

    def restore(self, state: State) -> None:
        """Takes up a state again, after the first look was told."""
        ...


def is_due(step: int, course: Course) -> bool:
    """Whether a checkpoint is kept after that many steps (0: after the first look).

    >>> from fractions import Fraction
    >>> [step for step in range(1, 101) if is_due(step, Course(64, 100, Fraction(2)))][:3]
    [10, 20, 30]
    """
    if step == 0:
        return course.first_share > 0
    return step % max(1, -(-course.steps // PARTS)) == 0 or step == course.steps


def to_bytes(checkpoint: Checkpoint, about: Mapping[str, str]) -> bytes:
    """The checkpoint as a file: arrays and a header that says whose it is; the same content gives the same bytes."""
    header = json.dumps({"format": FORMAT, "step": checkpoint.step, **about}, sort_keys=True, ensure_ascii=True)
    arrays: dict[str, npt.NDArray[np.generic]] = {_ABOUT: np.frombuffer(header.encode(), dtype=np.uint8)}
    arrays |= {_FIRST: checkpoint.first} | {f"state/{name}": array for name, array in checkpoint.state.items()}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as part:  # with a date that never changes
                np.lib.format.write_array(part, np.array(array, order="C"), allow_pickle=False)
    return stream.getvalue()


def from_bytes(content: bytes, about: Mapping[str, str]) -> Checkpoint:
    """The checkpoint in a file.

    Raises:
        LedgerError: if the file is none, or belongs to another run.
    """
    try:
        # A pickle runs code when it is read, and a checkpoint lies in a folder that others may write to.
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            header = json.loads(stored[_ABOUT].tobytes())
            state = {name.removeprefix("state/"): stored[name] for name in stored.files if name.startswith("state/")}
            first, step = stored[_FIRST], header.pop("step")
        if header != {"format": FORMAT, **about} or type(step) is not int or first.dtype != np.int64:
            raise ValueError("header")
    except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError, zipfile.BadZipFile) as error:
        rule = "is no checkpoint of this run."
        raise LedgerError("checkpoint", rule, "Restore the file that the run wrote; nothing was continued.") from error
    return Checkpoint(step, first, state)


PATTERNS = ("checkpoint-*", ".checkpoint-*")
"""Checkpoints, and drafts of them that a killed process left."""


class FolderKeeper:
    """Keeps the checkpoints of one charged run in a folder. `configuration` is the digest of all public settings."""

    def __init__(self, folder: Path, ledger: Ledger, run: str, configuration: str) -> None:
        self._folder, self._ledger, self._run, self._configuration = folder, ledger, run, configuration
        self._receipt: Receipt | None = None
        self._found: Checkpoint | None = None

    def begun(self, receipt: Receipt) -> None:
        """Told by whoever charged the run just now."""
        self._receipt = receipt

    def take_up(self) -> Receipt:
        """Reads the newest recorded checkpoint and takes the run over; what does not fit is refused, without a trace.

        Raises:
            LedgerError: if the file is missing or altered, or the ledger does not let the run be continued.
        """
        mark = self._ledger.newest(self._run)
        # Read before the ledger hands the run over: a file that does not fit must not take it away from anybody.
        found = None if mark is None else self._read(mark)
        self._receipt = self._ledger.take_up(self._run, mark)
        self._found = found
        self._tidy(mark)
        return self._receipt

    def newest(self) -> Checkpoint | None:
        """The checkpoint that was taken up."""
        return self._found

    def keep(self, checkpoint: Checkpoint) -> None:
        """Writes the checkpoint durably and records it.

        Raises:
            LedgerError: if the ledger does not take it; the run can be continued from the one before.
        """
        assert self._receipt is not None
        content = to_bytes(checkpoint, self._about(self._receipt.hash))
        mark = Mark(checkpoint.step, hashlib.sha256(content).hexdigest())
        # On disk first, then on record, and only then do older files go: a kill in between leaves what the ledger
        # knows.
        write_durably(self._folder / _name(mark), content)
        try:
            self._ledger.checkpoint(self._run, mark, holder=self._receipt.holder)
        except LedgerError as error:
            where, rule = error.problem.where, error.problem.rule
            raise LedgerError(where, rule, "The run stopped and its charge stands; it can be continued.") from error
        self._tidy(mark)

    def _read(self, mark: Mark) -> Checkpoint:
        try:
            content = (self._folder / _name(mark)).read_bytes()
        except OSError as error:
            raise LedgerError(f"checkpoint of step {mark.step}", "is missing.", "Restore its file.") from error
        if hashlib.sha256(content).hexdigest() != mark.digest:
            raise LedgerError(f"checkpoint of step {mark.step}", "does not match the ledger.", "Restore its file.")
        charge = next(entry for entry in self._ledger.entries() if (entry.kind, entry.run) == ("charge", self._run))
        found = from_bytes(content, self._about(charge.hash))
        if found.step != mark.step:
            raise LedgerError("checkpoint", f"is not of step {mark.step}.", "Restore its file.")
        return found

    def _about(self, charge: str) -> dict[str, str]:
        return {"run": self._run, "charge": charge, "configuration": self._configuration}

    def _tidy(self, mark: Mark | None) -> None:
        """Removes every checkpoint but this one."""
        for path in itertools.chain.from_iterable(map(self._folder.glob, PATTERNS)):
            if mark is None or path.name != _name(mark):
                with suppress(OSError):  # a file left over is never read
                    path.unlink()


def _name(mark: Mark) -> str:
    return f"checkpoint-{mark.digest}"


_CHUNK_UNITS = 1 << 16
_REPORTS = 100


@dataclass(frozen=True, slots=True, eq=False)
class Contributions:
    """One integer vector per row: `shared[i]` in every block of `blocks[i]`, then `own[i]` behind the last block.

    A vector of `cells` coordinates consists of blocks as wide as `shared`, followed by as many as `own` has. The blocks
    of a row must increase.
    """

    blocks: Shorts
    shared: Shorts
    own: Shorts


class Trainer(Protocol):
    """An optimiser that sees rows only to make contributions of them, and learns from noisy sums only."""

    @property
    def name(self) -> str:
        """What the transcript calls it."""
        ...

    @property
    def course(self) -> Course:
        """The public numbers of the training."""
        ...

    @property
    def first_cells(self) -> int:
        """Coordinates of the first look's sum."""
        ...

    @property
    def cells(self) -> int:
        """Coordinates of a step's sum, once the first look was told."""
        ...

    def look(self, codes: Unsigned) -> Contributions:
        """What every row contributes to the first look; one line of codes per row, columns in domain order."""
        ...

    def looked(self, noisy: Ints, distribution: Distribution) -> None:
        """Takes the noisy sum of the first look over all units."""
        ...

    def contribute(self, codes: Unsigned) -> Contributions:
        """What every one of these rows contributes to the step now due."""
        ...

    def step(self, noisy: Ints) -> None:
        """Takes the noisy sum of a step and moves on."""
        ...


def train(
    trainer: Trainer,
    records: Records,
    distributions: tuple[Distribution | None, Distribution],
    randomizer: Randomizer,
    *,
    delta: int,
    progress: Progress = silent,
    keeper: Keeper | None = None,
) -> Trained:
    """Runs the whole course, or what is left of it. The cost must have been paid before the records were read."""
    first_distribution, distribution = distributions
    course, sensitivity = trainer.course, Fraction(trainer.course.clip)
    saved = None if keeper is None else keeper.newest()
    values = np.zeros(0, dtype=np.int64) if saved is None else saved.first
    if first_distribution is not None:
        if saved is None:
            request = Request("train", trainer.name, trainer.first_cells, first_distribution, sensitivity, delta=delta)
            values = randomizer.add_noise(request, _sum_over_all(trainer, records))
        # A copy, for the transcript keeps these numbers and the trainer may write into its own.
        trainer.looked(values.copy(), first_distribution)
    if saved is not None:
        _resumable(trainer).restore(saved.state)
    else:
        _keep(keeper, trainer, 0, values)
    for number in range(1 if saved is None else saved.step + 1, course.steps + 1):
        request = Request(
            "train", trainer.name, trainer.cells, distribution, sensitivity, 1 / course.gap, layer=number, delta=delta
        )
        sampled = _gathered(records, randomizer.sample(request, records))
        # The bound is enforced here. A trainer that cuts its gradients wrongly loses units, it does not expose them.
        exact = bounded_sum(trainer.contribute(sampled.codes), sampled.starts, course.clip, trainer.cells)
        trainer.step(randomizer.add_noise(request, exact))
        _keep(keeper, trainer, number, values)
        if number % max(1, course.steps // _REPORTS) == 0:
            progress.stage("measure", number / course.steps)
    return Trained(trainer.name, course, values, first_distribution, distribution)


def _keep(keeper: Keeper | None, trainer: Trainer, number: int, values: Ints) -> None:
    """Keeps a checkpoint where the plan wants one; of noisy sums and what was made of them alone."""
    if keeper is not None and is_due(number, trainer.course):
        keeper.keep(Checkpoint(number, values, _resumable(trainer).state()))


def _resumable(trainer: Trainer) -> Resumable:
    if not isinstance(trainer, Resumable):
        raise UsageError(f"train {trainer.name}", "the state of this trainer cannot be restored.")
    return trainer


def bounded_sum(given: Contributions, starts: Ints, clip: int, cells: int) -> Ints:
    """The sum of all units' vectors, without those that are longer than `clip` or not well formed.

    Rows starts[u] to starts[u + 1] are of unit u.

    Raises:
        UsageError: if the arrays do not have the announced shapes, which does not depend on what rows hold.
    """
    rows, width, own = int(starts[-1]), given.shared.shape[-1], given.own.shape[-1]
    shapes = [array.shape[:-1] for array in (given.blocks, given.shared, given.own)]
    kinds = {array.dtype for array in (given.blocks, given.shared, given.own)}
    if shapes != [(rows,)] * 3 or kinds != {np.dtype(np.int32)}:
        raise UsageError("training", "a trainer must give 32-bit integers, one line per row.")
    if width < 1 or cells < own or (cells - own) % width:
        raise UsageError("training", "the contributions do not have the announced number of coordinates.")
    total = np.zeros(cells, dtype=np.int64)
    scratch = np.zeros(cells, dtype=np.int64)
    touched = np.zeros((cells - own) // width, dtype=np.bool_)
    _add_units(given.blocks, given.shared, given.own, starts, clip, total, scratch, touched)
    return total


def _sum_over_all(trainer: Trainer, records: Records) -> Ints:
    total = np.zeros(trainer.first_cells, dtype=np.int64)
    for low in range(0, records.units, _CHUNK_UNITS):
        part = records.starts[low : low + _CHUNK_UNITS + 1]
        given = trainer.look(records.codes[part[0] : part[-1]])
        total += bounded_sum(given, part - part[0], trainer.course.clip, trainer.first_cells)
    return total


def _gathered(records: Records, units: Ints) -> Records:
    """The rows of these units."""
    held = records.starts[units + 1] - records.starts[units]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(held)])
    if starts[-1] == units.size:
        return Records(records.codes[records.starts[units]], starts)
    rows = np.arange(starts[-1]) + np.repeat(records.starts[units] - starts[:-1], held)
    return Records(records.codes[rows], starts)


@compiled()  # pragma: no cover
def _add_units(blocks, shared, own, starts, clip, total, scratch, touched):  # type: ignore[no-untyped-def]
    """Adds up units into `total`; `scratch` and `touched` are clean before and after."""
    width, count, behind = shared.shape[1], blocks.shape[1], own.shape[1]
    tail = touched.size * width
    limit = np.int64(clip) * np.int64(clip)
    for unit in range(starts.size - 1):
        low, high = starts[unit], starts[unit + 1]
        fine = _well_formed(blocks, shared, own, low, high, clip, touched.size)
        if fine and high - low == 1:
            norm = np.int64(0)
            for at in range(width):  # cut above the bound, so that nothing overflows
                norm = min(norm + np.int64(shared[low, at]) * np.int64(shared[low, at]), limit + 1)
            # The same vector stands in each of the row's blocks.
            norm *= count
            for at in range(behind):
                norm = min(norm + np.int64(own[low, at]) * np.int64(own[low, at]), 2 * (count + 1) * (limit + 1))
            # Left out if too long, not scaled down: a comparison of whole numbers is exact, scaling would round past
            # the bound.
            if norm <= limit:
                for place in range(count):
                    begin = blocks[low, place] * width
                    for at in range(width):
                        total[begin + at] += shared[low, at]
                for at in range(behind):
                    total[tail + at] += own[low, at]
        elif fine:
            _add_rows(blocks, shared, own, low, high, scratch, touched)
            norm = np.int64(0)
            for block in range(touched.size):
                if touched[block]:
                    for at in range(block * width, (block + 1) * width):
                        beyond = min(abs(scratch[at]), clip + 1)  # cut above the bound, so that no square wraps
                        norm = min(norm + beyond * beyond, limit + 1)
            for at in range(tail, tail + behind):
                beyond = min(abs(scratch[at]), clip + 1)
                norm = min(norm + beyond * beyond, limit + 1)
            for block in range(touched.size):
                if touched[block]:
                    touched[block] = False
                    for at in range(block * width, (block + 1) * width):
                        if norm <= limit:
                            total[at] += scratch[at]
                        scratch[at] = 0
            for at in range(tail, tail + behind):
                if norm <= limit:
                    total[at] += scratch[at]
                scratch[at] = 0


@compiled()  # pragma: no cover
def _add_rows(blocks, shared, own, low, high, scratch, touched):  # type: ignore[no-untyped-def]
    """Adds the rows of one unit into the scratch space and marks the blocks they touch."""
    width = shared.shape[1]
    for row in range(low, high):
        for place in range(blocks.shape[1]):
            block = blocks[row, place]
            touched[block] = True
            for at in range(width):
                scratch[block * width + at] += shared[row, at]
        for at in range(own.shape[1]):
            scratch[touched.size * width + at] += own[row, at]


@compiled()  # pragma: no cover
def _well_formed(blocks, shared, own, low, high, clip, most):  # type: ignore[no-untyped-def]
    """Whether blocks exist and increase, and no number is beyond the bound: then no square overflows."""
    for row in range(low, high):
        before = -1
        for place in range(blocks.shape[1]):
            if blocks[row, place] <= before or blocks[row, place] >= most:
                return False
            before = blocks[row, place]
        for at in range(shared.shape[1]):
            if shared[row, at] > clip or shared[row, at] < -clip:
                return False
        for at in range(own.shape[1]):
            if own[row, at] > clip or own[row, at] < -clip:
                return False
    return True
