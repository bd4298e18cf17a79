"""The study of random decision trees runs from end to end on simulated voters."""

from pathlib import Path

from studies.rdt_panels import study
from studies.writing import Form


def test_smoke_form_writes_a_page_with_intervals_panels_and_verdicts(tmp_path: Path) -> None:
    page = study(Form(smoke=True, out=tmp_path, data=None)).read_text(encoding="utf-8")
    assert "[0.2272, 0.2728]" in page
    rows = page.split("## Statement by statement")[1]
    assert all(f"Figure {number}" in rows for number in (1, 2, 4, 5, 6, 7, 8, 9, 14))
    assert "Figures 10, 11" in rows
    assert "Figures 12, 13" in rows
    figures = sorted(tmp_path.glob("*.svg"))
    assert len(figures) == 16
    assert all(file.name in page for file in figures)
