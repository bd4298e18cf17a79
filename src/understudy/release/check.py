"""The check: how far the released rows are from the private table, by noisy tables that no method ever saw.

A stated share of the budget is kept from the method and spent, when the method is done, on noisy counts of tables that
were chosen beforehand: the number of rows, every column, a public list of pairs, and what the criteria name. From these
and from the rows in the folder follow distances with confidence intervals, and whether each criterion is met.

Privacy
-------
Neighbours and sensitivity are those of every other count (`privacy/curator.py`): a table of a clique moves by at most k
in L1 and in L2 where one unit, of at most k rows, comes or goes. Let C be what is granted in all.

1. *Charge.* The ledger is charged C before a row is read, for method and check together (`synthesizer/account.py`).
2. *Split.* Of C the check gets C_c = ⌊share · C⌋, in ε or in ρ, the currency of the run; the method gets C − C_c, and
   the whole δ. Two curators hold these grants, and neither can spend what the other has.
3. *Composition.* Which tables are asked, and how C_c is split among them, follows from the schema, the criteria and the
   budget. So the check's answers are one more query of cost C_c after those of the method: pure ε and ρ add up over
   adaptively chosen queries, and so do all answers with Gaussian noise, as if they were one (`privacy/cost.py` and
   `privacy/gaussian.py`). Where the exact distributions of the noise are summed, those of the check are in that sum.
   Codes that the schema left open were fixed by answers that were paid for, before method and check alike.
4. *Everything after* (distances, criteria, card, `verify`) is computed from released answers and released rows.

The other order would cost the same; that the check comes last keeps it held back. The method has returned its
model before the check's curator exists, and the answers have a type of their own (`HeldBack`) that nothing which fits,
draws or averages takes for a measurement. So given rows and table, the noise is independent of the rows that it judges,
which the intervals rest upon. A run that was interrupted while it trained measures the check when it is continued; an
answer lost with the process was never released (`Working.drop_unrecorded` removes what was half written).

What is compared
----------------
The rows in the folder, of every copy, and not the model they were drawn from: their sampling error counts. The private
table is what the curator counts: every unit cut to its k rows, without rows that the schema has left out. Both are
counted in the codes of the (first) run, so nothing is compared within a bin of numbers, or among labels that were not
found. Values that could not be read have their code in the real table, so their share counts as distance where rows are
drawn without them.

Intervals
---------
Let x be the true counts of a table of C cells, n = Σx, y = x + z the noisy ones, p the shares in the synthetic rows and
D = x − n·p. The distance is TV = Σ|D_i| / 2n. Known are y, p, the distribution of z, and N = n + z₀ from a count of all
rows. With probability 99 % n lies in [N − w, N + w]. Let S = Σ|y_i − N·p_i|; since Σp = 1, it differs from
Σ|D_i + z_i| by at most w.

*From below*: Σ|D_i + z_i| ≤ Σ|D_i| + Σ|z_i|. With probability 98 % Σ|z_i| is at most its quantile q₁.
*From above*: f(d) = E|d + z| is convex and even, so by Jensen E Σ|D_i + z_i| ≥ C·f(Σ|D_i| / C). It falls below its mean
by no more than q₂, the 98 % quantile of Σz_i: |d + z| moves by no more than z does, so its variance is at most that of
z, and where all D are large it is that very sum. (That the quantile is kept for small D too is a normal approximation,
held by exact sums and by simulation in tests/statistics.) Sums are whole numbers, and their means lie a little above
one, so q₂ is the least that the sum *reaches* with at most 2 %. So Σ|D_i| is at most the t with C·f(t/C) = S + w + q₂.

Together at least 95 % for each interval by itself. Noise hides deviations that are smaller than itself in every cell:
of large tables and small budgets the interval is wide, and says so. No single number is given, for no estimate of a sum
of absolute values under noise is unbiased.

A *share* of rows is linear: the noisy sum of its cells (or of all others, if they are fewer) ± its 98 % quantiles,
divided by any n of its interval.

*Criteria* are met if every upper bound is within the limit: if one table breaks it, this happens with the 2 % and 1 %
of that one table. They are broken if a lower bound is above it; there the 2 % are shared out among all tables and
copies that the criterion is about. Else they are undecided. Several criteria are judged each by itself.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.arrays import Bools, Ints
from understudy.codec.table import TableCodec
from understudy.domain import Clique, Distribution, Domain, HeldBack, Transcript
from understudy.errors import Problem, ReleaseError, SchemaError, UsageError
from understudy.privacy.cost import Cost
from understudy.release.criteria import MOST_CELLS, Criterion, require_criteria
from understudy.release.parquet import batch_rows, open_parquet
from understudy.schema import Schema

MOST_SHARE = 0.5
LARGEST_PAIR = 2**12
"""Cells of a pair that the public list may hold; noise makes larger ones useless, and criteria may name them."""
MOST_ALL_CELLS = 2**22
NAMED_WEIGHT = 4.0
"""Cost of the number of rows, and of a table that a criterion names, beside any other table."""
CONFIDENCE = 0.95
_ROWS_TAIL, _TAIL = 0.005, 0.02
_DIGITS = 10**6


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """What a check asks: its share of the budget, the criteria, tables and the weights that split the cost."""

    share: float
    criteria: tuple[Criterion, ...]
    tables: tuple[Clique, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(
        cls, schema: Schema, domain: Domain, digest: str, share: object, criteria: Sequence[Criterion]
    ) -> "CheckPlan":
        """The check of a table of this schema, by public facts alone.

        Raises:
            UsageError, SchemaError: if the share is outside (0, 0.5], or the criteria ask what cannot be answered.
        """
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not number or not 0 < float(share) <= MOST_SHARE:  # type: ignore[arg-type]
            rule = f"must be a number above 0 and at most {MOST_SHARE}, got {share!r}."
            raise UsageError("check_share", rule, "0.05 is usual: five per cent of the budget pays for the check.")
        require_criteria(criteria, schema, domain)
        named = dict.fromkeys(clique for one in criteria for clique in one.cliques(schema, domain))
        others = [clique for clique in _public_tables(domain, digest) if clique not in named]
        tables = (Clique(), *named, *others)
        if sum(map(domain.cells, tables)) > MOST_ALL_CELLS:
            raise UsageError("criteria", f"ask for more than {MOST_ALL_CELLS:,} cells.", "Name fewer pairs.")
        weights = [NAMED_WEIGHT] * (1 + len(named)) + [1.0] * len(others)
        return cls(float(share), tuple(criteria), tables, tuple(weights))  # type: ignore[arg-type]

    def cost_of(self, granted: Cost) -> Cost:
        """What the check may spend of everything granted: in ρ where the run has any, else in ε."""
        part = granted.share(as_fraction(self.share))
        cost = Cost(rho=part.rho) if granted.rho else Cost(epsilon=part.epsilon)
        if cost == Cost():
            raise UsageError("check_share", "is less than the smallest unit of this budget.", "Raise it.")
        return cost


def as_fraction(share: float) -> Fraction:
    """The decimal number that was written: 0.05 is one twentieth."""
    return Fraction(repr(share))


def _public_tables(domain: Domain, digest: str) -> list[Clique]:
    """Every column, and pairs such that each column is in one: put in an order by a hash of the schema and its name."""
    live = [name for name in domain.columns if 1 < domain.sizes[name] <= MOST_CELLS]
    shuffled = sorted(
        live, key=lambda name: hashlib.sha256(f"{digest} {name}".encode("utf-8", "surrogatepass")).digest()
    )
    last = [(shuffled[-1], shuffled[0])] if len(shuffled) % 2 and len(shuffled) > 2 else []
    pairs = [domain.clique(pair) for pair in [*zip(shuffled[::2], shuffled[1::2], strict=False), *last]]
    ones = [domain.clique((name,)) for name in live]
    places = {name: place for place, name in enumerate(domain.columns)}
    small = (pair for pair in pairs if domain.cells(pair) <= LARGEST_PAIR)
    return [*ones, *sorted(small, key=lambda pair: [places[name] for name in pair])]


@dataclass(frozen=True, slots=True)
class Distance:
    """Bounds of the total variation distance between a copy's rows and the private table, in one table."""

    copy: int
    columns: tuple[str, ...]
    cells: int
    lower: float
    upper: float


Outcome = Literal["pass", "fail", "undecided"]


@dataclass(frozen=True, slots=True)
class Judged:
    """A criterion with what is known: bounds of the largest distance, or of a share's deviation (synthetic less real).

    `decided_by` names the table (and, among several, the copy) that is furthest away.
    """

    criterion: Criterion
    lower: float
    upper: float
    decided_by: str

    @property
    def outcome(self) -> Outcome:
        """Whether the whole interval lies within the limit, beyond it, or on both sides."""
        limit = self.criterion.within
        if -limit <= self.lower and self.upper <= limit:
            return "pass"
        return "fail" if self.lower > limit or self.upper < -limit else "undecided"

    @property
    def text(self) -> str:
        """The criterion, its outcome and the interval in words."""
        where = f" ({self.decided_by})" if self.decided_by else ""
        named = f"{self.criterion.name}: " if self.criterion.name else ""
        return f"{self.outcome}: {named}{self.criterion.in_percent}; {self.found}{where}"

    @property
    def found(self) -> str:
        """The interval in words."""
        if self.criterion.kind == "share_of":
            said = f"synthetic less real is {100 * self.lower:+.2f} to {100 * self.upper:+.2f} points"
            return said.replace("-", "−")
        return f"the distance is {100 * self.lower:.1f} % to {100 * self.upper:.1f} %"


@dataclass(frozen=True, slots=True)
class Check:
    """What a statement says about the check: share of the budget, criteria, distances, verdicts."""

    share: float
    criteria: tuple[Criterion, ...] = ()
    distances: tuple[Distance, ...] = ()
    verdicts: tuple[Judged, ...] = ()


RowCounts = Mapping[Clique, Ints]


def counts_of_rows(tables: Iterable[pa.Table], codec: TableCodec, cliques: Sequence[Clique]) -> RowCounts:
    """Counts of synthetic rows in the codes of a run, for every clique."""
    domain = codec.domain
    counts = {clique: np.zeros(domain.cells(clique), np.int64) for clique in cliques}
    needed = sorted({name for clique in cliques for name in clique})
    for table in tables:
        codes = {name: codec.encode(name, table[codec.origin(name)]) for name in needed}
        # Rows are drawn from codes, so nothing lies past the last one; a stranger's file may hold anything.
        known = {name: np.minimum(codes[name], domain.sizes[name] - 1).astype(np.int64) for name in needed}
        for clique, found in counts.items():
            cells = np.zeros(table.num_rows, np.int64)
            for name in clique:
                cells = cells * domain.sizes[name] + known[name]
            found += np.bincount(cells, minlength=found.size)
    return counts


def stored_tables(path: Path, codec: TableCodec) -> Iterator[pa.Table]:
    """The rows in a file of a release, in bounded pieces, in the types of the schema."""
    with open_parquet(path) as stored:
        for batch in stored.iter_batches(batch_rows(len(codec.arrow_schema))):
            yield pa.Table.from_batches([batch]).cast(codec.arrow_schema)


def held_back_tables(transcript: Transcript, domain: Domain) -> dict[Clique, HeldBack]:
    """The check's answers by their columns.

    Raises:
        ReleaseError: if one of them is no table of these codes.
    """
    tables = {}
    for answer in transcript.of(HeldBack):
        known = set(answer.columns) <= domain.sizes.keys() and answer.shape == domain.shape(answer.columns)
        if not known or answer.values.size != domain.cells(answer.columns):
            rule = "holds a check's answer about other codes."
            problem = Problem("measurements.parquet", rule, "Restore the folder.")
            raise ReleaseError([problem])
        tables[Clique(answer.columns)] = answer
    return tables


def checked(
    check: Check, transcript: Transcript, codec: TableCodec, copies: Iterable[RowCounts], *, number: int = 1
) -> Check:
    """The check of so many copies: distances of every held-back table, and a verdict for every criterion.

    Args:
        check: its share and criteria.
        transcript: the answers of the run that held some back.
        codec: the codes of that run.
        copies: counts of the rows of each copy; those of one copy are held at a time.
        number: how many copies there are.

    Raises:
        SchemaError: if a criterion is about tables that were not held back.
    """
    tables = held_back_tables(transcript, codec.domain)
    total = tables.get(Clique())
    if total is None:
        raise UsageError("check", "has no count of all rows.", "Make a release with check_share=.")
    require_tables(check.criteria, tables, codec)
    rows = _rows_within(total)
    distances: list[Distance] = []
    found: list[list[_Found]] = [[] for _ in check.criteria]
    for copy, counts in enumerate(copies, start=1):
        distances += [
            Distance(copy, tuple(clique), answer.values.size, *_distance(answer, rows, counts[clique]))
            for clique, answer in tables.items()
            if clique
        ]
        for criterion, listed in zip(check.criteria, found, strict=True):
            bounds = _bounds(criterion, tables, rows, codec, counts, copies=number)
            listed += [_Found(*one, " × ".join(clique), copy) for clique, one in bounds.items()]
    verdicts = [_judged(one, listed, number) for one, listed in zip(check.criteria, found, strict=True)]
    return replace(check, distances=tuple(distances), verdicts=tuple(verdicts))


def require_tables(criteria: Sequence[Criterion], tables: Mapping[Clique, HeldBack], codec: TableCodec) -> None:
    """Raises SchemaError where criteria are about unknown columns or values, or tables without held-back answers."""
    require_criteria(criteria, codec.schema, codec.domain)
    problems = []
    for one in criteria:
        lacking = [clique for clique in one.cliques(codec.schema, codec.domain) if clique not in tables]
        if lacking:
            names = ", ".join(" × ".join(clique) for clique in lacking[:3]) + (" …" if len(lacking) > 3 else "")
            rule = f"this release has no check answers for {names}."
            fix = "Give criteria to synthesize, before the run, or choose among the tables on the card."
            problems.append(Problem(f"criterion {one.text!r}", rule, fix))
    if problems:
        raise SchemaError(problems)


@dataclass(frozen=True, slots=True)
class _Found:
    """Bounds of one table of a criterion in one copy."""

    lower: float
    upper: float
    table: str
    copy: int


def _bounds(
    criterion: Criterion,
    tables: Mapping[Clique, HeldBack],
    rows: "_RowsWithin",
    codec: TableCodec,
    counts: RowCounts,
    *,
    copies: int,
) -> dict[Clique, tuple[float, float]]:
    """Bounds for every table that a criterion is about, in one of so many copies."""
    cliques = criterion.cliques(codec.schema, codec.domain)
    if criterion.kind == "share_of":
        (clique,) = cliques
        return {clique: _deviation(tables[clique], rows, counts[clique], criterion.cells(codec), copies)}
    among = len(cliques) * copies
    return {clique: _distance(tables[clique], rows, counts[clique], among) for clique in cliques}


def _judged(criterion: Criterion, found: Sequence[_Found], copies: int) -> Judged:
    """The verdict on everything that was found, and which table and copy are furthest away."""
    lowest = highest = max(found, key=lambda one: max(-one.lower, one.upper))
    if criterion.kind != "share_of":
        lowest = max(found, key=lambda one: one.lower)
    deciding = lowest if lowest.lower > criterion.within else highest
    where = deciding.table if copies == 1 else f"{deciding.table}, copy {deciding.copy}"
    return Judged(criterion, lowest.lower, highest.upper, where)


@dataclass(frozen=True, slots=True)
class _RowsWithin:
    """The noisy number of rows, and by how much it may be off with 99 % confidence."""

    noisy: float
    half_width: float

    @property
    def least(self) -> float:
        return self.noisy - self.half_width

    @property
    def most(self) -> float:
        return self.noisy + self.half_width


def _rows_within(total: HeldBack) -> _RowsWithin:
    return _RowsWithin(float(total.values[0]), sum_quantile(total.distribution, 1, _ROWS_TAIL))


def _distance(answer: HeldBack, rows: _RowsWithin, counts: Ints, shared_among: int = 1) -> tuple[float, float]:
    """Bounds of the total variation distance; the lower one holds for so many tables at once."""
    made, cells = int(counts.sum()), answer.values.size
    if rows.least <= 0 or not made:
        return 0.0, 1.0
    apart = float(np.abs(answer.values - rows.noisy * (counts / made)).sum())
    noise = sum_quantile(answer.distribution, cells, _TAIL / shared_among, absolute=True)
    lower = (apart - rows.half_width - noise) / (2 * rows.most)
    reach = apart + rows.half_width + below_mean(answer.distribution, cells)
    upper = cells * _spread_for(answer.distribution, reach / cells) / (2 * rows.least)
    return _down(min(max(lower, 0.0), 1.0)), _up(min(max(upper, 0.0), 1.0))


def below_mean(distribution: Distribution, cells: int) -> float:
    """q₂: the sum of so many |d + z| reaches its mean less this, or less, with a probability of at most 2 %."""
    noise = _noise(distribution)
    # Coarser grids have that step in their quantile; noise that is always 0 needs none.
    whole = noise.step == 1.0 and float(noise.chances.max()) < 1.0
    return sum_quantile(distribution, cells, _TAIL) + whole


def _deviation(answer: HeldBack, rows: _RowsWithin, counts: Ints, mask: Bools, copies: int) -> tuple[float, float]:
    """Bounds of the synthetic share less the real one, for the cells of the mask."""
    made = int(counts.sum())
    if rows.least <= 0 or not made:
        return -1.0, 1.0
    fewer = mask if 2 * int(mask.sum()) <= mask.size else ~mask
    off = sum_quantile(answer.distribution, int(fewer.sum()), _TAIL / copies)
    noisy, share = float(answer.values[fewer].sum()), float(counts[fewer].sum()) / made
    ends = [(noisy + way * off) / number for way in (-1, 1) for number in (rows.least, rows.most)]
    least, most = (min(max(end, 0.0), 1.0) for end in (min(ends), max(ends)))
    lower, upper = (share - most, share - least) if fewer is mask else (least - share, most - share)
    return _down(lower), _up(upper)


def _down(number: float) -> float:
    return math.floor(number * _DIGITS) / _DIGITS


def _up(number: float) -> float:
    return math.ceil(number * _DIGITS) / _DIGITS


STEPS = 60
"""Steps of the grid on which noise is summed, to its scale; noise of a smaller scale keeps its own grid of ones."""
_REACH = {"gaussian": 10, "laplace": 40}
_LONGEST = 2**19


@dataclass(frozen=True, slots=True, eq=False)
class _Noise:
    """One draw of noise on a grid: its values in rows and their chances."""

    step: float
    values: npt.NDArray[np.floating]
    chances: npt.NDArray[np.floating]


@lru_cache(maxsize=64)
def _noise(distribution: Distribution) -> _Noise:
    """Exactly for small scales of whole numbers; on a grid of a sixtieth of its scale for large ones."""
    scale = distribution.scale
    step = max(1.0, scale / STEPS)
    reach = max(2, math.ceil(_REACH[distribution.kind] * scale / step)) + 1
    places = np.arange(-reach, reach + 1)
    exact = step == 1.0 and distribution.grid == 1
    if distribution.kind == "laplace":
        chances = np.exp(-np.abs(places) * step / scale)  # a geometric sum over each step gives the same shape
    elif exact:
        chances = np.exp(-(places**2) / (2.0 * scale**2))
    else:
        from scipy.special import ndtr  # a third of a second to import, which most commands need not wait for

        chances = ndtr((places + 0.5) * step / scale) - ndtr((places - 0.5) * step / scale)
    return _Noise(step, places * step, chances / chances.sum())


@lru_cache(maxsize=2**16)
def sum_quantile(distribution: Distribution, draws: int, tail: float, *, absolute: bool = False) -> float:
    """What the sum of so many draws (of their absolute values) exceeds with a probability of at most `tail`."""
    noise = _noise(distribution)
    values = np.abs(noise.values) if absolute else noise.values
    mean = float(values @ noise.chances)
    deviations = values - mean
    variance = float(deviations**2 @ noise.chances)
    spread = math.sqrt(draws * variance)
    window = 40.0 * spread + 2.0 * float(values.max() - values.min())
    length = 1 << math.ceil(math.log2(max(window / noise.step, 2.0)))
    if length > _LONGEST:  # then the sum has so many draws that its third moment says all that matters
        skew = float(deviations**3 @ noise.chances) / float(variance**1.5) / math.sqrt(draws)
        normal = -NormalDist().inv_cdf(tail)
        return draws * mean + spread * (normal + (normal**2 - 1.0) * skew / 6.0)
    places = np.rint(values / noise.step).astype(np.int64)
    chances = np.zeros(length)
    np.add.at(chances, places % length, noise.chances)
    summed = np.fft.irfft(np.fft.rfft(chances) ** draws, length)
    start = math.floor(draws * mean / noise.step) - length // 2
    window_chances = summed[np.arange(start, start + length) % length]
    beyond = np.cumsum(window_chances[::-1])[::-1]  # P(sum ≥ place)
    first = int(np.argmax(beyond <= tail)) if (beyond <= tail).any() else length
    # P(sum > q) is at most the tail from the place before on; on a coarser grid that step stays, for its rounding.
    return float(start + first - (noise.step == 1.0)) * noise.step


def _mean_apart(noise: _Noise, apart: float) -> float:
    """f(d) = E|d + z|."""
    return float(np.abs(apart + noise.values) @ noise.chances)


def _spread_for(distribution: Distribution, wanted: float) -> float:
    """The largest d with E|d + z| ≤ wanted; 0 if there is none."""
    noise = _noise(distribution)
    if _mean_apart(noise, 0.0) >= wanted:
        return 0.0
    low, high = 0.0, wanted  # E|d + z| ≥ d
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean_apart(noise, middle) <= wanted else (low, middle)
    return high
