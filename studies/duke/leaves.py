"""Trees of the base setting by themselves: what they ask of private records, and how many records a leaf holds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from studies.duke.benches import Bench
from studies.duke.panels import BASE, SETTINGS, Setting
from studies.writing import StudyPage
from understudy import synthesize
from understudy.domain import Measurement
from understudy.models.label_trees import LabelModel

__all__ = ["Grown", "grown", "leaf_rows"]

Ints = npt.NDArray[np.int64]
AMPLE = 10_000.0
"""An ε at which leaf tables are exact but for a record; nothing of these trees is published."""


@dataclass(frozen=True, eq=False)
class Grown:
    """Trees of the first private column: their splits, and the records in every leaf that holds any.

    And how many questions about private records were no leaf tables.
    """

    splits: Sequence[Ints]
    records: Ints
    others: int

    def same_trees(self, other: "Grown") -> bool:
        pairs = zip(self.splits, other.splits, strict=True)
        return all(np.array_equal(one, two) for one, two in pairs)


def grown(bench: Bench, setting: Setting, private: pa.Table) -> Grown:
    """Trees of a collapsed setting, grown for this private table."""
    options = {
        "private": f"{bench.outcome},{bench.second}",
        "weights": f"{bench.agency}:{setting.agency},{bench.occupation}:{setting.occupation}",
        "leaf_size": str(setting.leaf_size),
        "trees": str(setting.trees),
        "structure_seed": "0",
        "total_share": "0",
        "collapse": bench.collapse,
    }
    release = synthesize(
        private, bench.coarse, method="rdt", options=options, epsilon=AMPLE, public=bench.public, rows=1, seed=0
    )
    assert isinstance(release.model, LabelModel)
    trees = release.model.chain.ensembles[0].trees
    answers = [one for one in release.transcript.of(Measurement) if one.name.endswith(f" for {bench.outcome}")]
    sizes = [one.values.reshape(tree.leaves, -1).sum(axis=1) for tree, one in zip(trees, answers, strict=True)]
    records = np.concatenate(sizes)
    others = sum("leaves of tree" not in answer.name for answer in release.transcript)
    return Grown([tree.splits for tree in trees], records[records > 0], others)


def leaf_rows(page: StudyPage, bench: Bench) -> None:
    """Rows on growth without queries and on small leaves."""
    setting = SETTINGS[BASE]
    real = grown(bench, setting, bench.private)
    same = real.same_trees(grown(bench, setting, bench.private.slice(0, 0)))
    page.find(
        "§3: growth limited by counts of the other table needs no query of the authentic one, which saves ε",
        f"five trees for {bench.outcome}, grown once beside all private records and once beside none, are "
        f"{'the same' if same else 'not the same'}; questions that are no leaf tables: {real.others}",
        "confirmed" if same and not real.others else "refuted",
    )
    small = float(np.mean(real.records < setting.leaf_size))
    ordered = np.sort(real.records)
    middle = int(ordered[np.searchsorted(np.cumsum(ordered), ordered.sum() / 2)])
    page.find(
        "§5: a leaf may hold fewer than n_B observations",
        f"of {real.records.size:,} leaves that hold any, {small:.1%} hold fewer than {setting.leaf_size:,} (n_B); half "
        f"of the records lie in leaves of at most {middle:,}",
        "confirmed" if small > 0 else "refuted",
    )
