from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2_contingency

from tests.methods.door import VOTERS, door, epsilon, letters, rho, rows_of
from tests.methods.test_independent import EDGES, voters
from understudy.domain import Clique, Distribution, Domain, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.laplace import Laplace, smallest_threshold
from understudy.methods.method import PublicFacts, facts_of
from understudy.schema import Unit

LEVEL = 1e-8  # per comparison, of which there are twelve; noise is fresh in every run of the suite
SMALL = letters({"a": 2, "b": 3})


class Fixed:
    """Adds the given noise, so that a run can be checked by hand."""

    private = False

    def __init__(self, *noise):
        self.noise = list(noise)

    def add_noise(self, request, exact):
        return exact + np.array(self.noise.pop(0), dtype=np.int64)


def test_by_hand():
    schema = letters({"a": 2, "b": 2})
    table = rows_of({"a": [0, 0, 0, 1], "b": [0, 0, 0, 0]})  # counts 3, 0, 1, 0
    noise = [-1, 2, 0, -1]
    everything = Clique(("a", "b"))
    model = Laplace(n_policy="estimated").fit(door(table, schema, epsilon(1), Fixed(noise)), epsilon(1))
    np.testing.assert_allclose(model.marginal(everything), [0.4, 0.4, 0.2, 0.0])
    assert model.total == 4.0
    projected = Laplace(negatives="norm_sub").fit(door(table, schema, epsilon(1), Fixed([0], noise)), epsilon(1))
    np.testing.assert_allclose(projected.marginal(everything) * 4, [5 / 3, 5 / 3, 2 / 3, 0.0])
    cut = Laplace(threshold=2).fit(door(table, schema, epsilon(1), Fixed([5], noise)), epsilon(1))
    np.testing.assert_allclose(cut.marginal(everything), [0.5, 0.5, 0.0, 0.0])
    assert cut.total == 9.0


@pytest.mark.parametrize(
    "method", [Laplace(), Laplace(dense_cells=1), Laplace(n_policy="estimated", negatives="norm_cut")]
)
def test_huge_budget_recovers_the_table(method):
    codes = voters(2_000)
    model = method.fit(door(rows_of(codes), VOTERS, epsilon(1e5)), epsilon(1e5))
    truth = np.bincount(np.ravel_multi_index(tuple(codes.values()), (2, 2, 5)), minlength=20) / 2_000
    np.testing.assert_allclose(model.marginal(model.domain.everything()), truth, atol=1e-9)
    assert model.total == pytest.approx(2_000, abs=0.5)


@pytest.mark.parametrize("method", [Laplace(), Laplace(n_policy="estimated"), Laplace(dense_cells=1, total_share=0.2)])
def test_the_run_spends_what_the_plan_says(method):
    curator = door(rows_of(voters(50)), VOTERS, epsilon(1))
    plan = method.plan(facts_of(curator), epsilon(1))
    method.fit(curator, epsilon(1))
    assert curator.left.epsilon == 0
    assert plan.cost == epsilon(1)
    assert [charge for _, charge in curator.charges] == [step.cost for step in plan.steps]
    assert [answer.distribution.scale for answer in curator.transcript] == [step.noise_scale for step in plan.steps]


def test_noise_grows_with_the_rows_of_a_unit():
    facts = PublicFacts(Domain.of({"a": 4}), (), 3)
    assert Laplace(n_policy="estimated").plan(facts, epsilon(0.5)).steps[0].noise_scale == pytest.approx(6.0)


def test_rules_are_never_broken_dense_or_sparse():
    for method in (Laplace(), Laplace(dense_cells=1, threshold=1)):
        model = method.fit(door(rows_of(voters(20)), VOTERS, epsilon(0.05)), epsilon(0.05))
        codes = model.draw(5_000, np.random.default_rng(0))
        assert not ((codes["registered"] == 0) & (codes["voted"] == 1)).any()


def test_dense_and_sparse_agree_in_distribution():
    table = rows_of({"a": [0] * 7 + [1] * 3, "b": [0] * 7 + [2] * 3})
    kept = []
    for dense_cells in (100, 1):
        method = Laplace(dense_cells=dense_cells, threshold=2, n_policy="estimated")
        counts = np.zeros((6, 2), dtype=int)
        for _ in range(1_500):
            block = method.fit(door(table, SMALL, epsilon(0.5)), epsilon(0.5)).blocks[0]  # type: ignore[attr-defined]
            if len(block.clique) == 2:
                counts[block.indices, 0] += 1
                counts[block.indices[block.probabilities > 0.3], 1] += 1
        kept.append(counts)
    for cell in range(6):
        for kind in range(2):
            seen = [counts[cell, kind] for counts in kept]
            assert chi2_contingency([[value + 1, 1_501 - value] for value in seen]).pvalue > LEVEL


def test_a_domain_of_ten_to_the_fifteen_cells():
    schema = letters({f"c{place}": 10 for place in range(15)})
    codes = {name: np.repeat([1, 2], 500) for name in (column.name for column in schema.columns)}
    curator = door(rows_of(codes), schema, epsilon(1))
    plan = Laplace().plan(facts_of(curator), epsilon(1))
    assert plan.cells == 10**15
    assert plan.bytes < 10**7
    model = Laplace().fit(curator, epsilon(1))
    ones, twos = (int(str(digit) * 15) for digit in (1, 2))
    block = model.blocks[0]  # type: ignore[attr-defined]
    shares = dict(zip(block.indices.tolist(), block.probabilities.tolist(), strict=True))
    assert 10 < len(shares) < 250  # at most 100 empty cells are expected at the chosen threshold
    assert shares[ones] == pytest.approx(500 / (1_000 + 31 * len(shares)), rel=0.3)
    assert shares[twos] > 0
    drawn = model.draw(1_000, np.random.default_rng(0))
    assert len(drawn) == 15


def test_sparse_threshold_is_the_smallest_that_keeps_few():
    for scale in (Fraction(1, 3), Fraction(1), Fraction(50)):
        distribution = Distribution("laplace", scale)
        q = np.exp(-1 / float(scale))
        for cells in (10, 10**6, 10**15):
            cut = smallest_threshold(distribution, cells, 100)
            assert cells * q**cut / (1 + q) <= 100 * (1 + 1e-9)
            assert cut == 1 or cells * q ** (cut - 1) / (1 + q) > 100 * (1 - 1e-9)


def test_estimated_total_of_a_thresholded_table_is_corrected():
    schema = letters({"a": 50, "b": 50})
    table = rows_of({"a": [1] * 4_000, "b": [2] * 4_000})
    method = Laplace(dense_cells=1, threshold=5, n_policy="estimated")
    totals = [method.fit(door(table, schema, epsilon(0.2)), epsilon(0.2)).total for _ in range(40)]
    deviation = np.std(totals) / np.sqrt(40)
    # Eight standard errors, estimated from 40 runs: about 1e-9. Without the correction it would be thousands of rows.
    assert abs(np.mean(totals) - 4_000) < 8 * deviation + 5
    assert deviation < 150


@pytest.mark.parametrize(("schema", "columns"), EDGES.values(), ids=EDGES.keys())
@pytest.mark.parametrize(
    "method", [Laplace(), Laplace(dense_cells=1), Laplace(n_policy="estimated", negatives="norm_sub")]
)
@pytest.mark.parametrize("budget", [1e-3, 1e5])
def test_edge_shapes(schema, columns, method, budget):
    table = pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
    model = method.fit(door(table, schema, epsilon(budget)), epsilon(budget))
    codes = model.draw(20, np.random.default_rng(0))
    assert all(column.max() < model.domain.sizes[name] for name, column in codes.items())
    if budget == 1e5:
        assert model.total == pytest.approx(table.num_rows, abs=1e-6)


def test_plans_refuse_in_advance():
    huge = Domain.of({f"c{place}": 2**8 for place in range(8)})
    with pytest.raises(ResourceError, match="independent"):
        Laplace().plan(PublicFacts(huge, (), 1), epsilon(1))
    small = Domain.of({"a": 2})
    with pytest.raises(UsageError, match="pure ε"):
        Laplace().plan(PublicFacts(small, (), 1), rho(1))
    with pytest.raises(UsageError, match="no combination"):
        Laplace().plan(
            PublicFacts(small, (StructuralZeros(small.everything(), np.ones(2, dtype=bool)),), 1), epsilon(1)
        )
    wide = Domain.of({"a": 2**31, "b": 2**30})
    with pytest.raises(UsageError, match="threshold"):
        Laplace(threshold=1).plan(PublicFacts(wide, (), 1), epsilon(1))


def test_plans_give_back_options_that_rebuild_the_method():
    method = Laplace(threshold=3, n_policy="estimated")
    plan = method.plan(PublicFacts(Domain.of({"a": 4}), (), 1), epsilon(1))
    assert Laplace(**plan.options) == method
    assert "Dense form: noisy counts below 3" in plan.notes[0]


@pytest.mark.parametrize("method", [Laplace(rounding="controlled"), Laplace(rounding="controlled", dense_cells=1)])
def test_controlled_rounding_gives_back_whole_counts(method):
    codes = voters(2_000)
    model = method.fit(door(rows_of(codes), VOTERS, epsilon(1e5)), epsilon(1e5))
    drawn = model.draw(2_000, np.random.default_rng(1))
    tables = [np.bincount(np.ravel_multi_index(tuple(one.values()), (2, 2, 5)), minlength=20) for one in (codes, drawn)]
    assert tables[0].tolist() == tables[1].tolist()


def test_plan_notes_warn_of_a_table_that_drowns():
    domain = Domain.of({"a": 1000, "b": 100})
    notes = " ".join(Laplace().plan(PublicFacts(domain, (), 1, rows_hint=1_000), epsilon(1)).notes)
    assert "0.01 rows" in notes
    assert "uniform" in notes
    assert "uniform" not in " ".join(Laplace().plan(PublicFacts(domain, (), 1, rows_hint=10**9), epsilon(1)).notes)


@pytest.mark.parametrize(
    "options",
    [
        {"n_policy": "public"}, {"negatives": "none"}, {"dense_cells": 0}, {"dense_cells": 2.5}, {"threshold": 0},
        {"kept_empty": True}, {"total_share": 0.0}, {"total_share": 1}, {"total_share": "much"},
        {"rounding": "up"},
    ],
)  # fmt: skip
def test_options_are_checked(options):
    with pytest.raises(UsageError):
        Laplace(**options)


def test_unit_of_several_rows():
    schema = letters({"a": 2}, unit=Unit(column="person", rows=2))
    table = rows_of({"a": [0, 0, 0, 1], "person": [1, 1, 1, 2]})
    model = Laplace().fit(door(table, schema, epsilon(1e5)), epsilon(1e5))
    assert model.total == pytest.approx(3)
