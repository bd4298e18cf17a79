import math

import numpy as np
import pytest

from tests.models.enumeration import joint_of, small_domain
from understudy.domain import Clique
from understudy.models.junction_tree import JunctionTree
from understudy.models.markov_field import MarkovField
from understudy.models.propagation import calibrate, from_bag_order, joints, spread, sum_to, table_faults

DOMAIN = small_domain()
TREE = JunctionTree.of(DOMAIN, [DOMAIN.clique(names) for names in ("abc", "bcd", "de")])


def random_factors(seed, zeros=0.0):
    rng = np.random.default_rng(seed)
    shapes = [(DOMAIN.cells(s), DOMAIN.cells(f)) for s, f in zip(TREE.separators, TREE.fresh, strict=True)]
    return [rng.gamma(1.0, 1.0, shape) * (rng.random(shape) >= zeros) for shape in shapes]


def product_of(factors):
    everything = DOMAIN.everything()
    table = np.ones(DOMAIN.shape(everything))
    for bag, rows in enumerate(factors):
        axes = (*TREE.separators[bag], *TREE.fresh[bag])
        ordered = DOMAIN.clique(axes)
        turned = rows.reshape(DOMAIN.shape(axes)).transpose([axes.index(name) for name in ordered])
        table = table * spread(DOMAIN, everything, ordered, np.ascontiguousarray(turned))
    return table


@pytest.mark.parametrize(("seed", "zeros"), [(0, 0.0), (1, 0.3), (2, 0.6), (3, 0.6)])
def test_calibration_equals_the_normalised_product(seed, zeros):
    factors = random_factors(seed, zeros)
    table = product_of(factors)
    tables, logarithm = calibrate(TREE, factors)
    assert logarithm == pytest.approx(math.log(table.sum()))
    assert not table_faults(TREE, tables)
    field = MarkovField(TREE, tables, 1.0)
    np.testing.assert_allclose(joint_of(field), table / table.sum(), atol=1e-14)
    for bag, joint in enumerate(joints(TREE, tables)):
        axes = (*TREE.separators[bag], *TREE.fresh[bag])
        np.testing.assert_allclose(joint, sum_to(DOMAIN.columns, table / table.sum(), axes), atol=1e-14)


def test_nothing_left_has_no_mass():
    factors = random_factors(0)
    factors[-1] = np.zeros_like(factors[-1])
    assert calibrate(TREE, factors)[1] == -math.inf


def test_scales_do_not_matter():
    factors = random_factors(1)
    scaled = [factor * 10.0**power for factor, power in zip(factors, (-200, 150, -90), strict=True)]
    for one, other in zip(calibrate(TREE, factors)[0], calibrate(TREE, scaled)[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_bag_tables_turn_to_rows_and_columns():
    bag = TREE.bag_of("de")
    table = np.arange(6.0)
    rows = from_bag_order(TREE, bag, table)
    assert TREE.separators[bag] == Clique("d")
    np.testing.assert_array_equal(rows, table.reshape(3, 2))


def test_faults_are_named():
    tables, _ = calibrate(TREE, random_factors(2))
    assert "one table per bag" in table_faults(TREE, tables[:-1])[0]
    assert "rows and" in table_faults(TREE, (tables[0].T, *tables[1:]))[0]
    for bad in (-1.0, math.nan, math.inf):
        broken = tables[0].copy()
        broken[0, 0] = bad
        assert "finite and 0 or more" in table_faults(TREE, (broken, *tables[1:]))[0]
    assert "add up to 1" in table_faults(TREE, (tables[0] * 1.01, *tables[1:]))[0]
    cut = tables[-1].copy()
    cut[0] = 0.0
    assert "no continuation" in table_faults(TREE, (*tables[:-1], cut))[0]
