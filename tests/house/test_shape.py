"""The shape of the tree: unique class names, no folder for one file, modules by subject and not by the dozen."""

from pathlib import Path

import pytest

from tests.house import shape
from tests.house.shape import LEAST_IN_FOLDER, duplicated_classes, import_share, modules, small_folders

MOST_IMPORT_SHARE = 0.09


def test_class_names_are_unique() -> None:
    assert duplicated_classes() == {}


def test_no_folder_is_nearly_empty() -> None:
    assert small_folders() == [], f"a package has {LEAST_IN_FOLDER} files at least"


def test_imports_take_few_lines() -> None:
    share = import_share()
    assert 0.0 < share <= MOST_IMPORT_SHARE, f"{share:.1%} of code lines are imports: modules are cut too small"


def test_a_bad_tree_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "alone").mkdir()
    code = "import os\n\n\nclass Twice:\n    pass\n"
    files = [tmp_path / name for name in ("one.py", "two.py", "three.py", "four.py", "alone/five.py")]
    for path in files:
        path.write_text(code, encoding="utf-8")
    monkeypatch.setattr(shape, "SOURCE", tmp_path)
    monkeypatch.setattr(shape, "source_files", lambda: tuple(files))
    assert list(duplicated_classes()) == ["Twice"]
    assert small_folders() == ["alone"]
    assert len(modules()) == 5
    assert import_share() == pytest.approx(1 / 3)
