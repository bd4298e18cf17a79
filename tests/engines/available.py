"""What an engine needs to be started: where it is missing tests are skipped with the reason, and in CI they fail."""

import importlib.util
import os
import shutil

import pytest


def needs(*names: str) -> None:
    """Skips the module that calls it unless these packages are installed and programs are on the path.

    A name that ends in "()" is a program ("java()"), any other one a Python package.
    """
    missing = [name for name in names if not _is_there(name)]
    if not missing:
        return
    reason = f"needs {', '.join(missing)}"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}, and in CI no engine may be missing", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def _is_there(name: str) -> bool:
    if name.endswith("()"):
        return shutil.which(name[:-2]) is not None
    return importlib.util.find_spec(name) is not None
