"""Verification finds every change: any byte of any entry, lines cut out, moved or forged, totals that do not add up."""

import dataclasses
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from understudy.privacy.cost import UNIT, Budget
from understudy.privacy.ledger import Ledger, Mark, check_chain, verify_extract
from understudy.privacy.ledger_file import FIELDS, TABLES, Entry

GUARDS = ("entry_never_changes", "entry_never_leaves", "entry_comes_last")
Lines = list[dict[str, str | int]]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1.0))
    ledger.add_dataset("visits", Budget(1.0, 1e-9), "zcdp")
    pure, gaussian = Budget(0.25), Budget(0.25, 1e-9)
    for number in range(2):
        ledger.charge("people", run=f"p{number}", method="laplace", cost=pure.cost("pure"), budget=pure, unit="one row")
        cost = gaussian.cost("zcdp")
        ledger.charge("visits", run=f"v{number}", method="mst", cost=cost, budget=gaussian, unit="one row", note="é")
    ledger.finish("p0", "released")
    return ledger


@pytest.fixture
def held(ledger: Ledger) -> Lines:
    """The lines of a ledger with a run that was interrupted and continued, from the seventh (counted from 0) on."""
    ledger.checkpoint("p1", Mark(10, "a" * 64))
    ledger.checkpoint("p1", Mark(20, "b" * 64))
    receipt = ledger.take_up("p1", Mark(20, "b" * 64))
    ledger.checkpoint("p1", Mark(30, "c" * 64), holder=receipt.holder)
    ledger.finish("p1", "released", holder=receipt.holder)
    return [entry.to_json() for entry in ledger.entries()]


def _changes(stored: str | int) -> list[bytes | int]:
    """The contents that differ from the stored ones in one byte."""
    if isinstance(stored, int):
        return [stored ^ 1 << 8 * place for place in range(8)] + [stored - 2**63]  # type: ignore[return-value]
    raw = stored.encode()
    flips = (0x01, 0x20, 0x80)
    changed = [raw[:place] + bytes([raw[place] ^ flips[place % 3]]) + raw[place + 1 :] for place in range(len(raw))]
    return [*changed, raw + b"x"]


def test_any_changed_byte_is_found_and_its_entry_named(ledger: Ledger) -> None:
    tried = 0
    with sqlite3.connect(ledger.path, isolation_level=None) as raw:
        raw.execute("PRAGMA synchronous = OFF")
        raw.execute("PRAGMA ignore_check_constraints = ON")
        for entry in ledger.entries():
            if entry.run in ("p1", "v1"):
                continue  # of the same kinds as p0 and v0
            for name in FIELDS:
                stored = getattr(entry, name)
                for change in _changes(stored):
                    tried += _change_is_found(ledger, raw, entry, name, change)
    raw.close()
    assert tried >= 1000
    assert ledger.verify() == []


def _change_is_found(ledger: Ledger, raw: sqlite3.Connection, entry: Entry, name: str, change: bytes | int) -> int:
    stored = getattr(entry, name)
    if name == "sequence" and change < 1:  # type: ignore[operator]
        return 0  # would change the order of all, so no single entry can be named
    place = change if name == "sequence" else entry.sequence
    update = (
        f"UPDATE entry SET {name} = CAST(? AS {'TEXT' if isinstance(stored, str) else 'INTEGER'}) WHERE sequence = ?"
    )
    if not _update(raw, update, (change, entry.sequence)):
        return 0  # two entries cannot have one number, nor two openings one name
    problems = ledger.verify()
    assert any(problem.where.endswith(f": entry {place!r}") for problem in problems), (name, change)
    assert _update(raw, update, (stored, place))
    return 1


def _update(raw: sqlite3.Connection, statement: str, contents: tuple[object, object]) -> bool:
    """Changes an entry behind the back of its guards, which stand again afterwards."""
    raw.execute("BEGIN")
    for guard in GUARDS:
        raw.execute(f"DROP TRIGGER {guard}")
    try:
        raw.execute(statement, contents)
    except sqlite3.IntegrityError:
        raw.execute("ROLLBACK")
        return False
    for guard in GUARDS:
        raw.execute(TABLES[guard])
    raw.execute("COMMIT")
    return True


def _without(number: int) -> Callable[[Lines], Lines]:
    return lambda lines: lines[:number] + lines[number + 1 :]


def _resealed(number: int, **changes: str | int) -> Callable[[Lines], Lines]:
    """One line rewritten together with its own hash, by somebody who knows the format."""

    def rewrite(lines: Lines) -> Lines:
        entry = dataclasses.replace(Entry.from_json(lines[number]), **changes).sealed()
        return [*lines[:number], entry.to_json(), *lines[number + 1 :]]

    return rewrite


FORGERIES: dict[str, Callable[[Lines], Lines]] = {
    "opening left out": _without(0),
    "charge left out": _without(1),
    "moved": lambda lines: [lines[0], lines[2], lines[1]],
    "doubled": lambda lines: [*lines, lines[-1]],
    "nothing": lambda lines: [],
    "cheaper charge": _resealed(2, budget_epsilon=1),
    "lower total": _resealed(2, total_epsilon=UNIT // 4),
    "fewer releases": _resealed(2, releases=1),
    "rewritten past": _resealed(1, note="another"),
    "raised cap": _resealed(0, budget_epsilon=9 * UNIT),
    "raised limit": _resealed(0, cost_epsilon=9 * UNIT),
    "other composition": _resealed(2, composition="zcdp"),
    "unknown composition": _resealed(0, composition="advanced"),
    "other unit": _resealed(2, unit="one month"),
    "run charged twice": _resealed(2, run="p0"),
    "not an entry": lambda lines: [*lines, {"sequence": 9}],
    "wrong kind": _resealed(2, kind="finish"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_extract_is_found(ledger: Ledger, forgery: str) -> None:
    lines = ledger.extract(dataset="people")
    assert verify_extract(lines) == []
    assert verify_extract(FORGERIES[forgery](lines))


@pytest.mark.parametrize("number", range(7))
def test_whole_ledger_misses_any_line(ledger: Ledger, number: int) -> None:
    lines: list[dict[str, object]] = [dict(entry.to_json()) for entry in ledger.entries()]
    assert check_chain(lines, "ledger") == []
    found = check_chain(lines[:number] + lines[number + 1 :], "ledger")
    assert bool(found) == (number < 6)  # only the head hash tells that the last line is gone


def test_concentrated_limit_above_the_cap_is_found(ledger: Ledger) -> None:
    lines = ledger.extract(dataset="visits")
    raised = _resealed(0, cost_rho=int(lines[0]["cost_rho"]) * 2)(lines)
    assert "sets a limit above what its cap allows." in {problem.rule for problem in verify_extract(raised)}


def test_overspending_is_found_even_if_it_adds_up(ledger: Ledger) -> None:
    lines = ledger.extract(dataset="people")
    more = UNIT // 4 + 9 * UNIT
    over = _resealed(2, budget_epsilon=9 * UNIT, total_epsilon=more)(lines)
    assert "exceeds the cap of its dataset." in {problem.rule for problem in verify_extract(over)}


def test_finish_of_an_uncharged_run_is_found(ledger: Ledger) -> None:
    lines = [entry.to_json() for entry in ledger.entries()]
    rules = {problem.rule for problem in check_chain(_resealed(6, run="ghost")(lines), "ledger")}
    assert "finishes a run that was not charged before." in rules


HELD: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "uncharged run": (_resealed(7, run="ghost"), "belongs to a run that was not charged before."),
    "other dataset": (_resealed(7, dataset="visits"), "belongs to a run that was not charged before."),
    "after the end": (_resealed(7, run="p0"), "comes after the end of its run."),
    "not the holder": (_resealed(10, earlier="0" * 64), "does not come from the process that held its run."),
    "amounts": (_resealed(9, cost_epsilon=UNIT), "carries amounts."),
    "step back": (_resealed(8, note=Mark(10, "b" * 64).note), "does not come after the checkpoint before it."),
    "older branch": (_resealed(9, note=Mark(10, "a" * 64).note), "continues from a checkpoint other than the newest."),
    "other state": (_resealed(9, note=Mark(20, "d" * 64).note), "continues from a checkpoint other than the newest."),
    "no state": (_resealed(9, note="from the beginning"), "continues from a checkpoint other than the newest."),
    "no words": (_resealed(9, note="somewhere"), "cannot be read: does not name a checkpoint."),
    "second end": (lambda lines: [*lines, lines[-1]], "finishes a run a second time."),
}


@pytest.mark.parametrize("forgery", HELD)
def test_a_run_continued_the_wrong_way_is_found(held: Lines, forgery: str) -> None:
    assert check_chain(held, "ledger") == []
    forge, rule = HELD[forgery]
    assert rule in {problem.rule for problem in check_chain(forge(held), "ledger")}


def test_any_changed_byte_of_a_continued_run_is_found(held: Lines) -> None:
    for number in (7, 9):
        for name, stored in held[number].items():
            for change in _changes(stored):
                changed = change.decode(errors="replace") if isinstance(change, bytes) else change
                forged: list[dict[str, object]] = [dict(line) for line in held]
                forged[number][name] = changed
                assert check_chain(forged, "ledger"), (number, name, change)
