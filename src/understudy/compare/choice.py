"""A choice of method that is paid for: every candidate's release and the choice itself are charged to a ledger.

Privacy. Each candidate makes a release of its own at (ε, δ), charged as any release is. The best of them is then drawn
by the exponential mechanism on how far the private table is from each set of released rows over all pairs of columns
(`StandInError`, with its sensitivity), at ε_choice. Releases are public by then, so the parts add up: with K candidates
(K ε + ε_choice, K δ) in all. The ledger must cover all of it before anything begins, and each part is charged before a
row is read for it. Everything may be published: the chosen release,
the others, and which one was chosen. Comparing without paying (`compare`) is confidential; choosing by it leaks.
"""

import itertools
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from understudy.codec.table_codec import TableCodec
from understudy.compare.settings import Candidate
from understudy.counts.open import open_table
from understudy.counts.source import PrivateTable
from understudy.errors import BudgetError, ResourceError, UsageError
from understudy.evaluate.store import refuse_release_folder
from understudy.marginals.clique import Clique
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.ledger import Ledger
from understudy.privacy.questions.stand_in_error import StandInError
from understudy.progress import Progress, silent
from understudy.release.release import Release
from understudy.release.statement import digest_of
from understudy.release.wording import charge_note
from understudy.schema import OpenCategory, PrivateBins, Schema, Unit
from understudy.synthesizer import synthesize
from understudy.synthesizer.account import unit_words
from understudy.synthesizer.design import Design, check_memory
from understudy.synthesizer.environment import Environment
from understudy.synthesizer.public_schema import check_without_public

__all__ = ["Choice", "choose"]

MOST_CELLS = 2**26


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen method's release, the releases of all candidates, and what everything cost together."""

    chosen: str
    releases: Mapping[str, Release]
    cost: Budget

    def document(self) -> dict[str, object]:
        """What must go with any of these releases: their own statements do not know of the choice."""
        return {
            "chosen": self.chosen,
            "candidates": list(self.releases),
            "epsilon": self.cost.epsilon,
            "delta": self.cost.delta,
            "notice": "All candidates and the choice among them together satisfy this (ε, δ); the statement of one "
            "release covers that release alone. Which one is published depends on all of them.",
        }

    def write(self, path: Path) -> None:
        """Writes the document, which may be published, as a file."""
        path.write_text(json.dumps(self.document(), indent=1, allow_nan=False) + "\n", encoding="utf-8")

    @property
    def release(self) -> Release:
        """The release of the chosen method."""
        return self.releases[self.chosen]


def choose(
    data: object,
    schema: Schema,
    *,
    methods: Sequence[str],
    epsilon: float,
    delta: float = 0.0,
    choice_epsilon: float,
    ledger: Ledger | str | Path,
    dataset: str | None = None,
    out: str | Path | None = None,
    progress: Progress = silent,
    _environment: Environment | None = None,
) -> Choice:
    """Runs every method, then draws the best one privately. Costs (K ε + ε_choice, K δ) for K methods, all charged.

    Args:
        data, schema: the private table, and what it may contain (no open labels, no private bins).
        methods: candidates, each a name with options as in "steps layers=2".
        epsilon, delta: budget of each candidate's release.
        choice_epsilon: budget of the choice.
        ledger, dataset: each part is charged before a row is read for it; refused in advance if not all is covered.
        out: a new folder with one release folder for each candidate.

    Raises:
        UsageError, SchemaError, ResourceError, BudgetError, LedgerError: before a charge, as far as public facts tell.
    """
    candidates = [Candidate.read(text) for text in methods]
    _check(candidates, schema)
    account = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    name = dataset if dataset is not None else _only(account)
    grants = [(one, one.budget(epsilon, delta)) for one in candidates]
    last = Budget(choice_epsilon)
    _check_covered(account, name, grants, last, schema)
    if out is not None:
        refuse_release_folder(Path(out))
    table = open_table(data, schema)
    folder = None if out is None else _new_folder(Path(out))
    releases: dict[str, Release] = {}
    for place, (one, grant) in enumerate(grants):
        progress.stage("measure", place / (len(grants) + 1))
        target = None if folder is None else folder / f"{place + 1}-{one.method}"
        releases[one.name] = _released(table, one, grant, (account, name), out=target, environment=_environment)
    chosen = _drawn(table, releases, (account, name), last, _environment or Environment.real())
    progress.stage("measure", 1.0)
    paid = sum(grant.epsilon for _, grant in grants) + choice_epsilon, sum(grant.delta for _, grant in grants)
    found = Choice(chosen, releases, Budget(*paid))
    if folder is not None:
        found.write(folder / "choice.json")
    return found


def _released(
    table: PrivateTable,
    one: Candidate,
    grant: Budget,
    account: tuple[Ledger, str],
    *,
    out: Path | None,
    environment: Environment | None,
) -> Release:
    """One candidate's release, charged as any release is."""
    return synthesize(
        table,
        table.schema,
        method=one.method,
        options=dict(one.options),
        epsilon=grant.epsilon,
        delta=grant.delta,
        ledger=account[0],
        dataset=account[1],
        out=out,
        _environment=environment,
    )


def _drawn(
    table: PrivateTable,
    releases: Mapping[str, Release],
    account: tuple[Ledger, str],
    budget: Budget,
    environment: Environment,
) -> str:
    """The name of the chosen release; the choice is charged before a row is read for it."""
    ledger, dataset = account
    schema = table.schema
    question, run, cost = _question(releases, schema), f"choice-{uuid.uuid4().hex}", budget.cost("pure")
    ledger.charge(
        dataset,
        run=run,
        method="choice",
        cost=cost,
        budget=budget,
        unit=unit_words(schema.unit),
        note=charge_note(digest_of(schema)),
    )
    curator = Curator(table, cost, environment.randomizer)
    curator.settle(TableCodec.of(schema))
    chosen = curator.select(question, Cost(epsilon=cost.epsilon))
    ledger.finish(run, "released")
    return chosen


def _question(releases: Mapping[str, Release], schema: Schema) -> StandInError:
    """All pairs of columns: what each release says about them, in rows."""
    codec = TableCodec.of(schema)
    cliques = _pairs(codec)
    estimates: dict[str, dict[Clique, npt.NDArray[np.float64]]] = {}
    for name, release in releases.items():
        rows = open_table(release.table, _free(schema)).bind(codec).counts(cliques)
        total = max(1, release.config.rows[0])
        scale = release.fits[0].model.total / total
        estimates[name] = {clique: counts.astype(np.float64) * scale for clique, counts in rows.items()}
    return StandInError("method", list(releases), cliques, estimates)


def _pairs(codec: TableCodec) -> list[Clique]:
    names = codec.domain.columns
    pairs = [codec.domain.clique(pair) for pair in itertools.combinations(names, 2)]
    return pairs or [codec.domain.clique(names)]


def _free(schema: Schema) -> Schema:
    """The same columns without a unit: released rows belong to nobody."""
    return replace(schema, unit=Unit())


def _check(candidates: Sequence[Candidate], schema: Schema) -> None:
    if len(candidates) < 2 or len({one.name for one in candidates}) < len(candidates):
        raise UsageError("methods", "must name at least two different methods.")
    _check_nothing_open(schema)
    codec = TableCodec.of(schema)
    cells = sum(codec.domain.cells(clique) for clique in _pairs(codec))
    if cells > MOST_CELLS:
        fix = "Use coarser bins or fewer columns."
        raise ResourceError("choice: all pairs of columns", 8 * cells * len(candidates), 8 * MOST_CELLS, fix)


def _check_nothing_open(schema: Schema) -> None:
    """Raises if a release would first settle labels or bins: each its own, so that no two could be put side by side."""
    opened = [column.name for column in schema.modelled if isinstance(column, OpenCategory)]
    cut = [column.name for column in schema.modelled if isinstance(getattr(column, "bins", None), PrivateBins)]
    if opened or cut:
        parts = [("an open list of labels", opened), ("private bins", cut)]
        named = "; ".join(f"{what}: {', '.join(names)}" for what, names in parts if names)
        rule = f"a private choice needs a schema that leaves nothing to be settled privately, but this one has {named}."
        fix = "List the labels and give edges or a number of even bins in the schema, or choose on a public table."
        raise UsageError("schema", rule, fix)


def _check_covered(
    ledger: Ledger, dataset: str, grants: Sequence[tuple[Candidate, Budget]], last: Budget, schema: Schema
) -> None:
    """Raises unless every release can be made and the ledger covers them and the choice; charges nothing."""
    designs = [Design.of(schema, one.method, grant, options=dict(one.options)) for one, grant in grants]
    for design in designs:
        check_memory(design.plan, None)
        check_without_public(design)
    costs = [(design.granted, design.budget) for design in designs] + [(last.cost("pure"), last)]
    before = after = ledger.balance(dataset)
    for cost, budget in costs:
        units = {"budget_epsilon": budget.epsilon_units, "budget_delta": budget.delta_units}
        after = after.after(after.price(cost, **units))
    if not after.is_within_limit():
        needed = f"{len(designs)} releases and the choice among them"
        raise BudgetError("choose", needed, str(before.left), "Compare fewer methods, lower ε, or use a public proxy.")


def _only(ledger: Ledger) -> str:
    known = ledger.datasets()
    if len(known) != 1:
        raise UsageError("dataset", "must be named, because the ledger has several.", f"Known: {', '.join(known)}.")
    return known[0]


def _new_folder(place: Path) -> Path:
    if place.exists():
        raise UsageError(f"output {str(place)!r}", "exists already.", "Give a new folder.")
    place.mkdir(parents=True)
    return place
