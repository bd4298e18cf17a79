import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from understudy.domain import Clique, Domain
from understudy.models.junction_tree import JunctionTree
from understudy.models.markov_field import Sampler

LEVEL = 1e-4  # fixed significance of every statistical check below
DISTRIBUTIONS = ("independent", "rounded")


def star(children=2, child_codes=2, parent_codes=3):
    """A parent p and children that depend on it only."""
    names = [f"x{i}" for i in range(children)]
    domain = Domain.of({"p": parent_codes} | dict.fromkeys(names, child_codes))
    pairs = [domain.clique(["p", name]) for name in names]
    bags = (Clique(("p",)), *pairs)
    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.ones(child_codes) * 3.0, size=parent_codes)
    tree = JunctionTree(domain, bags[1:], (-1,) + (0,) * (children - 1))
    root = rng.dirichlet(np.ones(parent_codes) * 5.0)
    tables = [(root[:, None] * rows).reshape(1, -1), *([rows] * (children - 1))]
    return tree, tables


def sampler_of(probabilities):
    domain = Domain.of({"x": len(probabilities)})
    return Sampler(JunctionTree.of(domain, []), [np.array([probabilities], dtype=float)])


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_children_of_one_parent_do_not_rise_together(distribution):
    sampler = Sampler(*star())
    for seed in range(3):
        codes = getattr(sampler, distribution)(30_000, np.random.default_rng(seed))
        for parent in range(3):
            chosen = codes["p"] == parent
            table = np.histogram2d(codes["x0"][chosen], codes["x1"][chosen], bins=2)[0]
            assert chi2_contingency(table).pvalue > LEVEL
    rng = np.random.default_rng(9)
    both = [(draw["x0"] & draw["x1"]).sum() for draw in (getattr(sampler, distribution)(60, rng) for _ in range(500))]
    assert np.std(both) > 1.0  # rounding in row order would make this (nearly) constant


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_records_follow_the_tables(distribution):
    tree, tables = star(children=3, child_codes=4)
    codes = getattr(Sampler(tree, tables), distribution)(100_000, np.random.default_rng(0))
    shape = (3, 4, 4, 4)
    seen = np.bincount(np.ravel_multi_index(tuple(codes[name] for name in tree.domain.columns), shape), minlength=192)
    root, rows = tables[0].reshape(3, 4).sum(axis=1), tables[1]
    expected = np.einsum("p,px,py,pz->pxyz", root, rows, rows, rows).ravel() * 100_000
    assert chisquare(seen, expected).pvalue > LEVEL


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_cells_without_mass_are_never_drawn(distribution):
    rng = np.random.default_rng(2)
    for size in (3, 50, 70_000):
        weights = rng.random(size) * (rng.random(size) < 0.3)
        weights[size // 2] = 1e-12
        weights[-1] = 0.0
        weights[0] = 0.5
        drawn = getattr(sampler_of(weights / weights.sum()), distribution)(200_000, np.random.default_rng(3))["x"]
        assert not np.isin(drawn, np.flatnonzero(weights == 0.0)).any()


@pytest.mark.parametrize("size", [7, 70_000])
def test_long_and_short_tables_have_the_right_frequencies(size):
    rng = np.random.default_rng(4)
    weights = rng.dirichlet(np.full(size, 0.5))
    drawn = sampler_of(weights).independent(400_000, np.random.default_rng(5))["x"]
    blocks = np.minimum(np.cumsum(weights) * 20, 19.999).astype(int)
    expected = np.bincount(blocks, weights=weights, minlength=20)
    seen = np.bincount(blocks[drawn], minlength=20)
    used = expected > 0
    assert chisquare(seen[used], expected[used] / expected.sum() * 400_000).pvalue > LEVEL


def test_rounding_gives_every_cell_its_expected_number_up_to_one():
    weights = np.random.default_rng(6).dirichlet(np.ones(40))
    sampler = sampler_of(weights)
    sums = np.zeros(40)
    for seed in range(400):
        seen = np.bincount(sampler.rounded(500, np.random.default_rng(seed))["x"], minlength=40)
        assert np.abs(seen - 500 * weights).max() < 1.0
        sums += seen
    # Each draw's rounding has a standard deviation of at most 1/2 per cell, and the right mean.
    assert np.abs(sums / 400 - 500 * weights).max() < 5 * 0.5 / np.sqrt(400)


def test_rounded_records_come_in_random_order():
    drawn = sampler_of(np.full(2, 0.5)).rounded(10_000, np.random.default_rng(7))["x"].astype(int)
    changes = int(np.abs(np.diff(drawn)).sum())
    assert abs(changes - 5000) < 5 * 50


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_types_edges_and_seeds(distribution):
    domain = Domain.of({"small": 2, "one": 1, "wide": 300})
    sampler = Sampler(JunctionTree.of(domain, []), [np.full((1, 300), 1 / 300), np.full((1, 2), 0.5)])
    draw = getattr(sampler, distribution)
    for rows in (0, 1, 20_000):
        codes = draw(rows, np.random.default_rng(0))
        assert [column.dtype for column in codes.values()] == [np.uint8, np.uint8, np.uint16]
        assert all(column.shape == (rows,) for column in codes.values())
        assert not codes["one"].any()
    first, second, other = (draw(5000, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(first[name], second[name]) for name in domain.columns)
    assert not np.array_equal(first["wide"], other["wide"])
