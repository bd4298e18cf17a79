"""SQL data definitions, read into facts about columns: types, NOT NULL, CHECK, ENUM, keys and comments.

Understood is what the common databases share: CREATE TABLE, CREATE TYPE … AS ENUM, CREATE DOMAIN, COMMENT ON COLUMN. Of
a CHECK the conditions that are joined by AND and compare one column with constants are taken (comparisons, BETWEEN, IN,
= ANY); any other condition says nothing about a single column and is passed over. Other statements are, too.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from understudy.schema.codebooks import ColumnFacts, Misread, bounds, listed

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<open>/\*)
    | (?P<text>(?:[eEnN])?'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+" | `[^`]+` | \[[A-Za-z_][^\]\n]{0,256}\])
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    | (?P<word>[^\W\d]\w*(?:\$\w*)?)
    | (?P<sign><>|!=|<=|>=|::|\|\||[-+*/%<>=(),;.\[\]:~^&|!?@\#{}])""",
    re.VERBOSE | re.DOTALL,
)
_MOST_DEPTH = 64
_MOST_RULES = 1000
"""Words of one domain, and rules of one column."""
_TABLE_RULES = (
    "constraint",
    "primary",
    "unique",
    "foreign",
    "check",
    "key",
    "index",
    "exclude",
    "like",
    "fulltext",
    "period",
)
_INTEGERS = (
    "int",
    "integer",
    "smallint",
    "bigint",
    "tinyint",
    "mediumint",
    "int2",
    "int4",
    "int8",
    "serial",
    "bigserial",
)
_REALS = ("float", "double", "real", "float4", "float8", "numeric", "decimal", "number", "money", "dec", "smallmoney")
_TEXTS = ("char", "varchar", "character", "text", "nvarchar", "nchar", "varchar2", "string", "clob", "citext", "bpchar")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, name, text, number or sign of SQL, and its line."""

    kind: str
    text: str
    line: int

    def says(self, *words: str) -> bool:
        """Whether it is one of these words or signs, in any case."""
        return self.kind in ("word", "sign") and self.text.lower() in words


@dataclass(slots=True)
class _Declared:
    """A column while its table is read."""

    name: str
    line: int
    kind: str = ""
    storage: str = ""
    labels: tuple[str, ...] = ()
    low: object = None
    high: object = None
    needed: bool = False
    key: bool = False
    decimals: int | None = None
    title: str = ""

    def facts(self) -> ColumnFacts:
        """What was declared, as facts."""
        said: dict[str, object] = {}
        if self.labels and self.kind != "boolean":
            said = listed([(label, "") for label in self.labels])
        elif self.kind == "boolean":
            said = {"kind": "boolean"}
        elif self.kind in ("integer", "float", "date", "datetime", "time"):
            ends = bounds(self.low, self.high, self.kind, f":{self.line}")
            said = {"kind": self.kind, **ends} if ends else {}
            if self.kind == "float" and ends and self.decimals is not None:
                said["decimals"] = self.decimals
        said |= {"title": self.title, "missing": False if self.needed else None}
        return ColumnFacts(
            self.name, said, storage=self.storage, left_out="a primary key, as the codebook says" if self.key else ""
        )


@dataclass(slots=True)
class _Types:
    """Types that the file declares itself: lists of labels, and domains with their tokens."""

    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)
    domains: dict[str, list[Token]] = field(default_factory=dict)


def tables_of(text: str) -> Iterator[ColumnFacts]:
    """Facts about every column of every table that the text creates.

    Raises:
        Misread: the text is no SQL, or creates no table.
    """
    types = _Types()
    columns: dict[str, list[_Declared]] = {}
    found = False
    for statement in _statements(_tokens(text)):
        words = [token.text.lower() for token in statement[:8]]
        if words[:2] == ["create", "type"]:
            _enumeration(statement, types)
        elif words[:2] == ["create", "domain"] and len(statement) > 3:
            at = next((place for place, token in enumerate(statement) if token.says("as")), 2)
            if len(statement) > _MOST_RULES:
                raise Misread(f":{statement[0].line}", f"creates a domain of more than {_MOST_RULES:,} words.")
            types.domains[_plain(statement[at - 1]).lower()] = statement[at + 1 :]
        elif words[:1] == ["create"] and "table" in words:
            found = True
            for declared in _table(statement, types):
                columns.setdefault(declared.name, []).append(declared)
        elif words[:3] == ["comment", "on", "column"]:
            _remark(statement, columns)
    if not found:
        raise Misread("", "creates no table.", "It needs CREATE TABLE.")
    for same in columns.values():
        yield same[0].facts()


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    place, line = 0, 1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match["open"]:
            raise Misread(
                f":{line}", "is not SQL that can be read here.", "Check that no quote or comment is left open."
            )
        kind = str(match.lastgroup)
        if kind != "space":
            found.append(Token(kind, match[0], line))
        line += match[0].count("\n")
        place = match.end()
    return found


def _statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    statement: list[Token] = []
    for token in tokens:
        if token.says(";"):
            yield statement
            statement = []
        else:
            statement.append(token)
    yield statement


def _plain(token: Token) -> str:
    """A name or a text without its quotes."""
    if token.kind == "text":
        return token.text.partition("'")[2][:-1].replace("''", "'")
    if token.kind == "quoted":
        return token.text[1:-1].replace('""', '"')
    return token.text


def _items(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """What stands between the commas inside the first parentheses."""
    depth, item = 0, list[Token]()
    for token in tokens:
        depth -= token.says(")")
        if depth == 0 and token.says(")"):
            yield item
            return
        if depth == 1 and token.says(","):
            yield item
            item = []
        elif depth >= 1:
            item.append(token)
        depth += token.says("(")
        if depth > _MOST_DEPTH:
            raise Misread(f":{token.line}", f"has parentheses nested deeper than {_MOST_DEPTH} levels.")
    raise Misread(f":{tokens[-1].line if tokens else 1}", "has parentheses that are never closed.")


def _from_open(tokens: Sequence[Token], start: int = 0) -> Sequence[Token]:
    """The tokens from the first opening parenthesis on; none if there is none."""
    at = next((place for place in range(start, len(tokens)) if tokens[place].says("(")), len(tokens))
    return tokens[at:]


def _enumeration(statement: Sequence[Token], types: _Types) -> None:
    at = next((place for place, token in enumerate(statement) if token.says("enum")), None)
    if at is not None and at >= 3:
        labels = [_plain(item[0]) for item in _items(statement[at + 1 :]) if item and item[0].kind == "text"]
        types.lists[_plain(statement[at - 2]).lower()] = tuple(labels)


def _remark(statement: Sequence[Token], columns: dict[str, list[_Declared]]) -> None:
    at = next((place for place, token in enumerate(statement) if token.says("is")), None)
    if at is not None and at + 1 < len(statement) and statement[at + 1].kind == "text":
        for declared in columns.get(_plain(statement[at - 1]), []):
            declared.title = _plain(statement[at + 1])


def _table(statement: Sequence[Token], types: _Types) -> Iterator[_Declared]:
    body = _from_open(statement)
    if not body:
        line = statement[0].line
        raise Misread(f":{line}", "creates a table without a list of columns.", "List the columns in parentheses.")
    columns: dict[str, _Declared] = {}
    rules: list[list[Token]] = []
    for item in _items(body):
        if not item:
            continue
        if item[0].kind == "word" and item[0].text.lower() in _TABLE_RULES:
            rules.append(item)
        else:
            declared = _column(item, types)
            columns[declared.name.lower()] = declared
    for rule in rules:
        _table_rule(rule, columns)
    yield from columns.values()


def _column(item: list[Token], types: _Types) -> _Declared:
    if item[0].kind not in ("word", "quoted") or len(item) < 2:
        raise Misread(f":{item[0].line}", "declares no column with a type.", "Write NAME TYPE.")
    declared = _Declared(_plain(item[0]), item[0].line)
    rest = item[1:]
    own = _plain(rest[0]).lower()
    if own in types.domains:
        rest = [*types.domains[own], *rest[1:]]
    _declare_type(declared, rest, types)
    _declare_rules(declared, rest)
    return declared


def _declare_type(declared: _Declared, rest: Sequence[Token], types: _Types) -> None:
    word = _plain(rest[0]).lower()
    # A type of the file's own may stand behind the name of its schema: public.mood.
    named = _plain(rest[2]).lower() if len(rest) > 2 and rest[1].says(".") else word
    arguments = list(_items(rest[1:])) if len(rest) > 1 and rest[1].says("(") else []
    sizes = [argument[0].text for argument in arguments if argument]
    if named in types.lists:
        declared.labels = types.lists[named]
    elif word in ("enum", "set"):
        declared.labels = tuple(_plain(argument[0]) for argument in arguments if argument)
    elif word in ("boolean", "bool", "bit") or (word == "tinyint" and sizes == ["1"]):
        declared.kind, declared.storage = "boolean", "bool"
    elif word in _INTEGERS or (word in ("numeric", "decimal", "number") and sizes[1:] in ([], ["0"]) and sizes):
        declared.kind, declared.storage = "integer", "int64"
        declared.key = "serial" in word
    elif word in _REALS:
        declared.kind, declared.storage = "float", "double"
        declared.decimals = int(sizes[1]) if len(sizes) > 1 and sizes[1].isdecimal() and len(sizes[1]) < 3 else None
    elif word in ("timestamp", "timestamptz", "datetime", "datetime2", "smalldatetime"):
        declared.kind, declared.storage = "datetime", "timestamp[us]"
    elif word in ("date", "time"):
        declared.kind, declared.storage = word, "date32[day]" if word == "date" else "time64[us]"
    elif word in ("uuid", "uniqueidentifier"):
        declared.key = True
    elif word in _TEXTS:
        declared.storage = "string"


def _declare_rules(declared: _Declared, rest: Sequence[Token]) -> None:
    if sum(token.says("check") for token in rest) > _MOST_RULES:
        raise Misread(f":{declared.line}", f"declares a column with more than {_MOST_RULES:,} rules.")
    for place, token in enumerate(rest):
        follows = rest[place + 1] if place + 1 < len(rest) else None
        if follows is None:
            break
        if token.says("not") and follows.says("null"):
            declared.needed = True
        elif token.says("primary") and follows.says("key"):
            declared.key = declared.needed = True
        elif token.says("comment") and follows.kind == "text":
            declared.title = _plain(follows)
        elif token.says("check") and follows.says("("):
            _take_conditions(rest[place + 1 :], {declared.name.lower(): declared, "value": declared})


def _table_rule(rule: Sequence[Token], columns: dict[str, _Declared]) -> None:
    words = [token.text.lower() for token in rest] if (rest := list(rule)) else []
    if "check" in words:
        _take_conditions(rest[words.index("check") + 1 :], columns)
    elif "primary" in words:
        named = [_plain(item[0]).lower() for item in _items(_from_open(rest)) if item]
        for name in named:
            if name in columns:
                columns[name].needed = True
                columns[name].key = len(named) == 1


def _take_conditions(tokens: Sequence[Token], columns: dict[str, _Declared]) -> None:
    """Takes what a CHECK says about single columns."""
    inside = [token for item in _items(tokens) for token in (*item, Token("sign", ",", 0))][:-1]
    if any(token.says("or", "case", "not") and not _not_null(inside, place) for place, token in enumerate(inside)):
        return
    for condition in _conjuncts(_without_casts(inside)):
        _take(condition, columns)


def _not_null(tokens: Sequence[Token], place: int) -> bool:
    return tokens[place].says("not") and place + 1 < len(tokens) and tokens[place + 1].says("null")


def _without_casts(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without `::type`, without parentheses that only group, and with signs joined to their numbers."""
    kept: list[Token] = []
    skip = False
    for token in tokens:
        if token.says("::"):
            skip = True
        elif skip and (token.kind in ("word", "quoted") or token.says("[", "]")):
            continue
        elif (
            token.kind == "number"
            and kept
            and kept[-1].says("-")
            and (len(kept) < 2 or kept[-2].kind == "sign" or kept[-2].kind == "word")
        ):
            kept[-1] = Token("number", f"-{token.text}", token.line)
            skip = False
        else:
            skip = False
            kept.append(token)
    return [token for token in kept if not token.says("(", ")", "[", "]", "array")]


def _conjuncts(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Conditions that are joined by AND; the AND of BETWEEN is part of its condition."""
    condition: list[Token] = []
    between = False
    for token in tokens:
        if token.says("and") and not between:
            yield condition
            condition = []
            continue
        between = token.says("between") or (between and not token.says("and"))
        condition.append(token)
    yield condition


_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}


def _take(condition: Sequence[Token], columns: dict[str, _Declared]) -> None:
    if len(condition) < 3:
        return
    first, sign, rest = condition[0], condition[1], condition[2:]
    if first.kind in ("number", "text") and len(rest) == 1 and sign.text in _MIRRORED:
        first, sign, rest = rest[0], Token("sign", _MIRRORED[sign.text], sign.line), [first]
    column = columns.get(_plain(first).lower()) if first.kind in ("word", "quoted") else None
    if column is None:
        return
    constants = [_plain(token) for token in rest if token.kind in ("number", "text")]
    others = [
        token for token in rest if token.kind not in ("number", "text") and not token.says(",", "and", "any", "date")
    ]
    if others or not constants:
        return
    if sign.says("in") or (sign.says("=") and len(rest) > 1) or (sign.says("=") and len(constants) == 1):
        column.labels = tuple(dict.fromkeys(constants))
    elif sign.says("between") and len(constants) == 2:
        column.low, column.high = constants
    elif sign.says(">=", ">"):
        column.low = _inside(constants[0], column.kind, 1 if sign.says(">") else 0)
    elif sign.says("<=", "<"):
        column.high = _inside(constants[0], column.kind, -1 if sign.says("<") else 0)


def _inside(constant: str, kind: str, step: int) -> str:
    """The bound; an excluded one of whole numbers is moved inwards by one."""
    return str(int(constant) + step) if kind == "integer" and re.fullmatch(r"-?\d{1,40}", constant) else constant
