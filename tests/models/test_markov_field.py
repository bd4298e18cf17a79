"""Tests of `understudy.models.markov_field`."""

import itertools
import json

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi2_contingency, chisquare

from tests.models.enumeration import full_table, joint_of, marginal_of, noisy, rule, small_domain
from understudy.domain import Clique, Domain, StructuralZeros
from understudy.errors import ReleaseError, ResourceError, UsageError
from understudy.models.estimation import NoisyTable
from understudy.models.junction_tree import GraphicalSize, JunctionTree
from understudy.models.markov_field import ExpandedField, Expansion, MarkovField, Sampler, fit, model_cliques
from understudy.models.model import draw_chunks, load_model, save_model
from understudy.models.tables import sub_indices
from understudy.testing import check_model


def fitted(seed=0, columns=("ab", "bc", "cd", "ae"), rules=()):
    rng = np.random.default_rng(seed)
    domain = small_domain()
    structural_zeros = [rule(domain, names, rng) for names in rules]
    return fit(domain, [noisy(domain, names, rng) for names in columns], structural_zeros, steps=100), structural_zeros


@pytest.mark.parametrize("rounding", [False, True])
@pytest.mark.parametrize(
    ("columns", "rules"),
    [
        (("a", "b"), ()),
        (("ab", "bc", "cd", "ae"), ()),
        (("ab", "bc", "ac", "de"), ("bd",)),
        (("abc", "cde"), ("ad", "b", "ce")),
        (("abcde",), ("abcde",)),
    ],
)
def test_the_contract_of_models(columns, rules, rounding):
    model, _ = fitted(3, columns, rules)
    model = model.with_rounding() if rounding else model
    check_model(model, joint_of(model).ravel())


def test_rules_outside_the_measured_cliques_hold_too():
    model, (each,) = fitted(1, ("ab", "cd"), ("bce",))
    joint = joint_of(model)
    assert marginal_of(model.domain, joint, each.clique)[each.mask].sum() == 0.0
    codes = model.draw(50_000, np.random.default_rng(0))
    shape = model.domain.shape(each.clique)
    assert not each.mask.reshape(shape)[tuple(codes[name] for name in each.clique)].any()
    check_model(model, joint.ravel())


def test_condition_is_exact_and_shrinks_the_total():
    model, _ = fitted(2)
    joint = joint_of(model)
    kept = joint * 1.0
    kept[1:] = 0.0
    kept[:, :, :, [0, 2]] = 0.0
    given = model.condition({"a": np.array([0]), "c": np.array([1, 3]), "one": np.array([0])})
    np.testing.assert_allclose(joint_of(given), kept / kept.sum(), atol=1e-14)
    assert given.total == pytest.approx(model.total * kept.sum())
    assert model.with_rounding().condition({}).rounding
    assert model.condition({}).total == pytest.approx(model.total)


def test_condition_refuses_the_impossible():
    model, (each,) = fitted(4, ("ab", "cd"), ("ab",))
    a, b = np.argwhere(each.mask.reshape(2, 3))[0]
    with pytest.raises(UsageError, match="cannot happen"):
        model.condition({"a": np.array([a]), "b": np.array([b])})
    with pytest.raises(UsageError, match="cannot happen"):
        model.condition({"b": np.array([], dtype=int)})
    with pytest.raises(UsageError, match="cannot happen"):
        model.condition({"one": np.array([], dtype=int)})
    for code in (-1, 3):
        with pytest.raises(UsageError, match="between 0 and 2"):
            model.condition({"b": np.array([code])})
    with pytest.raises(UsageError, match="not a modelled column"):
        model.condition({"z": np.array([0])})


def test_negative_rows_and_unknown_columns_are_refused():
    model, _ = fitted()
    with pytest.raises(UsageError, match="0 or more"):
        model.draw(-1, np.random.default_rng(0))
    with pytest.raises(UsageError, match="not a modelled column"):
        model.marginal(Clique("z"))


def test_chunks_depend_on_the_seed_alone():
    model, _ = fitted()
    whole = [chunk.codes for chunk in draw_chunks(model, 2500, seed=5, chunk_rows=1000)]
    again = [chunk.codes for chunk in draw_chunks(model, 2500, seed=5, chunk_rows=1000)]
    assert [codes["a"].size for codes in whole] == [1000, 1000, 500]
    for one, other in zip(whole, again, strict=True):
        assert all(np.array_equal(one[name], other[name]) for name in model.domain.columns)


def test_the_store_knows_it(tmp_path):
    model, _ = fitted()
    save_model(model.with_rounding(), tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert isinstance(loaded, MarkovField)
    assert loaded.rounding
    assert loaded.total == model.total
    np.testing.assert_array_equal(joint_of(loaded), joint_of(model))
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["model.json", "probabilities.npy"]


def altered(tmp_path, change=None, array=None):
    model, _ = fitted()
    folder = tmp_path / "model"
    folder.mkdir()
    model.save(folder)
    document = json.loads((folder / "model.json").read_text())
    (change or (lambda _: None))(document)
    (folder / "model.json").write_text(json.dumps(document))
    if array is not None:
        probabilities = np.load(folder / "probabilities.npy")
        np.save(folder / "probabilities.npy", array(probabilities))
    return folder


def scaled(values):
    values[0] += 0.5
    return values


def negative(values):
    values[0] -= 2.0
    return values


@pytest.mark.parametrize(
    ("change", "array"),
    [
        (lambda d: d.update(total=-1), None),
        (lambda d: d.update(total="many"), None),
        (lambda d: d.update(rounding=1), None),
        (lambda d: d.pop("rounding"), None),
        (lambda d: d.update(bags=[]), None),
        (lambda d: d.update(bags="none"), None),
        (lambda d: d["bags"].append(d["bags"][0]), None),
        (lambda d: d["bags"][1].update(parent=5), None),
        (lambda d: d["bags"][1].update(parent=True), None),
        (lambda d: d["bags"][0].update(columns=["a", "z"]), None),
        (lambda d: d["bags"][0].update(columns=[["a"]]), None),
        (lambda d: d["bags"][0]["columns"].reverse(), None),
        (lambda d: d["domain"].append(["more", 2]), None),
        (lambda d: d["domain"].__setitem__(0, ["a", 2**31]), None),
        (None, lambda values: values[:-1]),
        (None, lambda values: values.astype(np.float32)),
        (None, lambda values: values.reshape(1, -1)),
        (None, lambda values: values * np.nan),
        (None, scaled),
        (None, negative),
    ],
)
def test_altered_files_are_refused(tmp_path, change, array):
    folder = altered(tmp_path, change, array)
    with pytest.raises(ReleaseError):
        MarkovField.load(folder)


def test_extra_files_are_refused(tmp_path):
    folder = altered(tmp_path)
    (folder / "more.npy").write_bytes(b"")
    with pytest.raises(ReleaseError, match="exactly"):
        MarkovField.load(folder)


def test_malformed_models_cannot_be_made():
    domain = Domain.of({"a": 2})
    tree = JunctionTree.of(domain, [])
    with pytest.raises(UsageError, match="total"):
        MarkovField(tree, (np.array([[0.5, 0.5]]),), -1.0)
    with pytest.raises(UsageError, match="add up to 1"):
        MarkovField(tree, (np.array([[0.5, 0.6]]),), 1.0)
    with pytest.raises(UsageError, match="no combination"):
        MarkovField.of_factors(tree, [np.zeros((1, 2))], 1.0)


MERGED = Domain.of({"a": 3, "b": 2, "c": 1, "d": 2})
DOMAIN = Domain.of({"a": 5, "b": 2, "c": 3, "d": 4})
A = Expansion(np.array([0, 2, 1, 2, 2]), np.array([1.0, 0.5, 1.0, 0.5, 0.0]))
C = Expansion(np.zeros(3, np.int64), np.array([0.2, 0.3, 0.5]))
D = Expansion(np.array([1, 0, 0, 1]), np.array([0.9, 0.25, 0.75, 0.1]))


def field_of(seed=1):
    rng = np.random.default_rng(seed)
    tree = JunctionTree.of(MERGED, [MERGED.clique("ab"), MERGED.clique("bd")])
    factors = [
        rng.random((MERGED.cells(above), MERGED.cells(fresh)))
        for above, fresh in zip(tree.separators, tree.fresh, strict=True)
    ]
    return MarkovField.of_factors(tree, factors, 40.0)


def model_of(seed=1):
    return ExpandedField(DOMAIN, field_of(seed), {"a": A, "c": C, "d": D})


def expanded_joint_of(model):
    table = model.merged.marginal(MERGED.everything()).reshape(MERGED.shape("abcd"))
    joint = np.zeros(DOMAIN.shape("abcd"))
    for a, b, c, d in np.ndindex(joint.shape):
        share = A.shares[a] * C.shares[c] * D.shares[d]
        joint[a, b, c, d] = table[A.places[a], b, C.places[c], D.places[d]] * share
    return joint.ravel()


def test_contract():
    model = model_of()
    check_model(model, expanded_joint_of(model))


def test_total_shrinks_with_the_chance_of_a_condition():
    model = model_of()
    probability = model.marginal(DOMAIN.clique("a"))[1] * 0.3
    conditioned = model.condition({"a": np.array([1]), "c": np.array([1])})
    assert conditioned.total == pytest.approx(40.0 * probability)
    with pytest.raises(UsageError, match="cannot happen"):
        model.condition({"a": np.array([4])})
    with pytest.raises(UsageError, match="between 0 and 4"):
        model.condition({"a": np.array([5])})


def test_rounded_draws_give_each_value_its_share():
    model = model_of()
    rounded = ExpandedField(DOMAIN, model.merged.with_rounding(), model.expansions)
    codes = rounded.draw(10_000, np.random.default_rng(0))
    counts = np.bincount(codes["c"], minlength=3)
    assert np.abs(counts - [2_000, 3_000, 5_000]).max() <= 1
    assert codes["a"].max() < 4  # the value without a share never occurs
    assert all(column.dtype == np.uint8 for column in codes.values())


def test_file_form(tmp_path):
    model = model_of()
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert isinstance(again, ExpandedField)
    np.testing.assert_array_equal(again.marginal(DOMAIN.everything()), model.marginal(DOMAIN.everything()))
    plain = ExpandedField(MERGED, field_of(), {})
    save_model(plain, tmp_path / "plain")
    np.testing.assert_array_equal(load_model(tmp_path / "plain").marginal(MERGED.clique("a")), plain.marginal("a"))


@pytest.mark.parametrize("entry", [["x", 5], ["a", 2], ["a", 6], "a", ["a", True], None])
def test_expanded_altered_files_are_refused(tmp_path, entry):
    save_model(model_of(), tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    document = json.loads(path.read_text())
    document["expanded"][0] = entry
    path.write_text(json.dumps(document))
    with pytest.raises(ReleaseError):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("expansions", "fault"),
    [
        ({"a": A, "d": D}, "column c: needs an expansion"),
        ({"a": A, "c": C, "d": Expansion(D.places, D.shares * 0.9)}, "add up to 1"),
        ({"a": A, "c": C, "d": Expansion(D.places + 1, D.shares)}, "inside"),
        ({"a": A, "c": C, "d": Expansion(D.places[:2], D.shares)}, "4 codes"),
        ({"a": A, "c": C, "d": Expansion(D.places, D.shares - 0.5)}, "0 or more"),
    ],
)
def test_faults_are_named(expansions, fault):
    with pytest.raises(UsageError, match=fault):
        ExpandedField(DOMAIN, field_of(), expansions)


def test_marginals_too_large_are_refused():
    wide = Domain.of({"a": 20_000, "b": 20_000})
    small = Domain.of({"a": 1, "b": 1})
    field = MarkovField.of_factors(JunctionTree.of(small, []), [np.ones((1, 1))], 1.0)
    even = Expansion(np.zeros(20_000, np.int64), np.full(20_000, 1 / 20_000))
    with pytest.raises(ResourceError):
        ExpandedField(wide, field, {"a": even, "b": even}).marginal(wide.everything())


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


def test_a_model_that_does_not_fit_is_refused_before_it_is_built():
    domain = Domain.of({f"c{i}": 50 for i in range(12)})
    circle = [domain.clique([f"c{i}", f"c{(i + 1) % 12}"]) for i in range(12)]
    tables = [NoisyTable(clique, np.ones(2500), 1.0) for clique in circle]
    size = GraphicalSize.of(domain, model_cliques(tables, ()))
    assert size.largest == 50**3
    with pytest.raises(ResourceError) as caught:
        fit(domain, tables, model_bytes=size.bytes - 1)
    assert caught.value.needed_bytes == size.bytes
    fit(domain, tables, model_bytes=size.bytes, steps=1)


def test_domains_of_any_size_work_as_long_as_the_cliques_are_small():
    # 10⁸⁰ combinations and more; also more columns than numpy has dimensions.
    domain = Domain.of({f"c{i}": 10 + i % 5 for i in range(80)} | {f"one{i}": 1 for i in range(30)})
    rng = np.random.default_rng(0)
    tables = [noisy(domain, [f"c{i}", f"c{i + 1}"], rng) for i in range(0, 79)]
    tables.append(noisy(domain, ["c3", "one5"], rng))
    model = fit(domain, tables, steps=20)
    assert np.isfinite(model.fit.loss)
    far = model.marginal(domain.clique(["c0", "c79", "one3"]))
    assert far.sum() == pytest.approx(1.0)
    pairs = model.marginals([domain.clique(pair) for pair in itertools.combinations([f"c{i}" for i in range(9)], 2)])
    assert all(table.sum() == pytest.approx(1.0) for table in pairs.values())
    codes = model.draw(1000, np.random.default_rng(0))
    assert all(codes[name].max() < size for name, size in domain.sizes.items())


def test_huge_and_tiny_counts():
    domain = small_domain()
    for scale in (1e-6, 1.0, 1e12):
        rng = np.random.default_rng(1)
        tables = [
            NoisyTable(table.clique, table.values * scale, scale**2)
            for table in (noisy(domain, columns, rng) for columns in ("ab", "bc"))
        ]
        model = fit(domain, tables, total=100.0 * scale, steps=500)
        if scale == 1e-6:
            reference = joint_of(model)
        np.testing.assert_allclose(joint_of(model), reference, atol=1e-6)


def test_without_tables_every_possible_combination_is_equally_likely():
    domain = Domain.of({"a": 2, "b": 2, "one": 1})
    rule = StructuralZeros(domain.clique("ab"), np.array([True, False, False, False]))
    model = fit(domain, [], [rule], total=5.0)
    np.testing.assert_allclose(model.marginal(domain.clique("ab")), [0, 1 / 3, 1 / 3, 1 / 3])
    assert model.total == 5.0
    with pytest.raises(UsageError, match="State the total"):
        fit(domain, [])


def test_a_domain_without_choices():
    domain = Domain.of({"one": 1, "same": 1})
    model = fit(domain, [NoisyTable(domain.everything(), np.array([40.0]), 4.0)])
    assert model.total == 40.0
    np.testing.assert_array_equal(model.marginal(domain.everything()), [1.0])
    assert not model.draw(3, np.random.default_rng(0))["one"].any()


def test_the_total_is_estimated_unless_given():
    domain = small_domain()
    table = NoisyTable(Clique("a"), np.array([70.0, 50.0]), 1.0)
    assert fit(domain, [table]).total == 120.0
    assert fit(domain, [table], total=100.0).total == 100.0


def test_contradicting_rules_and_bad_tables_are_refused():
    domain = small_domain()
    rules = [
        StructuralZeros(Clique("a"), np.array([True, False])),
        StructuralZeros(Clique("a"), np.array([False, True])),
    ]
    with pytest.raises(UsageError, match="no combination"):
        fit(domain, [NoisyTable(Clique("b"), np.ones(3), 1.0)], rules)
    with pytest.raises(UsageError, match="needs 2 values"):
        fit(domain, [NoisyTable(Clique("a"), np.ones(3), 1.0)])


def test_grouped_tables_alone_spread_their_groups_evenly():
    domain = Domain.of({"a": 4})
    plan = np.array([0, 0, 0, 1])
    model = fit(domain, [NoisyTable(domain.everything(), np.array([60.0, 40.0]), 1.0, plan)], steps=3000)
    np.testing.assert_allclose(model.marginal(domain.everything()), [0.2, 0.2, 0.2, 0.4], atol=1e-6)


def test_fits_are_deterministic():
    domain = small_domain()
    tables = [noisy(domain, columns, np.random.default_rng(2)) for columns in ("ab", "bc", "ac")]
    first, second = fit(domain, tables), fit(domain, tables)
    for one, other in zip(first.tables, second.tables, strict=True):
        np.testing.assert_array_equal(one, other)


def best_loss(domain, tables, structural_zeros, total):
    """The least loss over all non-negative full tables with that total, by a general solver."""
    everything = domain.everything()
    cells = np.arange(domain.cells(everything))
    possible = np.ones(cells.size, dtype=bool)
    for each in structural_zeros:
        possible &= ~each.mask[sub_indices(domain, everything, cells, each.clique)]
    rows, targets = [], []
    for table in tables:
        places = sub_indices(domain, everything, cells, table.clique)
        places = places if table.groups is None else table.groups[places]
        matrix = (places[None, :] == np.arange(table.values.size)[:, None])[:, possible]
        known = matrix.any(axis=1)
        rows.append(matrix[known] / np.sqrt(table.variance))
        targets.append(table.values[known] / np.sqrt(table.variance))
    matrix, target = np.concatenate(rows), np.concatenate(targets)

    def loss(x):
        gap = matrix @ x - target
        return 0.5 * gap @ gap, matrix.T @ gap

    start = np.full(matrix.shape[1], total / matrix.shape[1])
    equal = {"type": "eq", "fun": lambda x: x.sum() - total, "jac": lambda x: np.ones_like(x)}
    found = minimize(
        loss, start, jac=True, bounds=[(0, None)] * start.size, constraints=equal, method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    return float(found.fun)


def around_a_truth(domain, columns, rng, *, total=1000.0, sigma=2.0):
    """Noisy tables of one distribution in which all these cliques matter."""
    cliques = [domain.clique(names) for names in columns]
    truth = full_table(domain, {clique: rng.normal(0.0, 1.0, domain.cells(clique)) for clique in cliques})
    return [
        NoisyTable(
            clique, total * marginal_of(domain, truth, clique) + rng.normal(0.0, sigma, domain.cells(clique)), sigma**2
        )
        for clique in cliques
    ]


def test_by_hand():
    domain = Domain.of({"a": 2})
    model = fit(domain, [NoisyTable(Clique("a"), np.array([8.0, 4.0]), 1.0)], total=10.0)
    np.testing.assert_allclose(model.marginal(Clique("a")) * 10.0, [7.0, 3.0], atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_is_the_least_possible(seed):
    rng = np.random.default_rng(seed)
    domain = Domain.of({"a": 2, "b": 3, "c": 2})
    tables = [noisy(domain, columns, rng, sigma=3.0) for columns in ("a", "ab", "bc", "ac", "c")]
    plan = np.array([0, 0, 1, 1, 2, 2])
    tables.append(NoisyTable(domain.clique("bc"), rng.normal(30.0, 5.0, 3), 2.0, plan))
    structural_zeros = [rule(domain, "ab", rng)] if seed % 2 else []
    total = 120.0
    model = fit(domain, tables, structural_zeros, total=total, steps=20_000)
    best = best_loss(domain, tables, structural_zeros, total)
    # Table cells that the rules make certain are no part of the loss; both sides leave them out.
    assert model.fit.loss == pytest.approx(best, rel=2e-4, abs=1e-3)


def test_noise_free_tables_are_reproduced_on_a_loop_and_entropy_is_largest():
    rng = np.random.default_rng(1)
    domain = small_domain()
    cliques = [domain.clique(names) for names in ("ab", "bc", "cd", "ad", "e")]
    truth = full_table(domain, {clique: rng.normal(0.0, 1.0, domain.cells(clique)) for clique in cliques})
    tables = [NoisyTable(clique, 1000.0 * marginal_of(domain, truth, clique), 1.0) for clique in cliques]
    model = fit(domain, tables, total=1000.0, steps=20_000)
    for table in tables:
        np.testing.assert_allclose(1000.0 * model.marginal(table.clique), table.values, atol=1e-4)
    # The truth has the model's own form, so it is the only such distribution with these marginals.
    np.testing.assert_allclose(joint_of(model), truth, atol=1e-6)


def test_measured_cliques_agree_on_what_they_share():
    rng = np.random.default_rng(2)
    domain = small_domain()
    model = fit(domain, [noisy(domain, columns, rng, sigma=5.0) for columns in ("ab", "bc", "cd", "de")], steps=50)
    for left, right in (("ab", "bc"), ("bc", "cd")):
        first = model.marginal(domain.clique(left)).reshape(domain.shape(left)).sum(axis=0)
        second = model.marginal(domain.clique(right)).reshape(domain.shape(right)).sum(axis=1)
        np.testing.assert_allclose(first, second, atol=1e-12)


def test_a_warm_start_goes_on_where_the_last_fit_stopped():
    rng = np.random.default_rng(3)
    domain = small_domain()
    tables = around_a_truth(domain, ("a", "b", "ab", "bc", "cd"), rng)
    first = fit(domain, tables[:3], total=1000.0, steps=300)
    same = fit(domain, tables[:3], total=1000.0, start=first, steps=0)
    np.testing.assert_allclose(joint_of(same), joint_of(first), atol=1e-9)
    # What was measured since moves the start towards it; what was known stays as far as the new tables allow.
    exact = [NoisyTable(q, 1000.0 * first.marginal(q), 1e-6) for q in (domain.clique("bc"), domain.clique("cd"))]
    grown = fit(domain, [*tables[:3], *exact], total=1000.0, start=first, steps=0)
    np.testing.assert_allclose(joint_of(grown), joint_of(first), atol=1e-9)
    moved = fit(domain, tables, total=1000.0, start=first, steps=0)
    unmoved = sum(0.5 * ((1000.0 * first.marginal(t.clique) - t.values) ** 2).sum() / t.variance for t in tables)
    assert moved.fit.loss < 0.25 * unmoved
    warm = fit(domain, tables, total=1000.0, start=first, steps=20)
    assert warm.fit.loss < moved.fit.loss


def test_a_warm_start_ends_where_a_cold_one_does():
    rng = np.random.default_rng(6)
    domain = small_domain()
    tables = around_a_truth(domain, ("ab", "bc", "ac", "cde"), rng)
    cold = fit(domain, tables, total=1000.0, steps=20_000)
    warm = fit(domain, tables, total=1000.0, start=fit(domain, tables[:2], total=1000.0), steps=20_000)
    assert warm.fit.loss == pytest.approx(cold.fit.loss, rel=1e-5)
    np.testing.assert_allclose(joint_of(warm), joint_of(cold), atol=1e-4)


def test_steps_only_lower_the_loss():
    rng = np.random.default_rng(4)
    domain = small_domain()
    tables = [noisy(domain, columns, rng) for columns in ("ab", "bc", "ae")]
    losses = [fit(domain, tables, steps=steps).fit.loss for steps in (0, 1, 5, 25, 125)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def test_discrepancy_stops_once_noise_explains_the_rest():
    rng = np.random.default_rng(5)
    domain = Domain.of({"a": 12, "b": 14, "c": 10})
    circle = [domain.clique(pair) for pair in ("ab", "bc", "ac")]
    truth = full_table(domain, {pair: rng.normal(0.0, 1.0, domain.cells(pair)) for pair in circle})
    tables = []
    for columns in circle:
        clique = domain.clique(columns)
        values = 10_000.0 * marginal_of(domain, truth, clique) + rng.normal(0.0, 10.0, domain.cells(clique))
        tables.append(NoisyTable(clique, values, 100.0))
    measured = 0.5 * (168 + 140 + 120)
    stopped = fit(domain, tables, total=10_000.0, steps=5000, explained=1.0)
    assert stopped.fit.loss <= measured
    assert stopped.fit.steps < 5000
    assert fit(domain, tables, total=10_000.0, steps=stopped.fit.steps - 1).fit.loss > measured


def test_different_variances_are_respected():
    domain = Domain.of({"a": 2})
    tables = [
        NoisyTable(Clique("a"), np.array([80.0, 20.0]), 1.0),
        NoisyTable(Clique("a"), np.array([20.0, 80.0]), 3.0),
    ]
    model = fit(domain, tables, total=100.0)
    np.testing.assert_allclose(model.marginal(Clique("a")), [0.65, 0.35], atol=1e-6)
