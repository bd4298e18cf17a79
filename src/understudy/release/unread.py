"""How much of each column could not be read, told from noisy answers, and what that means for the rows drawn.

Everything here is computed from the transcript, the fitted model and the codes. All three are released, so nothing
more is learned about any unit and nothing is paid: this is post-processing, and a loaded folder gives the same answers.

A code that no record has still gets a little noise. Its count is estimated from every measured table that holds its
column: the noisy cells of the code's slice are added up, and the sums are combined with weights inverse to their
variances (cells of the slice × variance of the noise). A count is clear when it lies 4 standard errors above 0, for
Laplace noise 4 standard errors and 4 times the weighted scale: with either law a code that no record has is taken for
clear with a probability of about 3·10⁻⁵. The first look of a training holds a table of every column, with one scale for
all counts. Where only cells of other partitions were counted (the leaves of trees), the model's own share must exceed
5 % and what noise can put into the code: an even part of the cells, each with the mean of the positive half of its
noise, and 4 standard errors on top. The same holds for tables of which only large cells were kept, for four such cells.
A column that nothing was asked about has no clear code.

Rows are drawn given that every column can be read whose unreadable count is not clear; elsewhere the code is drawn and
becomes an empty value.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.codec.table_codec import TableCodec
from understudy.errors import ResourceError, UsageError
from understudy.marginals.answer import Measurement, SparseMeasurement, Trained
from understudy.marginals.domain import Domain
from understudy.marginals.transcript import Transcript
from understudy.models.model import Codes, Model
from understudy.models.streaming import Draws
from understudy.release.wording import odd_text
from understudy.schema import Boolean, Category, OpenCategory, code_names

__all__ = ["Odd", "given_readable", "never_unreadable", "odd_values", "readable_codes"]

Conditions = Mapping[str, npt.NDArray[np.integer]]

CLEAR = 4.0
CLEAR_SHARE = 0.05
LEAST_UNREADABLE = 0.01
LEAST_ODD = 0.5
MOST_REDRAWS = 20
_POSITIVE_HALF = 1.0 / math.sqrt(2.0 * math.pi)
"""Mean of the positive half of noise of standard deviation 1, for Gaussian noise; less for Laplace noise."""


@dataclass(frozen=True, slots=True)
class Odd:
    """A column of which strikingly much is unreadable, missing or outside the list, with the estimated share."""

    column: str
    meaning: str
    """"unreadable", "missing" or "other"."""
    share: float
    labelled: bool
    """Whether values are read by comparing them with labels."""

    @property
    def text(self) -> str:
        """The finding as a sentence."""
        return odd_text(self.column, self.meaning, self.share, labelled=self.labelled)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """The estimated share of a code, and the share above which noise does not explain it."""

    share: float
    clear: float

    @property
    def is_clear(self) -> bool:
        return self.share > self.clear


def odd_values(codec: TableCodec, transcript: Transcript, model: Model) -> tuple[Odd, ...]:
    """Columns of which clearly more than 1 % could not be read, or half and more is missing or outside the list."""
    found = []
    for column in codec.schema.modelled:
        name = code_names(column)[0]
        labelled = isinstance(column, Category | OpenCategory | Boolean)
        codes = {"unreadable": codec.unreadable_code(name), "missing": codec.missing_code(name)}
        if not isinstance(column, OpenCategory):  # where every label is rare, nearly all values may be other
            codes["other"] = codec.other_code(name)
        for meaning, code in codes.items():
            if code is None:
                continue
            estimate = _estimate(codec, transcript, model, name, code)
            if estimate.is_clear and estimate.share >= (LEAST_UNREADABLE if meaning == "unreadable" else LEAST_ODD):
                found.append(Odd(column.name, meaning, round(min(estimate.share, 1.0), 3), labelled))
    return tuple(found)


def readable_codes(codec: TableCodec, transcript: Transcript, model: Model) -> dict[str, npt.NDArray[np.integer]]:
    """The readable codes of every column whose count of unreadable values is not clear."""
    found: dict[str, npt.NDArray[np.integer]] = {}
    for column in codec.schema.modelled:
        name = code_names(column)[0]
        code = codec.unreadable_code(name)
        if code is not None and not _estimate(codec, transcript, model, name, code).is_clear:
            found[name] = np.delete(np.arange(codec.domain.sizes[name]), code)
    return found


def never_unreadable(codec: TableCodec, transcript: Transcript, model: Model) -> frozenset[str]:
    """The columns of codes whose unreadable values are surely not drawn."""
    readable = readable_codes(codec, transcript, model)
    try:
        _ = model.condition(readable) if readable else None
    except (UsageError, ResourceError):
        return frozenset()
    return frozenset(readable)


def _estimate(codec: TableCodec, transcript: Transcript, model: Model, name: str, code: int) -> _Estimate:
    measured = _measured(codec, transcript, name, code)
    if measured is not None:
        total = max(model.total, 1.0)
        return _Estimate(measured[0] / total, measured[1] / total)
    looked = _looked(codec.domain, transcript, name, code)
    if looked is not None:
        return looked
    try:
        share = float(model.marginal(codec.domain.clique([name]))[code])
    except ResourceError:  # a network too tangled for exact sums; its tables are measured, so this is no loss
        share = 0.0
    explained = _explained(transcript, name, codec.domain.sizes[name]) / max(model.total, 1.0)
    return _Estimate(share, max(CLEAR_SHARE, explained))


def _looked(domain: Domain, transcript: Transcript, name: str, code: int) -> _Estimate | None:
    """By the first look of a training, which counts every code of every column on one scale."""
    start = sum(domain.sizes[other] for other in domain.columns[: domain.columns.index(name)])
    for answer in transcript.of(Trained):
        if answer.first_law is not None and answer.values.size == sum(domain.sizes.values()):
            counts = answer.values[start : start + domain.sizes[name]].astype(np.float64)
            total = max(float(counts.sum()), 1.0)
            return _Estimate(float(counts[code]) / total, CLEAR * math.sqrt(answer.first_law.variance) / total)
    return None


def _explained(transcript: Transcript, name: str, size: int) -> float:
    """Rows that noise may put into one of the codes of a column, by the finest partition that looks at it."""
    sparse = [CLEAR * answer.threshold for answer in transcript.of(SparseMeasurement) if name in answer.columns]
    dense = [answer for answer in transcript.of(Measurement) if name in answer.columns]
    if not dense:
        return max(sparse, default=math.inf)
    finest = max(dense, key=lambda answer: answer.values.size)
    cells = max(1.0, finest.values.size / size)
    return math.sqrt(finest.law.variance) * (_POSITIVE_HALF * cells + CLEAR * math.sqrt(cells))


def _measured(codec: TableCodec, transcript: Transcript, name: str, code: int) -> tuple[float, float] | None:
    """The estimated count of a code and what it must exceed to be clear; None if no measured table holds it."""
    domain = codec.domain
    rows, weights, spikes = 0.0, 0.0, [0.0]
    for answer in transcript.of(Measurement):
        if name not in answer.columns or not _is_table(answer, domain):
            continue
        part = answer.table.take(code, axis=answer.columns.index(name))
        weight = 1.0 / max(part.size * answer.law.variance, 1e-200)
        rows += weight * float(part.sum())
        weights += weight
        spikes += [weight * answer.law.scale] if answer.law.kind == "laplace" else []
    if not weights:
        return None
    return rows / weights, CLEAR * (math.sqrt(1.0 / weights) + max(spikes) / weights)


def _is_table(answer: Measurement, domain: Domain) -> bool:
    """Whether the answer is a table of these columns with the codes of this domain, and no other partition."""
    named = answer.name == " × ".join(answer.columns) and set(answer.columns) <= domain.sizes.keys()
    return named and answer.shape == domain.shape(answer.columns)


def given_readable(model: Model, readable: Conditions, where: Conditions) -> Draws:
    """The model given the conditions and, for columns they do not name, that the values can be read.

    Where a model cannot be conditioned exactly, rows with unreadable values are drawn again. If it holds nothing that
    could be read, rows are drawn as they are.

    Raises:
        UsageError, ResourceError: if the conditions of `where` themselves cannot be met.
    """
    given = model.condition(where) if where else model
    rest = {name: codes for name, codes in readable.items() if name not in where}
    if not rest:
        return given
    try:
        return model.condition({**where, **rest})
    except UsageError:
        return given
    except ResourceError:
        return _Redrawn(given, rest)


@dataclass(frozen=True, slots=True)
class _Redrawn:
    """A model whose rows are drawn again while they hold codes that are not wanted, a bounded number of times."""

    model: Model
    wanted: Conditions

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """Rows, nearly all of which hold wanted codes only."""
        codes = {name: np.array(column) for name, column in self.model.draw(rows, rng).items()}
        for _ in range(MOST_REDRAWS):
            unwanted = [~np.isin(codes[name], wanted) for name, wanted in self.wanted.items()]
            again = np.flatnonzero(np.logical_or.reduce(unwanted))
            if not again.size:
                break
            for name, column in self.model.draw(again.size, rng).items():
                codes[name][again] = column
        return codes
