"""disclosure: what protects people here, and how often a synthetic row equals a real one.

Differential privacy is the protection; it holds for every real row, unique or not, and does not show in counts of
matches. Such counts are asked for all the same, so they are given, beside what two halves of the real table (two
groups of different people) have in common. They are confidential and no measure of privacy: a tiny domain gives
many matches without any leak, and a leak need not give any.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from understudy.evaluate.data import Rows
from understudy.evaluate.marginals import joint_counts
from understudy.evaluate.metric import (
    Context,
    Detail,
    Metric,
    Outcome,
    Result,
    Scale,
    TablePair,
    Unavailable,
    mean_outcome,
    table_of,
)

NO_PROMISE = "No statement came with the synthetic table, so nothing is known here about a privacy guarantee."
MEANING = (
    "Differential privacy bounds what anybody can learn about one unit because it is in the table, whatever else "
    "they know. Matches are not evidence against it: common combinations match by chance."
)


@dataclass(frozen=True, slots=True)
class Disclosure(Metric):
    """Unique real rows that also occur among the synthetic ones."""

    name: ClassVar[str] = "disclosure"
    question: ClassVar[str] = "What protects people here, and how often does a synthetic row equal a real one?"
    scales: ClassVar[tuple[Scale, ...]] = (
        Scale("unique_matches", "share of real rows without a twin that are also synthetic rows", "none", best=None),
        Scale("equal_rows", "share of synthetic rows that equal some real row", "none", best=None),
    )

    def compare(self, pair: TablePair, context: Context) -> Result:
        """Shares of matches, and the promise of the release."""
        found = [_matches(pair.real, copy) for copy in pair.copies]
        values = [mean_outcome([one.unique for one in found]), mean_outcome([one.equal for one in found])]
        lines = pair.between_halves(lambda one, other: _matches(one, other).outcomes, len(self.scales))
        scores = tuple(scale.score(value, line) for scale, value, line in zip(self.scales, values, lines, strict=True))
        notes = (pair.promise or NO_PROMISE, MEANING)
        rows = [[place + 1, *one.counts] for place, one in enumerate(found)]
        kinds = {
            "copy": pa.int64(), "real_unique_rows": pa.int64(), "of_those_in_synthetic": pa.int64(),
            "synthetic_rows_equal_to_real": pa.int64(),
        }  # fmt: skip
        columns = {name: [row[place] for row in rows] for place, name in enumerate(kinds)}
        caption = "Counts of matches over all columns, as codes. CONFIDENTIAL."
        return Result(self.name, self.question, scores, (Detail("matches", caption, table_of(columns, kinds)),), notes)


@dataclass(frozen=True, slots=True)
class _Matches:
    unique: Outcome
    equal: Outcome
    counts: tuple[int, int, int]

    @property
    def outcomes(self) -> tuple[Outcome, Outcome]:
        """In the order of the scales."""
        return self.unique, self.equal


def _matches(real: Rows, synthetic: Rows) -> _Matches:
    ours, theirs = joint_counts(real, synthetic)
    unique = int((ours == 1).sum())
    matched = int(((ours == 1) & (theirs > 0)).sum())
    equal = int(np.where(ours > 0, theirs, 0).sum())
    share: Outcome = matched / unique if unique else Unavailable("no real row is without a twin")
    return _Matches(share, equal / synthetic.count, (unique, matched, equal))
