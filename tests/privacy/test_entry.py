"""An entry's hash covers every field; what is read back is checked field by field."""

import dataclasses

import pytest

from understudy.privacy.ledger_file import FIELDS, MOST_UNITS, Entry

ENTRY = Entry(
    sequence=3, kind="charge", dataset="people", made="2030-01-02T03:04:05Z", run="first", releases=1
).sealed()


def test_hash_is_the_same_for_ever() -> None:
    """The format of stored ledgers: a change here would make every ledger in use unreadable."""
    assert ENTRY.hash == "34e770842fe6d6d225c486460edbe1f0dab6d54d49fc9dc5840659d8dfee2d44"
    assert ENTRY.is_intact()


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "hash"])
def test_hash_covers_every_field(name: str) -> None:
    stored = getattr(ENTRY, name)
    changed = dataclasses.replace(ENTRY, **{name: stored + 1 if isinstance(stored, int) else stored + "x"})
    assert not changed.is_intact()
    assert changed.digest() != ENTRY.digest()


def test_text_cannot_slide_from_one_field_into_the_next() -> None:
    one = dataclasses.replace(ENTRY, method='a","note":"b', note="").digest()
    assert one != dataclasses.replace(ENTRY, method="a", note="b").digest()


def test_json_round_trip() -> None:
    assert Entry.from_json(ENTRY.to_json()) == ENTRY


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("sequence", "3"),
        ("sequence", True),
        ("total_rho", -1),
        ("total_rho", MOST_UNITS + 1),
        ("total_rho", 1.0),
        ("dataset", None),
        ("kind", "refund"),
        ("surprise", 1),
    ],
)
def test_ill_formed_lines_are_told(name: str, content: object) -> None:
    with pytest.raises(ValueError, match=name):
        Entry.from_json({**ENTRY.to_json(), name: content})


def test_missing_field_is_told() -> None:
    line = ENTRY.to_json()
    del line["total_rho"]
    with pytest.raises(ValueError, match="total_rho"):
        Entry.from_json(line)
