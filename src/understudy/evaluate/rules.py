"""rules: how many synthetic rows hold a combination that the schema calls impossible.

The yardstick is the share among the real rows themselves: rows may break a rule because the schema is stricter than
life, and those are counted too.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from understudy.arrays import Bools
from understudy.counts.kernels import flat_index
from understudy.domain import StructuralZeros
from understudy.evaluate.data import Rows
from understudy.evaluate.metric import (
    Context,
    Detail,
    Metric,
    Result,
    Scale,
    TablePair,
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
            return refused(self, "the schema states no rule")
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
