"""rdt: labels come back, the budget adds up, trees know nothing private, options are checked before anything costs."""

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import MEMORY, letters, rows_of
from understudy.codec.table import TableCodec
from understudy.counts.frames import FrameTable
from understudy.domain import Clique, Domain, Partition
from understudy.errors import ResourceError, UsageError
from understudy.methods import rdt as running
from understudy.methods.preparation import public_facts
from understudy.methods.rdt import (
    ChainedPartition,
    GrowthLimits,
    LabelCosts,
    LabelRun,
    LabelSettings,
    LeafPartition,
    Rdt,
    Reference,
    TreeGrowth,
    _expanded,
    check_dense,
    coins,
    grow_by_counts,
)
from understudy.models.label_trees import Attributes, DecisionTree, Ensemble, pooled
from understudy.privacy.cost import UNIT, Budget, Cost, distribution_for
from understudy.privacy.curator import Curator
from understudy.privacy.randomizer import SecureRandomizer
from understudy.schema import OpenCategory, Unit
from understudy.schema.schema import without_columns
from understudy.synthesizer import Environment, synthesize
from understudy.testing import cases as tables
from understudy.testing.cases import Case
from understudy.testing.doubles import NoNoise, SeededRandomizer
from understudy.testing.replay import check_pair, designed_pairs, random_pairs

SCHEMA = letters({"job": 6, "age": 4, "sex": 2, "race": 3})
OPTIONS = {"private": "sex,race", "leaf_size": 20, "trees": 3}


def people(rows, seed=0):
    """Sex follows the job, race follows sex and age: conditional distributions a tree must find."""
    rng = np.random.default_rng(seed)
    job, age = rng.integers(0, 6, rows), rng.integers(0, 4, rows)
    sex = (rng.random(rows) < 0.1 + 0.15 * job).astype(int)
    shares = np.stack([0.6 - 0.4 * sex, 0.2 + 0.1 * age, 0.3 + 0.4 * sex], axis=1)
    shares /= shares.sum(axis=1, keepdims=True)
    race = (np.cumsum(shares, axis=1) < rng.random((rows, 1))).sum(axis=1)
    return {"job": job, "age": age, "sex": sex, "race": race}


PEOPLE = rows_of(people(3000))
PUBLIC = rows_of(people(2000, seed=1)).select(["job", "age"])


def released(table=PEOPLE, *, public=PUBLIC, epsilon=1.0, delta=0.0, randomizer=None, schema=SCHEMA, **options):
    environment = replace(Environment.real(), randomizer=randomizer or SecureRandomizer())
    given = OPTIONS | options
    return synthesize(
        table, schema, method="rdt", epsilon=epsilon, delta=delta, options=given, public=public, rows=10, seed=1,
        _environment=environment,
    )  # fmt: skip


def _exact(table, names):
    codes = [np.array([int(text) for text in table.column(name).to_pylist()]) for name in names]
    shape = [SCHEMA.column(name).labels.__len__() for name in names]
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))).reshape(shape)


def test_labels_come_back_at_a_huge_budget():
    release = released(epsilon=1e5, leaf_size=1)
    exact = _exact(PEOPLE, ["job", "age", "sex", "race"])
    for job in range(6):
        for age in range(4):
            distribution = release.model.chain.distribution({"job": np.array([job]), "age": np.array([age])}, 1)[
                0
            ].reshape(2, 3)
            truth = exact[job, age] / exact[job, age].sum()
            # Race need not be split by everything in every tree: sex alone comes back exactly.
            np.testing.assert_allclose(distribution.sum(axis=1), truth.sum(axis=1), atol=1e-9)
            assert np.abs(distribution - truth).sum() / 2 < 0.12
    one_tree = released(epsilon=1e5, leaf_size=0)
    distribution = one_tree.model.chain.distribution({"job": np.array([2]), "age": np.array([1])}, 1)[0].reshape(2, 3)
    np.testing.assert_allclose(distribution, exact[2, 1] / exact[2, 1].sum(), atol=1e-9)


def test_leaf_counts_add_up_to_the_rows_in_every_tree():
    answers = [answer for answer in released(randomizer=NoNoise()).transcript if "leaves" in answer.name]
    assert len(answers) == 6
    for answer in answers:
        assert int(answer.values.sum()) == 3000


@pytest.mark.parametrize("public", [PUBLIC, None], ids=["public table", "grown privately"])
@pytest.mark.parametrize("route", ["true", "synthetic"])
def test_charges_are_those_of_the_trees(public, route):
    release = released(public=public, epsilon=1.0, route=route)
    charges = {charge.step: charge for charge in release.statement.charges}
    tables_charged = [charge for step, charge in charges.items() if "leaves of tree" in step]
    assert len(tables_charged) == 6
    share = 0.99 if public is not None else 0.74
    for charge in tables_charged:
        assert charge.cost.epsilon == pytest.approx(share * UNIT / 6, abs=2)
    assert ("grow tree 1" in charges) == (public is None)
    assert release.statement.claim[0] == pytest.approx(1.0, abs=1e-9)
    assert release.statement.label_claim[0] == pytest.approx(2.0, abs=1e-9)


def test_the_printed_totals_with_no_share_for_the_number_of_rows():
    for epsilon, relation, change in ((1.0, "add_remove", 2.0), (2.0, "label_change", 2.0)):
        release = released(epsilon=epsilon, trees=5, total_share=0.0, relation=relation)
        charges = release.statement.charges
        assert [charge.cost.epsilon for charge in charges] == [UNIT // 10] * 10
        assert [charge.distribution.scale for charge in charges] == [10.0] * 10
        assert release.statement.claim == (1.0, 0.0)
        assert release.statement.label_claim == (change, 0.0)
        assert f"ε = {change:g}." in dict(release.statement.facts())["Change of labels"]


def test_label_change_in_rho_costs_the_budget():
    for public in (PUBLIC, None):
        statement = released(public=public, epsilon=1.0, delta=1e-6, relation="label_change").statement
        assert statement.claim[0] < 0.75
        assert 0.999 < statement.label_claim[0] <= 1.0
        assert statement.label_claim[1] == 1e-6


def test_the_number_of_rows_without_paying_for_it():
    release = released(epsilon=1e5, total_share=0.0)
    assert abs(release.model.total - 3000) < 1.0
    assert "measure total" not in {charge.step for charge in release.statement.charges}


def test_nothing_private_is_read_while_trees_grow(monkeypatch):
    """A recorder on the private source: growing must leave it untouched, leaf tables must use it."""
    touched = []
    from understudy.counts.frames import FrameSource

    original, grow = FrameSource._prepared, running.grow_by_counts
    during = []

    def recording(self, columns):
        touched.append(self._table.schema)
        return original(self, columns)

    def growing(growth, reference):
        before = len(touched)
        tree = grow(growth, reference)
        during.append(len(touched) - before)
        return tree

    monkeypatch.setattr(FrameSource, "_prepared", recording)
    monkeypatch.setattr(running, "grow_by_counts", growing)
    released()
    assert during == [0] * 6
    private = [schema for schema in touched if "sex" in schema.names]
    assert private, "the recorder saw nothing"


def test_trees_are_the_same_whatever_the_private_rows():
    others = [PEOPLE, PEOPLE.slice(0, 0), rows_of(people(500, seed=9))]
    grown = [released(table, randomizer=NoNoise()).model.chain.ensembles[0].trees for table in others]
    for trees in grown[1:]:
        assert [tree.splits.tolist() for tree in trees] == [tree.splits.tolist() for tree in grown[0]]


def test_codes_are_pooled_by_public_counts_alone():
    rare = {"job": "5", "age": "0"}
    public = pa.concat_tables(
        [PUBLIC.filter(pa.compute.not_equal(PUBLIC.column("job"), "5")), pa.table({k: [v] for k, v in rare.items()})]
    )
    release = released(public=public, collapse="job:50,age:1")
    groups = dict(
        zip(
            release.model.chain.ensembles[0].attributes.names,
            release.model.chain.ensembles[0].attributes.groups,
            strict=True,
        )
    )
    assert groups["job"].tolist() == [0, 1, 2, 3, 4, 5]
    both = public.filter(pa.compute.not_equal(public.column("job"), "4"))
    groups = released(public=both, collapse="job:50").model.chain.ensembles[0].attributes.groups
    assert groups[0].tolist() == [0, 1, 2, 3, 4, 4]
    pooled = released(PEOPLE.slice(0, 0), public=both, collapse="job:50").model.chain.ensembles[0].attributes.groups
    assert [part.tolist() for part in pooled] == [part.tolist() for part in groups]


def test_leaf_tables_list_every_label_even_of_an_empty_table():
    release = released(PEOPLE.slice(0, 0))
    for ensemble in release.model.chain.ensembles:
        size = SCHEMA.column(ensemble.label).labels.__len__()
        assert all(
            table.shape == (tree.leaves, size) for tree, table in zip(ensemble.trees, ensemble.tables, strict=True)
        )
    names = {answer.name: answer.values.size for answer in release.transcript}
    full = {answer.name: answer.values.size for answer in released().transcript if answer.name != "total"}
    first = {name: size for name, size in full.items() if name.endswith("for sex")}
    assert {name: names[name] for name in first} == first


def test_true_routes_keep_the_association_that_synthetic_ones_lose():
    """At a huge budget and with everything split, only the route is left to differ."""
    truth = _exact(PEOPLE, ["sex", "race"]) / 3000
    errors = {}
    for route in ("true", "synthetic"):
        model = released(epsilon=1e5, leaf_size=0, route=route).model
        codes = {name: np.array([int(text) for text in PEOPLE.column(name).to_pylist()]) for name in ("job", "age")}
        errors[route] = np.abs(model.chain.distribution(codes, 3000).mean(axis=0) - truth.ravel()).sum() / 2
    assert errors["true"] < 1e-9
    assert errors["synthetic"] > 0.05


def test_small_leaves_take_the_noisy_counts_of_the_branch_around_them():
    plain, pooled_release = (released(leaf_minimum=least, leaf_size=400, randomizer=NoNoise()) for least in (0, 150))
    assert pooled_release.statement.charges == plain.statement.charges
    ensemble, other = pooled_release.model.chain.ensembles[0], plain.model.chain.ensembles[0]
    answers = [answer for answer in pooled_release.transcript if answer.name.endswith("for sex")]
    codes = {name: np.array([int(text) for text in PUBLIC.column(name).to_pylist()]) for name in ("job", "age")}
    changed = 0
    for tree, table, before, answer in zip(ensemble.trees, ensemble.tables, other.tables, answers, strict=True):
        counts = answer.values.reshape(tree.leaves, -1)
        reached = tree.leaf_of(ensemble.attributes.grouped(codes, PUBLIC.num_rows))
        records = np.bincount(reached, minlength=tree.leaves)
        for leaf, branch in enumerate(_branches(tree, records, 150)):
            expected = counts[branch].sum(axis=0)
            np.testing.assert_allclose(table[leaf], expected / expected.sum())
        large = records >= 150
        assert np.array_equal(table[large], before[large])
        changed += int((table[~large] != before[~large]).any(axis=1).sum())
    assert changed, "no leaf is small, so nothing was shown"


def _branches(tree, records, least):
    """For each leaf the leaves of the smallest branch around it with enough records, by walking the tree."""
    above: dict[int, int] = {}
    for node, split in enumerate(tree.splits):
        children = range(int(tree.places[node]), int(tree.places[node]) + tree.fan_outs[split]) if split >= 0 else ()
        above |= dict.fromkeys(children, node)

    def below(node):
        if tree.splits[node] < 0:
            return [int(tree.places[node])]
        first = int(tree.places[node])
        return [leaf for child in range(first, first + tree.fan_outs[tree.splits[node]]) for leaf in below(child)]

    found = {}
    for start in np.flatnonzero(tree.splits < 0):
        node = int(start)
        while node and records[below(node)].sum() < least:
            node = above[node]
        found[int(tree.places[start])] = below(node)
    return [found[leaf] for leaf in range(tree.leaves)]


@pytest.mark.parametrize("seed", range(4))
def test_branches_are_those_of_a_walk_through_any_tree(seed):
    rng = np.random.default_rng(seed)
    tree = grow_by_counts(start(seed, leaf_size=3), EVEN)
    counts = rng.integers(-20, 60, (tree.leaves, 3))
    records = counts.sum(axis=1).astype(float) if seed % 2 else rng.integers(0, 9, tree.leaves).astype(float)
    for least in (1, 8, 60, 10_000):
        found = pooled(tree, counts, records, least)
        expected = [counts[branch].sum(axis=0) for branch in _branches(tree, records, least)]
        np.testing.assert_array_equal(found, expected)


def test_which_leaves_are_small_is_public_with_a_public_table_and_noisy_without(monkeypatch):
    seen = []

    def recording(tree, counts, records, least):
        seen.append((counts, records))
        return pooled(tree, counts, records, least)

    monkeypatch.setattr(running, "pooled", recording)
    for table in (PEOPLE, PEOPLE.slice(0, 0), rows_of(people(500, seed=9))):
        released(table, leaf_minimum=100)
    for tree in range(3):  # those of the first private column: later ones follow distributions paid for
        first, *others = (seen[run * 6 + tree][1] for run in range(3))
        assert first.sum() == PUBLIC.num_rows
        assert all(np.array_equal(first, other) for other in others)
    seen.clear()
    release = released(public=None, leaf_minimum=100)
    answers = [answer.values for answer in release.transcript if "leaves of tree" in answer.name]
    assert len(seen) == len(answers) == 6
    for (counts, records), values in zip(seen, answers, strict=True):
        assert np.array_equal(counts.ravel(), values), "the noisy counts, as they were paid for"
        assert np.array_equal(records, counts.sum(axis=1))


REPLAYS = {
    "chain, synthetic route, label change, small leaves pooled": (
        {"private": "voted,age", "route": "synthetic", "relation": "label_change", "leaf_minimum": 40}
    ),
    "chain, private growth, small leaves pooled": {"private": "age,registered", "leaf_size": 2, "leaf_minimum": 20},
    "chain, no total": {"private": "registered,voted", "total_share": 0.0, "per_level": True},
}


@pytest.mark.parametrize("name", REPLAYS)
def test_replays_on_neighbours(name):
    for number, (schema, budget) in enumerate(
        ((tables.small(), Budget(1.0)), (tables.several_rows(), Budget(1.0, 1e-6)))
    ):
        options = {"trees": 2, "leaf_size": 5} | REPLAYS[name]  # type: ignore[operator]
        private = str(options["private"]).split(",")
        rows = tables.possible_rows(tables.small(), 200, seed=3).drop(private)
        public = None if "growth" in name else rows
        case = Case(schema, "rdt", budget, options, public=public)
        rng = np.random.default_rng(number)
        pairs = [*[*designed_pairs(schema)][:10], *random_pairs(schema, 5, rng)]
        for index, pair in enumerate(pairs):
            check_pair(case.pipeline(), pair.table, pair.neighbour, SeededRandomizer(index))


BAD = [
    {"private": "gender"},
    {"private": "sex,sex"},
    {"weights": "sex:1", "private": "sex"},
    {"weights": "job"},
    {"weights": "job:-1"},
    {"collapse": "race:5"},
    {"trees": 0},
    {"trees": 2.5},
    {"leaf_size": -1},
    {"leaf_minimum": -1},
    {"leaf_minimum": 2.5},
    {"max_depth": -1},
    {"structure_seed": -1},
    {"route": "fake"},
    {"relation": "replace"},
    {"total_share": 0.9},
    {"growth_share": 0.0},
    {"most_leaves": 0},
    {"per_level": 3},
]


@pytest.mark.parametrize("options", BAD, ids=str)
def test_bad_options_cost_nothing(options, tmp_path):
    with pytest.raises(UsageError):
        released(**options)


def test_collapse_needs_a_public_table():
    with pytest.raises(UsageError, match="public"):
        released(public=None, collapse="job:5")


def test_a_large_domain_needs_a_public_table():
    wide = letters({f"c{place}": 8 for place in range(8)})
    rows = rows_of({name: [0, 1, 2] for name in wide.names})
    with pytest.raises(ResourceError, match="public table"):
        released(rows, schema=wide, public=None, private="c0")
    small = released(rows, schema=wide, public=rows.drop(["c0"]), private="c0")
    assert small.model.cells.size == 3


def test_label_change_is_refused_where_codes_come_from_private_rows():
    opened = replace(SCHEMA, columns=(*SCHEMA.columns[:3], OpenCategory(name="race")))
    settings = Rdt(private="race", relation="label_change")
    with pytest.raises(UsageError, match="race"):
        settings.plan(public_facts(opened), Cost(epsilon=UNIT))
    assert Rdt(private="race").plan(public_facts(opened), Cost(epsilon=UNIT)).labels == ("race",)


def test_a_public_table_without_rows_leaves_uniform_public_columns():
    release = released(public=PUBLIC.slice(0, 0), epsilon=1e5)
    assert release.model.cells.size == 24
    assert all(tree.leaves == 1 for tree in release.model.chain.ensembles[0].trees)


def test_without_a_public_table_the_public_columns_come_from_the_trees():
    release = released(public=None, epsilon=1e5, leaf_size=0)
    exact = _exact(PEOPLE, ["job", "age", "sex", "race"]) / 3000
    clique = release.codec.domain.everything()
    assert np.abs(release.model.marginal(clique) - exact.ravel()).sum() / 2 < 0.01


def test_every_column_private():
    release = released(public=None, private="job,age,sex,race", epsilon=1e5, leaf_size=0)
    assert release.model.cells.size == 1
    truth = np.bincount([int(text) for text in PEOPLE.column("job").to_pylist()], minlength=6) / 3000
    np.testing.assert_allclose(release.model.marginal(release.codec.domain.clique(["job"])), truth, atol=1e-6)
    with pytest.raises(UsageError, match="private"):
        released(private="job,age,sex,race")


def test_the_plan_bounds_the_run():
    facts = public_facts(SCHEMA)
    plan = Rdt(**OPTIONS).plan(facts, Cost(epsilon=UNIT))
    assert plan.cost.epsilon <= UNIT
    answers = released(public=None).transcript
    measured = sum(answer.values.size for answer in answers if not answer.name.startswith("tree"))
    assert measured <= plan.cells
    assert plan.labels == ("sex", "race")
    assert "sex, race" in plan.notes[0]


def test_units_of_several_rows():
    schema = replace(SCHEMA, unit=Unit(column="person", rows=2))
    table = PEOPLE.append_column("person", pa.array([str(row // 4) for row in range(3000)]))
    release = released(table, schema=schema)
    (scale,) = {charge.distribution.scale for charge in release.statement.charges if "leaves" in charge.step}
    assert scale == pytest.approx(2 / (0.99 / 6), rel=1e-6)


# Methods and costs: who is private, what each query costs under either relation.


DOMAIN = Domain.of({"age": 9, "pay": 5, "one": 1, "sex": 2, "race": 6})
LIMITS = GrowthLimits(10, 9, 50)


def _costs(epsilon, *, shares=(0.0, 0.0), label_change=False, columns=2):
    return LabelCosts.of(Cost(epsilon=int(epsilon * UNIT)), columns, 5, shares=shares, label_change=label_change)


def test_the_printed_totals():
    """ε = 0.1 a tree, five trees for each of two columns: 1.0, and 2.0 for a change of labels."""
    by_adding, by_change = _costs(1.0), _costs(2.0, label_change=True)
    for costs in (by_adding, by_change):
        (table,) = {part.epsilon for part in costs.ensemble.split([1.0] * 5)}
        assert table == UNIT // 10
        assert distribution_for(Cost(epsilon=table), 1, "table").scale == pytest.approx(10.0)
    assert 2 * by_adding.ensemble.epsilon == 1 * UNIT
    assert 2 * 2 * by_change.ensemble.epsilon == 2 * UNIT


def test_costs_add_up_to_the_cost():
    costs = _costs(3.0, shares=(0.01, 0.25))
    spent = costs.total + Cost(epsilon=5 * costs.tree.epsilon) + Cost(epsilon=2 * costs.ensemble.epsilon)
    assert 0 <= 3 * UNIT - spent.epsilon < 10


def test_a_change_of_labels_costs_the_budget_in_either_currency():
    pure = _costs(4.0, shares=(0.01, 0.25), label_change=True)
    assert 2 * (pure.total.epsilon + 5 * pure.tree.epsilon + 2 * pure.ensemble.epsilon) <= 4 * UNIT
    cost = Cost(rho=UNIT)
    rho = LabelCosts.of(cost, 2, 5, shares=(0.01, 0.25), label_change=True)
    changed = 2 * rho.total.rho + 4 * 5 * rho.tree.rho + 2 * 2 * rho.ensemble.rho
    assert UNIT * 0.999 < changed <= UNIT
    # Twice ρ for √2 times the distance; a tree's ε doubles, so its ρ = ε²/2 is four times as large.
    assert rho.tree.rho == pytest.approx(UNIT * 0.25 / 5 / 4, rel=1e-6)


def test_private_columns_default_to_the_last_one():
    settings = LabelSettings.of(DOMAIN, (), {}, {}, LIMITS)
    assert settings.private == ("race",)
    assert settings.public == ("age", "pay", "one", "sex")
    assert LabelSettings.of(DOMAIN, ("race", "sex"), {}, {}, LIMITS).private == ("race", "sex"), "in the order given"


def test_parts_of_a_split_column_stay_together():
    split = Domain.of({"a": 2, "pay.size": 3, "pay.kind": 4})
    for named in ((), ("pay",), ("pay.size",), ("pay.kind", "pay")):
        assert LabelSettings.of(split, named, {}, {}, LIMITS).private == ("pay.size", "pay.kind")
    assert LabelSettings.of(Domain.of({"a": 2, "b.size": 3}), (), {}, {}, LIMITS).private == ("b.size",)


def test_what_can_be_split_on():
    settings = LabelSettings.of(DOMAIN, ("sex", "race"), {"age": 0.0, "pay": 60.0}, {"pay": 200.0}, LIMITS)
    assert [name for name in DOMAIN.columns if settings.splits(name)] == ["pay", "sex", "race"]
    assert settings.grows
    assert not LabelSettings.of(DOMAIN, ("sex",), dict.fromkeys(("age", "pay", "race"), 0.0), {}, LIMITS).grows
    assert not LabelSettings.of(DOMAIN, ("sex",), {}, {}, GrowthLimits(10, 0, 50)).grows
    assert settings.most_leaves(0) == 45
    assert settings.most_leaves(1) == 90


@pytest.mark.parametrize(
    "given",
    [
        (("gender",), {}, {}),
        (("sex",), {"sexx": 1.0}, {}),
        (("sex",), {"sex": 1.0}, {}),
        (("sex",), {}, {"sex": 5.0}),
        (("sex", "race"), {"race": 1.0}, {}),
    ],
)
def test_names_that_cannot_be_named_are_refused(given):
    with pytest.raises(UsageError):
        LabelSettings.of(DOMAIN, *given, LIMITS)  # type: ignore[call-arg]


def test_sizes_that_cannot_be_held_are_refused():
    with pytest.raises(ResourceError, match="combinations"):
        LabelSettings.of(Domain.of({"a": 200, "b": 200}), ("a", "b"), {}, {}, LIMITS)
    with pytest.raises(ResourceError, match="public columns"):
        LabelSettings.of(Domain.of({f"c{place}": 2 for place in range(64)}), (), {}, {}, LIMITS)


# Growing: columns drawn by weight and never twice on a path, limits kept, the same seed the same tree.


SIZES = {"a": 3, "b": 2, "c": 4, "d": 2}
ATTRIBUTES = Attributes.of({name: np.arange(size) for name, size in SIZES.items()})
RECORDS = np.array(list(itertools.product(*(range(size) for size in SIZES.values()))))
CODES = {name: RECORDS[:, place] for place, name in enumerate(SIZES)}
EVEN = Reference(CODES, np.ones(len(RECORDS)))


def start(seed=0, weights=(1.0, 1.0, 1.0, 1.0), attributes=ATTRIBUTES, **limits):
    given = {"leaf_size": 1, "depth": 9, "leaves": 1000} | limits
    return TreeGrowth.start(
        "tree", attributes, weights, GrowthLimits(**given), seed=(seed, 0, 0), order=tuple(attributes.names)
    )


def paths(tree):
    """For each leaf the columns split on above it."""
    found, waiting = {}, [(0, ())]
    while waiting:
        node, path = waiting.pop()
        column = int(tree.splits[node])
        if column < 0:
            found[int(tree.places[node])] = path
        else:
            children = range(int(tree.places[node]), int(tree.places[node]) + tree.fan_outs[column])
            waiting += [(child, (*path, column)) for child in children]  # type: ignore[misc]
    return found


def test_nodes_split_while_they_hold_enough_records():
    tree = grow_by_counts(start(leaf_size=10), EVEN)
    leaves = tree.leaf_of(ATTRIBUTES.grouped(CODES, len(RECORDS)))
    counts = np.bincount(leaves, minlength=tree.leaves)
    assert counts.sum() == len(RECORDS)
    assert counts.max() < 10
    for leaf, path in paths(tree).items():
        held = counts[leaf] * SIZES[list(SIZES)[path[-1]]]  # records are spread evenly, so this is the parent's
        assert held >= 10


def test_no_column_twice_on_a_path_and_everything_split_at_the_end():
    tree = grow_by_counts(start(leaf_size=0), EVEN)
    assert all(sorted(path) == [0, 1, 2, 3] for path in paths(tree).values())
    assert tree.leaves == len(RECORDS)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_depth_is_a_limit(depth):
    tree = grow_by_counts(start(leaf_size=0, depth=depth), EVEN)
    assert {len(path) for path in paths(tree).values()} == {depth}


def test_leaves_are_a_limit():
    for most in (1, 2, 3, 5, 9, 20):
        assert grow_by_counts(start(leaf_size=0, leaves=most), EVEN).leaves <= most
    assert grow_by_counts(start(leaf_size=0, leaves=20), EVEN).leaves > 10


def test_per_level_gives_every_node_of_a_layer_the_same_column():
    tree = grow_by_counts(start(leaf_size=0, per_level=True), EVEN)
    assert len(set(paths(tree).values())) == 1
    mixed = grow_by_counts(start(leaf_size=0), EVEN)
    assert len(set(paths(mixed).values())) > 1


def test_weight_0_is_never_drawn_and_large_weights_nearly_always():
    firsts = []
    for seed in range(200):
        tree = grow_by_counts(start(seed, weights=(60.0, 0.0, 1.0, 1.0), leaf_size=0), EVEN)
        assert 1 not in tree.used
        firsts.append(int(tree.splits[0]))
    share = firsts.count(0) / 200
    assert abs(share - 60 / 62) < 4 * np.sqrt(60 * 2 / 62**2 / 200)
    assert set(firsts) - {0}, "the others are never drawn"


def test_only_weight_0_leaves_one_leaf():
    assert grow_by_counts(start(weights=(0.0,) * 4, leaf_size=0), EVEN).leaves == 1


def test_a_column_of_one_group_is_never_split_on():
    pooled = Attributes.of({"a": np.zeros(3, int), "b": np.arange(2)})
    tree = grow_by_counts(start(weights=(1.0, 1.0), attributes=pooled, leaf_size=0), EVEN)
    assert tree.used == (1,)


def test_the_seed_decides_the_tree():
    trees = [grow_by_counts(start(seed, leaf_size=0), EVEN).splits.tolist() for seed in (1, 1, 2)]
    assert trees[0] == trees[1]
    assert trees[0] != trees[2]


def test_the_frontier_is_a_partition_of_open_nodes_and_the_rest():
    growth = start(leaf_size=0)
    assert isinstance(growth.frontier, Partition)
    assert growth.frontier.assign({"a": np.array([0, 2])}).tolist() == [0, 0]
    first = growth.after(np.array([True]))
    assert first.depths.tolist() == [1] * first.open.size
    split = np.zeros(first.open.size, dtype=bool)
    split[0] = True
    second = first.after(split)
    cells = second.frontier.assign(CODES)
    assert second.frontier.cells == second.open.size + 1
    assert set(cells.tolist()) == set(range(second.frontier.cells)), "closed nodes share the last cell"
    fewer = first.frontier.assign({name: CODES[name] for name in first.frontier.columns})
    assert np.array_equal(fewer, first.frontier.assign(CODES)), "it looks at its columns only"


def test_expected_numbers_of_records_may_be_fractions():
    halves = Reference(CODES, np.full(len(RECORDS), 0.5))
    assert grow_by_counts(start(leaf_size=len(RECORDS)), halves).leaves == 1
    assert grow_by_counts(start(leaf_size=len(RECORDS) // 2), halves).leaves > 1


# Leaf tables: a cell for every leaf and label, one cell per record, coins that are fair and public.


ORDER = ("a", "sex", "race")
LEAVES_ATTRIBUTES = Attributes.of({"a": np.arange(3), "sex": np.arange(2)})
TREE = DecisionTree(np.array([1, -1, 0, -1, -1, -1]), LEAVES_ATTRIBUTES.fan_outs)
PLAIN = LeafPartition("leaves", Clique.of(ORDER, ORDER), LEAVES_ATTRIBUTES, TREE, "race", 4)
LEAVES_PUBLIC = Attributes.of({"a": np.arange(3)})
SEXES = Ensemble.of_counts("sex", LEAVES_PUBLIC, [DecisionTree(np.array([0, -1, -1, -1]), (3,))], [[1, 3, 2, 2, 4, 0]])
CHAINED = ChainedPartition(PLAIN, (SEXES,), Clique.of(ORDER, ORDER), 7)


def _records(rows, seed=0):
    rng = np.random.default_rng(seed)
    return {"a": rng.integers(0, 3, rows), "sex": rng.integers(0, 2, rows), "race": rng.integers(0, 4, rows)}


def test_every_label_has_a_cell_in_every_leaf():
    assert isinstance(PLAIN, Partition)
    assert PLAIN.cells == TREE.leaves * 4 == 16
    cells = PLAIN.assign(_records(2000))
    assert set(cells.tolist()) == set(range(16))
    absent = PLAIN.assign({"a": np.array([0]), "sex": np.array([0]), "race": np.array([3])})
    assert absent.tolist() == [3]


def test_a_cell_depends_on_its_own_record_alone():
    codes = _records(500)
    for partition in (PLAIN, CHAINED):
        whole = partition.assign(codes)
        alone = [partition.assign({name: part[[row]] for name, part in codes.items()})[0] for row in range(500)]
        assert whole.tolist() == alone


def test_the_chained_route_keeps_the_label_and_forgets_the_true_first_value():
    codes = _records(60_000)
    cells = CHAINED.assign(codes)
    assert np.array_equal(cells % 4, codes["race"])
    # The share of records routed to the leaf of sex 0 is the distribution's, whatever the true sex; equal records go
    # together, so shares are over the 24 different records and loose.
    everything = _records(0)
    assert CHAINED.assign(everything).size == 0
    different = len({tuple(record) for record in np.stack(list(codes.values())).T.tolist()})
    assert different == 24


def test_many_different_records_are_routed_by_the_distribution():
    rows = 40_000
    order = ("a", "sex", "race", "id")
    chained = ChainedPartition(PLAIN, (SEXES,), Clique.of(order, order), 7)
    codes = _records(rows) | {"id": np.arange(rows)}
    leaves = chained.assign(codes) // 4
    for a, share in enumerate((0.25, 0.5, 1.0)):
        for sex in range(2):
            mine = (codes["a"] == a) & (codes["sex"] == sex)
            found = (leaves[mine] == 0).mean()
            assert abs(found - share) < 5 * np.sqrt(0.25 / mine.sum()), (a, sex)


def test_coins_are_uniform_and_independent_of_salt_place_and_column():
    rows = 200_000
    codes = [np.arange(rows) % 1000, np.arange(rows) // 1000]
    first = coins(codes, 1, 0)
    assert first.min() >= 0.0
    assert first.max() < 1.0
    counts = np.histogram(first, bins=100, range=(0, 1))[0]
    assert ((counts - rows / 100) ** 2 / (rows / 100)).sum() < 99 + 6 * np.sqrt(2 * 99)
    for other in (coins(codes, 2, 0), coins(codes, 1, 1), coins(codes[::-1], 1, 0)):
        assert abs(np.corrcoef(first, other)[0, 1]) < 5 / np.sqrt(rows)


def test_equal_records_share_a_coin():
    same = coins([np.array([3, 3]), np.array([1, 1])], 5, 0)
    assert same[0] == same[1]


# A run step by step: public cells, groups, expected reference records, order of queries.


RUN_SCHEMA = letters({"a": 3, "b": 2, "sex": 2, "race": 3})
ROWS = {"a": [0, 0, 1, 2, 2, 2], "b": [0, 1, 1, 0, 0, 1], "sex": [0, 1, 1, 0, 0, 1], "race": [0, 1, 2, 0, 1, 2]}


def _run(public=True, synthetic=False, leaf_size=1, trees=2):
    schema = without_columns(RUN_SCHEMA, ["sex", "race"])
    public_table = FrameTable(rows_of({"a": [0, 0, 1], "b": [0, 0, 1]}), schema, memory_bytes=MEMORY)
    private = FrameTable(rows_of(ROWS), RUN_SCHEMA, memory_bytes=MEMORY)
    cost = Cost(epsilon=10 * UNIT)
    curator = Curator(private, cost, NoNoise(), public=public_table if public else None)
    curator.fix_codec(TableCodec.of(RUN_SCHEMA))
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


def test_large_tables_are_counted_in_several_passes_at_the_same_cost(monkeypatch):
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
