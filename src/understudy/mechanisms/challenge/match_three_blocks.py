"""Match 3 of the 2018 NIST challenge as team DPSyn measured it: four blocks of tables, reserved parts, its noise.

From the team's published description and program. A column product (say SPLIT × GQ × GQFUNDS) is measured as a table of
its columns; the program first made one column of it. Columns of the sample-line block hold "not available" for
everybody off the sample line, so their tables carry the flag as a column. Incomes are counted by whole hundreds, so
the program's bin "1 to 99" is part of the first bin; and where the schema splits incomes, a rule ties the two parts and
the bins are not used, so every hundred is counted. One list of age bins serves all tables.
"""

import functools
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from typing import cast

from understudy.privacy.conversion import epsilon_of_rho
from understudy.privacy.cost import UNIT, Cost

__all__ = ["BlockPreset", "match3_blocks", "programmed_noise", "reserved_shares"]

Groups = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class BlockPreset:
    """Blocks of tables, shares of the cost reserved for some of them, bins of columns, and which values are rare."""

    blocks: tuple[tuple[tuple[str, ...], ...], ...]
    reserved: Mapping[tuple[str, ...], float]
    starts: Mapping[str, tuple[int, ...]]
    least_count: float
    most_values: int


def match3_blocks(cost: Cost) -> BlockPreset:
    """The team's tables at that cost; where it decides by ε, ε is what the cost is worth at the challenge's δ."""
    facts = _facts()
    epsilon = _epsilon(cost, cast(int, facts["records"]))
    little = _level(epsilon)
    listed = cast(Mapping[str, Mapping[str, object]], facts["blocks"])
    reserved = reserved_shares()
    blocks = []
    for name, block in listed.items():
        tables = _tables(block)
        if epsilon > 0.2:
            tables += _tables(cast(Mapping[str, object], block.get("above_0.2", {})))
        if epsilon >= 1.0:
            tables += _tables(cast(Mapping[str, object], block.get("from_1", {})))
        if "flag" in block:
            tables = [(cast(str, block["flag"]), *table) for table in tables]
        if name == facts["reserved_block"]:
            tables += [table for table in reserved if len(table) > 1]
        blocks.append(tuple(tables))
    incomes = cast(Mapping[str, list[int]], facts["income_starts"])[little]
    starts = {"INCWAGE.size": tuple(incomes), "AGE": tuple(cast(list[int], facts["age_starts"]))}
    most = 14 + math.floor(5.0 * epsilon)
    return BlockPreset(tuple(blocks), reserved, starts, float(cast(int, facts["least_count"])), most)


def reserved_shares() -> dict[tuple[str, ...], float]:
    """The tables that the team paid for with Laplace noise, and their shares of ε."""
    return {
        tuple(cast(list[str], entry["columns"])): 1.0 / cast(int, entry["parts"])
        for entry in cast(list[Mapping[str, object]], _facts()["reserved"])
    }


def programmed_noise(epsilon: float) -> float:
    """σ of the team's program: 2ε/3 and δ = 1/662,000² for a number of tables fixed by ε.

    >>> round(programmed_noise(1.0), 1)
    157.5
    """
    facts = _facts()
    tables = cast(Mapping[str, int], facts["programmed_tables"])[_level(epsilon)]
    log_delta = 2.0 * math.log(cast(int, facts["records"]))
    root = math.sqrt(2.0 * epsilon / 3.0 + log_delta) - math.sqrt(log_delta)
    return math.sqrt(tables / 2.0) / root


def _level(epsilon: float) -> str:
    return "little" if epsilon <= 0.2 else "between" if epsilon < 1.0 else "from_1"


def _epsilon(cost: Cost, records: int) -> float:
    if not cost.rho:
        return cost.epsilon / UNIT
    # Rounding in the price must not take an ε of 1 for a little less.
    in_rho = float(epsilon_of_rho(Fraction(cost.rho, UNIT), Fraction(1, records**2)))
    return round(cost.epsilon / UNIT + in_rho, 6)


def _tables(block: Mapping[str, object]) -> list[tuple[str, ...]]:
    """All tables of a block, each once."""
    found = [tuple(table) for table in cast(list[list[str]], block.get("tables", []))]
    for groups in cast(Sequence[Groups], block.get("pairs_of", [])):
        found += _products(itertools.combinations(groups, 2))
    for first, second in cast(Sequence[tuple[Groups, Groups]], block.get("across", [])):
        found += _products(itertools.product(first, second))
    return list(dict.fromkeys(found))


def _products(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> list[tuple[str, ...]]:
    return [(*first, *second) for first, second in pairs]


@functools.cache
def _facts() -> Mapping[str, object]:
    text = resources.files(__package__).joinpath("match_three_blocks.json").read_text(encoding="utf-8")
    return cast(Mapping[str, object], json.loads(text))
