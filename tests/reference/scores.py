"""Scores for private choices from their definitions, in real numbers to many digits; tables are lists of lists."""

import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from tests.reference.noise import decimal

Table = Sequence[Sequence[int]]


def distance(counts: Sequence[int], aims: Sequence[Fraction], floor: Fraction = Fraction(0)) -> Fraction:
    """Σ max(|count − aim| − floor, 0), what an estimate is off beyond a floor."""
    return sum(
        (max(abs(count - aim) - floor, Fraction(0)) for count, aim in zip(counts, aims, strict=True)), Fraction()
    )


def gap(table: Table) -> Fraction:
    """InDif = Σ |c_xy − c_x·c_y/n| (PrivSyn); R of PrivBayes in rows is half of it. 0 for an empty table."""
    rows, columns = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    total = sum(rows)
    if not total:
        return Fraction(0)
    places = itertools.product(range(len(rows)), range(len(columns)))
    return sum((abs(table[row][at] - Fraction(rows[row] * columns[at], total)) for row, at in places), Fraction(0))


def fit(table: Table) -> Fraction:
    """F of PrivBayes in rows: −min over splits of the parents' combinations of (n/2 − C₀)₊ + (n/2 − C₁)₊."""
    total = sum(map(sum, table))
    best = None
    for sides in itertools.product((0, 1), repeat=len(table)):
        caught = [sum(row[code] for row, side in zip(table, sides, strict=True) if side == code) for code in (0, 1)]
        lost = sum((max(Fraction(total, 2) - rows, Fraction(0)) for rows in caught), Fraction(0))
        best = lost if best is None else min(best, lost)
    assert best is not None
    return -best


def information(table: Table) -> Decimal:
    """n·I in bits: n·Σ p_xy log₂(p_xy/(p_x·p_y))."""
    rows, columns = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    total = sum(rows)
    with localcontext() as context:
        context.prec = 60
        found = Decimal(0)
        for at, row in enumerate(table):
            for place, count in enumerate(row):
                if count:
                    found += count * decimal(Fraction(count * total, rows[at] * columns[place])).ln()
        return found / Decimal(2).ln()


def log_likelihood(counts: Sequence[int]) -> Decimal:
    """Of the saturated one-column model: log n! − Σ log c! + Σ c·log(c/n)."""
    with localcontext() as context:
        context.prec = 60
        total = sum(counts)
        found = _log_factorial(total) - sum((_log_factorial(count) for count in counts), Decimal(0))
        return found + sum((count * decimal(Fraction(count, total)).ln() for count in counts if count), Decimal(0))


def _log_factorial(number: int) -> Decimal:
    return sum((Decimal(factor).ln() for factor in range(2, number + 1)), Decimal(0))


def aic(counts: Sequence[int]) -> Decimal:
    """−2 log L + 2K, K the public number of codes."""
    return -2 * log_likelihood(counts) + 2 * len(counts)


def bic(counts: Sequence[int], least: int) -> Decimal:
    """−2 log L + K·log max(n, least)."""
    return -2 * log_likelihood(counts) + len(counts) * Decimal(max(sum(counts), least)).ln()


def gain(counts: Sequence[int]) -> Decimal:
    """2n·(log K − entropy) − 2K: how far a column's table is from an even one."""
    with localcontext() as context:
        context.prec = 60
        total, levels = sum(counts), len(counts)
        uneven = sum((count * decimal(Fraction(count * levels, total)).ln() for count in counts if count), Decimal(0))
        return 2 * uneven - 2 * levels


def largest_move(score: Callable[[Sequence[int]], Any], cells: int, rows: int) -> Decimal:
    """The most that a score of a flat table moves when one row is added, over all tables of up to so many rows."""
    most = Decimal(0)
    for counts in itertools.product(range(rows + 1), repeat=cells):
        if sum(counts) > rows:
            continue
        before = score(counts)
        for place in range(cells):
            after = score([count + (at == place) for at, count in enumerate(counts)])
            moved = abs(after - before)
            most = max(most, decimal(moved) if isinstance(moved, Fraction) else moved)
    return most
