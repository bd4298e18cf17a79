"""Every way to read a table, against the contract of count sources."""

from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from tests.counts.places import PLACES
from tests.nets.doubles import Grower
from understudy.counts.opening import open_table
from understudy.methods.method import METHODS
from understudy.privacy.cost import Budget
from understudy.testing import SeededRandomizer, check_source
from understudy.testing import cases as tables
from understudy.testing.cases import Case
from understudy.testing.replay import check_pair, random_pairs


@pytest.mark.parametrize("place", PLACES)
def test_source(place: str, tmp_path: Path) -> None:
    check_source(lambda table, schema: open_table(PLACES[place](table, tmp_path), schema))


@pytest.mark.parametrize("place", PLACES)
def test_trees_choices_and_scores_replay_through_every_source(place: str, tmp_path: Path) -> None:
    """Neighbours of several rows per person, through each place: the same queries, the same release."""
    schema = tables.several_rows()
    case = Case(schema, "grower", Budget(2.0))
    pairs = list(random_pairs(schema, 2, np.random.default_rng(7)))
    with mock.patch.dict(METHODS.built_in, {"grower": Grower}):
        for index, pair in enumerate(pairs):
            check_pair(
                case.pipeline(lambda table: PLACES[place](table, tmp_path)),
                pair.table,
                pair.neighbour,
                SeededRandomizer(index),
            )
