"""Every kind of lake, against the contract of count sources and replay on neighbours."""

from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from tests.engines import lakes
from tests.engines.available import needs
from tests.nets.doubles import Grower
from understudy.counts.opening import open_table
from understudy.methods.method import METHODS
from understudy.privacy.cost import Budget
from understudy.testing import SeededRandomizer, check_source
from understudy.testing import cases as tables
from understudy.testing.cases import Case
from understudy.testing.replay import check_pair, random_pairs

Lake = Callable[[pa.Table], str]


@pytest.fixture(params=["folder", "bucket", "delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """Puts a table into a lake and says where it lies."""
    match request.param:
        case "folder":
            yield lambda table: lakes.as_folder(table, tmp_path)
        case "bucket":
            needs("moto")
            with lakes.bucket() as store:
                yield lambda table: lakes.as_bucket(table, store)
        case "delta":
            needs("deltalake")
            yield lambda table: lakes.as_delta(table, tmp_path)
        case _:
            needs("pyiceberg")
            with lakes.catalog(tmp_path):
                yield lambda table: lakes.as_iceberg(table, tmp_path)


def test_source(lake: Lake) -> None:
    check_source(lambda table, schema: open_table(lake(table), schema))


def test_trees_choices_and_scores_replay_through_every_lake(lake: Lake) -> None:
    schema = tables.several_rows()
    case = Case(schema, "grower", Budget(2.0))
    with mock.patch.dict(METHODS.built_in, {"grower": Grower}):
        for index, pair in enumerate(random_pairs(schema, 2, np.random.default_rng(7))):
            check_pair(case.pipeline(lake), pair.table, pair.neighbour, SeededRandomizer(index))
