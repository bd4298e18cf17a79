"""The methods of the study: those of the challenge's teams, told what a public table tells, and others beside them."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from studies.field.tables import Bench
from understudy import plan
from understudy.codec.table import TableCodec
from understudy.domain import Clique
from understudy.methods.fieldgroups import Group, joined_groups
from understudy.methods.method import METHODS, describe_method

__all__ = ["ENTRANTS", "TEAMS", "Entrant", "Knowledge", "knowledge", "present"]

GROUP_CELLS = 10_000
LEAST_GAP = 0.1
"""Columns whose pair is nearer to independence than this (sum of |share − product|) are not grouped."""


@dataclass(frozen=True)
class Entrant:
    """A method under the name of its team, if it had one."""

    name: str
    method: str
    team: str = ""

    @property
    def takes_delta(self) -> bool:
        return "zcdp" in describe_method(self.method).currencies or self.method == "dpwgan"


ENTRANTS = (
    Entrant("nist_mst", "nist_mst", "RMcKenna"),
    Entrant("dpsyn", "dpsyn", "DPSyn"),
    Entrant("privbayes nist", "privbayes", "PrivBayes"),
    Entrant("fieldgroups", "fieldgroups", "Gardn999"),
    Entrant("pfr", "pfr", "pfr"),
    Entrant("dpwgan", "dpwgan", "UCLANESL"),
    Entrant("mst", "mst"),
    Entrant("aim", "aim"),
    Entrant("privsyn", "privsyn"),
    Entrant("independent", "independent"),
)
TEAMS = {one.team: one.name for one in ENTRANTS if one.team}


def present() -> tuple[Entrant, ...]:
    """Those that this version has."""
    known = METHODS.names()
    return tuple(one for one in ENTRANTS if one.method in known)


@dataclass(frozen=True)
class Knowledge:
    """What the public part of a table tells: which tables to measure, which columns go together."""

    marginals: str
    groups: str

    def options(self, entrant: Entrant, bench: Bench) -> Mapping[str, str]:
        """The options of a method that come from public knowledge."""
        told: dict[str, Mapping[str, str]] = {
            "nist_mst": {"marginals": self.marginals},
            "dpsyn": {"marginals": self.marginals},
            "privbayes": {"preset": "nist"},
            "fieldgroups": {"groups": self.groups},
            "pfr": {"groups": bench.groups or self.groups},
        }
        return told.get(entrant.method, {})


def knowledge(bench: Bench) -> Knowledge:
    """The list of marginals by the rule of `nist_mst`, and groups by the rule of `fieldgroups`, from public rows."""
    planned = plan(bench.schema, method="nist_mst", epsilon=1.0, delta=bench.delta, public=bench.public)
    return Knowledge(str(planned.options["marginals"]), _written(public_groups(bench)))


def public_groups(bench: Bench) -> list[Group]:
    """Columns joined by falling distance from independence, while tables stay within 10,000 cells."""
    codec = TableCodec.of(bench.schema)
    domain = codec.domain
    codes = {name: codec.encode(name, bench.public.column(codec.origin(name))) for name in domain.columns}
    scores = {
        Clique(pair): _gap(codes[pair[0]], codes[pair[1]], domain.shape(Clique(pair)))
        for pair in itertools.combinations(domain.columns, 2)
    }
    singles = [Group(Clique((name,))) for name in domain.columns]
    return joined_groups(domain, singles, scores, LEAST_GAP, GROUP_CELLS)


def _gap(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer], shape: Sequence[int]) -> float:
    cells = first.astype(np.int64) * shape[1] + second
    shares = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape) / len(cells)
    return float(np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum())


def _written(groups: Sequence[Group]) -> str:
    return ", ".join("+".join(f'"{name}"' for name in group.columns) for group in groups)
