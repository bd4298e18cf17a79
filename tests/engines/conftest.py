"""One server for all tests of a run."""

from collections.abc import Iterator

import pytest

from tests.engines.servers import Server, started


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """PostgreSQL, running. Tables are never removed: each test makes its own."""
    with started() as one:
        yield one
