import pytest

from understudy.errors import SchemaError
from understudy.schema.yaml_text import Entries, Leaf, YamlList, parse_yaml


def test_scalars_keep_their_text_line_and_quotes() -> None:
    tree = parse_yaml("a: 007\nb: ['yes', ~]\n", "f")
    assert tree == Entries(
        (
            (Leaf("a", 1), Leaf("007", 1)),
            (Leaf("b", 2), YamlList((Leaf("yes", 2, plain=False), Leaf("~", 2)), 2)),
        ),
        1,
    )


@pytest.mark.parametrize("text", ["yes", "no", "on", "off", "y", "n", "2020-01-01", "1:30", "0x10", "1_000", "=", "<<"])
def test_words_of_older_yaml_are_text(text: str) -> None:
    leaf = Leaf(text, 1)
    assert (leaf.null, leaf.boolean, leaf.whole, leaf.real) == (False, None, None, None)


def test_core_scalars_have_a_meaning_only_without_quotes() -> None:
    assert [Leaf(text, 1).null for text in ("", "~", "null", "NULL", "nil")] == [True] * 4 + [False]
    assert [Leaf(text, 1).boolean for text in ("true", "FALSE", "tRUE")] == [True, False, None]
    assert [Leaf(text, 1).whole for text in ("12", "-7", "+3", "1.0", "²")] == [12, -7, 3, None, None]
    assert [Leaf(text, 1).real for text in ("1", "-.5", "1.5e-3", ".inf", "1e")] == [
        1.0,
        -0.5,
        0.0015,
        float("inf"),
        None,
    ]
    quoted = Leaf("true", 1, plain=False)
    assert (quoted.boolean, Leaf("1", 1, plain=False).whole, Leaf("", 1, plain=False).null) == (None, None, False)


def test_repeated_keys_are_all_listed() -> None:
    with pytest.raises(SchemaError) as caught:
        parse_yaml('a: 1\nb: {c: 1, c: 2}\n"a": 3\n', "f")
    assert [problem.where for problem in caught.value.problems] == ["f:2", "f:3"]


def test_nesting_up_to_the_limit_is_read() -> None:
    assert isinstance(parse_yaml("[" * 31 + "x" + "]" * 31, "f"), YamlList)
    with pytest.raises(SchemaError, match="nesting"):
        parse_yaml("[" * 32 + "x" + "]" * 32, "f")
