"""The study of the challenge's field runs from end to end on a few rows, and ranks are judged by intervals."""

from pathlib import Path

import pytest
from studies.field.entrants import TEAMS, present
from studies.field.judge import rank_between
from studies.field.printed import PRINTED
from studies.field.results import Results
from studies.nist_field import study
from studies.writing import Form


def test_smoke_form_writes_a_page_with_a_row_for_every_printed_rank(tmp_path: Path) -> None:
    page = study(Form(smoke=True, out=tmp_path, data=None)).read_text(encoding="utf-8")
    assert "Smoke form" in page
    rows = page.split("## Statement by statement")[1]
    assert all(
        f"Table {order.table}, Match {order.match}, {order.by}: {team} is {place + 1} of 5 |" in rows
        for order in PRINTED
        for place, team in enumerate(order.teams)
    )
    verdicts = {line.rstrip(" |").rpartition("| ")[2] for line in rows.splitlines() if line.startswith("| Table ")}
    kinds = {one.split(":")[0] for one in verdicts}
    assert kinds <= {"confirmed", "refuted", "not decided", "cannot be compared", "a tie"}
    assert all(one.name in page for one in present())
    assert all(file.name in page for file in tmp_path.glob("*.svg"))
    assert (tmp_path / "nist_field-voters-ranks.svg").is_file()


def test_every_printed_order_names_five_known_teams() -> None:
    assert len(PRINTED) == 11
    assert all(len(set(order.teams)) == 5 and set(order.teams) <= set(TEAMS) for order in PRINTED)


@pytest.fixture
def results() -> Results:
    levels = {"good": (900.0, 901.0, 902.0), "fair": (800.0, 803.0, 801.0), "alike": (801.0, 799.0, 805.0)}
    records = [
        {"bench": "fire", "entrant": name, "epsilon": 1.0, "repeat": place, "clustering": value}
        for name, values in levels.items()
        for place, value in enumerate(values)
    ]
    return Results.of(records)


@pytest.mark.parametrize(("method", "ranks"), [("good", (1, 1)), ("fair", (2, 3)), ("alike", (2, 3))])
def test_ranks_that_intervals_leave_open(results: Results, method: str, ranks: tuple[int, int]) -> None:
    assert rank_between(results, "fire", "match1", ["good", "fair", "alike"], method)[:2] == ranks


def test_order_by_means(results: Results) -> None:
    assert results.ranks("fire", "match1") == {"good": 1.0, "fair": 3.0, "alike": 2.0}


def test_entries_within_the_margin_are_a_tie_and_far_ones_are_not() -> None:
    levels = {"nist_mst": (880_000.0, 880_900.0, 879_500.0), "dpsyn": (880_500.0, 880_200.0, 879_900.0)}
    far = {"privbayes nist": (700_000.0, 701_000.0, 702_000.0)}
    records = [
        {"bench": "fire", "entrant": name, "epsilon": 1.0, "repeat": place, "clustering": value}
        for name, values in (levels | far).items()
        for place, value in enumerate(values)
    ]
    methods = [*levels, *far]
    found = {name: rank_between(Results.of(records), "fire", "match1", methods, name) for name in methods}
    assert found == {"nist_mst": (1, 2, {"same"}), "dpsyn": (1, 2, {"same"}), "privbayes nist": (3, 3, set())}


def test_repeats_are_paired_by_number_and_not_by_place() -> None:
    records = [
        {"bench": "fire", "entrant": "one", "epsilon": 1.0, "repeat": 1, "clustering": 10.0},
        {"bench": "fire", "entrant": "one", "epsilon": 1.0, "repeat": 2, "clustering": 20.0},
        {"bench": "fire", "entrant": "one", "epsilon": 1.0, "repeat": 3, "clustering": 30.0},
        {"bench": "fire", "entrant": "other", "epsilon": 1.0, "repeat": 3, "clustering": 29.0},
        {"bench": "fire", "entrant": "other", "epsilon": 1.0, "repeat": 2, "clustering": 19.0},
    ]
    gap = Results.of(records).against("fire", "match1", "one", "other").gap
    assert (gap.mean, gap.half, gap.repeats) == (1.0, 0.0, 2)
