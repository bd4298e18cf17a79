"""Match 3 of the 2018 NIST challenge: the 1940 census in 98 columns. Its tables, its schema and its split of incomes.

Everything comes from public documents: the challenge's specification and code book, and the published description of
the winning system. Two columns are coded in a special way.

VALUEH is a number in bins of 5 up to 25,000, one bin above, and two special codes; the schema says so.

INCWAGE is split: INCWAGE_A is the number of whole hundreds (50 from 5,000 on, 51 for "not available"), INCWAGE_B tells
how round the amount is (its class by divisibility). A schema cannot split an input column, so `split_incomes` does it
beforehand, record by record by this public rule, and `join_incomes` undoes it on synthetic rows, drawing a residue of
the class. Amounts above 5,000 come back as 5,000.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.mechanisms.challenge.marginal_list import ListedTable
from understudy.privacy.cost import UNIT, Cost
from understudy.schema import Category, Column, Integer, Schema, UniformBins, Unit

__all__ = ["INCOME_CLASSES", "join_incomes", "match3_marginals", "match3_schema", "match3_tables", "split_incomes"]

INCOME_CLASSES = ("100", "20", "50", "25", "10", "5", "2", "1")
"""INCWAGE_B: the first of these that divides the amount."""

_NOT_AVAILABLE = 999_998
_HUNDREDS = 50
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
    """The challenge's list with its weights, among them the weight of INCWAGE_A alone.

    Weights are 1, except for the columns that were scored (SEX, CITY, INCWAGE_A): 2 for their pairs, and for the three
    together 8, 6 or 4. The source switches at ε = 0.3 and 4; a method knows ρ only, so we switch at ρ = 0.002 and 0.15,
    which at the challenge's δ lies between its ε of 0.3 and 1, and at about 4.
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
    """The schema of the prepared table (see `split_incomes`) from the challenge's specification.

    Args:
        specification: column → facts: the largest code (`maxval` or `maxval_in_specs`) and, where there is one, the
            code book's list (`values_in_codebook`).
        unit: who is protected; one row by default.
    """
    columns: list[Column] = []
    for name, facts in specification.items():
        if name == "INCWAGE":
            columns += [_codes("INCWAGE_A", range(_HUNDREDS + 2)), _codes("INCWAGE_B", range(len(INCOME_CLASSES)))]
        elif name == "VALUEH":
            top = _VALUE_TOP + _VALUE_STEP - 1
            bins = UniformBins(_VALUE_TOP // _VALUE_STEP + 1)
            columns.append(Integer(name=name, lower=0, upper=top, bins=bins, special=_VALUE_SPECIAL, missing=False))
        else:
            columns.append(_codes(name, _code_list(name, facts)))
    return Schema(tuple(columns), unit or Unit())


def split_incomes(table: pa.Table) -> pa.Table:
    """The table with INCWAGE replaced by INCWAGE_A and INCWAGE_B; each record is looked at on its own."""
    place = table.schema.get_field_index("INCWAGE")
    amounts = pc.fill_null(pc.cast(table.column("INCWAGE"), pa.int64()), _NOT_AVAILABLE)
    values = np.maximum(np.asarray(amounts.combine_chunks()), 0)
    hundreds = np.where(values == _NOT_AVAILABLE, _HUNDREDS + 1, np.minimum(values // 100, _HUNDREDS))
    split = table.set_column(place, "INCWAGE_A", pa.array(hundreds))
    return split.add_column(place + 1, "INCWAGE_B", pa.array(_round_classes()[values % 100]))


def join_incomes(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    """The table with INCWAGE in place of its two parts; within a class of roundness all amounts are equally likely."""
    hundreds, classes = (
        np.asarray(pc.cast(table.column(name), pa.int64()).combine_chunks()) for name in ("INCWAGE_A", "INCWAGE_B")
    )
    residues = np.zeros(table.num_rows, dtype=np.int64)
    for number in range(len(INCOME_CLASSES)):
        rows = np.flatnonzero(classes == number)
        residues[rows] = rng.choice(np.flatnonzero(_round_classes() == number), rows.size)
    amounts = np.where(hundreds < _HUNDREDS, 100 * hundreds + residues, 100 * _HUNDREDS)
    amounts = np.where(hundreds > _HUNDREDS, _NOT_AVAILABLE, amounts)
    joined = table.set_column(table.schema.get_field_index("INCWAGE_A"), "INCWAGE", pa.array(amounts))
    return joined.drop_columns(["INCWAGE_B"])


def _round_classes() -> npt.NDArray[np.int64]:
    """The class of each residue modulo 100."""
    divides = np.array([np.arange(100) % int(divisor) == 0 for divisor in INCOME_CLASSES])
    return np.asarray(divides.argmax(axis=0), dtype=np.int64)


def _code_list(name: str, facts: Mapping[str, object]) -> list[int]:
    largest = facts.get("maxval", facts.get("maxval_in_specs"))
    if type(largest) is not int or largest < 0:
        raise UsageError(f"specification of column {name!r}", "needs `maxval`, the largest code.")
    if name in _LISTED:
        return list(_LISTED[name])
    known = facts.get("values_in_codebook")
    # Not-available codes are nines that a code book may leave out; the specification's largest code covers them.
    return sorted({*known, largest}) if isinstance(known, list) else list(range(largest + 1))


def _codes(name: str, codes: "range | list[int]") -> Category:
    return Category(name=name, labels=tuple(str(code) for code in codes), storage="int64", missing=False)


def _facts() -> Mapping[str, object]:
    text = resources.files(__package__).joinpath("match_three.json").read_text(encoding="utf-8")
    return cast(Mapping[str, object], json.loads(text))
