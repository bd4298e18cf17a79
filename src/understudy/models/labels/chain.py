"""LabelChain: the joint law of all private columns given the public ones, one ensemble per column, in order.

The first column is drawn from its ensemble, the next from its own with the first drawn value in place, and so on. Here
that is one table: a line per record, an entry per combination of private codes (row-major in the order of the chain),
each the product of the ensembles' laws. One draw from a line has the law of the chain.

Rules. Combinations that a rule excludes for a record get 0 and the rest is scaled up. Where the trees gave everything
to excluded combinations, the possible ones share equally. Where none is possible the rules are set aside: only records
from outside can be like that, and they want a label all the same.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.models.labels.ensemble import Ensemble

__all__ = ["MOST_COMBINATIONS", "LabelChain", "pick"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Codes = Mapping[str, npt.NDArray[np.integer]]

MOST_COMBINATIONS = 2**14
"""Most combinations of private codes: a line of the table must stay short."""
_BLOCK_ENTRIES = 2**20


@dataclass(frozen=True, eq=False)
class LabelChain:
    """Ensembles in the order of drawing, and the rules their labels must obey."""

    domain: Domain
    ensembles: tuple[Ensemble, ...]
    forbidden: tuple[Forbidden, ...] = ()

    @property
    def private(self) -> tuple[str, ...]:
        """Private columns in the order of drawing."""
        return tuple(ensemble.label for ensemble in self.ensembles)

    @cached_property
    def public(self) -> Clique:
        """All other columns, in schema order."""
        return self.domain.clique(set(self.domain.columns) - set(self.private))

    @property
    def combinations(self) -> int:
        """Combinations of private codes."""
        return self.domain.cells(self.private)

    @cached_property
    def drawn(self) -> dict[str, Ints]:
        """The code of each private column in every combination."""
        places = np.unravel_index(np.arange(self.combinations), self.domain.shape(self.private) or (1,))
        return {name: place.astype(np.int64) for name, place in zip(self.private, places, strict=False)}

    def law(self, codes: Codes, rows: int) -> Floats:
        """Probabilities of every combination for each record, given the codes of its public columns."""
        free = self._free(codes, rows)
        possible = self.possible(codes, rows)
        if possible is None:
            return free
        law = np.where(possible, free, 0.0)
        left_out = law.sum(axis=1) <= 0.0
        some = possible.any(axis=1)
        law[left_out & some] = possible[left_out & some]
        law[left_out & ~some] = free[left_out & ~some]
        return np.asarray(law / law.sum(axis=1, keepdims=True))

    def blocks(self, codes: Codes, rows: int) -> Iterator[tuple[slice, Floats]]:
        """`law` for a few records at a time, so that the table never grows large."""
        step = max(1, _BLOCK_ENTRIES // self.combinations)
        for low in range(0, rows, step):
            part = slice(low, min(low + step, rows))
            yield part, self.law({name: codes[name][part] for name in self.public}, part.stop - part.start)

    def possible(self, codes: Codes, rows: int) -> Bools | None:
        """Which combinations the rules allow each record; None if no rule is about private columns."""
        rules = [rule for rule in self.forbidden if set(rule.clique) & set(self.private)]
        if not rules:
            return None
        allowed = np.ones((rows, self.combinations), dtype=bool)
        for rule in rules:
            cells = np.zeros((1, 1), dtype=np.int64)
            for name in rule.clique:
                place = self.drawn[name][None, :] if name in self.drawn else np.asarray(codes[name])[:, None]
                cells = cells * self.domain.sizes[name] + place
            allowed &= ~rule.mask[cells]
        return allowed

    def _free(self, codes: Codes, rows: int) -> Floats:
        """The law by the ensembles alone."""
        joint = np.ones((rows, 1))
        for place, ensemble in enumerate(self.ensembles):
            earlier = [name for name in self.private[:place] if name in ensemble.used]
            prior = joint.shape[1]
            if earlier:
                before = np.unravel_index(np.arange(prior), self.domain.shape(self.private[:place]))
                public = [name for name in ensemble.used if name in codes and name not in earlier]
                known = {name: np.repeat(np.asarray(codes[name]), prior) for name in public}
                known |= {name: np.tile(part, rows) for name, part in zip(self.private[:place], before, strict=True)}
                part = ensemble.law(known, rows * prior).reshape(rows, prior, -1)
            else:
                part = ensemble.law(codes, rows)[:, None, :]
            joint = (joint[:, :, None] * part).reshape(rows, -1)
        return joint

    def faults(self) -> list[str]:
        """What is wrong with it, in words; empty if nothing is."""
        if not self.ensembles or len(set(self.private)) != len(self.private):
            return ["a chain needs at least one ensemble, and one per private column."]
        found = list(itertools.chain.from_iterable(one.faults(self.domain.sizes) for one in self.ensembles))
        for place, ensemble in enumerate(self.ensembles):
            if not set(ensemble.attributes.names) <= {*self.public, *self.private[:place]}:
                found.append("a tree may split on public columns and on private columns drawn before its own.")
        if self.combinations > MOST_COMBINATIONS:
            found.append(f"private columns may have at most {MOST_COMBINATIONS:,} combinations of codes.")
        return found


def pick(law: Floats, uniform: Floats) -> Ints:
    """One entry of each line, found by a uniform number in [0, 1); an entry of probability 0 is never picked."""
    steps = np.cumsum(law, axis=1)
    steps /= steps[:, -1:]
    return np.asarray((steps[:, :-1] <= uniform[:, None]).sum(axis=1), dtype=np.int64)
