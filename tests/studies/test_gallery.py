"""The gallery: its pages say what its exhibits say, and an exhibit runs from a raw file to its page."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from studies.gallery import exhibits, page
from studies.gallery.exhibits import EXHIBITS, Exhibit, Rate
from studies.gallery.running import run

import understudy as us

PAGES = Path(__file__).parents[2] / "docs" / "gallery"
SCHEMA = """\
understudy: 1
unit: row
columns:
  sex: {kind: category, labels: ["1", "2"], meanings: {"1": male, "2": female}, missing: false}
  age: {kind: integer, lower: 18, upper: 89, bins: 4, missing: false}
  voted: {kind: category, labels: ["no", "yes"], missing: false}
"""


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_the_page_has_the_decisions_and_the_schema_of_today(exhibit: Exhibit) -> None:
    text = (PAGES / f"{exhibit.name}.md").read_text(encoding="utf-8")
    assert f"```yaml\n{exhibit.schema.read_text(encoding='utf-8').rstrip()}\n```" in text
    for decision, reason in exhibit.decisions:
        assert decision[1:] in text
        assert reason in text
    for words in exhibit.limits:
        assert f"* {words}" in text
    assert page.MADE_BY in text
    assert us.Schema.from_yaml(exhibit.schema).columns


def test_every_picture_is_shown_once_and_drawn() -> None:
    shown = [name for path in PAGES.glob("*.md") for name in re.findall(r"\]\((\S+\.svg)\)", path.read_text("utf-8"))]
    assert sorted(shown) == sorted(path.name for path in PAGES.glob("*.svg"))


def test_the_overview_names_every_exhibit() -> None:
    text = (PAGES / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((\w+)\.md\)", text) == [exhibit.name for exhibit in EXHIBITS]


def _voters(path: Path) -> None:
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, 3000)
    voted = rng.random(3000) < age / 100
    columns = {"sex": rng.integers(1, 3, 3000), "age": age, "voted": np.where(voted, "yes", "no")}
    pq.write_table(pa.table(columns), path)


def test_an_exhibit_runs_from_its_raw_file_to_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhibits, "SCHEMAS", tmp_path)
    (tmp_path / "voters.yaml").write_text(SCHEMA, encoding="utf-8")
    _voters(tmp_path / "voters.parquet")
    exhibit = replace(
        EXHIBITS[0],
        name="voters",
        file="voters.parquet",
        epsilon=100.0,
        method="nist_mst",
        options={"marginals": "sex×voted, age×voted"},
        rate=Rate("Voted, by sex", {"voted": "yes"}, "sex"),
        formula="voted ~ sex + age",
        harder="voted ~ sex",
        copies=2,
    )
    found = run(exhibit, tmp_path)
    assert [group.label for group in found.groups] == ["male", "female"]
    for group in found.groups:  # at such an ε the release must agree with the raw file
        assert group.said.estimate == pytest.approx(group.true, abs=0.01)
    age = next(each for each in found.coefficients if each.name == "age")
    assert age.clear
    assert age.same_sign
    text = page.write(found, tmp_path / "out").read_text(encoding="utf-8")
    assert "| male | " in text
    assert "For the model `` voted ~ sex ``" in text
    assert len(list((tmp_path / "out").glob("*.svg"))) == text.count("](voters-")
    assert page.write_overview([found] * len(EXHIBITS), tmp_path / "out").exists()
