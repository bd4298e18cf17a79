import json
from pathlib import Path

import pytest

from tests.compare.tables import SCHEMA, table
from understudy.compare import choose
from understudy.errors import BudgetError, UsageError
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger


def ledger(place: Path, epsilon: float) -> Ledger:
    return Ledger.create(place / "ledger.db", dataset="people", cap=Budget(epsilon))


def test_every_release_and_the_choice_are_charged(tmp_path: Path) -> None:
    account = ledger(tmp_path, 20.0)
    found = choose(
        table(2000),
        SCHEMA,
        methods=["independent", "laplace"],
        epsilon=5.0,
        choice_epsilon=2.0,
        ledger=account,
        out=tmp_path / "out",
    )
    assert found.chosen == "laplace"  # 30 cells more in all, and it alone knows how columns go together
    assert found.cost == Budget(12.0)
    assert account.balance("people").spent.epsilon == Budget(12.0).epsilon_units
    assert account.balance("people").releases == 3
    assert account.verify() == []
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["1-independent", "2-laplace", "choice.json"]
    stated = json.loads((tmp_path / "out" / "choice.json").read_text(encoding="utf-8"))
    assert (stated["chosen"], stated["epsilon"], stated["delta"]) == ("laplace", 12.0, 0.0)


def test_a_ledger_that_does_not_cover_everything_is_not_touched(tmp_path: Path) -> None:
    account = ledger(tmp_path, 11.9)
    with pytest.raises(BudgetError):
        choose(
            table(50),
            SCHEMA,
            methods=["independent", "laplace"],
            epsilon=5.0,
            choice_epsilon=2.0,
            ledger=account,
            out=tmp_path / "out",
        )
    assert account.balance("people").releases == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("methods", [["laplace"], ["laplace", "laplace"], ["laplace", "laplac"]])
def test_wrong_candidates_are_refused_before_a_charge(methods: list[str], tmp_path: Path) -> None:
    account = ledger(tmp_path, 20.0)
    with pytest.raises(UsageError):
        choose(table(50), SCHEMA, methods=methods, epsilon=1.0, choice_epsilon=1.0, ledger=account)
    assert account.balance("people").releases == 0
