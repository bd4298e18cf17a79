"""Private bins and rare labels come from the schema: every method works with them, and none leaks through them."""

import numpy as np
import pytest

from tests.testing.test_methods import METHODS
from understudy.privacy.randomizer import SecureRandomizer
from understudy.release import verify_release
from understudy.schema import Category, Integer, PrivateBins, Schema, Unit
from understudy.testing import SeededRandomizer
from understudy.testing import cases as tables
from understudy.testing.cases import Case
from understudy.testing.method_contract import MethodChecks
from understudy.testing.replay import Recorder, check_pair, cost_of, designed_pairs, random_pairs

ALONE = {name: checks for name, checks in METHODS.items() if "public table" not in name}


def _schema(unit: Unit | None = None) -> Schema:
    towns = tuple(f"town {place}" for place in range(9))
    return Schema(
        (
            Category(name="town", labels=towns, missing=False, rare="private"),
            Integer(name="income", lower=0, upper=999, bins=PrivateBins(3, "privtree"), missing=False),
            Integer(name="wage", lower=0, upper=63, bins=PrivateBins(3, "quantiles"), missing=False),
        ),
        unit or Unit(),
    )


def _cases(checks: MethodChecks, schema: Schema) -> list[Case]:
    return [Case(schema, checks.method, budget, checks.options) for budget in checks.budgets]


@pytest.mark.parametrize("method", ALONE)
def test_every_method_works_with_them(method: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The account adds up, the folder verifies, and the rows obey the schema."""
    for case in _cases(ALONE[method], _schema())[-1:]:
        recorder = Recorder(SecureRandomizer(), private=True)
        out = tmp_path_factory.mktemp("prepared") / "release"
        release = case.release(tables.some_rows(case.schema, 60, seed=1), recorder, out=out)
        statement = release.statement
        queries = cost_of([exchange.request for exchange in recorder.log], zcdp=statement.granted.rho > 0)
        assert queries.fits(statement.spent)
        assert statement.spent.fits(statement.granted)
        assert verify_release(out) == []
        steps = [charge.step for charge in statement.charges]
        assert "grow halves of income" in steps
        assert "select cuts of wage, layer 1" in steps
        assert steps.count("measure town") >= 1
        assert set(release.codec.edges) == {"income", "wage"}


@pytest.mark.parametrize("method", ALONE)
def test_no_method_leaks_through_them(method: str) -> None:
    schema = _schema(Unit(column="person", rows=2))
    fixed = [pair for pair in designed_pairs(schema) if not pair.name.startswith("hostile")][:1]
    pairs = [*fixed, *random_pairs(schema, 2, np.random.default_rng(5))]
    for case in _cases(ALONE[method], schema)[:1]:
        for index, pair in enumerate(pairs):
            check_pair(case.pipeline(), pair.table, pair.neighbour, SeededRandomizer(index))
