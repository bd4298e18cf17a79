"""Options as text: each type by itself and in unions, unknown names, and what does not fit."""

import dataclasses
from typing import Literal

import pytest

from understudy.errors import UsageError
from understudy.options import hints_of, read_options, spelled


@dataclasses.dataclass(frozen=True)
class Options:
    number: int = 1
    share: float = 0.5
    flag: bool = False
    word: str = ""
    words: tuple[str, ...] = ()
    policy: Literal["noisy", "estimated"] = "noisy"
    limit: int | None = None
    either: int | Literal["all"] = "all"


HINTS = hints_of(Options)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("number", "12", 12),
        ("share", "1e-3", 0.001),
        ("flag", "True", True),
        ("flag", "false", False),
        ("word", "none", "none"),
        ("words", "a, b ,,c", ("a", "b", "c")),
        ("words", "", ()),
        ("policy", "estimated", "estimated"),
        ("limit", "none", None),
        ("limit", "", None),
        ("limit", "7", 7),
        ("either", "all", "all"),
        ("either", "3", 3),
    ],
)
def test_text_is_read_by_type(name, text, value):
    read = read_options("method x", HINTS, {name: text})[name]
    assert read == value
    assert type(read) is type(value)


def test_values_that_are_no_text_are_left_alone():
    assert read_options("method x", HINTS, {"number": 2.5, "limit": None}) == {"number": 2.5, "limit": None}


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("number", "1.5", "a whole number"),
        ("share", "much", "a number"),
        ("flag", "1", "true or false"),
        ("policy", "Noisy", "noisy or estimated"),
        ("limit", "many", "a whole number or none"),
        ("either", "some", "a whole number or all"),
    ],
)
def test_text_that_does_not_fit(name, text, rule):
    with pytest.raises(UsageError, match=f"option '{name}' of method x: must be {rule}, got '{text}'"):
        read_options("method x", HINTS, {name: text})
    assert spelled(HINTS[name]) == rule


def test_unknown_names():
    with pytest.raises(UsageError, match=r"'numbr': is not an option of metric y.*Did you mean \"number\""):
        read_options("metric y", HINTS, {"numbr": "1"})
    with pytest.raises(UsageError, match="It has no options"):
        read_options("metric y", {}, {"number": "1"})


def test_words_are_spelled():
    assert spelled(HINTS["words"]) == "words with commas between them"
