"""Every net passes on our code, and every planted bug is caught by the net it names."""

import pytest

from tests.nets.nets import NETS
from tests.nets.planted import PLANTED, PlantedBug
from understudy.errors import UnderstudyError


@pytest.mark.parametrize("net", NETS)
def test_net_passes_on_our_code(net: str) -> None:
    NETS[net]()


def test_the_list_is_long_enough_and_names_are_unique() -> None:
    names = [bug.name for bug in PLANTED]
    assert len(set(names)) == len(names) >= 25
    assert {bug.net for bug in PLANTED} == set(NETS)


@pytest.mark.filterwarnings("ignore:few rows")
@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_planted_bug_is_caught(bug: PlantedBug) -> None:
    with bug.plant(), pytest.raises((AssertionError, UnderstudyError)) as caught:
        NETS[bug.net]()
    assert str(caught.value), "a catch says what it caught"
