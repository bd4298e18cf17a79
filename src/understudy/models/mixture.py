"""MixtureModel: a weighted list of components, columns independent within each. What a trained generator becomes.

A generator gives one distribution per column for every value of its random input. Held at a fixed list of inputs it is
a finite mixture of products, and everything a model is asked has an exact answer: a marginal is a weighted sum of outer
products, a condition keeps the allowed codes of each component and weighs components by what is left of them.

Rules. The distribution is that of the mixture given that no rule is broken. Columns that rules tie together are held
jointly, one component at a time, whenever they are asked for or drawn; so impossible records have probability 0 and
are never drawn, without rejecting anything.
"""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from understudy.arrays import Bools, Floats, Integers, Ints
from understudy.compiled import compiled
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import UsageError
from understudy.models.model import (
    Codes,
    Contents,
    ModelFiles,
    StoredModel,
    query_clique,
    query_codes,
    size_list,
    total_faults,
)
from understudy.models.tables import allowed, code_dtype, linked

_WORKING_CELLS = 2**22
_MOST_COMPONENTS = 2**20


@dataclass(frozen=True, eq=False)
class MixtureModel(StoredModel):
    """Components over `domain`: their weights, and for each column one line of probabilities per component."""

    kind: ClassVar[str] = "mixture"
    stored: ClassVar[Mapping[str, str]] = {"weights": "<f8", "chances": "<f8", "rules": "u1"}

    domain: Domain
    weights: Floats
    probabilities: Mapping[str, Floats]
    structural_zeros: tuple[StructuralZeros, ...]
    total: float

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise UsageError("mixture", fault)

    @functools.cached_property
    def _ties(self) -> tuple[tuple[Clique, Bools], ...]:
        """Columns that rules tie together, with the cells that are possible."""
        single = [self.domain.clique([name]) for name in self.domain.columns]
        found = []
        for group in linked(self.domain, single, self.structural_zeros):
            clique = self.domain.clique(name for part in group for name in part)
            if any(set(rule.clique) <= set(clique) for rule in self.structural_zeros):
                cells = np.arange(self.domain.cells(clique), dtype=np.int64)
                found.append((clique, allowed(self.domain, clique, cells, self.structural_zeros)))
        return tuple(found)

    @functools.cached_property
    def _possible(self) -> Floats:
        """For every tie and component, how likely the component obeys the rules."""
        parts = [np.concatenate([table.sum(axis=1) for _, table in self._joint(*tie)]) for tie in self._ties]
        return np.array(parts).reshape(len(parts), self.weights.size)

    @functools.cached_property
    def _effective(self) -> Floats:
        """Weights of the components given that no rule is broken."""
        weights = self.weights * np.prod(self._possible, axis=0)
        mass = float(weights.sum())
        if not mass > 0.0:
            raise UsageError("mixture", "the rules leave nothing possible.")
        return np.asarray(weights / mass)

    def marginal(self, clique: Clique) -> Floats:
        """Probabilities of the clique's cells, flat row-major, exact.

        Raises:
            ResourceError: if the table would be too large to hold.
        """
        wanted = query_clique(self.domain, clique)
        factors = self._factors(wanted)
        cells = self.domain.cells(wanted)
        total = np.zeros(cells)
        widest = max([1, *(part.shape[1] for _, part in factors)])
        step = max(1, _WORKING_CELLS // max(widest, math.isqrt(cells)))
        for low in range(0, self.weights.size, step):
            part = slice(low, low + step)
            total += _outer(self._effective[part], [(names, table[part]) for names, table in factors])
        order = [name for names, _ in factors for name in names]
        shaped = total.reshape(self.domain.shape(order))
        return np.ascontiguousarray(shaped.transpose([order.index(name) for name in wanted])).reshape(-1)

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` independent records; records that break a rule are never among them."""
        if rows < 0:
            raise UsageError("rows", f"must be 0 or more, got {rows}.")
        steps = np.cumsum(self._effective)
        component = np.searchsorted(steps / steps[-1], rng.random(rows), side="right").astype(np.int64)
        codes: dict[str, Integers] = {}
        tied = {name for clique, _ in self._ties for name in clique}
        for name in self.domain.columns:
            if name not in tied:
                found = np.empty(rows, dtype=code_dtype(self.domain.sizes[name]))
                _pick(np.cumsum(self.probabilities[name], axis=1), component, rng.random(rows), found)
                codes[name] = found
        for clique, possible in self._ties:
            codes |= self._draw_tied(clique, possible, component, rng.random(rows))
        return {name: codes[name] for name in self.domain.columns}

    def condition(self, where: Mapping[str, Integers]) -> Self:
        """The distribution given that each named column holds one of the codes; `total` shrinks with its share.

        Raises:
            UsageError: if a code is outside its column or the condition cannot happen.
        """
        weights, probabilities = self.weights.copy(), dict(self.probabilities)
        for name, wanted in where.items():
            kept = probabilities[name] * query_codes(self.domain, name, wanted)
            mass = kept.sum(axis=1)
            weights *= mass
            probabilities[name] = kept / np.where(mass > 0, mass, 1.0)[:, np.newaxis]
        alive = weights > 0
        before = float((self.weights * np.prod(self._possible, axis=0)).sum())
        if alive.any():
            kept_probabilities = {name: np.ascontiguousarray(part[alive]) for name, part in probabilities.items()}
            left = type(self)(self.domain, weights[alive], kept_probabilities, self.structural_zeros, 0.0)
            after = float((left.weights * np.prod(left._possible, axis=0)).sum())
            if after > 0.0:
                return type(self)(
                    self.domain,
                    left.weights / after,
                    kept_probabilities,
                    self.structural_zeros,
                    self.total * min(1.0, after / before),
                )
        raise UsageError(f"where {', '.join(where)}", "cannot happen under this model.", "Allow more values.")

    def contents(self) -> Contents:
        """Document and arrays of its file form."""
        document = {
            "total": self.total,
            "components": int(self.weights.size),
            "domain": size_list(self.domain),
            "rules": [list(rule.clique) for rule in self.structural_zeros],
        }
        return document, {
            "weights": [self.weights],
            "chances": [self.probabilities[name] for name in self.domain.columns],
            "rules": [rule.mask for rule in self.structural_zeros],
        }

    @classmethod
    def of_contents(cls, files: ModelFiles) -> Self:
        """The model of its file form."""
        domain, components = files.domain(), files.value("components", int)
        if not 0 < components <= _MOST_COMPONENTS:
            raise UsageError("mixture", "there are too few or too many components.")
        (weights,) = files.pieces("weights", [components])
        tables = files.pieces("chances", [components * size for size in domain.sizes.values()])
        probabilities = {
            name: table.reshape(components, -1) for name, table in zip(domain.columns, tables, strict=True)
        }
        cliques = [domain.clique(names) for names in files.value("rules", tuple[tuple[str, ...], ...])]
        masks = files.pieces("rules", map(domain.cells, cliques))
        if not all(cliques) or any(mask.max() > 1 for mask in masks):
            raise UsageError("mixture", "a rule must name columns and have a mask of zeros and ones.")
        rules = tuple(StructuralZeros(one, mask.astype(bool)) for one, mask in zip(cliques, masks, strict=True))
        model = cls(domain, weights, probabilities, rules, files.number("total"))
        assert model._effective.size  # refuses rules that leave nothing
        return model

    def _joint(self, clique: Clique, possible: Bools) -> Iterator[tuple[slice, Floats]]:
        """Joint tables of tied columns, several components at a time, 0 where a rule is broken."""
        step = max(1, _WORKING_CELLS // possible.size)
        for low in range(0, self.weights.size, step):
            part = slice(low, low + step)
            yield part, _product([self.probabilities[name][part] for name in clique]) * possible

    def _factors(self, wanted: Clique) -> list[tuple[tuple[str, ...], Floats]]:
        """Per component: a table for each wanted column, or for the wanted ones of a tie; each adds up to 1."""
        factors: list[tuple[tuple[str, ...], Floats]] = []
        tied = {name for clique, _ in self._ties for name in clique}
        factors += [((name,), self.probabilities[name]) for name in wanted if name not in tied]
        for place, (clique, possible) in enumerate(self._ties):
            here = tuple(name for name in clique if name in wanted)
            if not here:
                continue
            axes = tuple(1 + at for at, name in enumerate(clique) if name not in here)
            tables = [
                table.reshape(-1, *self.domain.shape(clique)).sum(axis=axes).reshape(len(table), -1)
                for _, table in self._joint(clique, possible)
            ]
            mass = self._possible[place][:, np.newaxis]
            factors.append((here, np.concatenate(tables) / np.where(mass > 0, mass, 1.0)))
        return factors

    def _draw_tied(self, clique: Clique, possible: Bools, component: Ints, uniform: Floats) -> dict[str, Integers]:
        cells = np.zeros(component.size, dtype=np.int64)
        order = np.argsort(component, kind="stable")
        counts = np.bincount(component, minlength=self.weights.size)
        ends = np.cumsum(counts)
        for part, tables in self._joint(clique, possible):
            for place, table in enumerate(tables, start=part.start):
                rows = order[ends[place] - counts[place] : ends[place]]
                if rows.size:
                    steps = np.cumsum(table)
                    cells[rows] = np.searchsorted(steps / steps[-1], uniform[rows], side="right")
        found = np.unravel_index(cells, self.domain.shape(clique))
        return {
            name: codes.astype(code_dtype(self.domain.sizes[name])) for name, codes in zip(clique, found, strict=True)
        }

    def _faults(self) -> list[str]:
        if self.weights.ndim != 1 or not self.weights.size or set(self.probabilities) != set(self.domain.columns):
            return ["there must be at least one component, and probabilities for every column."]
        if not np.isfinite(self.weights).all() or self.weights.min() < 0 or not self.weights.sum() > 0:
            return ["weights must be finite numbers of 0 or more, not all 0."]
        if total_faults(self.total):
            return total_faults(self.total)
        for name, size in self.domain.sizes.items():
            part = self.probabilities[name]
            if part.shape != (self.weights.size, size) or not np.isfinite(part).all() or part.min() < 0:
                return [f"column {name}: every component needs one probability per code."]
            if np.abs(part.sum(axis=1) - 1.0)[self.weights > 0].max() > 1e-6:
                return [f"column {name}: the probabilities of a component must add up to 1."]
        return []


def _product(tables: Sequence[Floats]) -> Floats:
    """Outer products line by line, flat row-major."""
    joint = np.ones((len(tables[0]), 1))
    for table in tables:
        joint = (joint[:, :, np.newaxis] * table[:, np.newaxis, :]).reshape(len(joint), -1)
    return joint


def _outer(weights: Floats, factors: Sequence[tuple[tuple[str, ...], Floats]]) -> Floats:
    """The weighted sum of outer products, flat in the order of the factors: two halves, then one matrix product."""
    left, right = [weights[:, np.newaxis]], [np.ones((weights.size, 1))]
    cells = math.prod(table.shape[1] for _, table in factors)
    reached = 1
    for _, table in factors:
        first = reached * table.shape[1] <= max(math.isqrt(cells), 1) and len(right) == 1
        (left if first else right).append(table)
        reached *= table.shape[1]
    return np.asarray(_product(left).T @ _product(right)).reshape(-1)


@compiled()  # pragma: no cover
def _pick(steps, component, uniform, out):  # type: ignore[no-untyped-def]
    """The code at which a component's running sums pass a uniform number; a code of probability 0 is never picked."""
    for row in range(out.size):
        line = steps[component[row]]
        target = uniform[row] * line[line.size - 1]
        low, high = 0, line.size - 1
        while low < high:
            middle = (low + high) // 2
            if line[middle] > target:
                high = middle
            else:
                low = middle + 1
        out[row] = low
