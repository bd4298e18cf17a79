"""The demo: one command, a verified release, twice in a row, and nothing of anybody else's replaced."""

import shutil
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.cli.terminal import listing, run
from understudy.cli.demo import _compile_ahead
from understudy.codec.kernels import LEAST_ROWS
from understudy.domain import Domain
from understudy.methods.expected_error import expected_errors
from understudy.methods.method import PublicFacts
from understudy.privacy.cost import Budget
from understudy.schema import Schema


def _demo(folder: Path, *more: object, out: str = "release", private: str = "private") -> "tuple[int, str]":
    shown = run("demo", "--out", folder / out, "--private", folder / private, *more)
    return shown.status, shown.words


def _shown(folder: Path) -> None:
    status, words = _demo(folder)
    assert status == 0, words
    assert "SIMULATED" in words
    assert "Verified" in words
    assert "ε = 1 " in words


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the demo leaves behind, once for all tests; they work on copies."""
    folder = tmp_path_factory.mktemp("demo")
    _shown(folder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "demo")


def test_the_demo_runs_twice_and_its_release_verifies(folder: Path) -> None:
    _shown(folder)
    assert run("verify", folder / "release").status == 0
    released = pq.read_table(folder / "release" / "data.parquet")
    assert abs(released.num_rows - 44_821) < 1_000
    assert not any(
        row["voted"] == "yes" and row["registered"] == "no"
        for row in released.select(["voted", "registered"]).to_pylist()
    )
    assert "SIMULATED" in (folder / "release" / "statement.md").read_text(encoding="utf-8")
    with duckdb.connect(str(folder / "private" / "voters.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM voters").fetchone() == (44_821,)
        found = connection.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 'voters'").fetchone()
    assert found is not None
    (comment,) = found
    assert "SIMULATED" in comment
    assert "NOT FOR RELEASE" in (folder / "private" / "report.html").read_text(encoding="utf-8")
    assert "report" not in {path.stem for path in (folder / "release").iterdir()}


def test_only_its_own_folders_are_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work", encoding="utf-8")
    (tmp_path / "link").symlink_to(mine)
    before = listing(tmp_path)
    for out, private in (("mine", "private"), ("link", "private"), ("release", "mine"), ("release", "link")):
        assert _demo(tmp_path, out=out, private=private)[0] == 2
        assert listing(mine) == {"thesis.txt": before["mine/thesis.txt"]}
    assert listing(tmp_path) == before
    assert _demo(tmp_path, out="same", private="same")[0] == 2
    assert _demo(tmp_path, out="no/release")[0] == 2


def test_a_touched_release_or_folder_is_not_replaced(folder: Path) -> None:
    (folder / "release" / "notes.txt").write_text("mine", encoding="utf-8")
    assert _demo(folder)[0] == 2
    (folder / "release" / "notes.txt").unlink()
    (folder / "private" / "notes.txt").write_text("mine", encoding="utf-8")
    assert _demo(folder)[0] == 2
    assert (folder / "private" / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_what_auto_picks_and_what_long_text_files_need_is_compiled_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, int] = {}

    def noted(path: Path, schema: Schema, *, method: str, epsilon: float, delta: float) -> None:
        assert (epsilon, delta > 0) == (1.0, True)
        made[method] = len(path.read_text(encoding="utf-8").splitlines()) - 1

    monkeypatch.setattr("understudy.synthesizer.synthesize", noted)
    _compile_ahead()
    assert min(made.values()) >= LEAST_ROWS  # shorter files are read without kernels
    facts = PublicFacts(Domain.of({"a": 2, "b": 3}), (), 1)
    picked_from = set(expected_errors(facts, Budget(1.0, 1e-6).cost("zcdp"), 1e4))
    assert set(made) == picked_from - {"independent"}  # which needs no kernel of its own
