"""Match 3 of the 2018 NIST challenge: the 1940 census in 98 columns, and what three teams measured of it.

Everything comes from public documents: the challenge's specification and code book, and the teams' published
descriptions and programs. In the groups of DPFieldGroups, columns not named stay single.

Columns coded in a special way
------------------------------
VALUEH is a number in bins of 5 up to 25,000, one bin above, and two special codes.

INCWAGE is split: its size is the number of whole hundreds (50 from 5,000 on, 51 for "not available"), its kind tells
how round the amount is. The census was asked for no more than "over 5,000", so larger amounts come back as 5,000 or
5,001. The source gives "not available" the kind of its digits; here it has one of its own.

The tables of team DPSyn
------------------------
Four blocks of tables, reserved parts, its noise. A column product (say SPLIT × GQ × GQFUNDS) is measured as a table of
its columns; the program first made one column of it. Columns of the sample-line block hold "not available" for
everybody off the sample line, so their tables carry the flag as a column. Incomes are counted by whole hundreds, so
the program's bin "1 to 99" is part of the first bin; and where the schema splits incomes, a rule ties the two parts and
the bins are not used, so every hundred is counted. One list of age bins serves all tables.
"""

import functools
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from typing import cast

from understudy.domain import Clique
from understudy.errors import UsageError
from understudy.methods.marginals import ListedTable
from understudy.privacy.cost import UNIT, Cost, epsilon_of_rho
from understudy.schema import Category, Column, GivenBins, Integer, Schema, UniformBins, Unit

_INCOME_TOP, _INCOME_MISSING = 5_000, 999_998
_INCOME_KINDS = (100, 20, 50, 25, 10, 5, 2)
_VALUE_STEP, _VALUE_TOP = 5, 25_000
_VALUE_SPECIAL = (9_999_998, 9_999_999)
_LITTLE_RHO, _MUCH_RHO = UNIT // 500, 3 * UNIT // 20
_LISTED: Mapping[str, tuple[int, ...]] = {
    "SUPDIST": (*range(10, 631, 10),),
    "MIGSEA5": (*range(1, 503), 990, 991, 997),
    "EDSCOR50": (*range(1001), 9999),
    "ERSCOR50": (*range(1001), 9999),
    "NPBOSS50": (*range(1001), 9999),
    "MIGMET5": (*range(0, 9601, 20), 9999),
    "MIGCOUNTY": (*range(0, 8001, 10), 9997, 9999),
    "IND": (*range(232), 995, 998, 999),
}
"""Codes of columns for which neither the code book's list nor the range from 0 to the largest value is right."""


@functools.cache
def match3_tables() -> Mapping[str, tuple[Clique, ...]]:
    """The tables of the second round: `tree` (97 pairs), `further_pairs` (27) and `triples` (23)."""
    facts = _facts()
    found = {
        part: tuple(
            Clique((hub, other))
            for hub, others in cast(Mapping[str, list[str]], facts[part]).items()
            for other in others
        )
        for part in ("tree", "further_pairs")
    }
    return {**found, "triples": tuple(Clique(names) for names in cast(list[list[str]], facts["triples"]))}


def match3_marginals(cost: Cost) -> Iterator[ListedTable]:
    """The challenge's list with its weights, among them the weight of the size of INCWAGE alone.

    Weights are 1, except for the columns that were scored (SEX, CITY, INCWAGE.size): 2 for their pairs, and 8, 6 or 4
    for the three together. The source switches at ε = 0.3 and 4; a method knows ρ only, so we switch at ρ = 0.002 and
    0.15, which at the challenge's δ lies between its ε of 0.3 and 1, and at about 4.
    """
    facts = _facts()
    scored = set(cast(list[str], facts["scored_columns"]))
    heavy = cast(list[int], facts["scored_triple_weight"])
    triple = heavy[0] if cost.rho <= _LITTLE_RHO else heavy[2] if cost.rho >= _MUCH_RHO else heavy[1]
    starts = {name: tuple(codes) for name, codes in cast(Mapping[str, list[int]], facts["grouped"]).items()}
    grouped = [set(names) for names in cast(list[list[str]], facts["grouped_in"])]
    for name, weight in cast(Mapping[str, int], facts["column_weights"]).items():
        yield ListedTable(Clique((name,)), float(weight))
    for clique in (clique for part in match3_tables().values() for clique in part):
        inside = set(clique) <= scored
        weight = 1 if not inside else triple if len(clique) == 3 else cast(int, facts["scored_pair_weight"])
        yield ListedTable(clique, float(weight), starts if set(clique) in grouped else {})


def match3_schema(specification: Mapping[str, Mapping[str, object]], unit: Unit | None = None) -> Schema:
    """The schema of the challenge's table from its specification: one code for each value, and none for others.

    Args:
        specification: column → facts: the largest code (`maxval` or `maxval_in_specs`) and, where there is one, the
            code book's list (`values_in_codebook`).
        unit: who is protected; one row by default.
    """
    columns: list[Column] = []
    for name, facts in specification.items():
        if name == "INCWAGE":
            columns.append(_incomes(name))
        elif name == "VALUEH":
            top = _VALUE_TOP + _VALUE_STEP - 1
            bins = UniformBins(_VALUE_TOP // _VALUE_STEP + 1)
            columns.append(Integer(name=name, lower=0, upper=top, bins=bins, special=_VALUE_SPECIAL, missing=False))
        else:
            columns.append(_codes(name, _code_list(name, facts)))
    return Schema(tuple(columns), unit or Unit(), unreadable="drop")


def _code_list(name: str, facts: Mapping[str, object]) -> list[int]:
    largest = facts.get("maxval", facts.get("maxval_in_specs"))
    if type(largest) is not int or largest < 0:
        raise UsageError(f"specification of column {name!r}", "needs `maxval`, the largest code.")
    if name in _LISTED:
        return list(_LISTED[name])
    known = facts.get("values_in_codebook")
    # Not-available codes are nines that a code book may leave out; the specification's largest code covers them.
    return sorted({*known, largest}) if isinstance(known, list) else list(range(largest + 1))


def _incomes(name: str) -> Integer:
    edges = GivenBins((*range(0, _INCOME_TOP + 1, 100), _INCOME_TOP + 1))
    special = (_INCOME_MISSING,)
    return Integer(
        name=name, lower=0, upper=_INCOME_TOP + 1, bins=edges, special=special, split=_INCOME_KINDS, missing=False
    )


def _codes(name: str, codes: "range | list[int]") -> Category:
    return Category(name=name, labels=tuple(str(code) for code in codes), storage="int64", missing=False)


def _facts() -> Mapping[str, object]:
    text = resources.files(__package__).joinpath("match_three.json").read_text(encoding="utf-8")
    return cast(Mapping[str, object], json.loads(text))


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
    facts = _published_blocks()
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
        for entry in cast(list[Mapping[str, object]], _published_blocks()["reserved"])
    }


def programmed_noise(epsilon: float) -> float:
    """σ of the team's program: 2ε/3 and δ = 1/662,000² for a number of tables fixed by ε.

    >>> round(programmed_noise(1.0), 1)
    157.5
    """
    facts = _published_blocks()
    tables = cast(Mapping[str, int], facts["programmed_tables"])[_level(epsilon)]
    log_delta = 2.0 * math.log(cast(int, facts["records"]))
    root = math.sqrt(2.0 * epsilon / 3.0 + log_delta) - math.sqrt(log_delta)
    return math.sqrt(tables / 2.0) / root


def _level(epsilon: float) -> str:
    return "little" if epsilon <= 0.2 else "between" if epsilon < 1.0 else "from_1"


def _epsilon(cost: Cost, records: int) -> float:
    if not cost.rho:
        return cost.epsilon / UNIT
    # Rounding in the cost must not take an ε of 1 for a little less.
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
def _published_blocks() -> Mapping[str, object]:
    text = resources.files(__package__).joinpath("match_three_blocks.json").read_text(encoding="utf-8")
    return cast(Mapping[str, object], json.loads(text))


_GROUPS = """
SPLIT OWNERSHP GQ GQTYPE OWNERSHPD GQFUNDS GQTYPED
VETWWI SLREC SSENROLL NATIVITY VETPER VET1940 UCLASSWK VETCHILD VETSTAT VETSTATD
RESPONDT CITIZEN MARST NCHLT5 FAMSIZE
URBAN FARM WARD CITYPOP
LABFORCE SCHOOL SEX EMPSTAT CLASSWKR INCNONWG EMPSTATD CLASSWKRD
SPANNAME HISPAN HISPRULE HISPAND
METRO METAREA METAREAD
RACE RACED
WKSWORK2 WKSWORK1
HRSWORK2 HRSWORK1
SAMESEA5 SAMEPLAC MIGTYPE5 MIGRATE5 MIGRATE5D
MARRNO CHBORN
SIZEPL URBPOP
SEA CITY
SUPDIST COUNTY
OCCSCORE EDSCOR50
MTONGUE MTONGUED
SEI PRESGL
HIGRADE EDUC HIGRADED EDUCD
MBPL MBPLD
FBPL FBPLD
BPL BPLD
IND1950 IND
MIGSEA5 MIGPLAC5
OCC OCC1950
UOCC95 UIND UOCC
"""
MATCH_THREE = ", ".join("+".join(line.split()) for line in _GROUPS.split("\n") if line.strip())
