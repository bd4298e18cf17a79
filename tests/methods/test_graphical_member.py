"""The graphical member of the ensemble: what follows from clear pairs, and nothing from noise."""

import numpy as np
import pytest

from tests.methods.door import door, letters, rho, rows_of
from understudy.domain import Clique, ResidualTable
from understudy.methods.graphical_member import graphical_pairs
from understudy.methods.known_columns import KnownColumns
from understudy.methods.record_synthesis import Coarsening
from understudy.testing.doubles import NoNoise

SIZES = {"a": 3, "b": 3, "c": 3, "d": 2}


def told(cost):
    """Columns and residuals of a chain a – b – c with d beside it, without noise that is announced."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 9_000)
    b = np.where(rng.random(9_000) < 0.8, a, rng.integers(0, 3, 9_000))
    c = np.where(rng.random(9_000) < 0.8, b, rng.integers(0, 3, 9_000))
    rows = {"a": a, "b": b, "c": c, "d": rng.integers(0, 2, 9_000)}
    curator = door(rows_of(rows), letters(SIZES), cost, NoNoise())
    part = cost.share(0.1)
    (total,) = curator.measure([Clique()], part)
    columns = curator.measure([Clique((name,)) for name in SIZES], part)
    known = KnownColumns.of(Coarsening(curator.domain, {}), total, columns, (), 0.01)
    pairs = [Clique(("a", "b")), Clique(("b", "c")), Clique(("a", "d"))]
    curator.measure_residuals(pairs, part)
    tables = {Clique(table.columns): table for table in curator.transcript.of(ResidualTable)}
    exact = {
        pair: np.histogram2d(rows[pair[0]], rows[pair[1]], [SIZES[name] for name in pair])[0] for pair in known.pairs
    }
    return known, tables, exact


@pytest.fixture(scope="module")
def chain():
    return told(rho(10.0))


def test_what_was_not_measured_follows_from_clear_pairs(chain):
    known, tables, exact = chain
    rows = {pair: float(np.abs(exact[pair] - known.grid.table(known.independent(), pair)).sum() / 2) for pair in exact}
    found = graphical_pairs(known, tables, rows, ())
    assert set(found) == set(known.pairs)
    for pair in [("a", "b"), ("b", "c"), ("a", "c")]:
        assert np.abs(found[Clique(pair)] - exact[Clique(pair)]).sum() / 2 < 100
    assert rows[Clique(("a", "c"))] > 2_000, "which columns alone do not tell"


def test_pairs_that_noise_explains_are_left_out(chain):
    known, tables, _ = chain
    noise = {pair: 0.4 * np.sqrt(tables[pair].variance) * tables[pair].residuals.size for pair in tables}
    rows = {pair: 0.49 * noise.get(pair, 1e9) for pair in known.pairs}
    assert graphical_pairs(known, tables, rows, ()) == {}
    found = graphical_pairs(known, tables, rows | {Clique(("a", "b")): 1_000.0}, ())
    apart = known.grid.table(known.independent(), Clique(("b", "c")))
    assert found[Clique(("b", "c"))] == pytest.approx(apart, rel=1e-3)
    assert np.abs(found[Clique(("a", "b"))] - known.grid.table(known.independent(), Clique(("a", "b")))).max() > 500
