"""config.yaml: settings come back equal, other forms are refused."""

from pathlib import Path

import pytest
import yaml

from understudy.errors import ReleaseError
from understudy.release.release import RunConfig, installed_versions, read_config, write_config


def _config() -> RunConfig:
    options = {"threshold": 3, "names": ["a", "b"], "odd": None}
    return RunConfig("laplace", options, 1.0, 1e-9, (10, 12), "noisy total", "remeasure", 2**80, installed_versions())


def test_round_trip(tmp_path: Path) -> None:
    write_config(_config(), tmp_path / "config.yaml")
    assert read_config(tmp_path / "config.yaml") == _config()
    assert read_config(tmp_path / "config.yaml").copies == 2


@pytest.mark.parametrize(
    "change",
    [
        {"format": "x"},
        {"rows": []},
        {"rows": [-1, 2]},
        {"copies": 3},
        {"seed": 1.5},
        {"copies_mode": "x"},
        {"versions": 1},
    ],
)
def test_other_forms_are_refused(change: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    write_config(_config(), path)
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | change))
    with pytest.raises(ReleaseError, match=r"config\.yaml"):
        read_config(path)


@pytest.mark.parametrize("text", ["!!python/object/apply:os.system [echo]", "[", "- 1", "a" * (2**20 + 1), ""])
def test_unsafe_or_broken_yaml_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(ReleaseError):
        read_config(tmp_path / "config.yaml")
