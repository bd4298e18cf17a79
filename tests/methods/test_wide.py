"""Many columns: scoring pairs part by part gives what scoring them all at once gives."""

import itertools

import numpy as np
import pytest

from tests.methods.door import door, letters, rho, rows_of
from understudy.domain import Clique, Domain, Measurement
from understudy.methods.mst import Mst
from understudy.methods.privsyn import PrivSyn, SplitNoise, chosen_pairs
from understudy.privacy.cost import UNIT, Cost
from understudy.privacy.dependence import IndependenceGap
from understudy.privacy.scores import MarginalError, parts_of

SIZES = {f"c{place}": 2 + place % 5 for place in range(14)}


def pairs_of(domain):
    return [Clique(pair) for pair in itertools.combinations(domain.columns, 2)]


@pytest.mark.parametrize("most", [1, 40, 300, 10**6])
def test_parts_hold_every_clique_once_and_few_cells(most):
    domain = Domain.of(SIZES)
    pairs = pairs_of(domain)
    parts = parts_of(domain, pairs, most)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(pairs)))
    for part in parts:
        assert len(part) == 1 or sum(domain.cells(pairs[place]) for place in part) <= most
    assert len(parts) == 1 or most < 10**6


@pytest.mark.parametrize("most", [40, 300, 2000])
def test_parts_of_larger_tables_hold_few_cells_too(most):
    """Of three columns, tables of the same neighbourhood do not all fit into one part."""
    domain = Domain.of(SIZES)
    triples = [Clique(three) for three in itertools.combinations(domain.columns, 3)]
    parts = parts_of(domain, triples, most)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(triples)))
    for part in parts:
        assert len(part) == 1 or sum(domain.cells(triples[place]) for place in part) <= most


@pytest.mark.parametrize("kind", ["error", "gap"])
def test_scores_of_parts_are_the_scores_of_all(kind):
    domain, rng = Domain.of(SIZES), np.random.default_rng(3)
    pairs = pairs_of(domain)
    exact = {pair: rng.integers(0, 50, domain.cells(pair)) for pair in pairs}
    expected = {pair: rng.random(domain.cells(pair)) * 50 for pair in pairs}
    weights = (1.0 + rng.random(len(pairs))).tolist()
    quality: MarginalError | IndependenceGap
    if kind == "error":
        quality = MarginalError("pair", pairs, lambda some: {pair: expected[pair] for pair in some}, weights)
        whole = MarginalError("pair", pairs, expected, weights).scores(exact)
    else:
        quality = IndependenceGap("pair", pairs, domain)
        whole = quality.scores(exact)
    for part in parts_of(domain, pairs, 100):
        some = {pairs[place]: exact[pairs[place]] for place in part.tolist()}
        assert quality.scores_of(part, some).tolist() == whole[part].tolist()


def test_the_door_scores_parts_as_it_scores_all(monkeypatch):
    rng = np.random.default_rng(5)
    rows = rows_of({name: rng.integers(0, size, 60) for name, size in SIZES.items()})
    found = []
    for most in (10**6, 50):
        monkeypatch.setattr(
            "understudy.privacy.curator.parts_of", lambda domain, cliques, most=most: parts_of(domain, cliques, most)
        )
        curator = door(rows, letters(SIZES), rho(1.0))
        quality = IndependenceGap("pair", pairs_of(curator.domain), curator.domain)
        found.append(curator._scores(quality, curator._bound()).tolist())
    assert found[0] == found[1]
    assert len(set(found[0])) > 10


def slow_choice(domain, given, noise, columns, penalty):
    """The choice as it is defined: every pair that is left is weighed at every step."""
    pairs, taken, used = list(given), [], 0.0
    weight = {pair: noise.weight(domain.cells(pair)) for pair in pairs}

    def gain(pair):
        return given[pair] - penalty * (noise.total(used + weight[pair]) - noise.total(used))

    while left := [pair for pair in pairs if pair not in taken]:
        best = max(left, key=gain)
        if gain(best) <= 0.0:
            break
        taken.append(best)
        used += weight[best]
    for name in columns:
        mine = [pair for pair in pairs if name in pair and pair not in taken]
        if mine and not any(name in pair for pair in taken):
            taken.append(max(mine, key=gain))
            used += weight[taken[-1]]
    return taken


@pytest.mark.parametrize("cost", [Cost(rho=UNIT), Cost(rho=UNIT // 10**4), Cost(epsilon=UNIT)])
def test_pairs_that_queue_by_weight_are_chosen_as_if_all_were_weighed(cost):
    domain, rng = Domain.of(SIZES), np.random.default_rng(7)
    # Whole numbers, so that scores tie and the first of them must win.
    given = {pair: float(rng.integers(0, 60)) for pair in pairs_of(domain)}
    found = chosen_pairs(domain, given, SplitNoise(cost), domain.columns)
    assert found == slow_choice(domain, given, SplitNoise(cost), domain.columns, 1.0)
    assert {name for pair in found for name in pair} == set(domain.columns)


@pytest.mark.parametrize("method", [Mst(), PrivSyn(sweeps=2)])
def test_a_hundred_and_twenty_columns_in_parts(method, monkeypatch):
    monkeypatch.setattr(
        "understudy.privacy.curator.parts_of", lambda domain, cliques: parts_of(domain, cliques, 20_000)
    )
    names, rng, cost = [f"c{place}" for place in range(120)], np.random.default_rng(2), rho(20.0)
    hidden = rng.integers(0, 3, (12, 400))
    codes = {name: hidden[place % 12] for place, name in enumerate(names)}
    curator = door(rows_of(codes), letters(dict.fromkeys(names, 3)), cost)
    model = method.fit(curator, cost)
    assert curator.left.rho <= len(curator.transcript)  # what sharing rounds away, in units of 10⁻¹²
    chosen = {answer.columns for answer in curator.transcript.of(Measurement) if len(answer.columns) == 2}
    related = [pair for pair in chosen if (names.index(pair[0]) - names.index(pair[1])) % 12 == 0]
    assert len(related) >= 100  # a tree within the twelve groups has 108 pairs; chance would find one in eleven
    assert set(model.draw(50, np.random.default_rng(0))) == set(names)
