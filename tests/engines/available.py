"""What an engine's tests need: a package or a program that not every machine has."""

import importlib.util
import os
import shutil

import pytest


def needs(package: str = "", *, program: str = "") -> None:
    """Skips the test, or the whole module when called at its head, where something is missing; in CI it fails."""
    missing = [f"the package {package}"] if package and importlib.util.find_spec(package) is None else []
    missing += [f"the program {program}"] if program and shutil.which(program) is None else []
    if not missing:
        return
    reason = f"needs {' and '.join(missing)}"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, which CI must have.", pytrace=False)
    pytest.skip(reason, allow_module_level=True)
