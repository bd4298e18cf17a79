"""Decimals of the reference have a hundred digits here. The package must not notice: it sets its own precision."""

import decimal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def many_digits() -> Iterator[None]:
    with decimal.localcontext() as context:
        context.prec = 100
        yield
