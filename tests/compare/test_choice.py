import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.compare.tables import SCHEMA, table
from understudy.compare import choose
from understudy.errors import BudgetError, ResourceError, UsageError
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.schema import Category, Column, Integer, OpenCategory, PrivateBins, Schema


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


def test_all_candidates_must_fit_before_one_is_charged(tmp_path: Path, monkeypatch) -> None:
    account = ledger(tmp_path, 5.0)
    monkeypatch.setattr("understudy.synthesizer.design._machine_bytes", lambda: 1)
    with pytest.raises(ResourceError):
        choose(table(50), SCHEMA, methods=["independent", "laplace"], epsilon=1.0, choice_epsilon=1.0, ledger=account)
    assert account.balance("people").releases == 0


def _with(column: Column) -> Schema:
    return replace(SCHEMA, columns=tuple(column if one.name == column.name else one for one in SCHEMA.columns))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (Integer(name="age", lower=0, upper=9, bins=PrivateBins(3)), "private bins: age"),
        (OpenCategory(name="region", most_labels=5), "an open list of labels: region"),
    ],
)
def test_a_schema_that_leaves_something_open_is_refused_with_what_to_do(
    column: Column, words: str, tmp_path: Path
) -> None:
    account = Ledger.create(tmp_path / "ledger.db", dataset="people", cap=Budget(20.0, 1e-6))
    asked = {"methods": ["independent", "laplace"], "epsilon": 1.0, "delta": 1e-8, "choice_epsilon": 1.0}
    with pytest.raises(UsageError, match=f"leaves nothing to be settled privately, but this one has {words}") as raised:
        choose(table(50), _with(column), **asked, ledger=account, out=tmp_path / "out")  # type: ignore[arg-type]
    assert "even bins" in raised.value.problem.fix
    assert account.balance("people").releases == 0
    assert not (tmp_path / "out").exists()


def test_rare_labels_are_listed_in_the_schema_so_a_choice_can_count_them(tmp_path: Path) -> None:
    schema = _with(Category(name="region", labels=("north", "south", "west"), rare="private"))
    account = ledger(tmp_path, 20.0)
    methods = ["independent", "laplace"]
    found = choose(table(2000), schema, methods=methods, epsilon=5.0, choice_epsilon=5.0, ledger=account)
    assert found.chosen in methods
    assert account.balance("people").releases == 3
