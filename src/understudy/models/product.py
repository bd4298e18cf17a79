"""BlockModel: a product of joint tables over disjoint groups of columns.

One block over all columns is a full contingency table, one block per column is the independence model. A block keeps
only cells with mass, so a table of 10¹⁵ cells of which 10⁵ are kept is as large as the 10⁵. Rules were applied when
the blocks were built; what has no mass cannot be drawn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, cast, get_args

import numpy as np

from understudy.arrays import Floats, Integers, Ints
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import UsageError
from understudy.models.model import (
    Codes,
    Contents,
    ModelFiles,
    StoredModel,
    probability_faults,
    query_clique,
    query_codes,
    size_list,
    total_faults,
)
from understudy.models.tables import Rounding, check_linked, code_dtype, draw_places, joint_table, linked, sub_indices

_CELL_LIMIT = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """A joint table: cells of `clique` (flat row-major, increasing) and their probabilities, summing to 1."""

    clique: Clique
    indices: Ints
    probabilities: Floats

    @classmethod
    def of(cls, clique: Clique, indices: Ints, weights: Floats) -> Self:
        """The block of cells with mass, scaled to 1; `indices` must increase, weights must not all be 0."""
        kept = weights > 0.0
        mass = weights[kept]
        return cls(clique, np.ascontiguousarray(indices[kept]), np.ascontiguousarray(mass / mass.sum()))

    def faults(self, domain: Domain) -> list[str]:
        """What is wrong with it, in words; empty if nothing is."""
        found = []
        cells = domain.cells(self.clique)
        if cells >= _CELL_LIMIT:
            found.append(f"a table of {cells:,} cells is too large.")
        if not self.indices.size or self.indices.shape != self.probabilities.shape:
            return [*found, "needs at least one cell, and one probability per cell."]
        if self.indices[0] < 0 or self.indices[-1] >= cells or not np.all(self.indices[1:] > self.indices[:-1]):
            found.append("cell numbers must increase and lie inside the table.")
        return found + probability_faults(self.probabilities)


@dataclass(frozen=True, slots=True, eq=False)
class BlockModel(StoredModel):
    """A distribution under which the blocks are independent of each other.

    `rounding` says how whole rows are made of each block; blocks are put side by side in random order either way.
    """

    kind: ClassVar[str] = "blocks"
    stored: ClassVar[Mapping[str, str]] = {"indices": "<i8", "probabilities": "<f8"}

    domain: Domain
    blocks: tuple[Block, ...]
    total: float
    rounding: Rounding = "multinomial"

    def __post_init__(self) -> None:
        for fault in _faults(self.domain, self.blocks, self.total, self.rounding):
            raise UsageError("block model", fault)

    @classmethod
    def of_marginals(
        cls, domain: Domain, parts: Mapping[Clique, Floats], structural_zeros: Sequence[StructuralZeros], total: float
    ) -> Self:
        """The product of disjoint tables, with parts that rules tie together joined on their possible cells.

        Joined parts keep their own distributions as far as the rules allow (see `merge`). Tables are flat row-major
        and may have any positive sum.

        Raises:
            ResourceError: if the rules tie columns into a table too large to hold.
            UsageError: if the rules leave no combination possible, or the parts do not cover the domain once.
        """
        check_linked(domain, parts, structural_zeros, "model")
        blocks = []
        for group in linked(domain, parts, structural_zeros):
            tables = {clique: parts[clique] / parts[clique].sum() for clique in group}
            names = {name for clique in group for name in clique}
            rules = [rule for rule in structural_zeros if set(rule.clique) <= names]
            if rules:
                blocks.append(Block.of(*joint_table(domain, tables, rules)))
            else:
                ((clique, table),) = tables.items()
                blocks.append(Block.of(clique, np.arange(table.size, dtype=np.int64), table))
        return cls(domain, tuple(blocks), total)

    @classmethod
    def uniform(cls, domain: Domain, structural_zeros: Sequence[StructuralZeros], total: float) -> Self:
        """Every code of every column equally likely, as far as the rules allow."""
        parts = {domain.clique([name]): np.full(size, 1.0 / size) for name, size in domain.sizes.items()}
        return cls.of_marginals(domain, parts, structural_zeros, total)

    def marginal(self, clique: Clique) -> Floats:
        """Probabilities of the clique's cells, flat row-major.

        Raises:
            ResourceError: if the table would be too large to hold.
        """
        wanted = query_clique(self.domain, clique)
        table, order = np.ones(1), list[str]()
        for block in self.blocks:
            # Columns with one code add nothing but a dimension, and numpy allows only 64 of those.
            part = [name for name in block.clique if name in wanted and self.domain.sizes[name] > 1]
            if part:
                places = sub_indices(self.domain, block.clique, block.indices, part)
                sums = np.bincount(places, weights=block.probabilities, minlength=self.domain.cells(part))
                table = np.multiply.outer(table, sums).ravel()
                order += part
        axes = [order.index(name) for name in wanted if self.domain.sizes[name] > 1]
        return np.ascontiguousarray(table.reshape(self.domain.shape(order)).transpose(axes)).ravel()

    def draw(self, rows: int, rng: np.random.Generator) -> Codes:
        """`rows` records, as the smallest unsigned integers that hold the codes."""
        drawn: dict[str, Integers] = {}
        for block in self.blocks:
            places = draw_places(block.probabilities, rows, rng, self.rounding)
            few = block.indices.size <= rows  # then it is cheaper to take the cells apart first and look codes up
            cells = block.indices if few else block.indices[places]
            for name in block.clique:
                dtype = code_dtype(self.domain.sizes[name])
                codes: Integers = sub_indices(self.domain, block.clique, cells, (name,)).astype(dtype)
                drawn[name] = codes[places] if few else codes
        return {name: drawn[name] for name in self.domain.columns}

    def condition(self, where: Mapping[str, Integers]) -> Self:
        """The distribution given that each named column holds one of the codes; `total` shrinks with its probability.

        Raises:
            UsageError: if a code is outside its column or the condition has probability 0.
        """
        masks = {name: query_codes(self.domain, name, codes) for name, codes in where.items()}
        total, blocks = self.total, []
        for block in self.blocks:
            kept = np.ones(block.indices.size, dtype=bool)
            for name in masks.keys() & set(block.clique):
                kept &= masks[name][sub_indices(self.domain, block.clique, block.indices, (name,))]
            probability = float(block.probabilities[kept].sum())
            if probability <= 0.0:
                names = ", ".join(name for name in block.clique if name in masks)
                raise UsageError(f"where {names}", "cannot happen under this model.", "Allow more values.")
            if not kept.all():
                total *= min(probability, 1.0)
                block = Block.of(block.clique, block.indices[kept], block.probabilities[kept])
            blocks.append(block)
        return replace(self, blocks=tuple(blocks), total=total)

    def contents(self) -> Contents:
        """Document and arrays of its file form."""
        blocks = [{"columns": list(block.clique), "cells": int(block.indices.size)} for block in self.blocks]
        document = {"total": self.total, "rounding": self.rounding, "domain": size_list(self.domain), "blocks": blocks}
        indices, probabilities = [one.indices for one in self.blocks], [one.probabilities for one in self.blocks]
        return document, {"indices": indices, "probabilities": probabilities}

    @classmethod
    def of_contents(cls, files: ModelFiles) -> Self:
        """The model of its file form."""
        entries: tuple[_StoredBlock, ...] = files.value("blocks", tuple[_StoredBlock, ...])
        parts = [files.pieces(name, [one.cells for one in entries]) for name in cls.stored]
        blocks = tuple(Block(Clique(one.columns), *tables) for one, *tables in zip(entries, *parts, strict=True))
        rounding = files.document.get("rounding", "multinomial")  # which older files do not state
        return cls(files.domain(), blocks, files.number("total"), cast(Rounding, rounding))


@dataclass(frozen=True, slots=True)
class _StoredBlock:
    columns: tuple[str, ...]
    cells: int


def _faults(domain: Domain, blocks: Iterable[Block], total: float, rounding: str) -> list[str]:
    names = [name for block in blocks for name in block.clique]
    if sorted(names) != sorted(domain.columns) or any(not block.clique for block in blocks):
        return ["the blocks must hold every column of the domain exactly once."]
    found = total_faults(total)
    if rounding not in get_args(Rounding):
        found.append("rounding must be multinomial or controlled.")
    for block in blocks:
        if block.clique != domain.clique(block.clique):
            found.append("columns of a block must stand in the order of the domain.")
        found += [f"block {' × '.join(block.clique)}: {fault}" for fault in block.faults(domain)]
    return found
