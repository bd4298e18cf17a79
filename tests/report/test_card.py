"""The card: every section is there, long lists are cut and said so, and a hostile release adds no element."""

from dataclasses import replace
from pathlib import Path

from tests.report.test_html import Tree
from understudy.release.card import MOST_BARS, CardFacts, ColumnNote, MeasuredTable, OneWay, build_card, card_facts
from understudy.release.release import Release
from understudy.report import Bars, Paragraph, render_page


def _facts(release: Release, folder: Path) -> CardFacts:
    return card_facts(release, folder / "data.parquet")


def test_every_question_has_its_section(full_release: Release, full_folder: Path) -> None:
    page = build_card(_facts(full_release, full_folder))
    titles = [section.title for section in page.sections]
    assert titles == [
        "Privacy",
        "What was measured",
        "Columns one by one",
        "Noise against the size of a count",
        "Synthetic rows",
        "How to use it",
        "What not to conclude",
        "Spending",
    ]
    text = Tree(render_page(page)).text
    for part in (full_release.statement.promise, full_release.statement.ledger.head, "unasked", "95 %"):
        assert part in text


def test_labels_of_the_release_stay_text(full_folder: Path) -> None:
    tree = Tree((full_folder / "card.html").read_text(encoding="utf-8"))
    tags = {tag for tag, _ in tree.elements}
    assert not tags & {"script", "img", "b"}
    assert "<script>alert(1)</script>" in tree.text
    assert "<b>baker</b>" in tree.text


def test_long_lists_are_cut_and_said_so(full_release: Release, full_folder: Path) -> None:
    facts = _facts(full_release, full_folder)
    many = OneWay("wide", tuple(map(str, range(100))), tuple(map(float, range(100))), 2.0, "noisy")
    tables = tuple(MeasuredTable(f"t{i}", "table", 2, "noise", 3.0) for i in range(500))
    page = build_card(replace(facts, one_ways=(many,), measured=tables))
    bars = [block for section in page.sections for block in section.blocks if isinstance(block, Bars)]
    assert [len(bar.values) for bar in bars] == [MOST_BARS]
    said = [block.text for section in page.sections for block in section.blocks if isinstance(block, Paragraph)]
    assert any("76 further codes of wide" in text for text in said)
    assert any("300 more are listed" in text for text in said)


def test_relative_noise_is_the_half_width_over_the_count(full_release: Release, full_folder: Path) -> None:
    facts = _facts(full_release, full_folder)
    table = MeasuredTable("t", "table", 2, "noise", 5.0)
    choice = MeasuredTable("c", "choice", 2, "noise", None)
    page = build_card(replace(facts, measured=(table, choice)))
    rows = page.sections[3].blocks[1].rows  # type: ignore[union-attr]
    assert rows == (("t", "50.0 %", "5.0 %", "0.5 %", "0.1 %", "0.0 %"),)


def test_what_the_columns_hold_is_told_where_the_schema_says_it(full_release: Release, full_folder: Path) -> None:
    facts = _facts(full_release, full_folder)
    notes = (ColumnNote("wage", "Wage", "<b>before</b> tax", "euros", ""), ColumnNote("vote", "", "", "", "1 = yes; 2"))
    page = build_card(replace(facts, columns=notes))
    assert [section.title for section in page.sections][:2] == ["Privacy", "The columns"]
    tree = Tree(render_page(page))
    assert all(text in tree.text for text in ("<b>before</b> tax", "euros", "1 = yes; 2"))
    assert "b" not in {tag for tag, _ in tree.elements}
    many = build_card(replace(facts, columns=notes * 200))
    assert "200 more are described in schema.yaml." in Tree(render_page(many)).text
