"""rules: how many synthetic rows hold a combination that the schema calls impossible.

The yardstick is the share among the real rows themselves: rows may break a rule because the schema is stricter than
life, and those are counted too.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from understudy.counts.kernels import flat_index
from understudy.evaluate.data.pair import Context, Pair
from understudy.evaluate.data.rows import Rows
from understudy.evaluate.metric import refused
from understudy.evaluate.score import Detail, Result, Scale, mean_outcome, table_of
from understudy.marginals.forbidden import Forbidden
from understudy.schema import Impossible, Range

__all__ = ["RulesBroken"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RulesBroken:
    """Shares of rows that break a rule of the schema."""

    name: ClassVar[str] = "rules"
    question: ClassVar[str] = "Do synthetic rows obey the rules of the schema?"
    scales: ClassVar[tuple[Scale, ...]] = (Scale("broken", "share of rows that break at least one rule"),)

    def compare(self, pair: Pair, context: Context) -> Result:
        """The share of rows that break a rule, and which rule."""
        rules = pair.codec.forbidden
        if not rules:
            return refused(self, "the schema states no rule")
        names = [_spelled(rule) for rule in pair.schema.rules]
        names += [f"{' goes with '.join(forbidden.clique)}" for forbidden in rules[len(names) :]]
        real = [_breaks(pair.real, forbidden) for forbidden in rules]
        copies = [[_breaks(copy, forbidden) for forbidden in rules] for copy in pair.copies]
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


def _breaks(rows: Rows, forbidden: Forbidden) -> Bools:
    index = flat_index([rows.codes[name] for name in forbidden.clique], rows.domain.shape(forbidden.clique))
    return np.asarray(forbidden.mask, np.bool_)[index]


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
