"""What would have made a release on a command line, and in Python: its settings, written as somebody would type them.

Options of the method are named where they differ from what they are if nobody names them.
"""

import shlex
from collections.abc import Mapping
from typing import Any

import understudy as us

TABLE, RELEASE = "TABLE", "RELEASE"


def command_line(release: Any, known: Mapping[str, str]) -> str:
    """The command that would do the same once more, into a folder of another name."""
    said = {"schema": f"{release.folder.name}/schema.yaml", **_settings(release, known)}
    pairs = [(name.replace("_", "-"), str(value)) for name, value in said.items()]
    pairs += [("set", f"{name}={value}") for name, value in _options(release.config).items()]
    words = [word for name, value in [*pairs, ("out", RELEASE)] for word in (f"--{name}", value)]
    return shlex.join(["understudy", "synthesize", known.get("table", TABLE), *words])


def python_call(release: Any, known: Mapping[str, str]) -> str:
    """The call that would do the same once more."""
    given = {**_settings(release, known), "out": RELEASE}
    options = _options(release.config)
    said = "".join(f"    {name}={value!r},\n" for name, value in given.items())
    said += f"    options={options!r},\n" if options else ""
    table, schema = known.get("table", TABLE), f"{release.folder.name}/schema.yaml"
    return f"release = us.synthesize(\n    {table!r},\n    {schema!r},\n{said})"


def _settings(release: Any, known: Mapping[str, str]) -> dict[str, object]:
    """What is named however it is typed, in the order in which one thinks of it."""
    config = release.config
    found: dict[str, object] = {"method": config.method, "epsilon": config.epsilon, "delta": config.delta}
    if config.rows_from == "given":
        found["rows"] = config.rows[0]
    if config.copies > 1:
        found |= {"copies": config.copies, "copies_mode": config.copies_mode}
    return (
        found
        | {"ledger": known.get("ledger", "ledger.db")}
        | {name: value for name, value in known.items() if name == "dataset"}
    )


def _options(config: Any) -> dict[str, object]:
    method = us.methods().get(config.method)
    usual = {} if method is None else {one.name: one.default for one in method.options}
    return {
        name: value
        for name, value in config.options.items()
        if value is not None and (name not in usual or usual[name] != value)
    }
