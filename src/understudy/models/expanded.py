"""ExpandedField: a graphical model over merged codes, and how each merged code falls apart into codes of the table.

For tables whose columns have many rare values: the relations between columns are kept for merged codes, and which of
its values a merged code stands for is drawn column by column. Marginals, records and conditions are exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from understudy.errors import Problem, ReleaseError, UsageError
from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.models.arrays import ModelFiles, read_model_files, write_model_files
from understudy.models.asked import asked_clique, asked_codes
from understudy.models.draw import code_dtype, cumulative
from understudy.models.graphical.markov_field import MarkovField
from understudy.models.model import Codes
from understudy.models.store import register

__all__ = ["ExpandedField", "Expansion"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """One column: the merged code of each of its codes, and the chance of the code given the merged one."""

    places: Ints
    shares: Floats

    def sums(self, weights: Floats, merged: int) -> Floats:
        """The weights of codes, added up per merged code."""
        return np.bincount(self.places, weights=weights, minlength=merged).astype(np.float64, copy=False)

    def faults(self, size: int, merged: int) -> list[str]:
        """What is wrong with it, in words; empty if nothing is."""
        if self.places.shape != (size,) or self.shares.shape != (size,):
            return [f"needs one merged code and one chance for each of its {size:,} codes."]
        if self.places.min() < 0 or self.places.max() >= merged:
            return ["merged codes must lie inside the merged column."]
        if not np.all(np.isfinite(self.shares)) or self.shares.min() < 0.0:
            return ["chances must be finite and 0 or more."]
        if np.abs(self.sums(self.shares, merged) - 1.0).max() > _SUM_TOLERANCE:
            return ["the chances of each merged code must add up to 1."]
        return []

    def restricted(self, mask: npt.NDArray[np.bool_], merged: int) -> tuple["Expansion", Floats]:
        """Given that the code is in the mask: the expansion, and the chance of that for each merged code."""
        chances = self.sums(self.shares * mask, merged)
        inside = chances[self.places]
        # A merged code without an allowed value cannot occur any more; its old chances keep the expansion whole.
        shares = np.where(inside > 0.0, self.shares * mask / np.where(inside > 0.0, inside, 1.0), self.shares)
        return Expansion(self.places, shares), chances

    def expanded(
        self, codes: npt.NDArray[np.integer], rng: np.random.Generator, *, rounding: bool
    ) -> npt.NDArray[np.integer]:
        """A code for each merged code; with `rounding` their numbers are as expected, up to rounding."""
        members: list[Ints] = np.split(np.argsort(self.places, kind="stable"), np.cumsum(np.bincount(self.places))[:-1])
        drawn: npt.NDArray[np.integer] = np.array([group[0] for group in members], dtype=code_dtype(self.places.size))[
            codes
        ]
        for merged, group in enumerate(members):
            if group.size > 1:
                rows = np.flatnonzero(codes == merged)
                spots = rng.random(rows.size)
                if rounding:
                    spots = (rng.permutation(rows.size) + spots) / max(rows.size, 1)
                steps = cumulative(self.shares[group])
                picks = np.searchsorted(steps, np.minimum(spots, np.nextafter(1.0, 0.0)), side="right")
                drawn[rows] = group[picks]
        return drawn


@dataclass(frozen=True, eq=False)
class ExpandedField:
    """A distribution over `domain`: `merged` gives merged codes, `expansions` the values behind them.

    Columns without an expansion have the same codes in both.
    """

    kind: ClassVar[str] = "expanded_field"

    domain: Domain
    merged: MarkovField
    expansions: Mapping[str, Expansion]

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise UsageError("expanded model", fault)

    @property
    def total(self) -> float:
        """Estimated number of records."""
        return self.merged.total

    def marginal(self, clique: Clique) -> Floats:
        """Probabilities of the clique's cells, flat row-major.

        Raises:
            ResourceError: if the table, or one needed on the way, would be too large to hold.
        """
        wanted = asked_clique(self.domain, clique)
        # Columns with one code add nothing but a dimension, and numpy allows only 64 of those.
        axes = [name for name in wanted if self.domain.sizes[name] > 1]
        table = self.merged.marginal(Clique(wanted)).reshape(self.merged.domain.shape(axes))
        for axis, name in enumerate(axes):
            expansion = self.expansions.get(name)
            if expansion is not None:
                shares = expansion.shares.reshape([-1 if other == axis else 1 for other in range(len(axes))])
                table = np.take(table, expansion.places, axis=axis) * shares
        return np.ascontiguousarray(table).ravel()

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` records as the smallest unsigned integers that hold the codes; see `MarkovField.rounding`."""
        codes = dict(self.merged.draw(rows, rng))
        for name in self.domain.columns:
            if name in self.expansions:
                codes[name] = self.expansions[name].expanded(codes[name], rng, rounding=self.merged.rounding)
        return {name: codes[name] for name in self.domain.columns}

    def condition(self, where: Mapping[str, npt.NDArray[np.integer]]) -> Self:
        """The distribution given that each named column holds one of the codes; `total` shrinks with its chance.

        Raises:
            UsageError: if a code is outside its column or the condition has probability 0.
        """
        expansions, chances = dict(self.expansions), dict[str, Floats]()
        for name, codes in where.items():
            mask = asked_codes(self.domain, name, codes)
            if name in expansions:
                expansions[name], chances[name] = expansions[name].restricted(mask, self.merged.domain.sizes[name])
            else:
                chances[name] = mask.astype(np.float64)
        return type(self)(self.domain, self.merged.reweighted(chances), expansions)

    def save(self, folder: Path) -> None:
        """Writes `model.json` and raw arrays into an existing empty folder."""
        inner = self.merged.to_files()
        document = {
            **inner.document,
            "kind": self.kind,
            "expanded": [[name, self.domain.sizes[name]] for name in self.expansions],
        }
        places = [np.zeros(0, np.int64), *(expansion.places for expansion in self.expansions.values())]
        shares = [np.zeros(0), *(expansion.shares for expansion in self.expansions.values())]
        arrays = {"places": np.concatenate(places), "shares": np.concatenate(shares)}
        write_model_files(folder, ModelFiles(document, {**inner.arrays, **arrays}))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads what `save` wrote.

        Raises:
            ReleaseError: if a file is missing, altered, too large or of the wrong type.
        """
        dtypes = {"probabilities": np.dtype("<f8"), "places": np.dtype("<i8"), "shares": np.dtype("<f8")}
        files = read_model_files(folder, cls.kind, dtypes)
        merged = MarkovField.of_files(files)
        sizes = dict(merged.domain.sizes)
        stated = _stated(files.document, sizes)
        sizes.update(stated)
        places = files.arrays["places"].astype(np.int64, copy=False)
        shares = files.arrays["shares"].astype(np.float64, copy=False)
        if places.size != sum(stated.values()) or shares.size != places.size:
            raise ReleaseError([Problem("model.json: expanded", "the codes do not match the length of the arrays.")])
        ends = np.cumsum([0, *stated.values()])
        expansions = {
            name: Expansion(places[low:high], shares[low:high])
            for name, low, high in zip(stated, ends[:-1], ends[1:], strict=True)
        }
        try:
            return cls(Domain.of(sizes), merged, expansions)
        except UsageError as error:
            raise ReleaseError([Problem("model", error.problem.rule)]) from error

    def _faults(self) -> list[str]:
        if self.domain.columns != self.merged.domain.columns:
            return ["both domains must have the same columns."]
        found = []
        for name, size in self.domain.sizes.items():
            inner = self.merged.domain.sizes[name]
            if name in self.expansions:
                found += [f"column {name}: {fault}" for fault in self.expansions[name].faults(size, inner)]
            elif size != inner:
                found.append(f"column {name}: needs an expansion of its merged codes.")
        return found


def _stated(document: Mapping[str, object], sizes: Mapping[str, int]) -> dict[str, int]:
    """Column → number of codes of each expansion, as the document states them."""
    entries = document.get("expanded")
    found: dict[str, int] = {}
    for entry in entries if isinstance(entries, list) else [None]:
        name, size = entry if isinstance(entry, list) and len(entry) == 2 else (None, None)
        if not isinstance(name, str) or name not in sizes or name in found:
            raise ReleaseError([Problem("model.json: expanded", "each entry must be [column, number of codes].")])
        if type(size) is not int or not sizes[name] <= size <= 2**32:
            raise ReleaseError([Problem("model.json: expanded", "a column has fewer merged codes than codes.")])
        found[name] = size
    return found


register(ExpandedField)
