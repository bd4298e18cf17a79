"""Before any method runs: what the schema leaves open is settled through the door, and paid for.

Open categories. Their labels are discovered: a label appears if its noisy count reaches a threshold that one unit's
labels pass with probability δ at most. (ε, δ)-DP, or (δ, ρ)-approximate zCDP; the curator proves it. Of the labels
found, the `most_labels` with the highest noisy count stay (post-processing); all others are "other".

Private bins. Edges are chosen among the places of a fine public grid, by noisy mass, by private quantiles or by halving
ranges that hold many rows: `preparation/private_bins.py`. ε or ρ, no δ.

Rare labels. Those of low noisy count share one code: `preparation/rare.py`. A histogram, ε or ρ, no δ.

Budget. Each such column gets 5 % of ρ, or of ε in a pure run, all of them together at most 30 %; the parts add up with
what the method spends on the rest. δ goes to open categories alone, in equal parts: all of it under pure ε, half under
zCDP (where the other half pays for the conversion of ρ into ε) and where the method spends δ itself. A schema that
leaves nothing open spends nothing here.
"""

import math
from collections.abc import Mapping
from fractions import Fraction

from understudy.codec.bins import fine_grid
from understudy.codec.table_codec import TableCodec
from understudy.errors import UsageError
from understudy.marginals.answer import Discovery
from understudy.mechanisms.assisted.public_table import PublicTable
from understudy.mechanisms.forecast import expected_absolute
from understudy.mechanisms.mechanism import PublicFacts, Step
from understudy.mechanisms.preparation.private_bins import bin_count, bin_steps, binned_columns, chosen_edges, starts_of
from understudy.mechanisms.preparation.rare import chosen_pools, rare_columns, rare_steps
from understudy.privacy.calibrate import discovery_threshold, law_for
from understudy.privacy.cost import Budget, Cost, Currency
from understudy.privacy.curator import Curator
from understudy.schema import OpenCategory, Schema

__all__ = [
    "failure_delta",
    "granted_cost",
    "most_frequent",
    "preparation_cost",
    "preparation_steps",
    "prepare",
    "public_facts",
]

SHARE = Fraction(5, 100)
MOST_SHARE = Fraction(30, 100)


def failure_delta(schema: Schema, budget: Budget, currency: Currency, *, shared: bool = False) -> int:
    """Units of δ set aside for discovering open categories; 0 if there are none.

    Raises:
        UsageError: if there are some and the budget has no δ.
    """
    columns = _open(schema)
    if not columns:
        return 0
    units = budget.delta_units if currency == "pure" and not shared else budget.delta_units // 2
    if units < len(columns):
        names = ", ".join(column.name for column in columns)
        raise UsageError(
            f"column {names}",
            f"is an open category, whose labels can only be discovered under δ above 0, got {budget.delta!r}.",
            "Give --delta, for example 1e-9, or list the labels in the schema.",
        )
    return units


def granted_cost(
    schema: Schema,
    budget: Budget,
    currency: Currency,
    *,
    spends_delta: bool = False,
    pure_share: Fraction = Fraction(0),
) -> Cost:
    """All that a run may spend: the budget in that currency, with the δ that discovery needs set aside.

    For a method that spends δ itself it is all of ε and δ. `pure_share` is the share of ε that a concentrated run keeps
    for steps paid in pure ε.
    """
    delta = failure_delta(schema, budget, currency, shared=spends_delta)
    if spends_delta:
        delta = budget.delta_units
    return budget.cost(currency, delta, pure=math.floor(budget.epsilon_units * pure_share))


def preparation_cost(schema: Schema, cost: Cost, *, spends_delta: bool = False) -> tuple[dict[str, Cost], Cost]:
    """The cost of settling each column that the schema leaves open, and what is left for the method."""
    opened, others = _open(schema), [*binned_columns(schema), *rare_columns(schema)]
    count = len(opened) + len(others)
    if not count:
        return {}, Cost(cost.epsilon, cost.rho, cost.delta if spends_delta else 0)
    # A step is paid in one currency: what a concentrated run keeps in pure ε stays with the method.
    part = (Cost(rho=cost.rho) if cost.rho else cost).share(min(SHARE, MOST_SHARE / count))
    delta = (cost.delta // 2 if spends_delta else cost.delta) // len(opened) if opened else 0
    left = cost.delta - delta * len(opened) if spends_delta else 0
    costs = {column.name: Cost(part.epsilon, part.rho, delta) for column in opened}
    costs |= {column.name: part for column in others}
    return costs, Cost(cost.epsilon - count * part.epsilon, cost.rho - count * part.rho, left)


def preparation_steps(schema: Schema, costs: Mapping[str, Cost]) -> tuple[Step, ...]:
    """The questions `prepare` will ask, for a plan; raises where a share is too small."""
    steps = []
    for column in _open(schema):
        name, cost = f"discover {column.name}", costs[column.name]
        law = law_for(cost, schema.unit.sensitivity, name, laplace=True)
        discovery_threshold(law, schema.unit.sensitivity, cost.delta, name)
        steps.append(Step(name, cost, column.most_labels, law.scale, expected_absolute(law)))
    return (*steps, *bin_steps(schema, costs), *rare_steps(schema, costs))


def prepare(curator: Curator, schema: Schema, costs: Mapping[str, Cost]) -> TableCodec:
    """Discovers labels, chooses bins, pools rare labels, settles the curator on the resulting codes and returns them.

    Spends `costs` as `preparation_cost` gave them. Everything after the noisy answers is post-processing.
    """
    labels = {
        column.name: most_frequent(curator.discover(column.name, costs[column.name]), column.most_labels)
        for column in _open(schema)
    }
    edges = chosen_edges(curator, schema, costs)
    codec = TableCodec.of(schema, labels, edges, pools=chosen_pools(curator, schema, costs))
    curator.settle(codec)
    return codec


def public_facts(schema: Schema, rows_hint: int | None = None, public: PublicTable | None = None) -> PublicFacts:
    """What a plan may know. Open categories count with as many labels as they may get, private bins as even ones,
    categories with all their labels, rare or not.

    The most frequent labels of a public table stand for those that are to be discovered.
    """
    labels = {column.name: _planned_labels(column, public) for column in _open(schema)}
    edges = {column.name: starts_of(fine_grid(column, bin_count(column))) for column in binned_columns(schema)}
    codec = TableCodec.of(schema, labels, edges)
    counts = None if public is None else public.bind(codec).counts
    prepared = (*labels, *edges, *(column.name for column in rare_columns(schema)))
    return PublicFacts(codec.domain, codec.forbidden, schema.unit.sensitivity, rows_hint, prepared, counts)


def _planned_labels(column: OpenCategory, public: PublicTable | None) -> list[str]:
    known: list[str] = []
    if public is not None:
        held = public.label_counts(column.name)
        falling = sorted(zip((-held.counts).tolist(), held.labels, strict=True))
        known = [label for _, label in falling if label != column.other]
    unknown = (f"label {place}" for place in range(column.most_labels))
    return list(dict.fromkeys([*known, *unknown]))[: column.most_labels]


def most_frequent(discovery: Discovery, most: int) -> list[str]:
    """At most `most` labels, those with the highest noisy count (ties in code point order), in code point order."""
    falling = sorted(zip((-discovery.values).tolist(), discovery.labels, strict=True))
    return sorted(label for _, label in falling[:most])


def _open(schema: Schema) -> list[OpenCategory]:
    return [column for column in schema.modelled if isinstance(column, OpenCategory)]
