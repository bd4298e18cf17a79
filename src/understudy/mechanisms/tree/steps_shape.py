"""Shape: what follows from the options of STEPS and a domain before anything is asked. Public throughout.

With p columns of more than one code and L layers asked for, u = min(L, p − 1) layers lie between the root and the full
table, which is the last layer (for L = p the last column is forced, so the full table is layer p itself). A path passes
u draws, u decisions to stop, and u + 1 counted layers, the full table among them. Groups of columns in L layers are
chosen by one draw; the last group is the full table.
"""

from dataclasses import dataclass
from fractions import Fraction

from understudy.errors import ResourceError, UsageError
from understudy.marginals.domain import Domain
from understudy.mechanisms.mechanism import PublicFacts, Step
from understudy.mechanisms.tree.choosing import Choice, ChoiceCosts, Stopping, splittable
from understudy.privacy.calibrate import growth_rule, selection_rate
from understudy.privacy.cost import Cost
from understudy.privacy.questions.node_aic import MOST_SPLITS, split_count

__all__ = ["IN_ORDER", "Shape", "Wanted", "named_columns", "trimmed_shares"]

IN_ORDER = "*"
"""As a sequence: the columns in the order of the schema."""

_MOST_CODES_AT_NODES = 2**27
_CODE_BYTES = 24
_SPLIT_BYTES = 2000


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options that shape a tree."""

    layers: int | None = None
    sequence: str = ""
    choice: Choice = "node"
    stopping: Stopping = "none"

    def __post_init__(self) -> None:
        names = named_columns(self.sequence)
        if len(set(names)) < len(names) or not all(names):
            raise UsageError("sequence", "must name columns, each of them once, with commas between the names.")
        if names and self.layers is not None and self.layers > len(names):
            raise UsageError("sequence", f"names fewer columns than {self.layers} layers.", "Name more or set fewer.")
        if self.choice == "grouped" and (self.sequence or self.stopping != "none"):
            clash = "a sequence" if self.sequence else "a stopping rule"
            raise UsageError("choice grouped", f"cannot be had together with {clash}.")

    @property
    def depth(self) -> int:
        """L: as given, or as many as the sequence has, or 2."""
        return self.layers if self.layers is not None else len(named_columns(self.sequence)) or 2


@dataclass(frozen=True, slots=True)
class Shape:
    """A tree before its columns are chosen."""

    wanted: Wanted
    domain: Domain
    columns: tuple[str, ...]
    """Columns with more than one code."""
    sequence: tuple[str, ...]
    """Those of a given sequence, in order; empty if columns are drawn."""

    @classmethod
    def of(cls, wanted: Wanted, domain: Domain) -> "Shape":
        """The shape of a tree over that domain; raises for unknown columns in the sequence."""
        names = list(domain.columns) if wanted.sequence == IN_ORDER else named_columns(wanted.sequence)
        domain.clique(names)  # raises for an unknown column, with the closest known one
        live = splittable(domain)
        return cls(wanted, domain, tuple(live), tuple(name for name in names if name in live))

    @property
    def upper(self) -> int:
        """Counted layers between the root and the full table."""
        most = max(len(self.columns) - 1, 0)
        if self.wanted.choice == "grouped":
            return min(self.wanted.depth - 1, most)
        return min(self.wanted.depth, most, len(self.sequence) if self.wanted.sequence else most)

    @property
    def draws(self) -> int:
        """Paid draws among columns on a path from the root to the full table."""
        if self.wanted.sequence or not self.upper:
            return 0
        return 1 if self.wanted.choice == "grouped" else self.upper

    @property
    def stops(self) -> int:
        """Decisions to stop on a path."""
        return self.upper if self.wanted.stopping != "none" else 0

    @property
    def layer_sizes(self) -> list[int]:
        """Nodes of every counted layer, at most."""
        sizes = sorted((self.domain.sizes[name] for name in self.columns), reverse=True)
        if self.wanted.choice == "grouped":
            return [self.domain.cells(self.domain.columns) // sizes[-1]] * self.upper if self.upper else []
        if self.sequence:
            sizes = [self.domain.sizes[name] for name in self.sequence]
        found, nodes = list[int](), 1
        for size in sizes[: self.upper]:
            nodes *= size
            found.append(nodes)
        return found

    @property
    def codes_at_nodes(self) -> int:
        """Most counts that choosing for one layer needs: every code of every column at every node above it."""
        asked = (self.draws and self.wanted.choice == "node") or (self.stops and self.wanted.stopping == "range")
        nodes = [1, *self.layer_sizes][max(self.upper - 1, 0)]
        return nodes * sum(self.domain.sizes[name] for name in self.columns) if asked else 0

    @property
    def splits(self) -> int:
        """Ways to put the columns in groups, where that is asked for."""
        return split_count(len(self.columns), self.upper + 1) if self.wanted.choice == "grouped" and self.draws else 0

    def choice_bytes(self, where: str) -> int:
        """Memory for choosing; refuses too many options and too many nodes."""
        if self.splits > MOST_SPLITS:
            fix = "Set fewer layers, give a sequence or choose node by node."
            step = f"{where}: {self.splits:,} ways to group {len(self.columns)} columns"
            raise ResourceError(step, _SPLIT_BYTES * self.splits, _SPLIT_BYTES * MOST_SPLITS, fix)
        if self.codes_at_nodes > _MOST_CODES_AT_NODES:
            needed, most = _CODE_BYTES * self.codes_at_nodes, _CODE_BYTES * _MOST_CODES_AT_NODES
            fix = "Set fewer layers or give a sequence."
            raise ResourceError(f"{where}: choosing for every node of {self.upper} layers", needed, most, fix)
        return _SPLIT_BYTES * self.splits + _CODE_BYTES * self.codes_at_nodes

    def choice_steps(self, facts: PublicFacts, costs: ChoiceCosts) -> tuple[Step, ...]:
        """The questions of choosing, in order; raises where a share is too small for a draw."""
        if self.splits:
            return (_drawn("select columns of all layers", costs.draw, self.splits),)
        steps = list[Step]()
        for layer in range(1, self.upper + 1):
            if self.wanted.stopping == "range":
                steps.append(_drawn(f"select stop above layer {layer}", costs.stop, 2))
            if self.draws:
                steps.append(_drawn(f"select column of layer {layer}", costs.draw, len(self.columns) - layer + 1))
        if self.wanted.stopping == "privtree" and self.stops:
            largest = max(self.domain.sizes[name] for name in self.columns)
            growth_rule(costs.growth, facts.unit_rows, Fraction(largest), "grow tree")
            steps.append(Step("grow tree", costs.growth, sum([1, *self.layer_sizes[:-1]]), None, None))
        return tuple(steps)


def named_columns(sequence: str) -> list[str]:
    """The names of a sequence, none for an empty one and for the schema's order.

    >>> named_columns("voted, college")
    ['voted', 'college']
    """
    return [name.strip() for name in sequence.split(",")] if sequence and sequence != IN_ORDER else []


def trimmed_shares(shares: str, upper: int) -> str:
    """The first shares and the last one, scaled to add up to 1: open columns may turn out to have one code only.

    >>> trimmed_shares("0.2,0.3,0.5", 1)
    '2/7,5/7'
    """
    parts = [Fraction(part.strip()) for part in shares.split(",")]
    kept = [*parts[:-1][:upper], parts[-1]]
    whole = sum(kept, Fraction(0))
    return ",".join(str(part / whole) for part in kept)


def _drawn(name: str, cost: Cost, options: int) -> Step:
    selection_rate(cost, Fraction(1), name, monotone=True)
    return Step(name, cost, options, None, None)
