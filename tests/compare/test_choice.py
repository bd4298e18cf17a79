import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.compare.tables import SCHEMA, table
from understudy.compare import choose
from understudy.errors import BudgetError, ResourceError, UsageError
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.release.release import Release
from understudy.release.statement import digest_of
from understudy.release.wording import NEIGHBOURS, unit_text
from understudy.schema import Category, Column, Integer, OpenCategory, PrivateBins, Schema, Unit


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
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.db", "out"]


def test_what_is_published_states_every_part_and_who_is_protected(tmp_path: Path) -> None:
    account = ledger(tmp_path, 20.0)
    schema = replace(SCHEMA, unit=Unit("person", 2))
    people = table(300).append_column("person", [[str(row // 2) for row in range(300)]])
    request = {"methods": ["independent", "laplace threshold=1"], "epsilon": 0.35, "choice_epsilon": 0.1}
    found = choose(people, schema, **request, ledger=account, out=tmp_path / "out")  # type: ignore[arg-type]
    stated = json.loads((tmp_path / "out" / "choice.json").read_text(encoding="utf-8"))
    assert stated["epsilon"] == found.cost.epsilon == 0.8  # and not 0.7999999999999999
    assert (stated["unit"], stated["neighbours"]) == (unit_text(schema.unit), NEIGHBOURS)
    assert (stated["dataset"], stated["schema"]) == ("people", digest_of(schema))
    paid = {entry.run: entry.budget_epsilon for entry in account.entries() if entry.kind == "charge"}
    assert [one["candidate"] for one in stated["releases"]] == request["methods"]
    for one in stated["releases"]:
        own = Release.load(tmp_path / "out" / one["folder"]).statement
        assert (own.run, own.method) == (one["run"], one["candidate"].split()[0])
        assert (one["epsilon"], one["delta"], paid.pop(one["run"])) == (0.35, 0.0, Budget(0.35).epsilon_units)
    assert paid == {stated["choice"]["run"]: Budget(0.1).epsilon_units}
    assert (stated["choice"]["epsilon"], stated["interrupted"]) == (0.1, [])


def test_a_total_that_is_no_budget_is_refused_before_a_charge(tmp_path: Path) -> None:
    account = Ledger.create(tmp_path / "ledger.db", dataset="people", cap=Budget(1e6, 0.9), composition="zcdp")
    request = {"methods": ["mst", "independent"], "choice_epsilon": 1.0, "ledger": account, "out": tmp_path / "out"}
    with pytest.raises(UsageError, match="together: delta must be a number from 0 to below 1"):
        choose(table(50), SCHEMA, epsilon=1.0, delta=0.6, **request)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="together: epsilon must be a number above 0 and at most 1,000,000"):
        choose(table(50), SCHEMA, epsilon=6e5, delta=0.1, **request)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]
    assert account.balance("people").releases == 0


def test_a_ledger_of_another_unit_leaves_no_folder_behind(tmp_path: Path) -> None:
    account = ledger(tmp_path, 20.0)
    account.charge("people", run="earlier", method="m", cost=Budget(1.0).cost("pure"), budget=Budget(1.0), unit="each")
    request = {"methods": ["independent", "laplace"], "epsilon": 1.0, "choice_epsilon": 1.0, "ledger": account}
    with pytest.raises(UsageError, match="is charged for the unit 'each', got 'one row'"):
        choose(table(50), SCHEMA, **request, out=tmp_path / "out")  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


def test_a_choice_of_which_nothing_was_charged_leaves_no_folder_behind(tmp_path: Path, monkeypatch) -> None:
    account = ledger(tmp_path, 20.0)
    monkeypatch.setattr("understudy.synthesizer.pipeline.check_disk", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        choose(table(50), SCHEMA, methods=["independent", "laplace"], epsilon=1.0, choice_epsilon=1.0, ledger=account,
               out=tmp_path / "out")  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_pairs_of_all_candidates_must_fit_into_memory(tmp_path: Path, monkeypatch) -> None:
    account = ledger(tmp_path, 20.0)
    monkeypatch.setattr("understudy.compare.choice.MOST_CELLS", 3 * 89)  # 3·4 + 3·11 + 4·11 cells, three times
    request = {"epsilon": 1.0, "choice_epsilon": 1.0, "ledger": account}
    choose(table(50), SCHEMA, methods=["independent", "laplace"], **request)  # type: ignore[arg-type]
    with pytest.raises(ResourceError) as raised:
        choose(table(50), SCHEMA, methods=["independent", "laplace", "laplace threshold=1"], **request)  # type: ignore[arg-type]
    assert raised.value.needed_bytes == 8 * 4 * 89
    assert account.balance("people").releases == 3


def test_a_method_without_a_claim_is_refused(tmp_path: Path) -> None:
    account = ledger(tmp_path, 20.0)
    methods = ["independent", "steps as_published=2020"]
    with pytest.raises(UsageError, match="makes no privacy claim"):
        choose(table(50), SCHEMA, methods=methods, epsilon=1.0, choice_epsilon=1.0, ledger=account)
    assert account.balance("people").releases == 0


@pytest.mark.parametrize("datasets", [[], ["a", "b"]])
def test_a_ledger_without_a_single_dataset_says_how_many_it_has(
    datasets: list[str], tmp_path: Path, monkeypatch
) -> None:
    account = ledger(tmp_path, 20.0)
    monkeypatch.setattr(Ledger, "datasets", lambda _: datasets)
    with pytest.raises(UsageError, match=f"the ledger has {len(datasets)} datasets"):
        choose(table(50), SCHEMA, methods=["independent", "laplace"], epsilon=1.0, choice_epsilon=1.0, ledger=account)


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
    request = {"methods": ["independent", "laplace"], "epsilon": 1.0, "delta": 1e-8, "choice_epsilon": 1.0}
    with pytest.raises(UsageError, match=f"fixes all labels and bins, but this one has {words}") as raised:
        choose(table(50), _with(column), **request, ledger=account, out=tmp_path / "out")  # type: ignore[arg-type]
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
