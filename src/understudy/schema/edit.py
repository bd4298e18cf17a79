"""Filling in a schema file place by place: what is asked, how an answer becomes text, and what may not be answered.

A walk goes through the places that say DECIDE and the lines that are marked as a guess, in the order of the file. An
answer changes the text where that place stands and nowhere else, so comments, order and layout stay. It is checked at
once, by the same rules as a file that is loaded: what brings a new problem to its column (or to the unit) is refused
with the reason. Problems that tell of other columns, or of rules over several, are left to the check at the end. A
column may also be left out as a whole, unless something else in the file names it.

A form, as the studio shows one, changes what is stated in any order: `state`, `confirm`, `drop`, `protect`, `forbid`,
`allow` and `replace` touch one column or key each, may leave problems behind, and can be undone all the same.

Nothing here prints or reads a terminal, and no table is looked at. `save_text` replaces a file in one step.
"""

import datetime as dt
import math
import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo

import yaml

from understudy.errors import Problem, SchemaError, place, shown
from understudy.schema.columns import Named
from understudy.schema.document import KINDS, QUESTIONS, keys_of, schema_from_text
from understudy.schema.draft import OpenPlace, open_places
from understudy.schema.yaml_text import DECIDE, Entries, Leaf, YamlList, guessed_lines, parse_yaml, text_token, written

_GUESS = re.compile(r"\s#[ \t]*guess:", re.IGNORECASE)
_ITEM = re.compile(r"""\s*(?:("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*|([^,]*)),""")
"""One item of a list without brackets, with the comma behind it: in quotes, or as it is up to the comma."""
_KEYED, _PART = re.compile(r"[a-z_]+:\s"), re.compile(r",\s*(?=[a-z_]+:\s)")
"""What differs in a mapping, `upper: 99`, and where one such part ends and the next begins."""
_NO_LIST = re.compile(r"[a-z_]+\s*[:=]|(?:lower|upper)\s+[-+.\d]")
"""How an answer begins that has commas and yet is no list of labels: `upper=99, lower=0`."""
_KINDS_REMARK = r"category, open_category, boolean, integer, float, date, datetime or time(?:; see above)?"
_REMARKS = {
    "kind": _KINDS_REMARK,
    "labels": r"the full list, as \[first, second\]; if unknown, `kind: open_category`",
    "lower": r"the least value that can occur(?:, such as [-+:\dT]+)?",
    "upper": r"the greatest value that can occur",
}
"""What a draft writes behind a key that is open; it has nothing to say once the key is answered."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DAY_ENDS = {"lower": dt.time(0, 0, 0), "upper": dt.time(23, 59, 59)}
_NAMING = (("within",), ("lookup", "column"), ("cut", "column"))
"""Keys under which a column names another one; those of a sum are names themselves."""
_LISTS = ("labels", "missing_values")
_WORDS = {"y": "true", "yes": "true", "n": "false", "no": "false"}
_BOOLEAN = ("missing", "ignore_case", "ordered", "parentheses")
_SHARED = ("kind", *(field.name for field in fields(Named)))
_ANYTHING = "a value"
_ROWS = "the most rows that one of them may have"
_LEFT_OUT = re.compile(r"^[ \t]*# Left out: (.*)$", re.MULTILINE)
_ABSENT, _FOREIGN = "is not stated.", "is not a key that belongs here."


@dataclass(frozen=True, slots=True)
class Question:
    """One open place, as it is put to a person."""

    place: OpenPlace
    number: int
    """The place among all that were open when the walk began, or have turned up since."""
    total: int
    kind: str
    """The kind of the column as far as the file says; empty if it does not, or for keys of the whole table."""

    @property
    def subject(self) -> str:
        """Column and key, or the key of the whole table."""
        return " · ".join(part for part in (self.place.column, self.place.key) if part)

    @property
    def asked(self) -> str:
        """What to state."""
        last = self.place.key.rpartition(".")[2]
        if not last:
            return "the whole column, or what differs, as in `upper: 99`, a kind or a list of labels"
        if last == "kind":
            return f"{QUESTIONS[last]}: {', '.join(KINDS)}; or a list of labels"
        return _ROWS if self.place.key == "unit.rows" else QUESTIONS.get(last, _ANYTHING)

    @property
    def hint(self) -> str:
        """What the file says about it, or why it was guessed; empty if that is what is asked anyway."""
        hint = self.place.hint
        repeated = self.asked.startswith(hint) or re.fullmatch(_KINDS_REMARK, hint)
        return "" if hint == _ANYTHING or repeated else hint

    @property
    def default(self) -> str:
        """What Enter accepts; empty if nothing was guessed."""
        return self.place.guess


@dataclass(frozen=True, slots=True)
class StatedColumn:
    """What a schema text says of one column, finished or not."""

    name: str
    said: Mapping[str, str | tuple[str, ...]]
    """Key → its value: text as it is, a list of plain values item by item, anything else as YAML on one line."""
    open: tuple[OpenPlace, ...]
    """Its places that say DECIDE, and its guesses."""
    problems: tuple[Problem, ...]
    """What a check of the schema has against it, open places included."""


@dataclass(frozen=True, slots=True)
class StatedRule:
    """What a schema text says of one rule."""

    said: Mapping[str, str]
    """Column → the values or the range that it names, as YAML on one line."""
    note: str


class SchemaEditor:
    """The text of a schema file on its way, with a way back. Every change is in `text` at once."""

    def __init__(self, text: str, where: str = "schema") -> None:
        """Takes over the text.

        Raises:
            SchemaError: if it is no YAML.
        """
        self.text, self.where = text, where
        self.answered = 0
        self._open = _asked_places(text, where)
        self._skipped: frozenset[tuple[str, str]] = frozenset()
        self._past: list[tuple[str, frozenset[tuple[str, str]], int]] = []

    @property
    def left(self) -> int:
        """How many places are open, skipped ones included."""
        return len(self._open)

    def question(self) -> Question | None:
        """The next place that was not skipped; None if there is none."""
        for one in self._open:
            if (one.column, one.key) not in self._skipped:
                kind = _kind_of(self.text, one.column)
                done = self.answered + len(self._skipped)
                return Question(one, done + 1, self.answered + len(self._open), kind)
        return None

    def answer(self, said: str) -> list[str]:
        """Puts the answer into the text; returns the reasons if it cannot be, and then nothing changes.

        Text that is empty accepts the guess.
        """
        question = self.question()
        assert question is not None
        said = said.strip()
        reason = _unusable(said, question)
        if reason:
            return [reason]
        try:
            text = _with_answer(self.text, question.place, said)
            found = _asked_places(text, self.where)
            elsewhere = _elsewhere(text, question.place) != _elsewhere(self.text, question.place)
        except yaml.YAMLError:
            return ["cannot be written at this place. Put quotes around it."]
        except SchemaError as error:
            return [f"{problem.rule} {problem.fix}".strip() for problem in error.problems]
        if elsewhere:
            return ["says more than this place holds. Put quotes around it, or edit the file itself."]
        if _times(question.place, found) >= _times(question.place, self._open):
            return ["does not decide this place. Put quotes around text that YAML reads otherwise."]
        reasons = self._new_problems(text, question.place, found)
        if not reasons:
            self._step(text, self._skipped, 1)
            self._open = found
        return reasons

    def leave_out(self) -> list[str]:
        """Takes the column of the place out of the file, with a remark; returns the reason if it has to stay."""
        question = self.question()
        assert question is not None
        name = question.place.column
        if not name:
            return ["It belongs to the whole table: only a column can be left out."]
        reason = _needed(self.text, name)
        if reason:
            return [reason]
        try:
            text = _without_column(self.text, name)
            found = _asked_places(text, self.where)
        except SchemaError as error:
            return [f"{problem.rule} {problem.fix}".strip() for problem in error.problems]
        self._step(text, frozenset(one for one in self._skipped if one[0] != name), 1)
        self._open = found
        return []

    def skip(self) -> None:
        """Leaves the place open and goes on."""
        question = self.question()
        assert question is not None
        self._step(self.text, self._skipped | {(question.place.column, question.place.key)}, 0)

    def undo(self) -> bool:
        """Takes back the last answer or skip; false if there is none."""
        if not self._past:
            return False
        self.text, self._skipped, self.answered = self._past.pop()
        self._open = _asked_places(self.text, self.where)
        return True

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that a check of the text finds, as `schema check` says it."""
        try:
            schema_from_text(self.text, self.where)
        except SchemaError as error:
            return error.problems
        return ()

    @property
    def unit(self) -> Mapping[str, str]:
        """Who is protected as far as the text says it: `column` and `rows`, or nothing where every row is."""
        own = {one.path[1]: one.value for one in _composed(self.text) if one.path[:1] == ("unit",) and one.path[1:]}
        return {key: value.value for key, value in own.items() if isinstance(value, yaml.ScalarNode)}

    @property
    def open(self) -> tuple[OpenPlace, ...]:
        """The places that still say DECIDE, and the guesses."""
        return tuple(self._open)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The remarks that a draft or an editor left in the place of columns."""
        return tuple(match[1] for match in _LEFT_OUT.finditer(self.text))

    @property
    def columns(self) -> tuple[StatedColumn, ...]:
        """Every column in the order of the text, with what is open and what is wrong in it."""
        tree, problems = parse_yaml(self.text, self.where), self.problems
        found = []
        for path, _, value in keys_of(tree):
            if len(path) == 2 and path[0] == "columns":
                pairs = value.pairs if isinstance(value, Entries) else ()
                said = {key.text: _stated(held) for key, held in pairs}
                here = place(*path)
                own = tuple(one for one in problems if _is_inside(_place_of(one, self.where), here))
                opened = tuple(one for one in self._open if one.column == path[1])
                found.append(StatedColumn(path[1], said, opened, own))
        return tuple(found)

    @property
    def rules(self) -> tuple[StatedRule, ...]:
        """Every rule in the order of the text."""
        return tuple(_stated_rule(node) for node in _rule_nodes(self.text)[1])

    def state(self, column: str, said: Mapping[str, str | Sequence[str]]) -> list[str]:
        """States keys of a column: text as it is, a list item by item; an empty one takes the key out.

        A key that was guessed by itself is confirmed by being stated. Returns the reasons if that cannot be written,
        and then nothing changes. What it says may be wrong: `columns` tells.
        """
        return self._changed(lambda text: _with_stated(text, column, said))

    def confirm(self, column: str) -> list[str]:
        """Takes every guess about a column for right; with an empty name, what was guessed of the whole table."""
        return self._changed(lambda text: _confirmed(text, column))

    def drop(self, column: str) -> list[str]:
        """Takes a column out of the text, with a remark; returns the reason if it has to stay."""
        reason = (
            _needed(self.text, column) if column in {one.name for one in self.columns} else "There is no such column."
        )
        return [reason] if reason else self._changed(lambda text: _without_column(text, column))

    def protect(self, column: str = "", rows: str = "") -> list[str]:
        """States who is protected: every row, or everybody in an id column with at most that many rows."""
        return self._changed(lambda text: _with_unit(text, column, rows))

    def forbid(self, when: Mapping[str, Sequence[str]], note: str = "") -> list[str]:
        """Adds a rule: no row holds these values of these columns together."""
        return self._changed(lambda text: _with_rule(text, when, note))

    def allow(self, number: int) -> list[str]:
        """Takes a rule out of the text, by its place among all; returns the reason if it has to stay."""
        return self._changed(lambda text: _without_rule(text, number))

    def replace(self, text: str) -> list[str]:
        """Takes another text for the whole; returns the reasons if it is no YAML, and then nothing changes."""
        return self._changed(lambda _: text)

    def _changed(self, change: Callable[[str], str]) -> list[str]:
        try:
            text = change(self.text)
            found = _asked_places(text, self.where)
        except (yaml.YAMLError, RecursionError):
            return ["cannot be written at this place. Edit the text of the schema itself."]
        except SchemaError as error:
            return [str(problem) for problem in error.problems]
        if text != self.text:
            self._step(text, self._skipped, 0)
            self._open = found
        return []

    def _step(self, text: str, skipped: frozenset[tuple[str, str]], answers: int) -> None:
        self._past.append((self.text, self._skipped, self.answered))
        self.text, self._skipped, self.answered = text, skipped, self.answered + answers

    def _new_problems(self, text: str, answered: OpenPlace, still: Sequence[OpenPlace]) -> list[str]:
        """What the changed text has against it, in the column or key of the answer, that was not there before.

        What is said of the answered place itself counts even if it was said before: accepting a guess confirms it.
        """
        before = {_told(problem) for problem in _problems(_probe(self.text))}
        own = place("columns", answered.column) if answered.column else answered.key.split(".")[0]
        waiting = {_path(one) for one in still}
        found = []
        for problem in _problems(_probe(text)):
            here, said = _told(problem)
            inside = here == own or here.startswith((f"{own}.", f"{own}["))
            fresh = (here, said) not in before or here == _path(answered)
            if inside and here not in waiting and fresh:
                found.append(f"{here}: {said}")
        return found


def _elsewhere(text: str, asked: OpenPlace) -> object:
    """What the file says outside the column, or the key of the whole table, that is answered."""
    whole = _plain_tree(yaml.compose(text, Loader=yaml.SafeLoader))
    if isinstance(whole, dict):
        columns = whole.get("columns")
        if asked.column and isinstance(columns, dict):
            columns[asked.column] = None
        elif not asked.column:
            whole[asked.key.split(".")[0]] = None
    return whole


def _plain_tree(node: yaml.Node | None) -> object:
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _plain_tree(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain_tree(item) for item in node.value]
    return None if node is None else (node.tag, node.value)


def _times(wanted: OpenPlace, among: Sequence[OpenPlace]) -> int:
    """How many of the places have this column, key and guess: keys in a list may stand there several times."""
    return sum((one.column, one.key, one.guess) == (wanted.column, wanted.key, wanted.guess) for one in among)


def _path(one: OpenPlace) -> str:
    keys = one.key.split(".") if one.key else []
    return place("columns", one.column, *keys) if one.column else place(*keys)


def _asked_places(text: str, where: str) -> list[OpenPlace]:
    """The open places, each once: a DECIDE that is itself marked as a guess is asked as a DECIDE."""
    return [one for one in open_places(text, where) if one.guess != DECIDE]


@lru_cache(maxsize=4)  # a text is looked at before and after an answer
def _problems(text: str) -> Sequence[Problem]:
    try:
        schema_from_text(text, "schema")
    except SchemaError as error:
        return error.problems
    return ()


def _probe(text: str) -> str:
    """The text with true in the place of every yes or no that is open: an open one keeps a column from being checked.

    >>> _probe("upper: DECIDE\\nmissing: DECIDE")
    'upper: DECIDE\\nmissing: true'
    """
    undecided = [one.value for one in _composed(text) if one.path[-1] in _BOOLEAN and one.value.value == DECIDE]
    for value in reversed(undecided):
        text = text[: value.start_mark.index] + "true" + text[_end(value) :]
    return text


def _told(problem: Problem) -> tuple[str, str]:
    """The key that a problem is about, without file and line, and what is said of it."""
    head, colon, rest = problem.where.partition(": ")
    return (rest if colon else head), f"{problem.rule} {problem.fix}".strip()


def _unusable(said: str, question: Question) -> str:
    """Why this text cannot be an answer to anything; empty if it may be one."""
    if not said:
        return "" if question.default else "There is nothing to accept here: type an answer, or s to skip."
    if any(not letter.isprintable() or "\ud800" <= letter <= "\udfff" for letter in said):
        return "It holds characters that cannot be seen; type it again."
    if said == DECIDE:
        return f"{DECIDE} leaves it open: type s to skip."
    return ""


def _with_answer(text: str, asked: OpenPlace, said: str) -> str:
    """The text in which that place is decided: as it was guessed if nothing is said."""
    changed = _without_guess(text, asked)
    if not said:
        return changed
    changed = _without_remark(changed, asked)
    node, key = _value_at(changed, asked), asked.key.rpartition(".")[2]
    parts = _parts(said, asked, node, _kind_of(changed, asked.column))
    if parts:
        if not asked.key and not (isinstance(node, yaml.MappingNode) and node.value):
            changed = f"{changed[: node.start_mark.index].rstrip()} {{kind: {DECIDE}}}{changed[_end(node) :]}"
        changed = _with_keys(changed, asked, parts)
        if asked.column and not asked.key and "bins" not in dict(parts):
            changed = _with_fitting_bins(changed, asked.column)
    else:
        said = said if key not in _REMARKS else said.removeprefix(f"{key}: ").lstrip()
        changed = changed[: node.start_mark.index] + _yaml_of(said, key) + changed[_end(node) :]
        changed = _stubbed(changed, asked.column) if key == "kind" and asked.column else changed
    return _with_times(changed, asked.column) if asked.column else changed


def _parts(said: str, asked: OpenPlace, node: yaml.Node, kind: str) -> list[tuple[str, str]]:
    """The keys that an answer states, each with what is said of it; none if it is one value.

    At the kind of a column, and at a column that was guessed as a whole, a list of labels states a category.
    """
    whole = asked.column and not asked.key
    if whole and said in KINDS:
        return [("kind", said)]
    if whole or (asked.column and asked.key == "kind"):
        if _is_list(said):
            said = f"labels: {said}"
        inner = _inner(said) if asked.key else []
        pairs = inner or _pairs(said)
        stated = [key for key, _ in pairs]
        if "labels" in stated and "kind" not in stated and (asked.key or kind != "category"):
            return [("kind", "category"), *pairs]
        return pairs
    restated = asked.column and re.match(r"kind:\s", said)
    return _pairs(said) if restated or isinstance(node, yaml.MappingNode) else []


def _pairs(said: str) -> list[tuple[str, str]]:
    """What differs in a mapping, part by part.

    >>> _pairs("labels: F, M, note: form 7"), _pairs("F, M")
    ([('labels', 'F, M'), ('note', 'form 7')], [])
    """
    if not _KEYED.match(said):
        return []
    halves = [part.partition(":") for part in _PART.split(said)]
    return [(key, value.strip()) for key, _, value in halves]


def _inner(said: str) -> list[tuple[str, str]]:
    """The keys of a declaration in braces, each with the text of its value; none if it is something else."""
    try:
        node = yaml.compose(said, Loader=yaml.SafeLoader) if said.startswith("{") else None
    except yaml.YAMLError:
        return []
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return [(key.value, said[value.start_mark.index : value.end_mark.index]) for key, value in pairs]


def _is_list(said: str) -> bool:
    """Whether an answer is a list of labels, with or without brackets.

    >>> [_is_list(said) for said in ("Low, High", "[Low]", "Low", "integer, 0, 9", "lower=0, upper=9")]
    [True, True, False, False, False]
    """
    if said.startswith("["):
        return True
    first, comma, _ = said.partition(",")
    return bool(comma) and not said.startswith("{") and first.strip() not in KINDS and not _NO_LIST.match(said)


def _with_keys(text: str, asked: OpenPlace, pairs: Sequence[tuple[str, str]]) -> str:
    """The text with some keys of a mapping stated otherwise, or added; a kind may bring and take others."""
    whole = not (asked.column and asked.key)
    top = ("columns", asked.column) if asked.column else ()
    above = (*top, *(asked.key.split(".") if asked.key and whole else ()))
    stated = [key for key, _ in pairs]
    for index, (key, said) in enumerate(pairs):
        own = [one for one in _composed(text) if one.path[:-1] == above]
        found = next((one for one in own if one.path[-1] == key), None)
        value = _yaml_of(said, key) if said else "~"
        if found is None:
            behind = stated[index - 1] if index and "kind" in stated else own[-1].path[-1]
            before = next(one for one in own if one.path[-1] == behind)
            start, end, value = _insertion(text, before, [f"{key}: {value}"])
        else:
            start, end = found.value.start_mark.index, found.end
        text = text[:start] + value + text[end:]
        parse_yaml(text, "schema")
    if not asked.column or "kind" not in stated:
        return text
    return _stubbed(text, asked.column, stated if whole else None)


def _with_fitting_bins(text: str, column: str) -> str:
    """The text in which a column's bins end at its bounds, and are no more than its whole numbers."""
    own = {one.path[-1]: one.value for one in _composed(text) if one.path[:-1] == ("columns", column)}
    bins, lower, upper = own.get("bins"), own.get("lower"), own.get("upper")
    if bins is None or not isinstance(lower, yaml.ScalarNode) or not isinstance(upper, yaml.ScalarNode):
        return text
    said = ""
    with suppress(ValueError, TypeError):  # what is no number: a date, an open bound, a list among the edges
        least, most = float(lower.value), float(upper.value)
        if isinstance(bins, yaml.SequenceNode):
            edges = [float(edge.value) for edge in bins.value]
            inside = [edge.value for edge in bins.value if least < float(edge.value) < most]
            ends = bool(edges) and (edges[0], edges[-1]) == (least, most)
            proper = -math.inf < least < most < math.inf
            said = f"[{', '.join([lower.value, *inside, upper.value])}]" if proper and not ends else ""
        elif isinstance(bins, yaml.ScalarNode) and _kind_of(text, column) == "integer":
            values = int(upper.value) - int(lower.value) + 1
            said = str(values) if 0 < values < int(bins.value) else ""
    return f"{text[: bins.start_mark.index]}{said}{text[_end(bins) :]}" if said else text


def _with_times(text: str, column: str) -> str:
    """The text in which days that bound a column of dates with times are their first or their last second."""
    parse_yaml(text, "schema")
    if _kind_of(text, column) != "datetime":
        return text
    own = {one.path[-1]: one.value for one in _composed(text) if one.path[:-1] == ("columns", column)}
    bounds = [(own[key], at) for key, at in _DAY_ENDS.items() if isinstance(own.get(key), yaml.ScalarNode)]
    for node, at in sorted(bounds, key=lambda bound: -bound[0].start_mark.index):
        if _DAY.fullmatch(node.value):
            with suppress(ValueError):
                moment = dt.datetime.combine(dt.date.fromisoformat(node.value), at, _offset(own.get("zone")))
                text = text[: node.start_mark.index] + moment.isoformat() + text[_end(node) :]
    return text


def _offset(zone: yaml.Node | None) -> dt.tzinfo | None:
    """The clock of a column's zone: UTC where the zone is not known yet, none where there is no zone."""
    if not isinstance(zone, yaml.ScalarNode) or (zone.style is None and zone.value in ("", "~", "null")):
        return None
    with suppress(KeyError, ValueError, OSError):  # the ways in which there may be no such zone
        return ZoneInfo(zone.value)
    return dt.UTC


def _place_of(problem: Problem, where: str) -> str:
    """The key that a problem of this text is about, without file and line."""
    return (
        re.sub(r"^:\d+: ", "", problem.where.removeprefix(where)) if problem.where.startswith(where) else problem.where
    )


def _is_inside(here: str, above: str) -> bool:
    return here == above or here.startswith((f"{above}.", f"{above}["))


def _stated(tree: Entries | YamlList | Leaf) -> str | tuple[str, ...]:
    if isinstance(tree, YamlList) and all(isinstance(one, Leaf) for one in tree.values):
        return tuple(one.text for one in tree.values if isinstance(one, Leaf))
    return tree.text if isinstance(tree, Leaf) else written(tree)


def _with_stated(text: str, column: str, said: Mapping[str, str | Sequence[str]]) -> str:
    """The text with some keys of a column stated otherwise, added or taken out."""
    own = {one.path[2]: one for one in _composed(text) if one.path[:2] == ("columns", column) and len(one.path) == 3}
    entry = next((one for one in _composed(text) if one.path == ("columns", column)), None)
    if entry is None:
        raise SchemaError([Problem("schema", f"there is no column {shown(column)} here.", "Reload the page.")])
    for key in said:
        if key in own:
            asked = OpenPlace(own[key].key.start_mark.line + 1, column, key, "", "")
            flow = isinstance(entry.value, yaml.CollectionNode) and entry.value.flow_style
            text = text if flow else _without_remark(_without_guess(text, asked), asked)
    line = entry.key.start_mark.line + 1
    if not (isinstance(entry.value, yaml.MappingNode) and entry.value.value):
        node = next(one.value for one in _composed(text) if one.path == ("columns", column))
        text = f"{text[: node.start_mark.index].rstrip()} {{kind: {DECIDE}}}{text[_end(node) :]}"
    # Stating a kind again would take its bins away.
    same = {key for key in said if key == "kind" and said[key] == _kind_of(text, column)}
    pairs = [(key, _as_yaml(key, value)) for key, value in said.items() if value and key not in same]
    if pairs:
        text = _with_keys(text, OpenPlace(line, column, "", "", ""), sorted(pairs, key=lambda pair: pair[0] != "kind"))
    if "bins" not in said and {"lower", "upper"} & set(said):
        text = _with_fitting_bins(text, column)
    own_now = [one for one in _composed(text) if one.path[:2] == ("columns", column) and len(one.path) == 3]
    gone = [one for one in own_now if not said.get(one.path[2], "stated")]
    return _with_times(_without(text, own_now, gone), column)


def _as_yaml(key: str, said: str | Sequence[str]) -> str:
    """What was typed into the field of a key, as YAML on one line."""
    if not isinstance(said, str):
        return f"[{', '.join(map(text_token, said))}]"
    if any(not letter.isprintable() for letter in said):
        raise SchemaError([Problem(key, "holds characters that cannot be seen.", "Type it again, on one line.")])
    return text_token(said) if key in _TEXTS else said


_TEXTS = ("title", "description", "note", "measured_in", "zone", "format")


def _confirmed(text: str, column: str) -> str:
    for one in open_places(text):
        if one.column == column and one.guess:
            text = _without_guess(text, one)
    return text


def _with_unit(text: str, column: str, rows: str) -> str:
    entry = next((one for one in _composed(text) if one.path == ("unit",)), None)
    if entry is None:
        raise SchemaError(
            [Problem("unit", "is not stated in the text.", "Write a line `unit: row` above the columns.")]
        )
    text = _without_guess(text, OpenPlace(entry.key.start_mark.line + 1, "", "unit", "", ""))
    entry = next(one for one in _composed(text) if one.path == ("unit",))
    said = f"{{column: {text_token(column)}, rows: {_yaml_of(rows, 'rows') if rows else DECIDE}}}" if column else "row"
    return text[: entry.value.start_mark.index] + said + text[entry.end :]


def _with_rule(text: str, when: Mapping[str, Sequence[str]], note: str) -> str:
    entry = next((one for one in _composed(text) if one.path == ("rules",)), None)
    said = ", ".join(f"{text_token(name)}: [{', '.join(map(text_token, values))}]" for name, values in when.items())
    rule = f"- {{impossible: {{{said}}}{f', note: {text_token(note)}' if note else ''}}}"
    if entry is None:
        return f"{text.rstrip()}\nrules:\n  {rule}\n"
    if isinstance(entry.value, yaml.SequenceNode) and not entry.value.flow_style:
        at = _line_end(text, entry.end)
        return f"{text[:at]}\n{' ' * entry.value.start_mark.column}{rule}{text[at:]}"
    if isinstance(entry.value, yaml.SequenceNode):
        inside = text[entry.value.start_mark.index : entry.end].rstrip()[:-1]
        comma = ", " if entry.value.value else ""
        return f"{text[: entry.value.start_mark.index]}{inside}{comma}{rule[2:]}]{text[entry.end :]}"
    raise SchemaError([Problem("rules", "are written in a way that cannot be added to here.", "Edit the text itself.")])


def _rule_nodes(text: str) -> tuple["_Entry | None", tuple[yaml.Node, ...]]:
    """The key of the rules, and the node of each."""
    entry = next((one for one in _composed(text) if one.path == ("rules",)), None)
    listed = entry is not None and isinstance(entry.value, yaml.SequenceNode)
    return entry, tuple(entry.value.value) if entry is not None and listed else ()


def _stated_rule(node: yaml.Node) -> StatedRule:
    said = _plain_pairs(node)
    when = {name: _flow(value) for name, value in _plain_pairs(said.get("impossible")).items()}
    note = said.get("note")
    return StatedRule(when, note.value if isinstance(note, yaml.ScalarNode) else "")


def _plain_pairs(node: yaml.Node | None) -> dict[str, yaml.Node]:
    return {str(key.value): value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}


def _flow(node: yaml.Node) -> str:
    """A value on one line: a list without its brackets."""
    if isinstance(node, yaml.SequenceNode):
        return ", ".join(map(_flow, node.value))
    if isinstance(node, yaml.MappingNode):
        return ", ".join(f"{key.value} {_flow(value)}" for key, value in node.value)
    return str(node.value)


def _without_rule(text: str, number: int) -> str:
    """The text without the lines of a rule, and without the key of the rules where it was the last one."""
    entry, nodes = _rule_nodes(text)
    if entry is None or not 0 <= number < len(nodes):
        raise SchemaError([Problem("rules", "there is no such rule here.", "Reload the page.")])
    if len(nodes) == 1:
        start, end = entry.key.start_mark.index, entry.end
    elif isinstance(entry.value, yaml.SequenceNode) and entry.value.flow_style:
        start = nodes[number].start_mark.index if number == 0 else _end(nodes[number - 1])
        end = nodes[1].start_mark.index if number == 0 else _end(nodes[number])
        return _same_but(text, text[:start] + text[end:], number)
    else:
        start, end = text.rfind("-", 0, nodes[number].start_mark.index), _end(nodes[number])
    start = text.rfind("\n", 0, start) + 1
    end = _line_end(text, end)
    after = text[end:]
    return _same_but(text, text[:start] + after.removeprefix("\r\n" if after.startswith("\r") else "\n"), number)


def _same_but(before: str, text: str, number: int) -> str:
    """The text, if it says what was said before but for that rule."""
    wanted, found = (_plain_tree(yaml.compose(one, Loader=yaml.SafeLoader)) for one in (before, text))
    if isinstance(wanted, dict):
        del wanted["rules"][number]
        wanted = {key: value for key, value in wanted.items() if key != "rules" or value}
    if wanted != found:
        rule = "this rule is written in a way that cannot be taken out here."
        raise SchemaError([Problem("rules", rule, "Edit the text itself.")])
    return text


def _without_guess(text: str, asked: OpenPlace) -> str:
    """The text without the mark of a guess on the line of that place; whatever else the line says stays."""
    lines = text.splitlines(keepends=True)
    line = lines[asked.line - 1]
    if not _GUESS.search(line) or asked.line not in guessed_lines(text):
        return text
    tree = parse_yaml(text, "schema")
    for found in _GUESS.finditer(line):
        ending = line[len(line.rstrip("\r\n")) :]
        lines[asked.line - 1] = line[: found.start()].rstrip() + ending
        changed = "".join(lines)
        with suppress(SchemaError):
            if asked.line not in guessed_lines(changed) and parse_yaml(changed, "schema") == tree:
                return changed
    return text


def _without_remark(text: str, asked: OpenPlace) -> str:
    """The text without the remark that a draft wrote behind that place; other comments stay."""
    remark = _REMARKS.get(asked.key if asked.column else "")
    lines = text.splitlines(keepends=True)
    found = remark and re.search(rf"[ \t]+# {remark}[ \t]*(?=[\r\n]*\Z)", lines[asked.line - 1])
    if not found:
        return text
    line = lines[asked.line - 1]
    lines[asked.line - 1] = line[: found.start()] + line[found.end() :]
    changed = "".join(lines)
    return changed if parse_yaml(changed, "schema") == parse_yaml(text, "schema") else text


def _yaml_of(said: str, key: str) -> str:
    """The answer as a YAML value on one line.

    >>> _yaml_of("F, M", "labels"), _yaml_of("yes", "missing"), _yaml_of("ward #7", "note"), _yaml_of("0", "lower")
    ('[F, M]', 'true', '"ward #7"', '0')
    """
    if key in _LISTS and not said.startswith("["):
        said = re.sub(r"(?<=[^,\s])\s*,$", "", said)  # a comma at the end begins no further item
        return f"[{', '.join(quoted or text_token(plain.strip()) for quoted, plain in _ITEM.findall(f'{said},'))}]"
    if key in _BOOLEAN:
        said = _WORDS.get(said.lower(), said)
    try:
        node = yaml.compose(said, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        node = None
    whole = node is not None and node.end_mark.index == len(said)
    plain = whole and isinstance(node, yaml.ScalarNode) and not set(said) & set(",[]{}")  # parts of a mapping in braces
    if said[0] in "[{\"'" or plain:
        return said
    return text_token(said)


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """A key of the file with its value, and the mapping that it stands in."""

    path: tuple[str, ...]
    mapping: yaml.MappingNode
    key: yaml.Node
    value: yaml.Node

    @property
    def end(self) -> int:
        """Where its value ends in the text."""
        return _end(self.value)


@lru_cache(maxsize=4)
def _composed(text: str) -> tuple[_Entry, ...]:
    """Every key of a text in order. The text was parsed before, so it holds no tags and no aliases."""
    return tuple(_entries(yaml.compose(text, Loader=yaml.SafeLoader), ()))


def _entries(node: yaml.Node | None, above: tuple[str, ...]) -> Iterator[_Entry]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield _Entry((*above, key.value), node, key, value)
            yield from _entries(value, (*above, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _entries(item, above)


def _end(node: yaml.Node) -> int:
    """Where a value ends in the text; blocks are counted to the end of their last entry, without what follows."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    end, text = int(node.end_mark.index), node.end_mark.buffer
    if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">") and text is not None:
        return len(text[:end].rstrip())  # the mark is where the next line begins
    return end


def _value_at(text: str, asked: OpenPlace) -> yaml.Node:
    """What stands at an open place."""
    top = ("columns", asked.column) if asked.column else ()
    for one in _composed(text):
        same = one.path[: len(top)] == top and ".".join(one.path[len(top) :]) == asked.key
        value = one.value
        undecided = isinstance(value, yaml.ScalarNode) and value.style is None and value.value == DECIDE
        if same and (asked.guess or (undecided and value.start_mark.line + 1 == asked.line)):
            return value
    rule = "this place is written in a way that cannot be edited here."
    raise SchemaError([Problem("schema", rule, "Edit the file itself.")])


def _kind_of(text: str, column: str) -> str:
    """The kind of a column, if the file says one."""
    said = [one.value for one in _composed(text) if one.path == ("columns", column, "kind")] if column else []
    return said[0].value if said and isinstance(said[0], yaml.ScalarNode) and said[0].value in KINDS else ""


def _stubbed(text: str, column: str, stated: Collection[str] | None = None) -> str:
    """The text after a kind was stated: keys that it needs are added as DECIDE, those it does not have go.

    Where the whole column was guessed, all keys go but those that every kind has and those that were `stated`.
    Elsewhere only open ones go: what a person stated is not thrown away.
    """
    told = {_told(problem)[0]: problem.rule for problem in _problems(text)}
    opened = {_path(one) for one in open_places(text)}
    own = [one for one in _composed(text) if one.path[:2] == ("columns", column) and len(one.path) == 3]
    gone = []
    for one in own:
        here = place(*one.path)
        foreign = told.get(here) == _FOREIGN and here in opened
        if foreign if stated is None else one.path[2] not in {*_SHARED, *stated}:
            gone.append(one)
    text = _without(text, own, gone)
    start = f"{place('columns', column)}."
    absent = [_told(problem)[0] for problem in _problems(text) if problem.rule == _ABSENT]
    stubs = [f"{where.removeprefix(start)}: {DECIDE}" for where in absent if where.startswith(start)]
    kind = next(one for one in _composed(text) if one.path == ("columns", column, "kind"))
    at, end, new = _insertion(text, kind, stubs)
    return text[:at] + new + text[end:]


def _without(text: str, own: Sequence[_Entry], gone: Sequence[_Entry]) -> str:
    """The text without some entries of a mapping, with the lines or the commas that are theirs."""
    if not gone:
        return text
    mapping = gone[0].mapping
    if mapping.flow_style:
        kept = [text[one.key.start_mark.index : one.end] for one in own if one not in gone]
        return text[: mapping.start_mark.index] + f"{{{', '.join(kept)}}}" + text[_end(mapping) :]
    for one in reversed(gone):
        end = _line_end(text, one.end)
        rest = text[end + len("\r\n" if text.startswith("\r\n", end) else text[end : end + 1]) :]
        text = text[: one.key.start_mark.index - one.key.start_mark.column] + rest
    return text


def _needed(text: str, column: str) -> str:
    """Why a column cannot be left out: what else in the file names it; empty if nothing does."""
    others = False
    for one in _composed(text):
        top, own = one.path[:1], one.path[1:]
        said = one.value.value if isinstance(one.value, yaml.ScalarNode) else None
        if one.path == ("unit", "column") and said == column:
            return f"{shown(column)} is the unit's column. State another unit first, or delete its lines in the file."
        if one.path == ("rules", "impossible", column):
            return f"A rule names {shown(column)}. Delete that rule in the file first."
        if top != ("columns",) or not own or own[0] == column:
            continue
        others = True
        if own[1:] == ("sum", "weights", column) or (own[1:] in _NAMING and said == column):
            return f"The column {shown(own[0])} names {shown(column)}. Leave that one out, or edit it, first."
    return "" if others else "It is the only column that is left."


def _without_column(text: str, column: str) -> str:
    """The text with a remark in the place of a column's lines."""
    entry = next(one for one in _composed(text) if one.path == ("columns", column))
    if entry.mapping.flow_style:
        rule = "the columns are written in a way that cannot be edited here."
        raise SchemaError([Problem("schema", rule, "Edit the file itself.")])
    start = entry.key.start_mark.index - entry.key.start_mark.column
    indent = re.compile(" *").match(text, start)
    assert indent is not None
    remark = f"{indent[0]}# Left out: {text_token(column)}; decided while editing."
    return text[:start] + remark + text[_line_end(text, entry.end) :]


def _insertion(text: str, before: _Entry, entries: Sequence[str]) -> tuple[int, int, str]:
    """Entries `key: value` behind another one of the same mapping."""
    if before.mapping.flow_style:
        return before.end, before.end, "".join(f", {entry}" for entry in entries)
    newline = "\r\n" if "\r\n" in text else "\n"
    at = _line_end(text, before.end)
    return at, at, "".join(f"{newline}{' ' * before.key.start_mark.column}{entry}" for entry in entries)


def _line_end(text: str, index: int) -> int:
    """Where the line of that character ends, before its line break."""
    found = re.compile(r"[\r\n]|\Z").search(text, index)
    assert found is not None
    return found.start()


def save_text(path: Path, text: str, before: str) -> None:
    """Puts the text in the place of the file in one step, with the same rights; a link stays a link.

    Raises:
        SchemaError: if the file does not hold `before` any more: somebody else has changed it.
    """
    target = path.resolve()
    content = target.read_bytes()
    mark = b"\xef\xbb\xbf" if content.startswith(b"\xef\xbb\xbf") else b""
    if content != mark + before.encode():
        rule = "was changed by somebody else while it was edited here."
        raise SchemaError(
            [Problem(str(path), rule, "The last answer is not in it. Start again; nothing else is lost.")]
        )
    handle, draft = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            os.fchmod(stream.fileno(), target.stat().st_mode & 0o7777)
            stream.write(mark + text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
