"""Planted blunders with the ledger: reading first, refunding, and free second tries."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest import mock

from understudy.codec.table_codec import TableCodec
from understudy.counts.open import open_table
from understudy.errors import LedgerError
from understudy.marginals.clique import Clique
from understudy.privacy.ledger import Ledger
from understudy.schema import Schema
from understudy.synthesizer import account, pipeline
from understudy.testing.planted.bug import PlantedBug

__all__ = ["UNPAID"]


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


UNPAID: tuple[PlantedBug, ...] = (
    PlantedBug("retry not charged", "ledger", _free_retry),
    PlantedBug("refund on crash", "ledger", _refund),
    PlantedBug("rows read before the charge", "ledger", _read_first),
)
