"""The three scores agree to the digit with the official program of Match 3, on tables that arithmetic alone makes.

The expected numbers were printed by that program (ground truth of its own first and third generators, conjunctions
written in the form of its second), typed in again outside this repository from public copies of its text, since the
archive that it was handed out in cannot be had. It ran on the very tables and draws that are made here: whole numbers
by a linear congruence, so that they are the same everywhere. Rows are in the order of the cities' codes: among equal
pay gaps the program ranks cities by their first row.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import pandas as pd
import pytest

from tests.evaluate.examples import context, rows_of
from understudy.codec.table import TableCodec
from understudy.evaluate.metric import TablePair
from understudy.evaluate.nist import ChallengeTests, CodeSet, Nist, match3_largest
from understudy.methods.match_three import match3_schema
from understudy.schema import Category, Schema

NOT_AVAILABLE = 999_998
CITIES = (0, 70, 350, 1190, 2890, 3310, 4610, 5330)
LISTED: Mapping[str, tuple[int, ...]] = {
    "SUPDIST": (10, 100, 140, 310),
    "MIGSEA5": (1, 2, 250, 991),
    "EDSCOR50": (0, 1, 500, 9999),
    "ERSCOR50": (0, 1, 500, 9999),
    "NPBOSS50": (0, 1, 500, 9999),
    "MIGMET5": (0, 20, 4000, 9999),
    "MIGCOUNTY": (0, 10, 4000, 9999),
    "IND": (0, 1, 2, 998),
}
"""Columns whose codes have gaps."""
REPEATED = ("AGE", "METRO")
"""Columns of which a submission has a code above the largest one, too."""

Table = Mapping[str, Sequence[int]]


def congruence(seed: int) -> Iterator[int]:
    """Whole numbers below 2³¹, the same on every machine."""
    state = seed
    while True:
        state = (1_103_515_245 * state + 12_345) % 2**31
        yield state >> 8


def codes_of(name: str) -> tuple[int, ...]:
    """A few codes of a column, the largest and one above it where a submission may have that."""
    largest = match3_largest()[name]
    if name == "SEX":
        return 1, 2
    if name == "CITY":
        return CITIES
    if name in LISTED:
        return LISTED[name]
    above = {largest + 1} if name in REPEATED else set()
    return tuple(sorted({0, 1, min(2, largest), largest // 2, largest, *above}))


def made(rows: int, seed: int, *, original: bool = False, silent: Sequence[int] = (), without: int = -1) -> Table:
    """A table whose codes lean to low places; in `silent` cities no wage is known, and `without` does not occur."""
    draw = congruence(seed)
    places = [city for city in CITIES if city != without]
    cities = sorted(places[next(draw) % len(places)] for _ in range(rows))
    found: dict[str, list[int]] = {}
    for name, largest in match3_largest().items():
        codes = [code for code in codes_of(name) if code <= largest or not original]
        found[name] = [codes[(next(draw) % len(codes)) * (next(draw) % len(codes)) // len(codes)] for _ in range(rows)]
    found["CITY"] = cities
    found["SEX"] = [1 + next(draw) % 2 for _ in cities]
    found["INCWAGE"] = [
        NOT_AVAILABLE if next(draw) % 5 < 2 or city in silent else 10 * (next(draw) % 400) for city in cities
    ]
    found["VALUEH"] = [9_999_998 if next(draw) % 2 else 5 * (next(draw) % 40) for _ in cities]
    return found


def triples(seed: int) -> tuple[tuple[str, str, str], ...]:
    """A hundred triples of different columns, the last one never among them."""
    draw, names, found = congruence(seed), list(match3_largest())[:-1], list[tuple[str, str, str]]()
    while len(found) < 100:
        one, two, three = (names[next(draw) % len(names)] for _ in range(3))
        if len({one, two, three}) == 3:
            found.append((one, two, three))
    return tuple(found)


def conjunctions(original: Table, seed: int, number: int = 60) -> tuple[Mapping[str, CodeSet], ...]:
    """Conditions around rows of the original: a few columns each, and a few other codes beside the row's own."""
    draw, names = congruence(seed), list(match3_largest())
    found = []
    for _ in range(number):
        row = next(draw) % len(original["SEX"])
        chosen = sorted({next(draw) % len(names) for _ in range(1 + next(draw) % 3)})
        found.append(
            {
                names[place]: CodeSet(
                    tuple(sorted({original[names[place]][row], *(next(draw) % 8 for _ in range(next(draw) % 4))}))
                )
                for place in chosen
            }
        )
    return tuple(found)


CASES: Mapping[str, tuple[Table, Table, int]] = {
    "plain": (made(400, 1, original=True), made(350, 2), 11),
    "another draw": (made(400, 1, original=True), made(600, 3), 12),
    "cities without wages": (made(500, 4, original=True), made(300, 5, silent=(70, 2890, 4610)), 13),
    "a city is missing": (made(500, 4, original=True), made(400, 6, silent=(0,), without=1190), 14),
    "few rows": (made(300, 7, original=True), made(25, 8), 15),
    "equal": (made(300, 7, original=True), made(300, 7, original=True), 16),
}
PRINTED: Mapping[str, tuple[float, float, float, float]] = {
    "plain": (841210.7142856728, 730978.0466423458, 835735.6950164088, 802641.4853148091),
    "another draw": (872708.3333333497, 981695.423848237, 836124.7601373745, 896842.8391063204),
    "cities without wages": (851966.6666667011, 971626.4833665664, 748287.6680230072, 857293.6060187583),
    "a city is missing": (874970.0000000494, 788663.9580784128, 676379.6969564407, 780004.551678301),
    "few rows": (634233.3333333326, 756286.7823865908, 567318.6378740467, 652612.9178646567),
    "equal": (999999.9999999548, 1000000.0, 1000000.0, 999999.999999985),
}
"""The three scores and their mean."""


@cache
def _schema() -> Schema:
    facts = {
        name: {"maxval": largest, "values_in_codebook": list(codes_of(name))}
        for name, largest in match3_largest().items()
    }
    return match3_schema(facts)


def _frame(table: Table) -> pd.DataFrame:
    frame = pd.DataFrame(dict(table))[list(_schema().names)]
    for column in _schema().columns:
        if isinstance(column, Category):
            assert set(map(str, frame[column.name])) <= set(column.labels), column.name
    return frame


@pytest.mark.parametrize("case", CASES)
def test_all_scores_are_those_that_the_official_program_prints(case: str) -> None:
    original, submission, seed = CASES[case]
    tests = ChallengeTests(triples(seed), conjunctions(original, seed + 100), "match3")
    codec = TableCodec.of(_schema(), judging=True)
    pair = TablePair(codec, rows_of(_frame(original), _schema()), (rows_of(_frame(submission), _schema()),), 3)
    found = Nist(tests=tests).compare(pair, context("nist"))
    scores = [found.score(name).value for name in ("clustering", "classification", "regression", "match")]
    assert scores == pytest.approx(PRINTED[case], rel=1e-12, abs=1e-6)
