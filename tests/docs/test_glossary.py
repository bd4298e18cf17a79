"""The glossary: one sentence for each word, in the order of the alphabet, with every public name."""

import re
import unicodedata
from pathlib import Path

import understudy

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^- \*\*(.+?)\*\*: (.+?)(?=\n- |\n*\Z)", PAGE, re.MULTILINE | re.DOTALL)
SPELLED = {"ε": "epsilon", "δ": "delta", "ρ": "rho"}


def _place(word: str) -> str:
    """The word as it is sorted: Greek letters are spelled."""
    letters = "".join(SPELLED.get(letter, letter) for letter in word.split(" (")[0])
    return "".join(letter for letter in unicodedata.normalize("NFKD", letters).lower() if letter.isalnum())


def test_every_public_name_is_explained() -> None:
    words = {name for word, _ in ENTRIES for name in re.findall(r"`(\w+)`", word)}
    explained = words | {name for _, text in ENTRIES for name in re.findall(r"`(schema)` is", text)}
    assert set(understudy.__all__) <= explained


def test_words_stand_in_the_order_of_the_alphabet_and_once() -> None:
    places = [_place(word) for word, _ in ENTRIES]
    assert places == sorted(set(places))
    assert len(ENTRIES) == PAGE.count("\n- ")


def test_each_word_has_one_sentence() -> None:
    for word, text in ENTRIES:
        assert text.strip().endswith("."), word
        assert ". " not in " ".join(text.split()), word


def test_the_readme_links_to_it() -> None:
    assert "docs/glossary.md" in (ROOT / "README.md").read_text(encoding="utf-8")
