"""Curators for tests: real tables in memory, real noise unless a test needs otherwise."""

import pyarrow as pa

from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.privacy.cost import UNIT, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.randomizer import SecureRandomizer
from understudy.schema import Category, Impossible, Schema, Unit

MEMORY = 2**28


def epsilon(value):
    return Cost(epsilon=int(value * UNIT))


def rho(value):
    return Cost(rho=int(value * UNIT))


def door(table: pa.Table, schema: Schema, granted: Cost, randomizer=None, *, fix_codec=True) -> Curator:
    curator = Curator(FrameTable(table, schema, memory_bytes=MEMORY), granted, randomizer or SecureRandomizer())
    if fix_codec:
        curator.fix_codec(TableCodec.of(schema))
    return curator


def letters(sizes, rules=(), unit=None):
    """A schema of category columns with the labels "0", "1", …, none of them missing, one code for each.

    What cannot be read would have a code of its own; the tables of these tests hold nothing of the kind.
    """
    columns = tuple(
        Category(name=name, labels=tuple(str(code) for code in range(size)), missing=False)
        for name, size in sizes.items()
    )
    return Schema(columns=columns, unit=unit or Unit(), rules=rules, unreadable="drop")


def rows_of(codes):
    """An Arrow table of the codes' labels."""
    return pa.table({name: pa.array([str(code) for code in column], pa.string()) for name, column in codes.items()})


ONLY_REGISTERED_VOTE = Impossible(when={"registered": ("0",), "voted": ("1",)})
VOTERS = letters({"registered": 2, "voted": 2, "age": 5}, rules=(ONLY_REGISTERED_VOTE,))
