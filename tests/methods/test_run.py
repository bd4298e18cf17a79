"""A run step by step: public cells, groups, expected reference records, order of questions."""

import numpy as np
import pytest

from tests.methods.door import MEMORY, letters, rows_of
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.errors import ResourceError
from understudy.methods.rdt import GrowthLimits, LabelCosts, LabelRun, LabelSettings, Reference, _expanded, check_dense
from understudy.models.label_trees import Attributes, DecisionTree, Ensemble
from understudy.privacy.cost import UNIT, Cost
from understudy.privacy.curator import Curator
from understudy.schema import Unit
from understudy.schema.schema import without_columns
from understudy.testing.doubles import NoNoise

SCHEMA = letters({"a": 3, "b": 2, "sex": 2, "race": 3})
ROWS = {"a": [0, 0, 1, 2, 2, 2], "b": [0, 1, 1, 0, 0, 1], "sex": [0, 1, 1, 0, 0, 1], "race": [0, 1, 2, 0, 1, 2]}


def _run(public=True, synthetic=False, leaf_size=1, trees=2):
    schema = without_columns(SCHEMA, ["sex", "race"])
    public_table = FrameTable(rows_of({"a": [0, 0, 1], "b": [0, 0, 1]}), schema, memory_bytes=MEMORY)
    private = FrameTable(rows_of(ROWS), SCHEMA, memory_bytes=MEMORY)
    cost = Cost(epsilon=10 * UNIT)
    curator = Curator(private, cost, NoNoise(), public=public_table if public else None)
    curator.fix_codec(TableCodec.of(SCHEMA))
    settings = LabelSettings.of(curator.domain, ("sex", "race"), {}, {}, GrowthLimits(leaf_size, 9, 100))
    shares = (0.01, 0.0 if public else 0.25)
    costs = LabelCosts.of(cost, 2, trees, shares=shares, label_change=False)
    return curator, LabelRun(curator, settings, costs, trees, 0, synthetic)


def test_public_cells_are_those_of_the_public_table():
    curator, run = _run()
    model = run.model()
    assert model.cells.tolist() == [0, 3]
    np.testing.assert_allclose(model.probabilities, [2 / 3, 1 / 3])
    assert model.total == 6.0
    assert [name for name, _ in curator.charges] == [
        "measure total",
        *(f"measure leaves of tree {tree} for {label}" for label in ("sex", "race") for tree in (1, 2)),
    ]


def test_private_growth_is_asked_before_any_leaf():
    curator, run = _run(public=False, leaf_size=0)
    model = run.model()
    steps = [name.split(" ")[0] for name, _ in curator.charges]
    assert steps == ["measure", "grow", "grow", "measure", "measure", "measure", "measure"]
    assert model.cells.tolist() == [0, 1, 2, 3, 4, 5]
    for tree in run.ensembles[1].trees:
        assert 2 in tree.used, "later columns are split by earlier private ones"


def test_large_tables_are_counted_in_several_passes_at_the_same_price(monkeypatch):
    whole, run = _run()
    model = run.model()
    monkeypatch.setattr("understudy.methods.marginals.BATCH_CELLS", 1)
    pieces, run = _run()
    again = run.model()
    assert whole.charges == pieces.charges
    np.testing.assert_array_equal(again.probabilities, model.probabilities)


def test_reference_records_take_part_with_every_label():
    attributes = Attributes.of({"a": np.arange(2)})
    ensemble = Ensemble.of_counts("sex", attributes, [DecisionTree(np.array([0, -1, -1]), (2,))], [[1, 3, 2, 2]])
    found = _expanded(Reference({"a": np.array([0, 1])}, np.array([8.0, 10.0])), ensemble, "sex")
    assert found.codes["a"].tolist() == [0, 0, 1, 1]
    assert found.codes["sex"].tolist() == [0, 1, 0, 1]
    assert found.weights.tolist() == [2.0, 6.0, 5.0, 5.0]


def test_a_domain_too_large_to_write_out_is_refused():
    wide = letters({f"c{place}": 9 for place in range(8)}, unit=Unit())
    settings = LabelSettings.of(TableCodec.of(wide).domain, ("c0",), {}, {}, GrowthLimits(1, 9, 100))
    with pytest.raises(ResourceError):
        check_dense(settings)
