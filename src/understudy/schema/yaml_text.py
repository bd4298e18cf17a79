"""YAML as text: read into a plain tree with line numbers, and written so that people like to read it.

Nothing but a tree is read: no tags, no anchors, no aliases, no code, no types. Scalars keep the text as written, so
what `yes`, `007` or `2020-01-01` means is left to the field that reads them. Only plain `true`, `false` and `null` (or
`~`, or nothing) have a meaning of their own, as in the core of YAML 1.2.

Text is written plain only where every YAML reader takes it for text; otherwise it stands in double quotes, with
everything invisible escaped. Numbers and dates are written so that nothing is lost, and the same schema is read back.
"""

import bisect
import dataclasses
import datetime as dt
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

from understudy.errors import Problem, SchemaError, shown
from understudy.schema.columns import Column, Cut, Derived, GivenBins, LinearSum, Named, PrivateBins, UniformBins
from understudy.schema.schema import WORDS, Dialect, Impossible, Range, Schema, Unit

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
class YamlList:
    """A list."""

    values: tuple["Tree", ...]
    line: int


@dataclass(frozen=True, slots=True)
class Entries:
    """Keys and values in order; no key appears twice."""

    pairs: tuple[tuple[Leaf, "Tree"], ...]
    line: int


Tree = Leaf | YamlList | Entries


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
    return _with_long_lists(text, where) or _parsed(text, where)[0]


def _parsed(text: str, where: str) -> tuple[Tree, int]:
    """The tree, and how many entries it has."""
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
        raise SchemaError([Problem(where, "is empty.", "Run `understudy schema draft` to start one.")])
    problems: list[Problem] = []
    tree = _tree(node, where, problems)
    if problems:
        raise SchemaError(problems)
    return tree, loader.entries


# Long lists of short texts, as schemas are written here, are taken out before the rest is parsed: PyYAML takes some 30
# microseconds for each entry. Everything that is not exactly of this form is read by PyYAML alone.
_LONG = 1 << 14  # characters of a list
_ESCAPE = r"\\(?:[\"\\ntr]|x[0-9a-f]{2}|u[0-9a-f]{4})"
_QUOTED = rf'"(?:[^"\\\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]|{_ESCAPE})*+"'
_ITEM = re.compile(rf"{_QUOTED}|[\w./()-]++(?: [\w./()-]++)*+")
_LIST = re.compile(rf"^ +[a-z_]+: \[((?:{_ITEM.pattern})(?:,(?: |\n +)(?:{_ITEM.pattern}))++)\]$", re.MULTILINE)
_OTHER_BREAK = re.compile("[\r\x85\u2028\u2029]")
_ESCAPED = re.compile(_ESCAPE)
_MEANT = {"n": "\n", "t": "\t", "r": "\r"}


def _with_long_lists(text: str, where: str) -> Tree | None:
    """The tree of a text with long lists; nothing where there are none, or where anything is not as expected."""
    if len(text) < _LONG or _OTHER_BREAK.search(text):
        return None
    name = "list"
    while name in text:
        name += "-"
    lists: dict[str, YamlList] = {}
    short, done = [], 0
    for match in _LIST.finditer(text):
        start, stop = match.span(1)
        if stop - start >= _LONG:
            token = f"{name}{len(lists)}"
            lists[token] = _long_list(text[start:stop], text.count("\n", 0, start) + 1)
            short += [text[done:start], token, "\n" * text.count("\n", start, stop)]
            done = stop
    if not lists:
        return None
    try:
        tree, entries = _parsed("".join([*short, text[done:]]), where)
    except SchemaError:
        return None
    entries += sum(len(one.values) - 1 for one in lists.values())
    tree = _filled(tree, lists)
    return None if lists or entries > MOST_ENTRIES else tree


def _long_list(text: str, first: int) -> YamlList:
    values: list[Leaf] = []
    for line, part in enumerate(text.split("\n"), first):
        values += [_item(item, line) for item in _ITEM.findall(part)]
    return YamlList(tuple(values), first)


def _item(item: str, line: int) -> Leaf:
    if item[0] != '"':
        return Leaf(item, line)
    return Leaf(_ESCAPED.sub(_meant, item[1:-1]) if "\\" in item else item[1:-1], line, plain=False)


def _meant(escape: re.Match[str]) -> str:
    said = escape[0][1:]
    return chr(int(said[1:], 16)) if len(said) > 1 else _MEANT.get(said, said)


def _filled(tree: Tree, lists: dict[str, YamlList]) -> Tree:
    """The tree with each list in the place that is kept for it; those without a place are left over."""
    match tree:
        case YamlList(values=(Leaf(text=text, plain=True),)) if text in lists:
            return lists.pop(text)
        case YamlList():
            return YamlList(tuple(_filled(value, lists) for value in tree.values), tree.line)
        case Entries():
            return Entries(tuple((key, _filled(value, lists)) for key, value in tree.pairs), tree.line)
        case _:
            return tree


_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_GUESS = re.compile("(?<=[^\\S\r\n\x85\u2028\u2029])#[ \t]*guess:", re.IGNORECASE)


def guessed_lines(text: str) -> dict[int, str]:
    """The lines of a YAML text that end in a comment `# guess: why`, and why; a comment alone on its line is none.

    >>> guessed_lines('age: 7  # guess: by its name\\nsaid: "a # guess: in quotes"\\n')
    {1: 'by its name'}
    """
    lines = [0, *(match.end() for match in _BREAK.finditer(text))]
    found: dict[int, str] = {}
    spans = _scalar_spans(text)
    start, end = 0, 0
    for match in _GUESS.finditer(text):
        place = match.start()
        while end <= place and (span := next(spans, None)) is not None:
            start, end = span
        line = bisect.bisect_right(lines, place)
        if not start <= place < end and text[lines[line - 1] : place].strip():
            rest = text[match.end() : lines[line] if line < len(lines) else len(text)]
            found.setdefault(line, rest.strip())
    return found


def _scalar_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where scalars begin and end, in characters. What stands behind the `|` of a block is not yet the block."""
    for token in yaml.scan(text, _StrictLoader):
        if isinstance(token, yaml.ScalarToken):
            start, end = token.start_mark.index, token.end_mark.index
            heading = _BREAK.search(text, start) if token.style in ("|", ">") else None
            yield (heading.end() if heading else start, end)


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
        return YamlList(tuple(_tree(item, where, problems) for item in node.value), line)
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


def written(tree: Tree) -> str:
    """The tree as YAML on one line."""
    match tree:
        case Leaf():
            return tree.text if tree.plain else f'"{"".join(map(_escaped, tree.text))}"'
        case YamlList():
            return f"[{', '.join(map(written, tree.values))}]"
        case _:
            return f"{{{', '.join(f'{written(key)}: {written(value)}' for key, value in tree.pairs)}}}"


_WIDTH = 110
# YAML readers take a key for a key only within its first 1024 characters; longer ones need the "?" form.
_LONGEST_KEY = 1000
_LONGEST_PLAIN = 200
_PLAIN = re.compile(r"[^\W\d_][\w./()-]*( [\w./()-]+)*")
# What YAML 1.1 readers take for true, false or null, so that our files mean the same to them.
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", DECIDE.lower()}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def schema_to_text(schema: Schema) -> str:
    """The YAML text of a schema; raises SchemaError if it would be too large to be read back."""
    top = _top(schema)
    text = "\n".join(_block(top, 0)) + "\n"
    if len(text.encode("utf-8")) > MOST_BYTES or _entries(top) > MOST_ENTRIES:
        rule = f"would be {TOO_LARGE} as a file, which no reader accepts."
        raise SchemaError([Problem("schema", rule, "Shorten lists of labels, or use open categories.")])
    return text


def _top(schema: Schema) -> dict[str, object]:
    top: dict[str, object] = {"understudy": "1"}
    top |= {key: text_token(text) for key, text in (("title", schema.title), ("note", schema.note)) if text}
    top["unit"] = _unit(schema.unit)
    if schema.unreadable != "keep":
        top["unreadable"] = text_token(schema.unreadable)
    if schema.missing_values is not None:
        top["missing_values"] = _value(schema.missing_values)
    if schema.file is not None:
        top["file"] = file_entries(schema.file)
    top["columns"] = {text_token(column.name): _column(column) for column in schema.columns}
    if schema.rules:
        top["rules"] = [_rule(rule) for rule in schema.rules]
    return top


def file_entries(file: Dialect) -> dict[str, object]:
    """The entries of the key `file`, as scalars and lists of YAML."""
    words = {sign: word for word, sign in WORDS.items()}
    said: dict[str, object] = {}
    for key, value in file.said.items():
        said |= {"header": _scalar(file.first_line_names)} if key == "names" else {}
        said |= {} if key == "header" else {key: _value(words.get(str(value), value) if key == "delimiter" else value)}
    return said


def with_file(text: str, file: Dialect | None) -> str:
    r"""The text of a draft with what is known about how the file is written, above its columns.

    >>> with_file("unit: row\ncolumns:\n", Dialect(delimiter=";"))
    'unit: row\nfile: {delimiter: semicolon}\ncolumns:\n'
    """
    if file is None:
        return text
    lines = "\n".join(_block({"file": file_entries(file)}, 0))
    return text.replace("\ncolumns:\n", f"\n{lines}\ncolumns:\n", 1)


def _entries(said: object) -> int:
    """Keys, values and list entries, as a reader counts them."""
    if isinstance(said, Mapping):
        return 1 + len(said) + sum(map(_entries, said.values()))
    return 1 + sum(map(_entries, said)) if isinstance(said, list | tuple) else 1


def text_token(text: str) -> str:
    """The text as a YAML scalar on one line.

    >>> text_token("North West"), text_token("no"), text_token("a: b\\n"), text_token("7")
    ('North West', '"no"', '"a: b\\\\n"', '"7"')
    """
    if len(text) <= _LONGEST_PLAIN and _PLAIN.fullmatch(text) and text.isprintable() and text.lower() not in _WORDS:
        return text
    return f'"{"".join(_escaped(character) for character in text)}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _scalar(value: object) -> str:
    match value:
        case None:
            return "~"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            text = float.__repr__(float(value))
            return text if "." in text else text.replace("e", ".0e")
        case dt.time():
            return f'"{value.isoformat()}"'
        case dt.date():
            return value.isoformat()
        case _:
            return text_token(str(value))


def _unit(unit: Unit) -> object:
    if unit.column is None and not unit.note:
        return "row"
    said: dict[str, object] = {"column": _scalar(unit.column)}
    said |= {} if unit.column is None else {"rows": _scalar(unit.rows)}
    return said | ({"note": text_token(unit.note)} if unit.note else {})


def _column(column: Column) -> dict[str, object]:
    said: dict[str, object] = {"kind": column.kind}
    said |= {key: text_token(getattr(column, key)) for key in ("title", "description") if getattr(column, key)}
    shared = {field.name for field in dataclasses.fields(Named)}
    own = [field for field in dataclasses.fields(column) if field.name not in shared]
    for field in own:
        value = getattr(column, field.name)
        if isinstance(column, Derived):
            said |= _formula(column)
        elif value != _default(field):
            said[field.name] = _value(value)
    said["missing"] = _scalar(bool(column.missing))
    if column.missing_values is not None:
        said["missing_values"] = _value(column.missing_values)
    return said | {key: text_token(getattr(column, key)) for key in ("storage", "note") if getattr(column, key)}


def _default(field: "dataclasses.Field[object]") -> object:
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default


def _value(value: object) -> object:
    match value:
        case tuple():
            return [_scalar(item) for item in value]
        case Mapping():
            return {text_token(key): _scalar(item) for key, item in value.items()}
        case UniformBins():
            return _scalar(value.count)
        case PrivateBins():
            return {"private": _scalar(value.count)} | ({} if value.by == "mass" else {"by": _scalar(value.by)})
        case GivenBins():
            return [_scalar(edge) for edge in value.edges]
        case _:
            return _scalar(value)


def _formula(column: Derived) -> dict[str, object]:
    formula = column.formula
    name = "sum" if isinstance(formula, LinearSum) else "cut" if isinstance(formula, Cut) else "lookup"
    fields = [field for field in dataclasses.fields(formula) if getattr(formula, field.name) != _default(field)]
    return {name: {field.name: _value(getattr(formula, field.name)) for field in fields}}


def _rule(rule: Impossible) -> dict[str, object]:
    when = {text_token(name): _condition(said) for name, said in rule.when.items()}
    return {"impossible": when} | ({"note": text_token(rule.note)} if rule.note else {})


def _condition(said: tuple[str | None, ...] | Range) -> object:
    if not isinstance(said, Range):
        return _value(said)
    return {key: _scalar(end) for key, end in (("from", said.lower), ("to", said.upper)) if end is not None}


def _flow(node: object) -> str:
    match node:
        case list():
            return f"[{', '.join(map(_flow, node))}]"
        case dict():
            return f"{{{', '.join(f'{key}: {_flow(value)}' for key, value in node.items())}}}"
        case _:
            return str(node)


def said_flow(value: object) -> str:
    """A value of a column's key, or a mapping of keys to values, as YAML on one line."""
    return _flow(_said(value))


def said_lines(said: Mapping[str, object], indent: int) -> Iterator[str]:
    """Keys of a column and their values as lines of YAML."""
    return _block({text_token(key): _said(value) for key, value in said.items()}, indent)


def _said(value: object) -> object:
    if isinstance(value, Mapping):
        return {text_token(str(key)): _said(item) for key, item in value.items()}
    return _value(value)


def key_lines(key: str, indent: int) -> tuple[list[str], str]:
    """The lines before a key's value, and how the line of the value starts."""
    pad = " " * indent
    return ([], f"{pad}{key}:") if len(key) <= _LONGEST_KEY else ([f"{pad}? {key}"], f"{pad}:")


def _block(node: Mapping[str, object], indent: int) -> Iterator[str]:
    for key, value in node.items():
        before, start = key_lines(key, indent)
        yield from before
        short = f"{start} {_flow(value)}"
        spread = isinstance(value, dict) and (key in ("columns",) or "kind" in value)
        if isinstance(value, str) or (len(short) <= _WIDTH and not spread and not _holds_blocks(value)):
            yield short
        elif isinstance(value, dict):
            yield start
            yield from _block(value, indent + 2)
        elif isinstance(value, list) and _holds_blocks(value):
            yield start
            for item in value:
                lines = list(_block(item, indent + 4))
                yield f"{' ' * (indent + 2)}- {lines[0].lstrip(' ')}"
                yield from lines[1:]
        elif isinstance(value, list):
            yield from _wrapped(start, value, indent + 2)


def _holds_blocks(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _wrapped(start: str, items: list[str], indent: int) -> Iterator[str]:
    """A list in brackets over several lines."""
    line = f"{start} ["
    for place, item in enumerate(items):
        piece = item + ("]" if place == len(items) - 1 else ",")
        if len(line) + len(piece) + 1 > _WIDTH and not line.endswith("["):
            yield line.rstrip(" ")
            line = " " * indent
        line += piece if line.endswith(("[", " ")) else f" {piece}"
    yield line
