"""Reads typed values out of a parsed schema file and keeps every problem with its line, instead of stopping at one."""

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence

from understudy.errors import Problem
from understudy.schema.column import Point
from understudy.schema.place import below, shown, suggest
from understudy.schema.text.parse import Entries, Items, Leaf, Tree

__all__ = ["POINTS", "Reader"]

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d\d:\d\d(:\d\d)?", re.ASCII)
_DATETIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|[-+]\d\d:\d\d(:\d\d)?)?", re.ASCII)

_QUESTIONS = {
    "unit": "who is protected (row, or an id column with the most rows one of them may have)",
    "lower": "the lower bound, from public knowledge",
    "upper": "the upper bound, from public knowledge",
    "labels": "the full list of labels, from a codebook",
    "missing": "whether the value may be absent (true or false)",
    "zone": "the time zone, such as Europe/Berlin",
    "kind": "what kind of column this is",
}


def _date(leaf: Leaf) -> Point | None:
    return _made(dt.date.fromisoformat, leaf.text, _DATE)


def _time(leaf: Leaf) -> Point | None:
    return _made(dt.time.fromisoformat, leaf.text, _TIME)


def _datetime(leaf: Leaf) -> Point | None:
    return _made(dt.datetime.fromisoformat, leaf.text, _DATETIME)


def _made(make: Callable[[str], Point], text: str, form: re.Pattern[str]) -> Point | None:
    try:
        return make(text) if form.fullmatch(text) else None
    except ValueError:
        return None


POINTS: Mapping[str, tuple[Callable[[Leaf], Point | None], str]] = {
    "integer": (lambda leaf: leaf.whole, "a whole number without quotes"),
    "float": (lambda leaf: leaf.real, "a number without quotes"),
    "date": (_date, "a date such as 2020-12-31"),
    "datetime": (_datetime, "a date and time such as 2020-12-31T23:59:59 (with an offset if the column has a zone)"),
    "time": (_time, "a time of day such as 23:59:59"),
}
"""How the values of each number kind are read, and what they must look like."""


class Reader:
    """Collects problems and the lines of keys. Its methods return None where the value could not be read."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.problems: list[Problem] = []
        self.lines: dict[str, int] = {}

    def refuse(self, tree: Tree, here: str, rule: str, fix: str = "") -> None:
        """Keeps a problem of what stands at `here`."""
        self.problems.append(Problem(f"{self.where}:{tree.line}: {here}", rule, fix))

    def located(self, problem: Problem) -> Problem:
        """The problem with the file and the line of its key, or of the closest key around it."""
        place = problem.where
        while place and place not in self.lines:
            place = place[: max(place.rfind("."), place.rfind("["), 0)]
        line = f":{self.lines[place]}" if place else ""
        return Problem(f"{self.where}{line}: {problem.where}", problem.rule, problem.fix)

    def leaf(self, tree: Tree, here: str, wanted: str) -> Leaf | None:
        """The scalar, unless a person still has to decide it."""
        if not isinstance(tree, Leaf):
            given = "a list" if isinstance(tree, Items) else "a mapping"
            self.refuse(tree, here, f"must not be {given}.", wanted)
        elif tree.undecided:
            key = re.split(r"[.\[]", here)[-1]
            question = _QUESTIONS.get(key, "a value")
            self.refuse(tree, here, "still says DECIDE:", f"state {question}.")
        else:
            return tree
        return None

    def entries(self, tree: Tree, here: str) -> Entries | None:
        """The mapping."""
        if isinstance(tree, Entries):
            return tree
        if isinstance(tree, Items) or self.leaf(tree, here, "") is not None:
            self.refuse(tree, here, "must be a mapping of keys to values.", "Write one `key: value` per line.")
        return None

    def items(self, tree: Tree, here: str) -> Items | None:
        """The list."""
        if isinstance(tree, Items):
            return tree
        if isinstance(tree, Entries) or self.leaf(tree, here, "") is not None:
            self.refuse(tree, here, "must be a list.", "Write it as [first, second].")
        return None

    def fields(self, tree: Entries, here: str, known: Sequence[str], required: Sequence[str] = ()) -> dict[str, Tree]:
        """The values under known keys; unknown and absent keys become problems."""
        found: dict[str, Tree] = {}
        for key, value in tree.pairs:
            place = below(here, key.text)
            self.lines[place] = key.line
            if key.text in known:
                found[key.text] = value
            else:
                self.refuse(key, place, "is not a key that belongs here.", suggest(key.text, known))
        for name in required:
            if name not in found:
                question = _QUESTIONS.get(name)
                self.refuse(tree, below(here, name), "is not stated.", f"State {question}." if question else "Add it.")
        return found

    def text(self, tree: Tree, here: str) -> str | None:
        """Text as written; plain true, false and null are refused, because their meaning is not text."""
        leaf = self.leaf(tree, here, "It must be text.")
        if leaf is None:
            return None
        if leaf.null or leaf.boolean is not None:
            said = leaf.text or "nothing"
            self.refuse(tree, here, f"says {said} where text is needed.", 'Put quotes around it if it is text: "…".')
            return None
        return leaf.text

    def blank_or_text(self, tree: Tree, here: str) -> str | None:
        """Text, empty where nothing stands."""
        return "" if isinstance(tree, Leaf) and tree.null else self.text(tree, here)

    def nothing_or_text(self, tree: Tree, here: str) -> str | None:
        """Text, or None where nothing stands (or on a problem, which is kept)."""
        return None if isinstance(tree, Leaf) and tree.null else self.text(tree, here)

    def texts(self, tree: Tree, here: str) -> tuple[str, ...] | None:
        """A list of texts."""
        listed = self.items(tree, here)
        if listed is None:
            return None
        found = [self.text(value, here) for value in listed.values]
        return None if None in found else tuple(text for text in found if text is not None)

    def text_map(self, tree: Tree, here: str) -> dict[str, str] | None:
        """Texts by text."""
        entries = self.entries(tree, here)
        if entries is None:
            return None
        pairs = [(self.text(key, here), self.text(value, here)) for key, value in entries.pairs]
        found = {key: value for key, value in pairs if key is not None and value is not None}
        return found if len(found) == len(pairs) else None

    def number_map(self, tree: Tree, here: str) -> dict[str, float] | None:
        """Numbers by text."""
        entries = self.entries(tree, here)
        if entries is None:
            return None
        pairs = [(self.text(key, here), self.real(value, here)) for key, value in entries.pairs]
        found = {key: value for key, value in pairs if key is not None and value is not None}
        return found if len(found) == len(pairs) else None

    def boolean(self, tree: Tree, here: str) -> bool | None:
        """True or false."""
        leaf = self.leaf(tree, here, "It must be true or false.")
        if leaf is not None and leaf.boolean is None:
            self.refuse(tree, here, f"{shown(leaf.text)} must be true or false.")
        return None if leaf is None else leaf.boolean

    def point(self, tree: Tree, here: str, kind: str) -> Point | None:
        """A value of a number, date or time column of that kind."""
        read, wanted = POINTS[kind]
        leaf = self.leaf(tree, here, f"It must be {wanted}.")
        if leaf is None:
            return None
        value = read(leaf)
        if value is None:
            self.refuse(tree, here, f"{shown(leaf.text) if leaf.text else 'nothing'} must be {wanted}.")
        return value

    def points(self, tree: Tree, here: str, kind: str) -> tuple[Point, ...] | None:
        """A list of such values."""
        listed = self.items(tree, here)
        if listed is None:
            return None
        found = [self.point(value, here, kind) for value in listed.values]
        return None if None in found else tuple(value for value in found if value is not None)

    def whole(self, tree: Tree, here: str) -> int | None:
        """A whole number."""
        value = self.point(tree, here, "integer")
        return value if isinstance(value, int) else None

    def real(self, tree: Tree, here: str) -> float | None:
        """A number."""
        value = self.point(tree, here, "float")
        return value if isinstance(value, float) else None

    def rule_label(self, tree: Tree, here: str, kind: str) -> tuple[str | None, ...]:
        """The label a rule names, alone in a tuple: None is missing; nothing on a problem."""
        if isinstance(tree, Leaf) and tree.null:
            return (None,)
        if isinstance(tree, Leaf) and kind == "boolean" and tree.boolean is not None:
            return (str(tree.boolean).lower(),)
        if isinstance(tree, Leaf) and kind == "integer" and tree.whole is not None:
            return (str(tree.whole),)
        if isinstance(tree, Leaf) and kind == "float" and tree.real is not None:
            return (str(tree.real),)
        text = self.text(tree, here)
        return () if text is None else (text,)
