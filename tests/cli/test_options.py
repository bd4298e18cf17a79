"""Texts of options become values, or one clear refusal."""

from pathlib import Path

import pytest

from understudy.cli.options import conditions, memory_bytes, pairs, require_absent
from understudy.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("10b", 10), ("2kB", 2000), ("2KiB", 2048), ("1.5 GiB", 3 << 29), ("3M", 3_000_000), (None, None)],
)
def test_sizes(text: str | None, size: int | None) -> None:
    assert memory_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1e3", "GiB", "4 GiBs", "nan", "1,5MB", "0.2"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="--memory"):
        memory_bytes(text)


def test_pairs_keep_the_value_as_typed() -> None:
    assert pairs("--where", ["a=1..2", "b = c=d ", "e="]) == {"a": "1..2", "b": " c=d ", "e": ""}
    assert pairs("--set", None) == {}


@pytest.mark.parametrize("texts", [["a"], ["=1"], [""], ["a=1", "a=1"]])
def test_pairs_that_are_none(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="--set"):
        pairs("--set", texts)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (None, {}),
        (["sex=F", "age=20..29"], {"sex": "F", "age": "20..29"}),
        (["sex=F, age=20..29"], {"sex": "F", "age": "20..29"}),
        (["city=Paris, France,sex=F"], {"city": "Paris, France", "sex": "F"}),
        (["amount=1,234"], {"amount": "1,234"}),
        (['city="Paris, x=1",sex=F'], {"city": "Paris, x=1", "sex": "F"}),
        (['city="say ""hi"", sex=F"'], {"city": 'say "hi", sex=F'}),
        (["city=6'2\",sex=F"], {"city": "6'2\"", "sex": "F"}),
        (['city="open,sex=F'], {"city": '"open', "sex": "F"}),
        (["income, total=5"], {"income, total": "5"}),
        (["region==north"], {"region": "=north"}),
        (["sex=F,"], {"sex": "F,"}),
    ],
)
def test_conditions_are_joined_by_commas_or_repeated(texts: list[str] | None, found: dict[str, str]) -> None:
    assert conditions("--where", texts) == found


@pytest.mark.parametrize("texts", [["sex"], ["=F"], [""], ["sex,age"], ["sex=F,=M"], ["sex=F", "age=3,sex=M"]])
def test_conditions_that_are_none(texts: list[str]) -> None:
    with pytest.raises(UsageError, match=r"COLUMN=VALUE|names 'sex' twice"):
        conditions("--where", texts)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    assert require_absent("--out", tmp_path / "free") == tmp_path / "free"
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for taken in (tmp_path, tmp_path / "link", tmp_path / "no" / "file"):
        with pytest.raises(UsageError, match="--out"):
            require_absent("--out", taken)
