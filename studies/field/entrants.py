"""The methods of the study: entries of the challenge's teams, their mended forms, and others beside them.

Under a team's name stands its entry as it was, as far as a public table can play its public knowledge; beside it, as a
line of its own, the form that the package offers by default. `Entrant.changes` names every change.
"""

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

__all__ = ["ENTRANTS", "MENDED", "TEAMS", "WGAN_STEPS", "Entrant", "Knowledge", "knowledge", "present"]

GROUP_CELLS = 10_000
LEAST_GAP = 0.1
"""Columns whose pair is nearer to independence than this (sum of |share − product|) are not grouped."""


WGAN_STEPS = 600
"""Critic steps of DP-WGAN as entered; the entry walked 20 times through the rows, 64 at a time."""


@dataclass(frozen=True)
class Entrant:
    """A method under the name of its team, if it had one; or the mended form of such a method."""

    name: str
    method: str
    team: str = ""
    mends: str = ""
    """The entrant of whose team's method this is the form that the package offers by default."""
    changes: str = ""
    """What was changed, of a mended form."""

    @property
    def takes_delta(self) -> bool:
        return "zcdp" in describe_method(self.method).currencies or self.method == "dpwgan"


ENTRANTS = (
    Entrant("nist_mst as entered", "nist_mst", "RMcKenna"),
    Entrant("dpsyn as entered", "dpsyn", "DPSyn"),
    Entrant("privbayes nist", "privbayes", "PrivBayes"),
    Entrant("fieldgroups as entered", "fieldgroups", "Gardn999"),
    Entrant("pfr", "pfr", "pfr"),
    Entrant("dpwgan as entered", "dpwgan", "UCLANESL"),
    Entrant(
        "nist_mst as mended",
        "nist_mst",
        mends="nist_mst as entered",
        changes="0.3 of ρ for the single columns (entered: half); merged values come back by their noisy counts, drawn "
        "towards their mean by what noise explains of their spread (entered: evenly)",
    ),
    Entrant(
        "dpsyn as mended",
        "dpsyn",
        mends="dpsyn as entered",
        changes="records are moved by sweeps over the columns (entered: the gradual update, 100 rounds)",
    ),
    Entrant(
        "fieldgroups as mended",
        "fieldgroups",
        mends="fieldgroups as entered",
        changes="0.01 of ε for the number of rows, a threshold that one empty cell is expected to pass, and only where "
        "noise exceeds 16 times the rows (entered: no total, counts below 1.9 · (G/ε) · log₁₀(cells) become 0)",
    ),
    Entrant(
        "dpwgan as mended",
        "dpwgan",
        mends="dpwgan as entered",
        changes="half of ε for noisy single columns, to which rows are raked; hidden layers of 32, latent dimension "
        "16, batches of 256, weights within ±1, two critic steps for one of the generator, 500 critic steps on 2 % of "
        "the rows each (entered: no noisy columns, no raking; 1,024, 64, 64, ±0.01, ten)",
    ),
    Entrant("mst", "mst"),
    Entrant("aim", "aim"),
    Entrant("privsyn", "privsyn"),
    Entrant("independent", "independent"),
)
TEAMS = {one.team: one.name for one in ENTRANTS if one.team}
MENDED = {one.mends: one.name for one in ENTRANTS if one.mends}
"""The mended form of an entrant, by its name."""


def present() -> tuple[Entrant, ...]:
    """Those that this version has."""
    known = METHODS.names()
    return tuple(one for one in ENTRANTS if one.method in known)


@dataclass(frozen=True)
class Knowledge:
    """What the public part of a table tells: which tables to measure, which columns go together."""

    marginals: str
    groups: str

    def options(self, entrant: Entrant, bench: Bench) -> Mapping[str, object]:
        """The options of a method: those that come from public knowledge, and those of the entry as it was."""
        told: dict[str, Mapping[str, object]] = {
            "nist_mst": {"marginals": self.marginals},
            "dpsyn": {"marginals": self.marginals},
            "privbayes": {"preset": "nist"},
            "fieldgroups": {"groups": self.groups},
            "pfr": {"groups": bench.groups or self.groups},
        }
        entered: dict[str, Mapping[str, object]] = {
            "nist_mst": {"one_way_share": 0.5, "expand": "evenly"},
            "dpsyn": {"update": "gradual"},
            "fieldgroups": {"published": True},
            "dpwgan": {"preset": "published", "rate": 64 / bench.guessed_rows, "steps": WGAN_STEPS},
        }
        return {**told.get(entrant.method, {}), **(entered.get(entrant.method, {}) if entrant.team else {})}


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
