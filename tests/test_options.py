"""Every check takes what it should and refuses the rest, naming option, rule and what was given."""

import dataclasses
from typing import Literal

import pytest

from understudy.errors import UsageError
from understudy.options import (
    WithOptions,
    check_choice,
    check_flag,
    check_number,
    check_share,
    check_whole,
    hints_of,
    listed_names,
    named_numbers,
    option,
    read_options,
    spelled,
)


def test_good_values_pass():
    check_choice("policy", "noisy", ("noisy", "estimated"))
    for whole in (1, 5):
        check_whole("layers", whole, 1, 5)
    for share in (1e-9, 0.5, 1 - 1e-9):
        check_share("total_share", share)
    for number in (0, 0.25, 0.5):
        check_number("growth_share", number, 0.0, 0.5)
    for flag in (True, False):
        check_flag("published", flag)


@pytest.mark.parametrize("value", ["nosy", None, 1])
def test_unknown_choices(value):
    with pytest.raises(UsageError, match=r"policy .* is not a known choice.*Known: estimated, noisy"):
        check_choice("policy", value, ("noisy", "estimated"))


@pytest.mark.parametrize("value", [0, 6, 2.0, "2", True, None])
def test_wrong_whole_numbers(value):
    with pytest.raises(UsageError, match="layers must be a whole number from 1 to 5, got"):
        check_whole("layers", value, 1, 5)


def test_large_limits_are_spelled_with_commas():
    with pytest.raises(UsageError, match="from 1,024 to 1,048,576, got 3"):
        check_whole("model_bytes", 3, 2**10, 2**20)
    with pytest.raises(UsageError, match=r"from 0\.000001 to 1,000,000, got 0"):
        check_number("rate", 0, 1e-6, 1e6)


@pytest.mark.parametrize("value", [0, 0.0, 1, 1.0, -0.1, 1.5, float("nan"), True, "0.5", None])
def test_wrong_shares(value):
    with pytest.raises(UsageError, match="total_share must lie between 0 and 1, both excluded, got"):
        check_share("total_share", value)


@pytest.mark.parametrize("value", [-1e-9, 0.51, float("nan"), float("inf"), True, "0.5", None])
def test_wrong_numbers(value):
    with pytest.raises(UsageError, match=r"growth_share must be a number from 0 to 0\.5, got"):
        check_number("growth_share", value, 0.0, 0.5)


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_wrong_flags(value):
    with pytest.raises(UsageError, match="published must be true or false, got"):
        check_flag("published", value)


def _named(name, value):
    if value == "odd":
        raise UsageError(name, "must not be odd.")


@dataclasses.dataclass(frozen=True, slots=True)
class Example(WithOptions):
    policy: Literal["noisy", "estimated"] = option("noisy", help="a choice")
    layers: int = option(2, help="a whole number", least=1, most=5)
    draws: int = option(2, help="a whole number without end", least=2)
    few: int = option(0, help="a whole number without beginning", most=3)
    rows: int | None = option(None, help="a whole number or none", least=1, most=10)
    share: float = option(0.5, help="a share", share=True)
    spare: float = option(0, help="a share, or nothing", share=True, also=(0,))
    growth: float = option(0.1, help="a number", above=0, most=0.5)
    theta: float | None = option(None, help="a number", above=0, below=1e9)
    start: float = option(0.0, help="a number", least=0, below=1)
    flag: bool = option(False, help="true or false")
    either: int | Literal["all"] = option("all", help="a number or a word", least=1, most=9)
    word: str = option("even", help="text with a check of its own", check=_named)

    def _check_together(self):
        if self.flag and self.rows is None:
            raise UsageError("flag", "needs rows.")


@pytest.mark.parametrize(
    "good",
    [
        {}, {"policy": "estimated"}, {"layers": 1}, {"layers": 5}, {"draws": 10**30}, {"few": -7}, {"rows": 10},
        {"spare": 0.3},
        {"spare": 0.0}, {"growth": 0.5}, {"theta": 1}, {"start": 0}, {"flag": True, "rows": 1}, {"either": 9},
        {"word": ""},
    ],
)  # fmt: skip
def test_options_that_fit_their_fields(good):
    made = Example(**good)
    assert all(getattr(made, name) == value for name, value in good.items())


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("policy", "nosy", "is not a known choice"),
        ("policy", None, "is not a known choice"),
        ("layers", 6, "must be a whole number from 1 to 5, got 6"),
        ("layers", True, "must be a whole number from 1 to 5, got True"),
        ("layers", None, "must be a whole number from 1 to 5, got None"),
        ("draws", 1, "must be a whole number, at least 2, got 1"),
        ("draws", 2.0, "must be a whole number, at least 2, got 2.0"),
        ("few", 4, "must be a whole number, at most 3, got 4"),
        ("rows", 0, "must be a whole number from 1 to 10, got 0"),
        ("share", 1, "must lie between 0 and 1, both excluded, got 1"),
        ("spare", False, "must lie between 0 and 1, both excluded, got False"),
        ("growth", 0, "must be a number above 0 and at most 0.5, got 0"),
        ("growth", float("nan"), "must be a number above 0 and at most 0.5, got nan"),
        ("theta", 1e9, "must be a number above 0 and below 1,000,000,000, got 1000000000.0"),
        ("start", 1, "must be a number from 0 to below 1, got 1"),
        ("start", "0", "must be a number from 0 to below 1, got '0'"),
        ("flag", 1, "must be true or false, got 1"),
        ("either", "some", "must be a whole number from 1 to 9, got 'some'"),
        ("word", 3, "must be text, got 3"),
        ("word", "odd", "must not be odd"),
    ],
)
def test_options_that_do_not_fit_their_fields(name, value, rule):
    with pytest.raises(UsageError) as caught:
        Example(**{name: value})
    assert caught.value.problem.where.startswith(name)
    assert rule in str(caught.value)


def test_options_are_checked_together_last():
    with pytest.raises(UsageError, match="needs rows"):
        Example(flag=True)


# Options in text: names in order, numbers by name, hostile names in quotes.


def test_names_and_numbers():
    assert listed_names("private", "sex, race") == ("sex", "race")
    assert listed_names("private", "") == ()
    assert listed_names("private", '"a,b",c') == ("a,b", "c")
    assert named_numbers("weights", 'occupation:60,"pay, month":0.5,a:b:2') == {
        "occupation": 60.0,
        "pay, month": 0.5,
        "a:b": 2.0,
    }


@pytest.mark.parametrize("text", ["a,,b", "a,a", "a\nb", 3, ",", " , "])
def test_bad_names_are_refused(text):
    with pytest.raises(UsageError):
        listed_names("private", text)


@pytest.mark.parametrize("text", ["a", "a:", ":3", "a:x", "a:-1", "a:nan", "a:inf", "a:1,a :2"])
def test_bad_numbers_are_refused(text):
    with pytest.raises(UsageError):
        named_numbers("weights", text)


# Options as text: each type by itself and in unions, unknown names, and what does not fit.


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
    with pytest.raises(UsageError, match=f"option '{name}' of method x must be {rule}, got '{text}'"):
        read_options("method x", HINTS, {name: text})
    assert spelled(HINTS[name]) == rule


def test_unknown_names():
    with pytest.raises(UsageError, match=r"'numbr' is not an option of metric y.*Did you mean \"number\""):
        read_options("metric y", HINTS, {"numbr": "1"})
    with pytest.raises(UsageError, match="It has no options"):
        read_options("metric y", {}, {"number": "1"})


def test_words_are_spelled():
    assert spelled(HINTS["words"]) == "words with commas between them"
