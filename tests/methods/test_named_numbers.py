"""Options in text: names in order, numbers by name, hostile names in quotes."""

import pytest

from understudy.errors import UsageError
from understudy.options import listed_names, named_numbers


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
