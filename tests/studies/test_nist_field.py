"""The study of the challenge's field runs from end to end on a few rows, and ranks are judged by intervals."""

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from studies.field.entrants import TEAMS, present
from studies.field.judge import judge, rank_between
from studies.field.printed import PRINTED, challenge_of, hits, printed_tau
from studies.field.results import MEASURES, Results
from studies.field.show import drawn_name
from studies.field.words import apart
from studies.nist_field import study
from studies.runs import Record
from studies.verdicts import alike, kind_of
from studies.writing import Form, StudyPage


@pytest.mark.slow
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


def test_hits_and_agreement_of_the_printed_orders() -> None:
    found = {(one.match, one.measure): (hits(one), round(printed_tau(one), 1)) for one in PRINTED if one.table > 4}
    assert found == {
        (2, "cart_ratio"): (("pfr", "RMcKenna"), 0.2),
        (2, "cart_specks"): (("pfr", "DPSyn"), 0.6),
        (2, "logistic_ratio"): (("RMcKenna",), -0.2),
        (2, "logistic_specks"): (("RMcKenna",), -0.2),
        (3, "cart_ratio"): ((), -0.6),
        (3, "cart_specks"): (("RMcKenna", "DPSyn", "PrivBayes"), 0.8),
        (3, "logistic_ratio"): (("RMcKenna", "Gardn999", "UCLANESL"), 0.8),
        (3, "logistic_specks"): (("RMcKenna", "UCLANESL"), 0.6),
    }


def test_apart_is_more_than_the_margin_and_not_any_sure_difference() -> None:
    ones = [1.0, 1.01, 0.99]
    assert apart(alike([1.05, 1.06, 1.04], ones, 0.1)).answer == "no"
    assert apart(alike([1.5, 1.51, 1.49], ones, 0.1)).answer == "yes"
    assert apart(alike([1.1, 1.12, 1.09], ones, 0.1)).answer == "open"


Orders = Mapping[tuple[int, str], Sequence[str]]
"""Teams from first to last by match and measure."""
AS_PRINTED: Orders = {(one.match, one.measure): one.teams for one in PRINTED}
SECONDS = {"Gardn999": 1.0, "pfr": 2.0, "DPSyn": 3.0, "RMcKenna": 10.0, "PrivBayes": 30.0, "UCLANESL": 90.0}

TEAMS_AND_ONE = [*TEAMS.items(), ("", "independent")]


def _world(orders: Orders, rise: float = 20_000.0, absent: int = 6, swapped: int = 0) -> list[Record]:
    """Five repeats in which every measure has the given order; the team that did not compete has the rank `absent`.

    In the first `swapped` repeats the scores of the first two are exchanged.
    """
    made: list[Record] = []
    for match, bench, epsilons in ((2, "fire", (0.01, 0.1, 1.0)), (3, "census", (0.3, 1.0, 8.0))):
        for (team, method), place, repeat in itertools.product(TEAMS_AND_ONE, range(3), range(5)):
            ranks = {measure: _rank(teams, team, absent) for (at, measure), teams in orders.items() if at == match}
            score = ranks[f"match{match}"]
            score = 3 - score if repeat < swapped and score in (1, 2) else score
            value = 900_000.0 - 40_000 * score + rise * place / 2 + repeat
            facts = {"bench": bench, "entrant": method, "epsilon": epsilons[place], "repeat": repeat}
            scores = dict.fromkeys(("clustering", "classification", "regression"), value)
            ratios = {one: math.exp(ranks[one]) for one in ("cart_ratio", "logistic_ratio")}
            specks = {one: 0.5 + 0.05 * ranks[one] for one in ("cart_specks", "logistic_specks")}
            beside = {"complexity": 1 / ratios["cart_ratio"], "seconds": SECONDS.get(team, 1.0)}
            made.append(facts | scores | ratios | specks | beside)
    return made


def _rank(order: Sequence[str], team: str, absent: int) -> int:
    return order.index(team) + 1 if team in order else absent if team else 0


def _rows(records: Sequence[Record]) -> dict[str, str]:
    """The kind of the verdict of every statement in words."""
    page = StudyPage("nist_field", "", Form(smoke=False, out=Path(), data=None))
    judge(page, Results.of(records), smoke=False)
    return {one.printed: kind_of(one.verdict) for one in page.findings if not one.printed.startswith("Table ")}


def _kinds(rows: Mapping[str, str], part: str) -> set[str]:
    found = {kind for printed, kind in rows.items() if part in printed}
    assert found
    return found


PREDICTIONS = (
    "correctly predicts that pfr", "wrongly predicts", "finds the top two", "finds RMcKenna first", "order poorly",
    "moderately well", "better than logistic", "better than CART",
)  # fmt: skip


def test_the_printed_orders_confirm_what_is_said_about_them_and_reversed_ones_do_not() -> None:
    told = _rows(_world(AS_PRINTED))
    assert {part: _kinds(told, part) for part in PREDICTIONS} == {part: {"confirmed"} for part in PREDICTIONS}
    assert _kinds(told, "bold in Table") == {"confirmed"}
    assert _kinds(told, "PrivBayes performs fairly well") == {"refuted"}, (
        "independent has the best scores in this world"
    )
    reverse = {key: teams if key[1].startswith("match") else teams[::-1] for key, teams in AS_PRINTED.items()}
    turned = _rows(_world(reverse))
    for part in set(PREDICTIONS) - {"order poorly"}:
        assert not _kinds(turned, part) & {"confirmed", "confirmed in part"}, part
    assert "refuted" in _kinds(turned, "bold in Table")
    perfect = _rows(_world({key: challenge_of(key[0]) for key in AS_PRINTED}))
    assert _kinds(perfect, "order poorly") == _kinds(perfect, "much depends") == {"refuted"}


def test_a_team_that_did_not_compete_changes_no_row_about_a_match() -> None:
    last, first = (_rows(_world(AS_PRINTED, absent=rank)) for rank in (6, 0))
    beside = {printed for printed in last if "Matches 1 and 2" in printed or "overall best" in printed}
    assert {printed for printed in last if last[printed] != first[printed]} <= beside
    assert [set(TEAMS) - set(challenge_of(match)) for match in (1, 2, 3)] == [{"Gardn999"}, {"UCLANESL"}, {"pfr"}]


def test_a_slight_rise_is_above_0_and_below_the_bound() -> None:
    slight, steep, flat = (_rows(_world(AS_PRINTED, rise=rise)) for rise in (20_000.0, 90_000.0, 0.0))
    assert [_kinds(one, "scores increase with ε") for one in (slight, steep)] == [{"confirmed"}, {"confirmed"}]
    assert _kinds(flat, "scores increase with ε") == {"no difference"}
    assert [_kinds(one, "increase slightly") for one in (slight, steep)] == [{"confirmed"}, {"refuted"}]


def test_one_order_in_all_repeats_refutes_chance_and_changing_orders_do_not() -> None:
    part = "even randomness"
    assert _kinds(_rows(_world(AS_PRINTED)), part) == {"refuted"}
    assert _kinds(_rows(_world(AS_PRINTED, swapped=1)), part) == {"not decided"}


def test_times_are_judged_by_the_teams_that_are_named() -> None:
    told = _rows(_world(AS_PRINTED))
    parts = (
        "fastest",
        "pfr is quick",
        "light to moderate",
        "PrivBayes takes more",
        "takes most",
        "much more demanding",
    )
    assert {part: _kinds(told, part) for part in parts} == {part: {"confirmed"} for part in parts}
    slow = {TEAMS["Gardn999"]: 100.0}
    turned = _rows([one | {"seconds": slow.get(str(one["entrant"]), one["seconds"])} for one in _world(AS_PRINTED)])
    assert _kinds(turned, "fastest") == {"refuted"}
    assert _kinds(turned, "light to moderate") == {"confirmed"}


@pytest.mark.parametrize(("place", "kind"), [(0, "confirmed"), (2, "no difference"), (4, "refuted")])
def test_a_team_is_among_the_better_ones_if_it_beats_the_mean_of_the_others(place: int, kind: str) -> None:
    rest = [team for team in AS_PRINTED[2, "cart_ratio"] if team != "DPSyn"]
    order = {(2, "cart_ratio"): [*rest[:place], "DPSyn", *rest[place:]]}
    assert _kinds(_rows(_world({**AS_PRINTED, **order})), "among the better teams") == {kind}


def test_captions_name_what_is_drawn() -> None:
    """Curves are turned so that lower is better; a score of which more is better is then what it lacks."""
    text = (Path(__file__).parents[2] / "docs" / "studies" / "nist_field.md").read_text(encoding="utf-8")
    captions = [line for line in text.splitlines() if line.startswith("*") and "lower is better" in line]
    assert len(captions) >= 11
    for measure in MEASURES.values():
        shown = [line for line in captions if f" {measure.name}; lower is better" in line]
        assert all((f"1,000,000 − {measure.name};" in line) == measure.higher for line in shown), measure.name
    for name, measure in MEASURES.items():
        assert drawn_name(name).startswith("1,000,000 − ") == measure.higher
