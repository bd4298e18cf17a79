"""Planted blunders with the ledger: reading first, refunding, free second tries, and runs continued the wrong way."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock

from understudy.codec.table_codec import TableCodec
from understudy.counts.open import open_table
from understudy.errors import LedgerError
from understudy.marginals.clique import Clique
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget
from understudy.privacy.ledger import Ledger, Mark, Receipt
from understudy.schema import Schema
from understudy.synthesizer import account, pipeline
from understudy.testing.planted.bug import PlantedBug, patched

__all__ = ["UNPAID"]


def _nothing(*_: object) -> None:
    """What a step that was forgotten does."""


@contextmanager
def _free_retry() -> Iterator[None]:
    charge, receipts = Ledger.charge, {}

    def forgiving(self: Ledger, dataset: str, *, run: str, **rest: Any) -> Any:
        with suppress(LedgerError):
            receipts[run] = charge(self, dataset, run=run, **rest)
        return receipts[run]

    with mock.patch.object(Ledger, "charge", forgiving):
        yield


@contextmanager
def _refund() -> Iterator[None]:
    close = account.Charged.close

    def refunding(self: account.Charged, outcome: Any) -> None:
        if outcome != "failed":
            return close(self, outcome)
        with sqlite3.connect(self.ledger.path) as connection:
            names = connection.execute("select type, name, tbl_name from sqlite_master").fetchall()
            for _, name, _ in (entry for entry in names if entry[0] == "trigger"):
                connection.execute(f'drop trigger "{name}"')
            table = next(entry[1] for entry in names if entry[0] == "table" and "sqlite" not in entry[1])
            connection.execute(f'delete from "{table}" where rowid = (select max(rowid) from "{table}")')
        return None

    with mock.patch.object(account.Charged, "close", refunding):
        yield


@contextmanager
def _read_first() -> Iterator[None]:
    def eager(data: object, schema: Schema, **rest: Any) -> Any:
        table = open_table(data, schema, **rest)
        table.bind(TableCodec.of(schema)).counts([Clique()])
        return table

    with mock.patch.object(pipeline, "open_table", eager):
        yield


@contextmanager
def _charged_again() -> Iterator[None]:
    take_up = Ledger.take_up

    def charging(self: Ledger, run: str, mark: Mark | None) -> Receipt:
        (line,) = (entry for entry in self.entries() if entry.kind == "charge" and entry.run == run)
        budget = Budget(line.budget_epsilon / UNIT, line.budget_delta / DELTA_UNIT)
        said = {"method": line.method, "cost": line.cost, "budget": budget, "unit": line.unit}
        self.charge(line.dataset, run=f"{run} again {len(self.entries())}", **said)  # type: ignore[arg-type]
        return take_up(self, run, mark)

    with mock.patch.object(Ledger, "take_up", charging):
        yield


UNPAID: tuple[PlantedBug, ...] = (
    PlantedBug("retry not charged", "ledger", _free_retry),
    PlantedBug("refund on crash", "ledger", _refund),
    PlantedBug("rows read before the charge", "ledger", _read_first),
    PlantedBug("continued run charged again", "resume", _charged_again),
    PlantedBug("release not recorded before it is seen", "resume", patched(account.Charged, "complete", _nothing)),
)
