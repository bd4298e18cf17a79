"""Rows that cannot fit are refused before anything is charged, drawn or written."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.release.people import copied, everything, people, relisted, simple
from understudy.errors import ResourceError
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.release import Release
from understudy.release.files import file_bytes, row_bytes
from understudy.synthesizer import synthesize

TRILLION = 10**12


@pytest.mark.parametrize("copies", [1, 1000])
def test_a_run_whose_rows_fill_the_disk_is_refused_before_the_charge(tmp_path: Path, copies: int) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(3.0))
    rows = {1: 500 * TRILLION, 1000: 500 * TRILLION // 1000}[copies]
    for queries in (rows, rows * 10**400):
        with pytest.raises(ResourceError, match="disk") as refused:
            synthesize(
                people(), simple(), epsilon=1.0, rows=queries, copies=copies, ledger=ledger, out=tmp_path / "out"
            )
        assert refused.value.needed_bytes > refused.value.limit_bytes
    assert ledger.balance("people").releases == 0
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.db"]


def test_rows_of_an_edited_config_are_refused(plain_folder: Path, tmp_path: Path) -> None:
    folder = copied(plain_folder, tmp_path / "release")
    document = yaml.safe_load((folder / "config.yaml").read_text())
    (folder / "config.yaml").write_text(yaml.safe_dump(document | {"rows": [500 * TRILLION]}))
    release = Release.load(relisted(folder))
    for name in ("rows.parquet", "rows.csv"):
        with pytest.raises(ResourceError, match="to disk"):
            release.sample_to(tmp_path / name)
    with pytest.raises(ResourceError, match="in memory"):
        release.sample()
    with pytest.raises(ResourceError, match="to disk"):
        release.save(tmp_path / "again")
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


def test_a_noisy_total_beyond_the_disk_is_cut_to_what_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)
    room = 2**26 + 200  # what the model needs at least, and 200 bytes for rows
    monkeypatch.setattr("understudy.release.files.SPARE_BYTES", 2**26)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=room))
    release = synthesize(people(), simple(), epsilon=5.0, out=tmp_path / "out")
    fits = int(200 / row_bytes(simple()))
    assert release.config.rows == (fits,)
    assert release.config.rows_from == f"noisy total, at most {fits}"
    assert len(release.table) == fits


@pytest.mark.parametrize(("schema", "suffix"), [(simple(), ".parquet"), (simple(), ".csv"), (everything(), ".csv")])
def test_the_forecast_is_near_the_size(schema, suffix: str, tmp_path: Path) -> None:
    rows = 200_000
    release = synthesize(people(), schema, method="independent", epsilon=20.0, delta=1e-6, rows=1)
    release.sample_to(tmp_path / f"rows{suffix}", rows)
    size = (tmp_path / f"rows{suffix}").stat().st_size
    assert 0.5 < file_bytes(schema, rows, suffix) / size < 2
