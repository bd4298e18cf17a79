"""Every check takes what it should and refuses the rest, naming option, rule and what was given."""

import pytest

from understudy.errors import UsageError
from understudy.options import check_choice, check_flag, check_number, check_share, check_whole


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
    with pytest.raises(UsageError, match="layers: must be a whole number from 1 to 5, got"):
        check_whole("layers", value, 1, 5)


def test_large_limits_are_spelled_with_commas():
    with pytest.raises(UsageError, match="from 1,024 to 1,048,576, got 3"):
        check_whole("model_bytes", 3, 2**10, 2**20)
    with pytest.raises(UsageError, match=r"from 0\.000001 to 1,000,000, got 0"):
        check_number("rate", 0, 1e-6, 1e6)


@pytest.mark.parametrize("value", [0, 0.0, 1, 1.0, -0.1, 1.5, float("nan"), True, "0.5", None])
def test_wrong_shares(value):
    with pytest.raises(UsageError, match="total_share: must lie between 0 and 1, both excluded, got"):
        check_share("total_share", value)


@pytest.mark.parametrize("value", [-1e-9, 0.51, float("nan"), float("inf"), True, "0.5", None])
def test_wrong_numbers(value):
    with pytest.raises(UsageError, match=r"growth_share: must be a number from 0 to 0\.5, got"):
        check_number("growth_share", value, 0.0, 0.5)


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_wrong_flags(value):
    with pytest.raises(UsageError, match="published: must be true or false, got"):
        check_flag("published", value)
