"""The random tests of the challenge, drawn once and kept, so that all systems meet the same ones.

They are made from rows of the original, so a file of them is as confidential as the rest of an evaluation.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from understudy.errors import UsageError
from understudy.evaluate.challenge.cells import Rule, challenge_columns
from understudy.evaluate.challenge.conjunctions import BASE_ROWS, CodeSet, Condition, Interval, draw_conjunctions
from understudy.evaluate.challenge.three_way import TRIPLES, Triple, draw_triples
from understudy.evaluate.data.rows import Rows

__all__ = ["ChallengeTests", "draw_tests"]

FORMAT = "understudy challenge tests, format 1"
_RULES: Mapping[str, Rule] = {"match3": "match3", "buckets": "buckets"}


@dataclass(frozen=True, slots=True)
class ChallengeTests:
    """Triples for score 1 and conjunctions for score 2, and the rule by which the latter's codes are meant."""

    triples: tuple[Triple, ...]
    conjunctions: tuple[Condition, ...]
    rule: Rule = "buckets"

    def to_json(self) -> dict[str, object]:
        """Both lists as plain values."""
        return {
            "format": FORMAT,
            "rule": self.rule,
            "triples": [list(triple) for triple in self.triples],
            "conjunctions": [{name: _said(one) for name, one in condition.items()} for condition in self.conjunctions],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> "ChallengeTests":
        """The tests that `to_json` described."""
        try:
            triples = document["triples"]
            conjunctions = document["conjunctions"]
            if not isinstance(triples, list) or not isinstance(conjunctions, list) or document["format"] != FORMAT:
                raise TypeError("lists")
            kept = tuple((str(one), str(two), str(three)) for one, two, three in triples)
            meant = tuple({str(key): _meant(said) for key, said in one.items()} for one in conjunctions)
            return cls(kept, meant, _RULES[str(document.get("rule", "buckets"))])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError("challenge tests", "do not have the expected form.", "Use to_json's output.") from error

    def save(self, path: str | Path) -> None:
        """Writes the tests to a file. Confidential."""
        Path(path).write_text(json.dumps(self.to_json(), ensure_ascii=True) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "ChallengeTests":
        """The tests in a file."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"challenge tests {str(path)!r}", "cannot be read.") from error
        if not isinstance(document, dict):
            raise UsageError(f"challenge tests {str(path)!r}", "do not have the expected form.")
        return cls.from_json(document)


def draw_tests(
    original: Rows, rng: np.random.Generator, *, include_last: bool, chance: float, rule: Rule = "buckets"
) -> ChallengeTests:
    """100 triples and the conjunctions around 300 rows."""
    columns: Sequence[str] = challenge_columns(original)
    triples = draw_triples(columns, rng, number=TRIPLES, include_last=include_last)
    conjunctions = draw_conjunctions(original, rng, number=BASE_ROWS, chance=chance, rule=rule)
    return ChallengeTests(triples, conjunctions, rule)


def _said(one: CodeSet | Interval) -> dict[str, object]:
    return {"codes": list(one.codes)} if isinstance(one, CodeSet) else {"low": one.low, "high": one.high}


def _meant(said: Mapping[str, object]) -> CodeSet | Interval:
    codes = said.get("codes")
    if isinstance(codes, list):
        return CodeSet(tuple(int(code) for code in codes))
    return Interval(float(str(said["low"])), float(str(said["high"])))
