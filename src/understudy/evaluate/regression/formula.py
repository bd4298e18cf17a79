"""Model formulas over schema columns: "outcome ~ a + b + a:b".

Terms are joined by +. `a:b` is the product of two columns, `a*b` stands for `a + b + a:b`, `C(a)` takes a number by its
bins, and `.` stands for every other column. Names with signs or spaces are put in backquotes. `outcome[label]` names
the label that counts as 1 in a logistic model.
"""

from dataclasses import dataclass

from understudy.errors import UsageError, nearest
from understudy.schema import Boolean, Category, OpenCategory, Schema

__all__ = ["Formula", "Part", "parse_formula"]


@dataclass(frozen=True, slots=True)
class Part:
    """A column as it enters a term: by its number, or (`by_level`) by its labels or bins."""

    column: str
    by_level: bool = False

    def __str__(self) -> str:
        return f"C({self.column})" if self.by_level else self.column


@dataclass(frozen=True, slots=True)
class Formula:
    """The outcome, the label of it that counts as 1 (or None), and the terms as products of columns."""

    text: str
    outcome: str
    event: str | None
    terms: tuple[tuple[Part, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that takes part, the outcome first."""
        return tuple(dict.fromkeys([self.outcome, *(part.column for term in self.terms for part in term)]))


def parse_formula(text: str, schema: Schema) -> Formula:
    """The formula of a text, checked against the schema.

    Raises:
        UsageError: if the text is no formula, or names a column or label that does not exist.
    """
    left, tilde, right = _halves(text)
    if not tilde:
        raise UsageError(f"formula {text!r}", 'needs a "~" between outcome and terms.', 'As in "income ~ age + sex".')
    outcome, event = _outcome(left, text, schema)
    terms: list[tuple[Part, ...]] = []
    for piece in _split(right, "+"):
        for term in _term(piece, text, schema, outcome):
            if term not in terms:
                terms.append(term)
    if not terms:
        raise UsageError(f"formula {text!r}", "has no terms.", 'As in "income ~ age + sex".')
    return Formula(text, outcome, event, tuple(terms))


def _halves(text: str) -> tuple[str, str, str]:
    for place, letter in _outside(text):
        if letter == "~":
            return text[:place], "~", text[place + 1 :]
    return text, "", ""


def _outside(text: str) -> list[tuple[int, str]]:
    """Places and letters that are not inside backquotes or brackets."""
    found = []
    quoted, depth = False, 0
    for place, letter in enumerate(text):
        if letter == "`":
            quoted = not quoted
        elif not quoted and letter in "[(":
            depth += 1
        elif not quoted and letter in "])":
            depth -= 1
        elif not quoted and depth == 0:
            found.append((place, letter))
    return found


def _split(text: str, sign: str) -> list[str]:
    places = [place for place, letter in _outside(text) if letter == sign]
    ends = [*places, len(text)]
    starts = [0, *(place + 1 for place in places)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _outcome(left: str, text: str, schema: Schema) -> tuple[str, str | None]:
    name = left.strip()
    event: str | None = None
    if name.endswith("]") and "[" in name:
        start = name.rindex("[")
        name, event = name[:start].strip(), name[start + 1 : -1]
    column = _named(name, text, schema)
    if event is not None:
        _check_event(column, event, text, schema)
    return column, event


def _check_event(name: str, event: str, text: str, schema: Schema) -> None:
    column = schema.column(name)
    if isinstance(column, OpenCategory):
        return
    known: tuple[str, ...] = ()
    if isinstance(column, Category):
        known = column.labels if column.other is None else (*column.labels, column.other)
    elif isinstance(column, Boolean):
        known = ("false", "true")
    if event not in known:
        rule = f"column {name!r} has no label {event!r}."
        raise UsageError(f"formula {text!r}", rule, nearest(event, known) if known else "It holds numbers.")


def _term(piece: str, text: str, schema: Schema, outcome: str) -> list[tuple[Part, ...]]:
    if piece == ".":
        return [(Part(column.name),) for column in schema.modelled if column.name != outcome]
    factors = [_product(one, text, schema) for one in _split(piece, "*")]
    terms = [factors[0]]
    for factor in factors[1:]:
        terms += [factor, *(_joined(term, factor) for term in list(terms))]
    for term in terms:
        if any(part.column == outcome for part in term):
            raise UsageError(f"formula {text!r}", f"has the outcome {outcome!r} among its terms.", "Remove it there.")
    return sorted(terms, key=len)


def _joined(first: tuple[Part, ...], second: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(dict.fromkeys([*first, *second]))


def _product(piece: str, text: str, schema: Schema) -> tuple[Part, ...]:
    return tuple(dict.fromkeys(_part(one, text, schema) for one in _split(piece, ":")))


def _part(piece: str, text: str, schema: Schema) -> Part:
    if piece.startswith("C(") and piece.endswith(")"):
        return Part(_named(piece[2:-1].strip(), text, schema), by_level=True)
    return Part(_named(piece, text, schema))


def _named(name: str, text: str, schema: Schema) -> str:
    plain = name[1:-1] if len(name) > 1 and name.startswith("`") and name.endswith("`") else name
    known = [column.name for column in schema.modelled]
    if not plain:
        raise UsageError(f"formula {text!r}", "has an empty term.", 'As in "income ~ age + sex".')
    if plain not in known:
        raise UsageError(f"formula {text!r}", f"{plain!r} is not a column.", nearest(plain, known))
    return plain
