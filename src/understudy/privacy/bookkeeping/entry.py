"""Entry: one line of the ledger, sealed by a hash that ties it to the lines before.

Five kinds. `dataset` opens a dataset: its budget columns hold the cap, its cost columns the limit that charges add up
to. `charge` is one run: the (ε, δ) it claims, what it spends, and the totals of its dataset after it. `checkpoint`,
`continue` and `finish` tell how far a charged run has come, who goes on with it, and how it ended (`hold.py`); they
never change a total.

Two chains run through the entries. `previous` is the hash of the line before, whatever its dataset; `earlier` is the
hash of the opening or charge before in the same dataset. So the lines of one dataset can be handed out and checked
alone, and all they say was fixed before private rows were read. In a `checkpoint` or `continue` line `earlier` is the
hash of the line by which its run was held until then.

All amounts are whole units (see `cost.py`) below 2⁶³, the most a column of SQLite holds.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from understudy.privacy.cost import Cost

__all__ = ["FIELDS", "MOST_UNITS", "NOTHING_BEFORE", "Entry", "Kind"]

Kind = Literal["dataset", "charge", "finish", "checkpoint", "continue"]
MOST_UNITS = 2**63 - 1
NOTHING_BEFORE = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line, exactly as it is stored and handed out."""

    sequence: int
    kind: Kind
    dataset: str
    made: str
    run: str = ""
    composition: str = ""
    unit: str = ""
    method: str = ""
    note: str = ""
    outcome: str = ""
    budget_epsilon: int = 0
    budget_delta: int = 0
    cost_epsilon: int = 0
    cost_rho: int = 0
    cost_delta: int = 0
    total_epsilon: int = 0
    total_rho: int = 0
    total_delta: int = 0
    releases: int = 0
    earlier: str = NOTHING_BEFORE
    previous: str = NOTHING_BEFORE
    hash: str = ""

    @property
    def cost(self) -> Cost:
        """What a charge spends; for a dataset, the limit of its totals."""
        return Cost(self.cost_epsilon, self.cost_rho, self.cost_delta)

    @property
    def total(self) -> Cost:
        """What the dataset's charges add up to after this line."""
        return Cost(self.total_epsilon, self.total_rho, self.total_delta)

    def digest(self) -> str:
        """SHA-256 of everything but the hash itself, as canonical JSON."""
        content = self.to_json()
        del content["hash"]
        return hashlib.sha256(canonical(content).encode("ascii")).hexdigest()

    def sealed(self) -> "Entry":
        """The same line with its hash filled in."""
        return dataclasses.replace(self, hash=self.digest())

    def is_intact(self) -> bool:
        """Whether the stored hash is the hash of the content."""
        return self.hash == self.digest()

    def to_json(self) -> dict[str, str | int]:
        """Names and contents, in stored order."""
        return {name: getattr(self, name) for name in FIELDS}

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> "Entry":
        """The line with these contents; a ValueError names the first field that is missing, unknown or ill-typed."""
        unknown = sorted(set(map(str, fields)) ^ set(FIELDS))
        if unknown:
            raise ValueError(f"has a missing or unknown field {unknown[0]!r}")
        for name, wanted in FIELDS.items():
            given = fields[name]
            if type(given) is not wanted:
                raise ValueError(f"field {name!r} has the wrong type")
            if isinstance(given, int) and not 0 <= given <= MOST_UNITS:
                raise ValueError(f"field {name!r} is out of range")
        if fields["kind"] not in get_args(Kind):
            raise ValueError(f"field 'kind' is not one of {', '.join(get_args(Kind))}")
        return cls(**cast(dict[str, Any], dict(fields)))


FIELDS: dict[str, type] = {
    field.name: int if field.type in (int, "int") else str for field in dataclasses.fields(Entry)
}


def canonical(content: Mapping[str, str | int]) -> str:
    """The one spelling of this content as JSON: keys in order, no blanks, ASCII only.

    >>> canonical({"b": 1, "a": "é"})
    '{"a":"\\\\u00e9","b":1}'
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
