"""Brute force: full tables of small models, to hold every shortcut against."""

import itertools

import numpy as np

from understudy.domain import Domain, StructuralZeros
from understudy.models.estimation import NoisyTable
from understudy.models.propagation import spread


def small_domain():
    return Domain.of({"a": 2, "b": 3, "one": 1, "c": 4, "d": 3, "e": 2})


def random_cliques(domain, rng, count=5, width=3):
    names = list(domain.columns)
    return [
        domain.clique(rng.choice(names, size=rng.integers(1, width + 1), replace=False).tolist()) for _ in range(count)
    ]


def noisy(domain, columns, rng, *, sigma=1.0, scale=20.0):
    clique = domain.clique(columns)
    cells = domain.cells(clique)
    return NoisyTable(clique, rng.gamma(1.0, scale, cells) + rng.normal(0.0, sigma, cells), sigma**2)


def rule(domain, columns, rng, share=0.4):
    clique = domain.clique(columns)
    mask = rng.random(domain.cells(clique)) < share
    mask[rng.integers(mask.size)] = False
    return StructuralZeros(clique, mask)


def full_table(domain, potentials, structural_zeros=()):
    """The normalised product of exponentials over all columns."""
    everything = domain.everything()
    table = np.zeros(domain.shape(everything))
    for clique, theta in potentials.items():
        table = table + spread(domain, everything, clique, theta)
    table = np.exp(table - table.max())
    for each in structural_zeros:
        table = table * ~spread(domain, everything, each.clique, each.mask).astype(bool)
    return table / table.sum()


def joint_of(field):
    """The full table of a field, straight from its conditional tables."""
    domain = field.domain
    everything = domain.everything()
    table = np.ones(domain.shape(everything))
    for bag, rows in enumerate(field.tables):
        axes = (*field.tree.separators[bag], *field.tree.fresh[bag])
        ordered = domain.clique(axes)
        turned = rows.reshape(domain.shape(axes)).transpose([axes.index(name) for name in ordered])
        table = table * spread(domain, everything, ordered, np.ascontiguousarray(turned).ravel())
    return table


def marginal_of(domain, table, clique):
    others = tuple(axis for axis, name in enumerate(domain.columns) if name not in clique)
    return table.sum(axis=others).ravel()


def all_cliques(domain, widths):
    return [domain.clique(names) for width in widths for names in itertools.combinations(domain.columns, width)]
