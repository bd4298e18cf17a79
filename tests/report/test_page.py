"""Pages are values: equal content is an equal page, and nothing can be changed afterwards."""

import dataclasses

import pytest

from understudy.charts import Amounts, SharesChart
from understudy.report import (
    BulletList,
    Figure,
    FoldedBlocks,
    Gallery,
    Page,
    Paragraph,
    Section,
    TextTable,
    figures_of,
    long_gallery,
    render_page,
)


def test_pages_are_values() -> None:
    def page() -> Page:
        blocks = (Paragraph("a"), BulletList(("b",)), TextTable(("c",), (("d",),)))
        return Page("title", "banner", (Section("one", "why?", blocks),))

    assert page() == page()
    with pytest.raises(dataclasses.FrozenInstanceError):
        page().title = "other"  # type: ignore[misc]


@pytest.mark.parametrize(("columns", "open_ones"), [(0, 0), (8, 8), (9, 6), (24, 6)])
def test_a_long_gallery_is_folded_for_narrow_screens_and_loses_nothing(columns: int, open_ones: int) -> None:
    amounts = (Amounts("real", "real", (1.0,)),)
    figures = [Figure(SharesChart(f"column {place}", ("a",), amounts, 0)) for place in range(columns)]
    blocks = long_gallery(figures)
    assert list(figures_of(blocks)) == figures
    assert isinstance(blocks[0], Gallery)
    assert len(blocks[0].figures) == open_ones
    text = render_page(Page("title", "banner", (Section("one", "why?", blocks),)))
    folded = f'<details class="narrow">\n<summary>{columns - open_ones} more columns</summary>'
    assert (folded in text) == (columns > open_ones)


def test_what_is_folded_everywhere_is_not_folded_for_narrow_screens_alone() -> None:
    page = Page("title", "banner", (Section("one", "why?", (FoldedBlocks("more", (Paragraph("text"),)),)),))
    assert "<details>\n<summary>more</summary>" in render_page(page)
