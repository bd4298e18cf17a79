"""The structure of a network: families in order, and which of them get their table from a later one.

`drawn`     one family after the other by the exponential mechanism; each draw costs the same.
`from_pairs`  noisy scores of all pairs of columns, paid for once; the rest is post-processing: a first table grows from
            the pair with the best score per cell, by the column that adds most, while it stays useful; then the
            column with the best sum of pair scores over a parent set that stays useful is added, again and again.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from understudy.marginals.clique import Clique
from understudy.marginals.domain import Domain
from understudy.mechanisms.field.parents import Search
from understudy.mechanisms.workload import COUNTED_CELLS, within
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator
from understudy.privacy.quality import Quality
from understudy.privacy.questions.family import Family

__all__ = ["Structure", "drawn", "from_pairs", "pairs_of"]

_UNSCORED = -1e15
"""Below every score: pairs too large to be counted are never taken."""
Scored = Callable[[Sequence[Family]], Quality[Family]]


@dataclass(frozen=True, slots=True)
class Structure:
    """Families, parents first. The tables of the first `derived` of them are sums of the next one's."""

    families: tuple[Family, ...]
    derived: int = 0

    @property
    def measured(self) -> tuple[Family, ...]:
        """The families that need a table."""
        return self.families[self.derived :]


def drawn(curator: Curator, search: Search, first: str, scored: Scored, draw: Cost) -> Structure:
    """A network of the live columns, grown from the first one; every step is one draw at that cost."""
    live = [name for name, size in search.domain.sizes.items() if size > 1]
    families, left = [Family(first)], [name for name in live if name != first]
    while left:
        chosen = [family.child for family in families]
        family = curator.select(scored(search.families(chosen, left)), draw)
        families.append(family)
        left.remove(family.child)
    return Structure(tuple(families), _nested(families, search.degree or 0))


def _nested(families: Sequence[Family], degree: int) -> int:
    """The degree, if the first families up to it all depend on everything before them, else 0."""
    first = families[: degree + 1]
    nested = all(
        set(family.parents) == {other.child for other in first[:place]} and not any(family.levels)
        for place, family in enumerate(first)
    )
    return degree if nested and len(first) == degree + 1 else 0


def pairs_of(domain: Domain) -> list[Family]:
    """Every pair of live columns once, as families (R does not ask which of the two is the child).

    The largest are left out where all could not be counted together.
    """
    live = [name for name, size in domain.sizes.items() if size > 1]
    pairs = within(domain, (Clique(pair) for pair in itertools.combinations(live, 2)), COUNTED_CELLS)
    return [Family(second, (first,)) for first, second in pairs]


def from_pairs(search: Search, scores: Mapping[Clique, float]) -> Structure:
    """The network that noisy pair scores suggest; see the module."""
    domain = search.domain
    live = [name for name, size in domain.sizes.items() if size > 1]
    if len(live) == 1:
        return Structure((Family(live[0]),))

    def score(first: str, second: str) -> float:
        return scores.get(domain.clique((first, second)), _UNSCORED)

    fitting = [pair for pair in scores if domain.cells(pair) <= search.limit] or list(scores)
    per_cell = {pair: scores[pair] / domain.cells(pair) for pair in fitting}
    start: Clique = max(per_cell, key=lambda pair: per_cell[pair])
    table = list(start)
    while True:
        room = [name for name in live if name not in table and domain.cells((*table, name)) <= search.limit]
        if not room:
            break
        table.append(max(room, key=lambda name: sum(score(name, other) for other in table)))
    families = [Family(name, tuple(table[:place])) for place, name in enumerate(table)]
    left = [name for name in live if name not in table]
    while left:
        chosen = [family.child for family in families]
        offers = [(_parents(search, name, chosen, score), name) for name in left]
        gains = {name: sum(score(name, other) for other in parents) for parents, name in offers}
        parents, name = max(offers, key=lambda offer: gains[offer[1]])
        families.append(Family(name, parents))
        left.remove(name)
    return Structure(_with_rules(search, families), len(table) - 1)


def _parents(search: Search, child: str, chosen: Sequence[str], score: Callable[[str, str], float]) -> tuple[str, ...]:
    """Parents by falling score, each taken if the table stays within the limit and its score is above 0."""
    found = list(search.forced(child, chosen))
    for name in sorted(chosen, key=lambda other: -score(child, other)):
        cells = search.domain.cells((child, name, *found))
        if name not in found and score(child, name) > 0.0 and cells <= search.limit:
            found.append(name)
    return tuple(found)


def _with_rules(search: Search, families: Sequence[Family]) -> tuple[Family, ...]:
    """Families whose parents hold all that rules force."""
    found = []
    for place, family in enumerate(families):
        forced = search.forced(family.child, [other.child for other in families[:place]])
        found.append(Family(family.child, tuple(dict.fromkeys((*forced, *family.parents)))))
    return tuple(found)
