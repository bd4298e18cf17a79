"""The study of young voters runs from end to end on a few rows."""

from pathlib import Path

from studies.voters.claims import claims
from studies.writing import Form
from studies.youth_voters import study


def test_smoke_form_writes_a_page_with_a_row_for_every_statement(tmp_path: Path) -> None:
    page = study(Form(smoke=True, out=tmp_path, data=None)).read_text(encoding="utf-8")
    assert "Smoke form" in page
    rows = page.split("## Statement by statement")[1]
    assert all(f"[{claim.source}] {claim.printed}" in rows for claim in claims())
    figures = sorted(tmp_path.glob("*.svg"))
    assert len(figures) == 10
    assert all(file.name in page for file in figures)
