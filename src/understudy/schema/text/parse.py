"""YAML text to a plain tree with line numbers, and nothing else: no tags, no anchors, no aliases, no code, no types.

Scalars keep the text as written, so what `yes`, `007` or `2020-01-01` means is left to the field that reads them.
Only plain `true`, `false` and `null` (or `~`, or nothing) have a meaning of their own, as in the core of YAML 1.2.
"""

import re
from dataclasses import dataclass

import yaml

from understudy.errors import Problem, SchemaError
from understudy.schema.place import shown

__all__ = ["DECIDE", "MOST_BYTES", "MOST_ENTRIES", "TOO_LARGE", "Entries", "Items", "Leaf", "Tree", "parse_yaml"]

MOST_BYTES = 1 << 24
MOST_ENTRIES = (1 << 20) + (1 << 14)
"""Keys, values and list entries of a file. A million labels fit; reading them takes most of a GiB and of a minute."""
TOO_LARGE = f"larger than {MOST_BYTES >> 20} MiB or {MOST_ENTRIES:,} entries"
MOST_DEPTH = 32
DECIDE = "DECIDE"
_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re.compile(r"[-+]?[0-9]{1,40}", re.ASCII)
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]{1,400}(\.[0-9]*)?)([eE][-+]?[0-9]{1,4})?|[-+]?\.inf|\.nan", re.ASCII)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar as written; `plain` when it had no quotes."""

    text: str
    line: int
    plain: bool = True

    @property
    def null(self) -> bool:
        """Whether this says that there is nothing."""
        return self.plain and self.text in _NULLS

    @property
    def undecided(self) -> bool:
        """Whether a person still has to fill this in."""
        return self.plain and self.text == DECIDE

    @property
    def boolean(self) -> bool | None:
        """True or false, if it says so without quotes."""
        return _BOOLEANS.get(self.text) if self.plain else None

    @property
    def whole(self) -> int | None:
        """The whole number, if it is one without quotes."""
        return int(self.text) if self.plain and _WHOLE.fullmatch(self.text) else None

    @property
    def real(self) -> float | None:
        """The number, if it is one without quotes."""
        if not self.plain or not _REAL.fullmatch(self.text):
            return None
        return float(self.text.replace(".inf", "inf").replace(".nan", "nan"))


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    values: tuple["Tree", ...]
    line: int


@dataclass(frozen=True, slots=True)
class Entries:
    """Keys and values in order; no key appears twice."""

    pairs: tuple[tuple[Leaf, "Tree"], ...]
    line: int


Tree = Leaf | Items | Entries


class _Refusal(yaml.MarkedYAMLError):
    """A part of YAML that schema files do without."""


class _StrictLoader(yaml.SafeLoader):
    """Composes nodes only; what could expand, repeat or build objects stops at the scanner."""

    depth = 0
    entries = 0

    def fetch_anchor(self) -> None:
        raise self._refused("anchors (&name) are not allowed; write the value out")

    def fetch_alias(self) -> None:
        raise self._refused("aliases (*name) are not allowed; put quotes around text that starts with *")

    def fetch_tag(self) -> None:
        raise self._refused("tags (!name) are not allowed; put quotes around text that starts with !")

    def fetch_directive(self) -> None:
        raise self._refused("directives (%NAME) are not allowed; put quotes around text that starts with %")

    def _refused(self, rule: str) -> _Refusal:
        return _Refusal(problem=rule, problem_mark=self.get_mark())

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            raise self._refused(f"a file of more than {MOST_ENTRIES:,} entries is not allowed")
        if self.depth > MOST_DEPTH:
            raise self._refused(f"nesting deeper than {MOST_DEPTH} levels is not allowed")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def parse_yaml(text: str, where: str) -> Tree:
    """The tree of the only document in the text; raises SchemaError naming `where` and the line."""
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise SchemaError([Problem(where, f"is {TOO_LARGE}.", "A schema lists public facts, not data.")])
    try:
        loader = _StrictLoader(text)
        node = loader.get_single_node()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        rule = f"holds the character U+{error.character:04X}, which YAML does not allow."
        raise SchemaError([Problem(f"{where}:{line}", rule, 'Write it as an escape such as "\\x00".')]) from error
    except yaml.MarkedYAMLError as error:
        raise SchemaError([_syntax_problem(error, where)]) from error
    except (ValueError, OverflowError) as error:
        rule = "holds an escape that names no character."
        raise SchemaError([Problem(where, rule, "Look for \\U with a number above 10FFFF.")]) from error
    if node is None:
        raise SchemaError([Problem(where, "is empty.", "Run `understudy schema draft` for a start.")])
    problems: list[Problem] = []
    tree = _tree(node, where, problems)
    if problems:
        raise SchemaError(problems)
    return tree


def _syntax_problem(error: yaml.MarkedYAMLError, where: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    place = f"{where}:{mark.line + 1}" if mark else where
    if isinstance(error, _Refusal):
        return Problem(place, f"{error.problem}.")
    if isinstance(error, yaml.composer.ComposerError):
        return Problem(place, "a second document starts here.", "Keep one document per file.")
    rule = f"is not valid YAML: {error.problem or error.context}."
    return Problem(place, rule, "Check indentation, colons and quotes around this line.")


def _tree(node: yaml.Node, where: str, problems: list[Problem]) -> Tree:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode):
        return Leaf(node.value, line, plain=node.style is None)
    if isinstance(node, yaml.SequenceNode):
        return Items(tuple(_tree(item, where, problems) for item in node.value), line)
    pairs: list[tuple[Leaf, Tree]] = []
    seen: dict[str, int] = {}
    for key_node, value_node in node.value:
        key, value = _tree(key_node, where, problems), _tree(value_node, where, problems)
        if not isinstance(key, Leaf):
            problems.append(Problem(f"{where}:{key.line}", "a key must be text, not a list or a mapping."))
        elif key.text in seen:
            rule = f"the key {shown(key.text)} appears twice (first in line {seen[key.text]})."
            problems.append(Problem(f"{where}:{key.line}", rule, "Remove one."))
        else:
            seen[key.text] = key.line
            pairs.append((key, value))
    return Entries(tuple(pairs), line)
