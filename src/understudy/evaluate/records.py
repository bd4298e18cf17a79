"""rules and disclosure: synthetic rows one by one, those that are impossible and those that equal a real one.

`rules` counts rows that hold a combination that the schema calls impossible. The yardstick is the share among the real
rows themselves: rows may break a rule because the schema is stricter than life, and those are counted too.

`disclosure` says what protects people, and how often a synthetic row equals a real one. Differential privacy is the
protection; it holds for every real row, unique or not, and does not show in counts of matches. Such counts are asked
for all the same, so they are given, beside what two halves of the real table (two groups of different people) have in
common. They are confidential and no measure of privacy: a tiny domain gives many matches without any leak, and a leak
need not give any.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from understudy.arrays import Bools
from understudy.counts.kernels import flat_index
from understudy.domain import StructuralZeros
from understudy.evaluate.metric import (
    NO_RULES,
    Context,
    Detail,
    Metric,
    Outcome,
    Result,
    Rows,
    Scale,
    TablePair,
    Unavailable,
    joint_counts,
    mean_outcome,
    refused,
    table_of,
)
from understudy.schema import Impossible, Range


@dataclass(frozen=True, slots=True)
class RulesBroken(Metric):
    """Shares of rows that break a rule of the schema."""

    name: ClassVar[str] = "rules"
    question: ClassVar[str] = "Do synthetic rows obey the rules of the schema?"
    scales: ClassVar[tuple[Scale, ...]] = (Scale("broken", "share of rows that break at least one rule"),)

    def compare(self, pair: TablePair, context: Context) -> Result:
        """The share of rows that break a rule, and which rule."""
        rules = pair.codec.structural_zeros
        if not rules:
            return refused(self, NO_RULES)
        names = [_spelled(rule) for rule in pair.schema.rules]
        names += [f"{' goes with '.join(structural_zeros.clique)}" for structural_zeros in rules[len(names) :]]
        real = [_breaks(pair.real, structural_zeros) for structural_zeros in rules]
        copies = [[_breaks(copy, structural_zeros) for structural_zeros in rules] for copy in pair.copies]
        value = mean_outcome([float(np.logical_or.reduce(broken).mean()) for broken in copies])
        score = self.scales[0].score(value, float(np.logical_or.reduce(real).mean()))
        rows = [
            (name, float(ours.mean()), sum(float(one[place].mean()) for one in copies) / len(copies))
            for place, (name, ours) in enumerate(zip(names, real, strict=True))
        ]
        rows.sort(key=lambda row: -row[2])
        kinds = {"rule": pa.string(), "real_share": pa.float64(), "synthetic_share": pa.float64()}
        columns = {name: [row[place] for row in rows] for place, name in enumerate(kinds)}
        detail = Detail(
            "rules", "Share of rows that break each rule, most often broken first.", table_of(columns, kinds)
        )
        return Result(self.name, self.question, (score,), (detail,))


def _breaks(rows: Rows, structural_zeros: StructuralZeros) -> Bools:
    index = flat_index(
        [rows.codes[name] for name in structural_zeros.clique], rows.domain.shape(structural_zeros.clique)
    )
    return np.asarray(structural_zeros.mask, np.bool_)[index]


def _spelled(rule: Impossible) -> str:
    parts = []
    for name, said in rule.when.items():
        if isinstance(said, Range):
            low = "" if said.lower is None else str(said.lower)
            high = "" if said.upper is None else str(said.upper)
            parts.append(f"{name}={low}..{high}")
        else:
            parts.append(f"{name}={'|'.join('missing' if text is None else text for text in said)}")
    return f"never {' and '.join(parts)}" + (f" ({rule.note})" if rule.note else "")


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
        Scale(
            "unique_matches", "share of unique real rows that also occur among the synthetic rows", "none", best=None
        ),
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
    share: Outcome = matched / unique if unique else Unavailable("every real row occurs more than once")
    return _Matches(share, equal / synthetic.count, (unique, matched, equal))
