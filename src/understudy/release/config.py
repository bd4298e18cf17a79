"""RunConfig: how a release was made, so that its public half can be made again: method, options, rows, seed, versions.

The seed is that of drawing rows from the fitted model. Noise has no seed.
"""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import yaml

from understudy.errors import Problem, ReleaseError
from understudy.models.plain_files import read_plain
from understudy.schema.text.parse import Entries, Items, Tree, parse_yaml

__all__ = ["COPIES_MODES", "MOST_COPIES", "RunConfig", "installed_versions", "read_config", "write_config"]

FORMAT = "understudy config, format 1"
COPIES_MODES = ("resample", "resanitize")
MOST_BYTES = 2**18
MOST_COPIES = 1_000


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The settings of a run. `rows` holds the number of rows of each copy, `rows_from` where they come from."""

    method: str
    options: Mapping[str, object]
    epsilon: float
    delta: float
    rows: tuple[int, ...]
    rows_from: str
    copies_mode: str
    seed: int
    versions: Mapping[str, str]

    @property
    def copies(self) -> int:
        """Number of synthetic tables."""
        return len(self.rows)


def installed_versions() -> dict[str, str]:
    """Versions of what made the release."""
    packages = ("understudy", "numpy", "pyarrow")
    return {name: version(name) for name in packages} | {"python": platform.python_version()}


def write_config(config: RunConfig, path: Path) -> None:
    """Writes the settings as YAML."""
    document = {
        "format": FORMAT,
        "method": config.method,
        "options": {name: _plain(value) for name, value in config.options.items()},
        "epsilon": config.epsilon,
        "delta": config.delta,
        "rows": list(config.rows),
        "rows_from": config.rows_from,
        "copies": config.copies,
        "copies_mode": config.copies_mode,
        "seed": config.seed,
        "versions": dict(config.versions),
    }
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def read_config(path: Path) -> RunConfig:
    """The settings that `write_config` wrote.

    Raises:
        ReleaseError: when the file does not have that form.
    """
    content = read_plain(path, MOST_BYTES)
    try:
        return _read(_value(parse_yaml(content.decode("utf-8"), path.name)))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        problem = Problem(path.name, "does not have the form of a run's settings.", "Restore the folder.")
        raise ReleaseError([problem]) from error


def _value(tree: Tree) -> object:
    """What `write_config` wrote: text that would read as something else has quotes."""
    if isinstance(tree, Items):
        return [_value(item) for item in tree.values]
    if isinstance(tree, Entries):
        return {key.text: _value(value) for key, value in tree.pairs}
    if tree.null:
        return None
    for read in (tree.boolean, tree.whole, tree.real):
        if read is not None:
            return read
    return tree.text


def _read(document: object) -> RunConfig:
    if not isinstance(document, dict) or document["format"] != FORMAT:
        raise ValueError("format")
    rows, seed = document["rows"], document["seed"]
    if not isinstance(rows, list) or not rows or any(type(count) is not int or count < 0 for count in rows):
        raise ValueError("rows")
    if len(rows) > MOST_COPIES or len(rows) != document["copies"] or type(seed) is not int or seed < 0:
        raise ValueError("copies or seed")
    if document["copies_mode"] not in COPIES_MODES:
        raise ValueError("copies_mode")
    return RunConfig(
        method=str(document["method"]),
        options=dict(document["options"]),
        epsilon=float(document["epsilon"]),
        delta=float(document["delta"]),
        rows=tuple(rows),
        rows_from=str(document["rows_from"]),
        copies_mode=str(document["copies_mode"]),
        seed=seed,
        versions={str(name): str(text) for name, text in dict(document["versions"]).items()},
    )


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return str(value)
