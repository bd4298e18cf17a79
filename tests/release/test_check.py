"""The check of the rows: which tables it asks, what their noise lets it say, and what `verify` finds."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.release.people import copied, people, relisted, simple
from understudy.codec.table import TableCodec
from understudy.domain import Clique, Distribution, HeldBack, Measurement, Transcript
from understudy.errors import ReleaseError, SchemaError, UsageError
from understudy.privacy.cost import Cost
from understudy.release import Release
from understudy.release.check import (
    MOST_SHARE,
    Check,
    CheckPlan,
    Judged,
    checked,
    counts_of_rows,
    held_back_tables,
    sum_quantile,
)
from understudy.release.criteria import MOST_CRITERIA, Criterion, criteria_of
from understudy.release.statement import read_statement, statement_document
from understudy.release.verify import inspect_release, verify_release
from understudy.synthesizer import synthesize

CRITERIA = """
criteria:
  - columns: all
    within: 0.2
  - pairs_with: age
    within: 0.4
  - share_of: {sex: F}
    within: 5 points
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("check") / "release"
    limits = criteria_of(CRITERIA)
    settings = {
        "method": "independent",
        "epsilon": 8.0,
        "seed": 5,
        "check_share": 0.5,
        "criteria": limits,
        "out": place,
    }
    synthesize(people(2000), simple(), **settings)
    return place


def test_tables_and_weights_follow_from_public_facts() -> None:
    schema = simple()
    domain = TableCodec.of(schema).domain
    plan = CheckPlan.of(schema, domain, "digest", 0.05, ())
    ones, pairs = plan.tables[1:4], plan.tables[4:]
    assert plan.tables[0] == Clique()
    assert ones == (("sex",), ("age",), ("voted",))
    assert {name for pair in pairs for name in pair} == {"sex", "age", "voted"}, "every column is in some pair"
    assert plan == CheckPlan.of(schema, domain, "digest", 0.05, ())
    orders = {CheckPlan.of(schema, domain, f"digest {number}", 0.05, ()).tables for number in range(20)}
    assert len(orders) > 1, "another schema shuffles otherwise"


def test_named_tables_come_first_and_cost_more() -> None:
    schema = simple()
    domain = TableCodec.of(schema).domain
    plan = CheckPlan.of(schema, domain, "digest", 0.05, criteria_of("criteria: [{pairs: [[voted, sex]], within: 0.1}]"))
    assert plan.tables[:2] == (Clique(), Clique(("sex", "voted")))
    assert plan.weights[:3] == (4.0, 4.0, 1.0)


@pytest.mark.parametrize("share", [0, 0.0, -0.1, 0.51, 1, True, "0.05", float("nan")])
def test_a_share_outside_its_range_is_refused(share: object) -> None:
    with pytest.raises(UsageError, match="check_share"):
        CheckPlan.of(simple(), TableCodec.of(simple()).domain, "digest", share, ())


def test_the_share_is_taken_in_the_currency_of_the_run() -> None:
    plan = CheckPlan.of(simple(), TableCodec.of(simple()).domain, "digest", 0.1, ())
    assert plan.cost_of(Cost(epsilon=1000, delta=7)) == Cost(epsilon=100)
    assert plan.cost_of(Cost(epsilon=500, rho=1009, delta=7)) == Cost(rho=100)
    with pytest.raises(UsageError, match="smallest unit"):
        plan.cost_of(Cost(epsilon=9))


@pytest.mark.parametrize(("kind", "parameter"), [("laplace", Fraction(2)), ("gaussian", Fraction(4))])
@pytest.mark.parametrize("absolute", [False, True])
def test_the_quantile_of_a_sum_is_that_of_all_combinations(kind, parameter, *, absolute: bool) -> None:
    """Against the distribution of three draws, convolved one by one."""
    noise = Distribution(kind, parameter)
    places = np.arange(-200, 201)
    weights = np.exp(-np.abs(places) / 2.0) if kind == "laplace" else np.exp(-(places**2) / 8.0)
    one = weights / weights.sum()
    if absolute:
        one = np.concatenate([one[200:201], 2 * one[201:]])
    three = np.convolve(np.convolve(one, one), one)
    first = 0 if absolute else -600
    beyond = three[::-1].cumsum()[::-1]
    for tail in (0.1, 0.02, 0.001):
        wanted = first + int(np.argmax(beyond <= tail)) - 1
        assert sum_quantile(noise, 3, tail, absolute=absolute) == wanted


def test_the_quantile_of_wide_noise_is_that_of_the_continuous_one() -> None:
    wide = Distribution("gaussian", Fraction(10**8))
    assert sum_quantile(wide, 4, 0.02) == pytest.approx(2.0537 * 2e4, rel=0.02)
    assert sum_quantile(wide, 100_000, 0.02) == pytest.approx(2.0537 * 1e4 * np.sqrt(1e5), rel=0.02)
    laplace = Distribution("laplace", Fraction(1000))
    assert sum_quantile(laplace, 1, 0.005) == pytest.approx(1000 * np.log(100), rel=0.02)


def _held(name: str, columns: tuple[str, ...], values: object, scale: int) -> HeldBack:
    counts = np.asarray(values, np.int64)
    shape = (counts.size,) if columns else ()
    return HeldBack(name, columns, shape, counts.ravel(), Distribution("laplace", Fraction(1, scale)))


def test_without_noise_the_bounds_meet_at_the_distance() -> None:
    codec = TableCodec.of(simple(), unreadable=False)
    answers = Transcript([_held("total", (), [100], 1000), _held("sex", ("sex",), [60, 40], 1000)])
    counts = {Clique(("sex",)): np.array([30, 20]), Clique(): np.array([50])}
    far = {Clique(("sex",)): np.array([10, 40]), Clique(): np.array([50])}
    criteria = criteria_of("criteria: [{columns: [sex], within: 0.1}, {share_of: {sex: F}, within: 0.1}]")
    found = checked(Check(0.05, criteria), answers, codec, [counts, far], number=2)
    assert [(one.copy, one.lower, one.upper) for one in found.distances] == [(1, 0, 0), (2, 0.4, 0.4)]
    assert [one.outcome for one in found.verdicts] == ["fail", "fail"]
    assert found.verdicts[1].lower == pytest.approx(-0.4)
    assert {one.decided_by for one in found.verdicts} == {"sex, copy 2"}
    assert [one.outcome for one in checked(Check(0.05, criteria), answers, codec, [counts]).verdicts] == [
        "pass",
        "pass",
    ]


def test_nothing_is_known_without_rows_on_either_side() -> None:
    codec = TableCodec.of(simple(), unreadable=False)
    criteria = criteria_of("criteria: [{columns: [sex], within: 0.1}, {share_of: {sex: F}, within: 0.1}]")
    for total, rows in ((0, 50), (-20, 50), (100, 0)):
        answers = Transcript([_held("total", (), [total], 1), _held("sex", ("sex",), [60, 40], 1)])
        counts = {Clique(("sex",)): np.array([rows, 0]), Clique(): np.array([rows])}
        found = checked(Check(0.05, criteria), answers, codec, [counts])
        assert (found.distances[0].lower, found.distances[0].upper) == (0.0, 1.0)
        assert {one.outcome for one in found.verdicts} == {"undecided"}


def test_an_interval_on_both_sides_of_the_limit_is_undecided() -> None:
    limit = Criterion("columns", (), 0.1)
    bounds = {(0.0, 0.1): "pass", (0.05, 0.11): "undecided", (0.11, 0.2): "fail", (0.1, 0.2): "undecided"}
    assert {bound: Judged(limit, *bound, "").outcome for bound in bounds} == bounds
    share = Criterion("share_of", (("sex",),), 0.1, (("F",),))
    bounds = {(-0.1, 0.1): "pass", (-0.2, 0.0): "undecided", (-0.3, -0.2): "fail", (0.2, 0.3): "fail"}
    assert {bound: Judged(share, *bound, "").outcome for bound in bounds} == bounds


def test_rows_are_counted_in_the_codes_of_the_release() -> None:
    codec = TableCodec.of(simple())
    table = pa.table({"sex": ["F", "M", "F"], "age": [1, 49, 2], "voted": [True, False, True]})
    pair = Clique(("sex", "voted"))
    counts = counts_of_rows([table.slice(0, 1), table.slice(1)], codec, [Clique(), pair])
    assert counts[Clique()].tolist() == [3]
    assert counts[pair].reshape(codec.domain.shape(pair))[:2, :2].tolist() == [[0, 2], [1, 0]]


def test_a_release_with_a_check_verifies_and_says_the_same_when_loaded(folder: Path) -> None:
    assert verify_release(folder) == []
    check = Release.load(folder).statement.check
    assert check is not None
    assert {one.outcome for one in check.verdicts} <= {"pass", "undecided"}
    assert Release.load(folder).judge(check.criteria) == check.verdicts
    document = json.loads((folder / "statement.json").read_text())
    assert statement_document(read_statement(document)) == document


def test_the_card_begins_with_the_verdicts(folder: Path) -> None:
    page = (folder / "card.html").read_text(encoding="utf-8")
    section = page.split('id="quality"')[1].split('id="columns"')[0]
    check = Release.load(folder).statement.check
    assert check is not None
    for one in check.verdicts:
        assert one.outcome in section
        assert one.criterion.in_percent[1:] in section.replace("\u00a0", " ")
    for distance in check.distances:
        assert f"{100 * distance.upper:.1f} %" in section.replace("\u00a0", " ")
    assert "of the budget was held back" in section


def test_answers_are_marked_wherever_they_are_written(folder: Path) -> None:
    release = Release.load(folder)
    held = release.transcript.of(HeldBack)
    kinds = pq.read_table(folder / "measurements.parquet").column("kind").to_pylist()
    assert kinds.count("held back") == sum(one.values.size for one in held) > 0
    listed = pq.read_table(folder / "statistics.parquet").column("kind").to_pylist()
    assert listed.count("held back for the check") == kinds.count("held back")
    measured = {one.name: one for one in release.transcript.of(Measurement)}
    shown = release.stats("sex").to_pylist()
    assert [row["noisy_count"] for row in shown] == measured["sex"].values.tolist(), "no average with the check's"


def _rewritten(folder: Path, change: Callable[[dict], object]) -> None:
    path = folder / "statement.json"
    document = json.loads(path.read_text())
    change(document["check"])
    statement = read_statement(document)
    path.write_text(json.dumps(statement_document(statement)))
    (folder / "statement.md").write_text(statement.markdown(), encoding="utf-8")
    relisted(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda check: check["distances"][0].update(upper=0.001, lower=0.0),
        lambda check: check["verdicts"][0].update(upper=0.001, lower=0.0),
        lambda check: check["criteria"][0].update(within=0.9),
        lambda check: check["distances"].pop(),
        lambda check: check.update(criteria=[], verdicts=[]) or check["distances"].pop(),
    ],
)
def test_forged_distances_are_found(folder: Path, tmp_path: Path, change: Callable[[dict], object]) -> None:
    forged = copied(folder, tmp_path / "forged")
    _rewritten(forged, change)
    found = {problem.where for problem in verify_release(forged)}
    harmless = json.loads((forged / "statement.json").read_text())["check"]["criteria"][:1]
    if harmless and harmless[0]["within"] == 0.9:
        assert not found, "another limit alone is another question about the same rows"
    else:
        assert "statement.json: check" in found


@pytest.mark.parametrize(
    "change",
    [
        lambda check: check.update(share=0.0),
        lambda check: check.update(share=MOST_SHARE * 1.001),
        lambda check: check["verdicts"].append(check["verdicts"][0]),
        lambda check: check["verdicts"].pop(),
        lambda check: check.update(verdicts=check["verdicts"][:1]),
        lambda check: check.update(criteria=check["criteria"] * (MOST_CRITERIA + 1), verdicts=[]),
    ],
)
def test_a_check_that_cannot_have_been_made_is_not_read(folder: Path, change: Callable[[dict], object]) -> None:
    document = json.loads((folder / "statement.json").read_text())
    assert len(document["check"]["criteria"]) > 1
    assert statement_document(read_statement(document))["check"] == document["check"]
    change(document["check"])
    with pytest.raises(ReleaseError):
        read_statement(document)


def test_rows_that_were_exchanged_are_found(folder: Path, tmp_path: Path) -> None:
    forged = copied(folder, tmp_path / "forged")
    table = pq.read_table(forged / "data.parquet")
    women = pa.array(["F"] * table.num_rows).cast(table.schema.field("sex").type)
    changed = table.set_column(0, table.schema.field("sex"), women)
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), forged / "data.parquet")
    relisted(forged)
    assert "statement.json: check" in {problem.where for problem in verify_release(forged)}


@pytest.mark.parametrize("limit", ["MOST_JUDGEMENTS", "MOST_SUMMED"])
def test_a_check_that_takes_long_is_named_and_not_done(
    folder: Path, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert inspect_release(folder).unchecked == ()
    monkeypatch.setattr(f"understudy.release.verify.{limit}", 5)
    assert inspect_release(folder).unchecked == ("the distances of the check",)
    assert inspect_release(folder, everything=True).unchecked == ()


def test_a_check_that_costs_more_than_its_share_is_found(folder: Path, tmp_path: Path) -> None:
    forged = copied(folder, tmp_path / "forged")
    _rewritten(forged, lambda check: check.update(share=0.05))
    assert "statement.json: check" in {problem.where for problem in verify_release(forged)}


def test_answers_without_a_check_are_found(folder: Path, tmp_path: Path) -> None:
    forged = copied(folder, tmp_path / "forged")
    statement = replace(Release.load(folder).statement, check=None)
    (forged / "statement.json").write_text(json.dumps(statement_document(statement)))
    (forged / "statement.md").write_text(statement.markdown(), encoding="utf-8")
    relisted(forged)
    assert "statement.json: check" in {problem.where for problem in verify_release(forged)}


def test_criteria_about_tables_that_were_not_held_back_are_refused(plain_folder: Path) -> None:
    codec = TableCodec.of(simple(), unreadable=False)
    answers = Transcript([_held("total", (), [100], 1), _held("sex", ("sex",), [60, 40], 1)])
    counts = {Clique(("sex",)): np.array([30, 20]), Clique(): np.array([50])}
    every = criteria_of("criteria: [{columns: all, within: 0.1}]")
    with pytest.raises(SchemaError, match="no check answers for age, voted"):
        checked(Check(0.1, every), answers, codec, [counts])
    with pytest.raises(UsageError, match="has no check"):
        Release.load(plain_folder).judge(every)


def test_a_check_about_other_codes_is_refused() -> None:
    codec = TableCodec.of(simple())
    for columns, values in ((("sex",), [1, 2, 3, 4]), (("sex", "age"), [1, 2, 3]), (("secret",), [1, 2])):
        with pytest.raises(ReleaseError, match="about other codes"):
            held_back_tables(Transcript([_held("x", columns, values, 1)]), codec.domain)
