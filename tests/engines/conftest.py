"""One PostgreSQL server and one small Spark session for all tests of a run: starting them takes the longest."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.engines.servers import Server, started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """PostgreSQL, running. Tables are never removed: each test makes its own."""
    with started() as one:
        yield one


def start(folder: Path, master: str = "local[2]", **settings: str) -> "SparkSession":
    """A session with a small heap, without a web page, and quiet; settings are named with "_" for "."."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.io.encryption.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        "spark.local.dir": str(folder / "spark"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    builder = SparkSession.builder.master(master)
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    session = start(tmp_path_factory.mktemp("spark"), "local[2,4]")
    yield session
    session.stop()
