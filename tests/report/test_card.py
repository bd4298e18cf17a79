"""The card: what it is and for whom first, pictures next, facts folded; a hostile release adds no element."""

import base64
import csv
import io
from dataclasses import replace
from pathlib import Path

from tests.report.test_html import Tree
from understudy.charts import Matrix, SharesChart
from understudy.release.card import (
    INTERVALS_IN,
    MOST_FIGURES,
    CardFacts,
    ColumnNote,
    MeasuredPair,
    MeasuredTable,
    OneWay,
    build_card,
    card_facts,
)
from understudy.release.release import Release
from understudy.release.statement import Statement
from understudy.release.verify import check_page
from understudy.report import (
    Beside,
    Block,
    Code,
    Figure,
    FoldedBlocks,
    Gallery,
    Link,
    Page,
    Paragraph,
    TextTable,
    prose,
    render_page,
)


def _facts(release: Release, folder: Path) -> CardFacts:
    return card_facts(release, folder / "data.parquet")


def _blocks(page: Page) -> list[Block]:
    found: list[Block] = [block for section in page.sections for block in section.blocks]
    for block in found:
        if isinstance(block, FoldedBlocks):
            found += block.blocks
        if isinstance(block, Gallery):
            found += block.figures
        if isinstance(block, Beside):
            found += [one for part in block.parts for one in part]
    return found


def _charts(page: Page) -> list[object]:
    return [block.chart for block in _blocks(page) if isinstance(block, Figure)]


def test_every_question_has_its_section(full_release: Release, full_folder: Path) -> None:
    page = build_card(_facts(full_release, full_folder))
    titles = [section.title for section in page.sections]
    assert titles == [
        "What this is", "Privacy", "Columns", "Relations", "How to use it", "Synthetic rows", "For auditors",
    ]  # fmt: skip
    text = Tree(render_page(page)).text
    for part in (full_release.statement.promise, full_release.statement.ledger.head, "unasked", "95 %"):
        assert prose(part) in text
    assert "is in the data could become at most" in text
    assert "exponential mechanism, rate" not in text


def test_labels_of_the_release_stay_text(full_folder: Path) -> None:
    tree = Tree((full_folder / "card.html").read_text(encoding="utf-8"))
    tags = {tag for tag, _ in tree.elements}
    assert not tags & {"script", "img", "b"}
    assert "<script>alert(1)</script>" in tree.text
    assert "<b>baker</b>" in tree.text


def test_long_lists_are_cut_and_said_so(full_release: Release, full_folder: Path) -> None:
    facts = _facts(full_release, full_folder)
    one_ways = tuple(OneWay(f"c{place}", ("a", "b"), (1.0, 2.0), 2.0, "noisy") for place in range(MOST_FIGURES + 5))
    tables = tuple(MeasuredTable(f"t{i}", "table", 2, "noise", 3.0) for i in range(500))
    page = build_card(replace(facts, one_ways=one_ways, measured=tables, pairs=()))
    assert len([chart for chart in _charts(page) if isinstance(chart, SharesChart)]) == MOST_FIGURES + 5
    text = Tree(render_page(page)).text
    assert "5 more columns" in text
    assert "300 more are listed in measurements.parquet." in text


def test_relative_noise_is_the_half_width_over_the_count(full_release: Release, full_folder: Path) -> None:
    facts = _facts(full_release, full_folder)
    table = MeasuredTable("t", "table", 2, "noise", 5.0)
    choice = MeasuredTable("c", "choice", 2, "noise", None)
    page = build_card(replace(facts, measured=(table, choice)))
    (shown,) = [block for block in _blocks(page) if isinstance(block, TextTable) and "count 10" in block.header]
    assert shown.rows == (("t", "50.0 %", "5.0 %", "0.5 %", "0.1 %", "0.0 %"),)


def test_what_the_columns_hold_is_told_where_the_schema_says_it(full_release: Release, full_folder: Path) -> None:
    facts = _facts(full_release, full_folder)
    notes = (ColumnNote("wage", "Wage", "<b>before</b> tax", "euros", ""), ColumnNote("vote", "", "", "", "1 = yes; 2"))
    one_ways = tuple(OneWay(name, ("1", "2"), (3.0, 4.0), 1.0, "noisy counts") for name in ("wage", "vote", "other"))
    other = OneWay("rare", ("1", "2"), (3.0, 4.0), None, "counts of the model")
    page = build_card(replace(facts, columns=notes, one_ways=(*one_ways, other), pairs=()))
    said = [block.text for block in page.sections[2].blocks if isinstance(block, Paragraph)]
    assert any(text.startswith("Noisy counts, unless said otherwise.") for text in said), "the usual stands once"
    remarks = {block.chart.caption: block.remark for block in _blocks(page) if isinstance(block, Figure)}
    assert remarks == {
        "wage": "Wage. <b>before</b> tax. In euros.",
        "vote": "Labels 1 = yes; 2.",
        "other": "",
        "rare": "Counts of the model.",
    }
    assert "b" not in {tag for tag, _ in Tree(render_page(page)).elements}


def test_pairs_say_how_well_they_were_measured(plain_release: Release, plain_folder: Path) -> None:
    facts = _facts(plain_release, plain_folder)
    assert {(pair.first, pair.second) for pair in facts.pairs} == {("sex", "age"), ("sex", "voted"), ("age", "voted")}
    assert all(pair.misplaced is not None and 0 < pair.misplaced < 1 for pair in facts.pairs)
    page = build_card(replace(facts, pairs=(*facts.pairs[:1], MeasuredPair("sex", "voted", None))))
    (matrix,) = [chart for chart in _charts(page) if isinstance(chart, Matrix)]
    assert [cell.value for cell in matrix.cells] == [facts.pairs[0].misplaced, None]
    assert matrix.cells[1].hint == "sex × voted: no bound is known"
    assert "2 of 3 pairs" in matrix.summary


def test_the_numbers_of_the_pictures_are_in_the_page(plain_release: Release, plain_folder: Path) -> None:
    facts = _facts(plain_release, plain_folder)
    page = build_card(facts)
    (link,) = [block for block in _blocks(page) if isinstance(block, Link)]
    head, _, data = link.target.partition(",")
    assert head == "data:text/csv;base64"
    rows = list(csv.DictReader(io.StringIO(base64.b64decode(data).decode("utf-8"))))
    wanted = {
        (one.column, label): value
        for one in facts.one_ways
        for label, value in zip(one.labels, one.values, strict=True)
    }
    assert {(row["column"], row["label"]): float(row["count"]) for row in rows}.keys() == wanted.keys()
    text = render_page(page)
    assert check_page("card.html", text) == []
    assert check_page("card.html", text.replace("data:text/csv;base64,", "data:text/html;base64,"))


def test_snippets_name_the_file_that_is_there(plain_release: Release, plain_folder: Path) -> None:
    facts = _facts(plain_release, plain_folder)
    for several, file in ((False, "data.parquet"), (True, "data-1.parquet")):
        code = [block for block in _blocks(build_card(replace(facts, several=several))) if isinstance(block, Code)]
        assert {block.language for block in code} == {"Python (pandas)", "R", "Stata", INTERVALS_IN}
        named = {block.language: block.text for block in code}
        assert all(f'"{file}"' in named[language] for language in ("Python (pandas)", "R"))
        assert named[INTERVALS_IN].endswith('print(us.pool(release, where={"sex": "F"}))')


def test_a_release_without_a_claim_says_so_in_the_first_section(full_release: Release, full_folder: Path) -> None:
    facts = _facts(full_release, full_folder)
    refused: Statement = replace(facts.statement, refused="NOT PRIVATE: test double")
    first = build_card(replace(facts, statement=refused)).sections[0]
    assert any("no bound on what this folder may reveal" in getattr(block, "text", "") for block in first.blocks)
