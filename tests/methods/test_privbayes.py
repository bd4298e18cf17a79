"""PrivBayes: recovery of a true network, presets, rules, plans that refuse, and what it asks."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from tests.methods.door import door, letters, rho, rows_of
from understudy import Schema, Unit, synthesize
from understudy.domain import Clique, Domain, Selection, StructuralZeros
from understudy.errors import ResourceError, UsageError
from understudy.methods.method import PublicFacts
from understudy.methods.privbayes import PrivBayes
from understudy.models import bayes_net as bayesian
from understudy.privacy.cost import Budget, Cost
from understudy.schema import Category
from understudy.testing.method_contract import MethodChecks

HUGE = 1e5


def schema(sizes: dict[str, int]) -> Schema:
    """Categories with so many labels, and as many codes."""
    return Schema(
        columns=tuple(Category(name=n, labels=tuple(map(str, range(s))), missing=False) for n, s in sizes.items()),
        unit=Unit(),
        unreadable="drop",
    )


def chain(rows: int, columns: int, seed: int) -> pa.Table:
    """Binary columns, each equal to the one before except for one row in six."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 2, rows)]
    for _ in range(columns - 1):
        codes.append(np.where(rng.random(rows) < 1 / 6, 1 - codes[-1], codes[-1]))
    return pa.table({f"c{place}": pa.array(code.astype(str)) for place, code in enumerate(codes)})


BINARY = schema({f"c{place}": 2 for place in range(5)})


def distance(release, table: pa.Table, columns: list[str]) -> float:
    """Total variation between model and table."""
    codes = [table.column(name).to_numpy(zero_copy_only=False).astype(int) for name in columns]
    shape = [release.model.domain.sizes[name] for name in columns]
    exact = np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))) / table.num_rows
    return float(np.abs(exact - release.model.marginal(Clique(columns))).sum() / 2)


@pytest.mark.parametrize("preset", ["refined", "published", "steps_paper", "nist"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_at_a_huge_budget_the_joint_of_a_true_network_comes_back(preset: str, delta: float) -> None:
    table = chain(3000, 5, seed=1)
    release = synthesize(
        table, BINARY, method="privbayes", epsilon=HUGE, delta=delta, options={"preset": preset}, seed=1
    )
    assert distance(release, table, list(BINARY.names)) < 0.02
    assert release.statement.spent.fits(release.statement.granted)


@pytest.mark.parametrize("score", ["R", "F", "I"])
def test_every_score_finds_the_neighbour_in_a_chain(score: str) -> None:
    table = chain(4000, 4, seed=2)
    small = schema({f"c{place}": 2 for place in range(4)})
    release = synthesize(
        table, small, method="privbayes", epsilon=20.0, options={"preset": "published", "degree": 1, "score": score}
    )
    nodes = release.model.layout.nodes  # type: ignore[attr-defined]
    pairs = {(node.child, *node.parents) for node in nodes if node.parents}
    assert {frozenset(pair) for pair in pairs} == {frozenset({f"c{k}", f"c{k + 1}"}) for k in range(3)}


def test_the_published_preset_asks_as_published() -> None:
    """d − 1 draws and, for columns of two codes at degree 2, d − k tables; β = 0.3 of ε for the draws."""
    release = synthesize(
        chain(3000, 5, seed=3), BINARY, method="privbayes", epsilon=1.0, options={"preset": "published", "degree": 2}
    )
    draws = [answer for answer in release.transcript if isinstance(answer, Selection)]
    tables = [answer for answer in release.transcript if not isinstance(answer, Selection)]
    assert len(draws) == 4
    assert [len(answer.shape) for answer in tables] == [0, 3, 3, 3]
    assert tables[1].distribution.scale == pytest.approx(3 / 0.69, rel=1e-6)
    assert all(len(node.parents) <= 2 for node in release.model.layout.nodes)  # type: ignore[attr-defined]


def test_without_useful_parents_columns_are_independent() -> None:
    release = synthesize(
        chain(40, 5, seed=4), BINARY, method="privbayes", epsilon=0.05, options={"preset": "published", "rows": 40}
    )
    assert not any(node.parents for node in release.model.layout.nodes)  # type: ignore[attr-defined]


def test_wide_parents_are_taken_coarsely() -> None:
    """Taken as it is, a parent of 320 codes is chosen with a chance of 1e-12 at any ε; one of 80 in a run of 250."""
    rng = np.random.default_rng(5)
    wide = rng.integers(0, 320, 10_000)
    table = pa.table({"wide": pa.array(wide.astype(str)), "high": pa.array((wide >= 160).astype(int).astype(str))})
    release = synthesize(table, schema({"wide": 320, "high": 2}), method="privbayes", epsilon=1.0)
    assert release.model.layout.hidden  # type: ignore[attr-defined]
    assert distance(release, table, ["wide", "high"]) < 0.2


@pytest.mark.parametrize(
    "options",
    [
        {"preset": "unknown"},
        {"score": "G"},
        {"structure_share": 1.5},
        {"preset": "refined", "structure_share": 0.7},
        {"theta": 0},
        {"degree": -1},
        {"rows": 0},
        {"most_candidates": 0},
        {"coarsen": "no"},
    ],
)
def test_bad_options_are_refused(options) -> None:
    with pytest.raises(UsageError):
        PrivBayes(**options)


def test_score_f_needs_columns_of_two_codes() -> None:
    facts = PublicFacts(Domain.of({"a": 3, "b": 2}), (), 1)
    with pytest.raises(UsageError, match="two codes"):
        PrivBayes(score="F").plan(facts, Cost(epsilon=10**12))


def test_the_plan_refuses_in_advance_what_cannot_be_counted() -> None:
    wide = Domain.of({"a": 2000, "b": 2000, "c": 2})
    rule = StructuralZeros(Clique(("a", "b")), np.zeros(2000 * 2000, dtype=bool))
    with pytest.raises(ResourceError, match="rules force"):
        PrivBayes().plan(PublicFacts(wide, (rule,), 1), Cost(epsilon=10**12))
    with pytest.raises(ResourceError, match="with 2 parents"):
        PrivBayes(preset="steps_paper").plan(
            PublicFacts(Domain.of({"a": 2000, "b": 2000, "c": 2000}), (), 1), Cost(epsilon=10**12)
        )


def test_the_plan_adds_up_in_every_preset() -> None:
    facts = PublicFacts(Domain.of({"a": 2, "b": 30, "c": 5, "one": 1}), (), 1, rows_hint=1000)
    for preset in ("refined", "published", "steps_paper", "nist"):
        for budget, currency in ((Budget(1.0), "pure"), (Budget(1.0, 1e-9), "zcdp")):
            cost = budget.cost(currency)
            plan = PrivBayes(preset=preset).plan(facts, cost)
            assert plan.cost.fits(cost)
            assert sum((step.cost for step in plan.steps), Cost()) == plan.cost
            assert max(plan.cost.epsilon / max(cost.epsilon, 1), plan.cost.rho / max(cost.rho, 1)) > 0.999


def test_a_network_too_tangled_for_exact_answers_is_still_released(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(bayesian, "FIELD_BYTES", 8)
    release = synthesize(
        chain(2000, 5, seed=6), BINARY, method="privbayes", epsilon=5.0, options={"preset": "published"}, rows=300
    )
    release.save(tmp_path / "release")
    page = (tmp_path / "release" / "card.html").read_text(encoding="utf-8")
    assert "rows drawn, scaled" in page
    with pytest.raises(ResourceError):
        release.model.marginal(Clique(("c0",)))


def test_memory_of_a_plan_is_what_a_run_takes_and_its_limit_what_it_may() -> None:
    """Arrays of a run, traced. The plan used to say the limit, 500 MiB for every table."""
    sizes = {f"c{place}": size for place, size in enumerate((2, 3, 4, 6, 8, 12, 16, 5, 7, 9, 20, 10))}
    rng = np.random.default_rng(3)
    hidden = rng.integers(0, 6, 20_000)
    table = rows_of(
        {
            name: np.where(rng.random(hidden.size) < 0.5, hidden * size // 6, rng.integers(0, size, hidden.size))
            for name, size in sizes.items()
        }
    )
    facts = PublicFacts(Domain.of(sizes), (), 1, rows_hint=hidden.size)
    planned = PrivBayes().plan(facts, rho(0.1))
    curator = door(table, letters(sizes), rho(0.1))
    tracemalloc.start()
    try:
        PrivBayes().fit(curator, rho(0.1))
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 1 / 2 < planned.bytes / taken < 2
    assert taken < planned.limit_bytes


def test_the_limit_of_memory_holds_whatever_the_number_of_rows() -> None:
    """How many rows there are is a hint at best: what is expected follows it, and the limit does not."""
    domain = Domain.of({f"c{place}": 10 for place in range(30)})
    few, many = (PrivBayes().plan(PublicFacts(domain, (), 1, rows_hint=rows), rho(0.1)) for rows in (1_000, 10**8))
    assert few.bytes < many.bytes < many.limit_bytes == few.limit_bytes


# Presets of PrivBayes against the parts of the contract that do not depend on how good they are.


PURE, CONCENTRATED = Budget(1.0), Budget(1.0, 1e-6)
OPTIONS = [
    {"preset": "published"},
    {"preset": "published", "coarsen": 2, "score": "R"},
    {"preset": "steps_paper"},
    {"preset": "nist"},
    {"score": "I"},
    {"degree": 1},
]


@pytest.mark.parametrize("check", ["budget_is_kept", "honours_rules_and_schema"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_preset(options: dict[str, object], check: str) -> None:
    getattr(MethodChecks("privbayes", [PURE, CONCENTRATED], [["age"]], options), check)()


@pytest.mark.slow
@pytest.mark.parametrize("check", ["replays_on_neighbours", "survives_edge_shapes"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_preset_at_length(options: dict[str, object], check: str) -> None:
    getattr(MethodChecks("privbayes", [PURE, CONCENTRATED], [["age"]], options, pairs=60), check)()
