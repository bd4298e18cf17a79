"""Pages are values: equal content is an equal page, and nothing can be changed afterwards."""

import dataclasses

import pytest

from understudy.report import BulletList, Page, Paragraph, Section, TextTable


def test_pages_are_values() -> None:
    def page() -> Page:
        blocks = (Paragraph("a"), BulletList(("b",)), TextTable(("c",), (("d",),)))
        return Page("title", "banner", (Section("one", "why?", blocks),))

    assert page() == page()
    with pytest.raises(dataclasses.FrozenInstanceError):
        page().title = "other"  # type: ignore[misc]
