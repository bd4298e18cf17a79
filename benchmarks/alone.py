"""alone: a benchmark's line in a fresh process, so that its memory and its first run are its own."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Found = TypeVar("Found")


def alone(work: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Found:
    """The result of `work` in a process of its own; raises if that process cannot start or dies."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *given, **named).result()
