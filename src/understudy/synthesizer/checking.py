"""Checking a table under a schema: its header, and on demand how its rows are read.

Three kinds of check, by what they may look at:

1. The header alone: free, and nothing in it is private.
2. The rows, exactly: nobody pays, so the result is confidential, is written nowhere by this package, and whatever is
   decided by it is not covered by a guarantee.
3. The rows with noise: an ordinary question to the curator, charged to a ledger before the first row is read. The
   result may be shown to anybody, and so may a schema that was changed because of it.

The privacy of the third
------------------------
Neighbours: tables that differ by all rows of one unit, of which the curator keeps at most k (one row, k = 1, without a
unit column; `counts/source.py`). Rows whose unit is missing are left out.

Sensitivity: for each of the C modelled columns one table of four cells is asked for: inside, outside, missing,
unreadable. By the codes of `counts/profile.py`, which follow from the public schema and look at one value at a time,
every row lies in exactly one cell. So adding or removing a unit changes the table of each column by at most k in L1,
hence by at most k in L2. The schema's `unreadable: drop` leaves out no row here: a value that cannot be read has a cell
of its own.

Noise and composition: the C tables are one batch of `Curator.measure`, which splits the cost evenly. With δ = 0 each
has discrete Laplace noise of scale k·C/ε, so it is ε/C-DP, and C of them are ε-DP. With δ > 0 each has discrete
Gaussian noise of σ² = k²·C/(2ρ), so it is ρ/C-zCDP, C of them are ρ-zCDP, and ρ is what (ε, δ) buys
(`privacy/cost.py`). Counts and noise are integers. Columns and cells are fixed by the schema, so nothing about the rows
decides what is asked. Shares, the estimated number of rows (the mean over columns of a table's sum) and the error are
computed from the noisy counts and public numbers alone, which costs nothing.
"""

import math
from contextlib import suppress

from understudy.counts.opening import open_table
from understudy.counts.profile import OutcomeCodec, profile
from understudy.counts.source import PrivateTable
from understudy.domain import Measurement
from understudy.errors import UnderstudyError, UsageError
from understudy.privacy.cost import Budget, Cost, distribution_for
from understudy.privacy.curator import Curator
from understudy.privacy.ledger import Ledger, Outcome
from understudy.progress import recorded
from understudy.release.statement import digest_of
from understudy.release.wording import charge_note
from understudy.schema import Schema
from understudy.schema.table_check import OUTCOMES, ColumnCheck, TableCheck
from understudy.synthesizer.account import Account, Place, unit_words
from understudy.synthesizer.pipeline import Environment

METHOD = "check"
"""What a ledger calls a check with noise, where others have the name of a method."""


@recorded()
def check_table(
    schema: Schema,
    data: object,
    *,
    rows: bool = False,
    epsilon: float | None = None,
    delta: float = 0.0,
    ledger: Ledger | Place | None = None,
    dataset: str | None = None,
    _environment: Environment | None = None,
) -> TableCheck:
    """The check of a table: of its header, or of its rows as well, exactly (confidential) or with noise (charged).

    With `epsilon` it costs (ε, δ) for neighbours that differ by one unit, charged on disk before a row is read.

    Args:
        schema: what the table may contain.
        data: a frame, a path or an opened table, as for `synthesize`.
        rows: whether to look at the rows.
        epsilon: ε of a look with noise.
        delta: its δ; 0 means pure ε.
        ledger: the ledger to charge.
        dataset: name of the dataset in the ledger.

    Raises:
        SchemaError, InputError: the header does not fit; nothing was read or charged.
        UsageError, BudgetError, LedgerError: refused before anything was read.
    """
    _check_arguments(rows=rows, epsilon=epsilon, delta=delta, ledger=ledger, dataset=dataset)
    table = open_table(data, schema)
    remarks = tuple(filter(None, (schema.unit_remark(table.undeclared),)))
    if not rows:
        return TableCheck(table.undeclared, remarks)
    if epsilon is None:
        return _exact(table, remarks)
    request = _NoisyLook(schema, Budget(epsilon, delta))
    environment = _environment or Environment.real()
    answers = _asked(table, request, Account.of(ledger, dataset, None), environment)
    return _noisy(table, remarks, request, answers)


def _check_arguments(
    *, rows: bool, epsilon: float | None, delta: float, ledger: Ledger | Place | None, dataset: str | None
) -> None:
    """Raises unless what is given goes together."""
    if epsilon is not None and not rows:
        raise UsageError("epsilon", "pays for a noisy look at the rows.", "Give rows=True too.")
    if epsilon is None:
        for name, given in (("delta", delta or None), ("ledger", ledger), ("dataset", dataset)):
            if given is not None:
                raise UsageError(name, "is for a look with noise.", "Give epsilon= too.")
    elif ledger is None:
        rule = "is charged to a ledger, because no release would record it."
        raise UsageError("epsilon", rule, "Give ledger= too; `understudy ledger init` makes one.")


def _exact(table: PrivateTable, remarks: tuple[str, ...]) -> TableCheck:
    found = profile(table)
    rows = max(1, found.rows)
    columns = []
    for name, one in found.columns.items():
        shares = dict(zip(OUTCOMES, (one.outcomes / rows).tolist(), strict=True))
        shapes = tuple((shape, times / rows) for shape, times in one.shapes)
        columns.append(ColumnCheck(name, table.schema.column(name).kind, **shares, shapes=shapes))
    return TableCheck(table.undeclared, remarks, found.rows, tuple(columns))


class _NoisyLook:
    """What will be asked and what it costs, worked out before anything is charged."""

    def __init__(self, schema: Schema, budget: Budget) -> None:
        self.schema, self.budget = schema, budget
        self.codec = OutcomeCodec(schema)
        self.cost = budget.cost("zcdp" if budget.delta else "pure")
        parts = self.cost.split([1.0] * len(self.codec.domain.columns))
        self.distribution = distribution_for(parts[0], schema.unit.sensitivity, METHOD)

    @property
    def error_rows(self) -> float:
        """Rows by which noise moves a count at most, in 95 of 100 cases: ln 20 scales of Laplace, 1.96 of Gaussian."""
        return (math.log(20) if self.distribution.kind == "laplace" else 1.96) * self.distribution.scale


def _asked(table: PrivateTable, request: _NoisyLook, account: Account, environment: Environment) -> list[Measurement]:
    """Charges, and only then asks. From here on the charge stands, whatever happens."""
    assert account.ledger is not None
    assert account.dataset is not None
    run = environment.run()
    account.ledger.charge(
        account.dataset,
        run=run,
        method=METHOD,
        cost=request.cost,
        budget=request.budget,
        unit=unit_words(request.schema.unit),
        note=charge_note(digest_of(request.schema)),
    )
    outcome: Outcome = "failed"
    try:
        curator = Curator(table, request.cost, environment.randomizer)
        curator.fix_codec(request.codec)
        tables = [curator.domain.clique([name]) for name in curator.domain.columns]
        answers = curator.measure(tables, Cost(request.cost.epsilon, request.cost.rho))
        outcome = "released"
    finally:
        with suppress(UnderstudyError):  # the note is for the owner's reading; the charge stands without it
            account.ledger.finish(run, outcome)
    return answers


def _noisy(
    table: PrivateTable, remarks: tuple[str, ...], request: _NoisyLook, answers: list[Measurement]
) -> TableCheck:
    """Shares from noisy counts: post-processing."""
    rows = max(1, round(sum(int(answer.values.sum()) for answer in answers) / len(answers)))
    columns = []
    for answer in answers:
        (name,) = answer.columns
        shares = [min(1.0, max(0, count) / rows) for count in answer.values.tolist()]
        columns.append(ColumnCheck(name, request.schema.column(name).kind, *shares))
    error = min(1.0, request.error_rows / rows)
    budget = request.budget
    return TableCheck(table.undeclared, remarks, rows, tuple(columns), budget.epsilon, budget.delta, error)
