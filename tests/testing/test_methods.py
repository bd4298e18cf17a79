"""Every registered method against the contract of methods. A new method is one line here."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.counts.places import PLACES
from understudy.methods.method import METHODS as KNOWN
from understudy.privacy.cost import Budget
from understudy.schema import Schema
from understudy.testing import cases as tables
from understudy.testing.method_contract import CHECKS, MethodChecks

PURE, CONCENTRATED = Budget(1.0), Budget(1.0, 1e-6)
# Of tables as small as these `ensemble` measures pairs only where noise hardly counts.
PLENTY = [Budget(100.0), Budget(100.0, 1e-6)]
ONE_WAY = (["registered"], ["voted"], ["age"])
PAIRS = 30  # of neighbours for each method in every run of the suite; nightly as many as the contract asks for
PARTS = 3  # of designed neighbours and edge shapes; a method meets one in every run, and the next method the other
ENGINE_TOO = {name: put for name, put in PLACES.items() if name != "arrow"}
"""Every place a table can lie, a DuckDB file among them, which the package itself must not write."""


def _public_columns(schema: Schema) -> pa.Table | None:
    """Public rows without the last column; none if that is the only one."""
    if len(schema.modelled) == 1:
        return None
    rows = tables.possible_rows(schema, 400, seed=3)  # those that the check of a huge budget must find again
    return rows.drop([schema.modelled[-1].name])


def _public_rows(schema: Schema) -> pa.Table:
    """Public rows of all columns."""
    return tables.possible_rows(schema, 200, seed=12)


METHODS = {
    "independent": MethodChecks("independent", [PURE, CONCENTRATED], ONE_WAY),
    "laplace": MethodChecks("laplace", [PURE], [["registered", "voted", "age"]]),
    "mst": MethodChecks("mst", [CONCENTRATED], [["registered", "voted"], ["age"]]),
    "mwem": MethodChecks("mwem", [PURE, CONCENTRATED], [["registered", "voted"], ["voted", "age"]]),
    "aim": MethodChecks("aim", [CONCENTRATED], [["registered", "voted"], ["voted", "age"]]),
    "nist_mst": MethodChecks(
        "nist_mst", [CONCENTRATED], [["registered", "voted"], ["age"]], {"marginals": "pairs", "steps": 100}
    ),
    "aim with a public table": MethodChecks(
        "aim", [CONCENTRATED], [["registered", "voted"], ["voted", "age"]], public=_public_rows
    ),
    "nist_mst with a public table": MethodChecks(
        "nist_mst", [CONCENTRATED], [["registered", "voted"], ["age"]], {"steps": 100}, public=_public_rows
    ),
    "random_partition": MethodChecks(
        "random_partition", [PURE, CONCENTRATED], [["registered", "voted", "age"]], {"n_policy": "estimated"}
    ),
    # Shares everything behind the tree with random_partition; its own tests replay it with Gaussian noise.
    "universal_histogram": MethodChecks(
        "universal_histogram", [PURE], [["registered", "voted", "age"]], {"branching": 4}
    ),
    # The last column is private: it comes back beside the others, which trees spread evenly within their leaves.
    "rdt": MethodChecks("rdt", [PURE, CONCENTRATED], [["registered", "voted", "age"]], {"leaf_size": 2, "trees": 2}),
    "rdt with a public table": MethodChecks(
        "rdt",
        [CONCENTRATED],
        [["age"]],
        {"leaf_size": 2, "trees": 2, "leaf_minimum": 30},
        public=_public_columns,
    ),
    "steps": MethodChecks("steps", [PURE], [["registered", "voted", "age"]]),
    "steps by a sequence": MethodChecks(
        "steps", [PURE], [["registered", "voted", "age"]], {"sequence": "*", "allocation": "equal"}
    ),
    "steps with stopping": MethodChecks(
        "steps", [CONCENTRATED], [["registered", "voted", "age"]], {"stopping": "range", "layers": 3}
    ),
    "ensemble": MethodChecks(
        "ensemble",
        [PURE, CONCENTRATED, *PLENTY],
        [["registered", "voted"], ["voted", "age"]],
        {"components": 8, "steps": 20, "most_records": 2000, "sweeps": 4},
    ),
    "ensemble with a public table": MethodChecks(
        "ensemble",
        [CONCENTRATED],
        [["registered", "voted"], ["voted", "age"]],
        {"components": 8, "steps": 20, "most_records": 2000, "sweeps": 4},
        public=_public_rows,
    ),
    "fieldgroups": MethodChecks("fieldgroups", [PURE], [["registered", "voted"], ["age"]]),
    "pfr": MethodChecks("pfr", [PURE], [["registered", "voted"], ["age"]]),
    "privbayes": MethodChecks("privbayes", [PURE, CONCENTRATED], [["registered", "voted"], ["voted", "age"]]),
    # Paid in ε and δ together; the columns come back from the first look, whatever so few steps learn.
    "dpwgan": MethodChecks(
        "dpwgan",
        [CONCENTRATED],
        ONE_WAY,
        {"steps": 4, "hidden": 4, "latent": 2, "batch": 8, "components": 16, "rate": 0.3},
    ),
    # The entry's form, with small networks: without a first look it promises no distribution, and the number of rows is
    # batch/rate, here that of the table to be recovered.
    "dpwgan without a first look": MethodChecks(
        "dpwgan",
        [CONCENTRATED],
        [],
        {"steps": 4, "hidden": 4, "latent": 2, "batch": 8, "components": 16, "rate": 8 / 319, "columns_share": 0.0}
        | {"weight_bound": 0.01, "gradient_norm": 2.0, "averaging": 0.0},
    ),
    "auto": MethodChecks("auto", [PURE, CONCENTRATED], ONE_WAY),
    "privsyn": MethodChecks(
        "privsyn",
        [PURE, CONCENTRATED],
        [["registered", "voted"], ["voted", "age"]],
        {"most_records": 2000, "sweeps": 4},
    ),
    "dpsyn": MethodChecks(
        "dpsyn",
        [PURE, CONCENTRATED],
        [["registered", "voted"], ["age"]],
        {"marginals": "pairs", "most_records": 2000, "sweeps": 4},
    ),
}


def test_every_method_is_held_against_the_contract() -> None:
    assert {checks.method for checks in METHODS.values()} == set(KNOWN.names())


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("method", METHODS)
def test_method(method: str, check: str) -> None:
    part = list(METHODS).index(method) % PARTS, PARTS
    getattr(replace(METHODS[method], places=ENGINE_TOO, pairs=PAIRS, part=part), check)()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_method_on_many_neighbours(method: str) -> None:
    replace(METHODS[method], places=ENGINE_TOO).replays_on_neighbours()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_edge_shape_in_every_currency(method: str) -> None:
    checks = METHODS[method]
    for budget in checks.budgets:
        replace(checks, budgets=[budget]).survives_edge_shapes()
