"""rdt: labels come back, the budget adds up, trees know nothing private, options are checked before anything costs."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import letters, rows_of
from understudy.errors import ResourceError, UsageError
from understudy.methods import rdt as running
from understudy.methods.preparation import public_facts
from understudy.methods.rdt import Rdt
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.privacy.randomizer import SecureRandomizer
from understudy.schema import OpenCategory, Unit
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


REPLAYS = {
    "chain, synthetic route, label change": {"private": "voted,age", "route": "synthetic", "relation": "label_change"},
    "chain, private growth": {"private": "age,registered", "leaf_size": 2},
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
