"""Every example in a docstring runs and shows what it says."""

import doctest
import importlib
import pkgutil

import understudy

EXTRAS = {"torch", "pyspark", "deltalake", "pyiceberg", "adbc_driver_postgresql", "pyreadstat", "openpyxl"}


def test_examples_in_docstrings_run() -> None:
    tried, failed = 0, []
    for found in pkgutil.walk_packages(understudy.__path__, "understudy."):
        if found.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in EXTRAS:  # what an extra brings, in an environment without it
                continue
            raise
        outcome = doctest.testmod(module)
        tried += outcome.attempted
        failed += [found.name] * bool(outcome.failed)
    assert not failed
    assert tried > 100
