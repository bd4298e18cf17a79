"""Criteria: what the rows of a release must keep to, written in a file and judged from held-back noisy answers.

    criteria:
      - columns: all             # every column by itself; or a list of columns
        within: 0.05             # total variation distance: the share of rows that would have to move
      - pairs_with: age          # age with every other column
        within: 0.1
      - pairs: [[sex, income]]
        within: 0.08
      - share_of: {sex: F}       # of one column or two; several values in a list, numbers as "20..29", "missing"
        within: 2 points

A criterion is public: it is fixed before the run, decides what the check asks, and is written into the release. So it
may name what the schema fixes, and nothing that is only found out from rows: labels of open categories, rare labels and
private bins have no share of their own here; their whole columns may be compared.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from understudy.arrays import Bools
from understudy.codec.table import TableCodec
from understudy.domain import Clique, Domain
from understudy.errors import Problem, SchemaError, UsageError, nearest, shown
from understudy.models.model import read_plain
from understudy.schema import Category, Derived, OpenCategory, PrivateBins, Schema, code_names
from understudy.schema.yaml_text import Entries, Leaf, Tree, YamlList, parse_yaml

KINDS = ("columns", "pairs_with", "pairs", "share_of")
MOST_BYTES = 2**18
MOST_CRITERIA = 200
MOST_VALUES = 2**12
"""Values that one criterion may list: each is looked up among the codes, also in a stranger's release."""
MOST_CELLS = 2**17
"""Cells of a table that a criterion is about at most; noise makes a larger one useless."""
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(?:points?|%|percentage points?)")


@dataclass(frozen=True, slots=True)
class Criterion:
    """One limit: for distances of columns or of pairs, or for the share of rows that hold certain values."""

    kind: str
    """One of KINDS."""
    tables: tuple[tuple[str, ...], ...]
    """As named: columns each by itself (none: all), columns to pair with all others, pairs, or the share's columns."""
    within: float
    values: tuple[tuple[str, ...], ...] = ()
    """For a share: the values of each of its columns."""
    name: str = ""

    def __post_init__(self) -> None:
        """Files of strangers hold criteria too, so their form is checked here."""
        length = 2 if self.kind == "pairs" else 1
        named = all(len(one) == length for one in self.tables) and (bool(self.tables) or self.kind == "columns")
        if self.kind == "share_of":
            named = len(self.tables) == 1 and 1 <= len(self.tables[0]) <= 2 and len(self.values) == len(self.tables[0])
        named = named and len(set(self.tables)) == len(self.tables) and sum(map(len, self.values)) <= MOST_VALUES
        if self.kind not in KINDS or not 0 < self.within < 1 or not named or (self.values and self.kind != "share_of"):
            raise UsageError("criterion", "does not have the form of a criterion.", "See docs/check.md.")

    @property
    def text(self) -> str:
        """The criterion in words, as statement.json has it.

        >>> Criterion("share_of", (("sex",),), 0.02, (("F",),)).text
        'share of sex = F within 2 points'
        """
        if self.kind == "share_of":
            held = " and ".join(
                f"{name} = {' or '.join(values)}" for name, values in zip(self.tables[0], self.values, strict=True)
            )
            return f"share of {held} within {100 * self.within:.6g} points"
        named = ", ".join(" × ".join(one) for one in self.tables)
        many = "s" if len(self.tables) > 1 else ""
        columns = f"column{many} {named}" if named else "every column"
        what = {"columns": columns, "pairs_with": f"pairs with {named}", "pairs": f"pair{many} {named}"}[self.kind]
        return f"{what} within {self.within:.6g}"

    @property
    def in_percent(self) -> str:
        """The criterion as cards and commands say it: the limit of a distance in percent.

        >>> Criterion("pairs_with", (("age",),), 0.05).in_percent
        'pairs with age within 5 %'
        """
        if self.kind == "share_of":
            return self.text
        return f"{self.text.removesuffix(f'{self.within:.6g}')}{100 * self.within:.6g} %"

    def cliques(self, schema: Schema, domain: Domain) -> tuple[Clique, ...]:
        """The tables it is judged from, in the columns of codes.

        Raises:
            UsageError: if a column is unknown or is not modelled, or a pair is no pair.
        """
        # Whatever the codes turn out to be, the tables are those of the plan: nothing here looks at their number.
        named = [tuple(coded(schema, name) for name in one) for one in self.tables]
        if self.kind == "columns":
            return tuple(domain.clique(one) for one in (named or [(name,) for name in domain.columns]))
        if self.kind == "pairs_with":
            others = ((one[0], other) for one in named for other in domain.columns if other != one[0])
            return tuple(dict.fromkeys(map(domain.clique, others)))
        cliques = tuple(map(domain.clique, named))
        if any(len(clique) < len(one) for clique, one in zip(cliques, named, strict=True)):
            raise UsageError(f"criterion {self.text!r}", "names a column twice.", "Name two different columns.")
        return cliques

    def cells(self, codec: TableCodec) -> Bools:
        """Which cells of its table a share is about.

        Raises:
            UsageError: if a value matches no code exactly.
        """
        (clique,) = self.cliques(codec.schema, codec.domain)
        chosen = {}
        for name, values in zip(self.tables[0], self.values, strict=True):
            column = coded(codec.schema, name)
            held = np.zeros(codec.domain.sizes[column], np.bool_)
            for value in values:
                held[codec.codes_matching(column, value)] = True
            chosen[column] = held
        mask = np.ones((), np.bool_)
        for column in clique:
            mask = np.logical_and.outer(mask, chosen[column])
        return mask.ravel()


def coded(schema: Schema, name: str) -> str:
    """The column of codes that a name stands for; for a column with codes in two parts, how large its numbers are."""
    for column in schema.modelled:
        if name == column.name:
            return code_names(column)[0]
        if name in code_names(column):
            return name
    if any(name == column.name and isinstance(column, Derived) for column in schema.columns):
        raise UsageError(f"column {name!r}", "is derived and not modelled.", "Name the column it is computed from.")
    known = nearest(name, [column.name for column in schema.modelled])
    raise UsageError(f"column {name!r}", "is not a column of the schema.", known)


def require_criteria(criteria: Sequence[Criterion], schema: Schema, domain: Domain) -> None:
    """Raises SchemaError with everything in the criteria that the schema cannot answer for."""
    problems = []
    for criterion in criteria:
        try:
            cliques = criterion.cliques(schema, domain)
            if not cliques:
                raise UsageError("schema", "has no other column to pair with.", "Name columns instead.")
            _require_size(cliques, domain)
            if criterion.kind == "share_of":
                _require_fixed(criterion, schema)
        except UsageError as error:
            problem = error.problem
            problems.append(Problem(f"criterion {criterion.text!r}", f"{problem.where} {problem.rule}", problem.fix))
    if problems:
        raise SchemaError(problems)


def _require_size(cliques: Sequence[Clique], domain: Domain) -> None:
    for clique in cliques:
        if domain.cells(clique) > MOST_CELLS:
            rule = f"has {domain.cells(clique):,} cells; at most {MOST_CELLS:,} can be compared."
            raise UsageError(f"table {' × '.join(clique)}", rule, "Declare coarser bins, or name another table.")


def _require_fixed(criterion: Criterion, schema: Schema) -> None:
    """The values of a share must be codes that the schema itself fixes, so that nothing can fail after the charge."""
    for name in criterion.tables[0]:
        column = next(one for one in schema.modelled if name == one.name or name in code_names(one))
        rare = isinstance(column, Category) and column.rare == "private"
        if isinstance(column, OpenCategory) or rare or isinstance(getattr(column, "bins", None), PrivateBins):
            rule = "has codes that are only fixed from rows, so its values have no share of their own."
            raise UsageError(f"column {name!r}", rule, "Compare the whole column with columns:.")
    named = {*criterion.tables[0]}
    origins = [one.name for one in schema.modelled if {one.name, *code_names(one)} & named]
    criterion.cells(TableCodec.of(schema, columns=origins))


def read_criteria(path: str | Path) -> tuple[Criterion, ...]:
    """The criteria in a file.

    Raises:
        SchemaError: with every problem and its line.
        UsageError: if there is no such file.
    """
    place = Path(path)
    if not place.is_file():
        raise UsageError(f"criteria {str(place)!r}", "is not a file.", "See docs/check.md for an example.")
    try:
        text = read_plain(place, MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        raise SchemaError([Problem(place.name, "is not UTF-8.", "Save it as UTF-8 text.")]) from None
    return criteria_of(text, place.name)


def criteria_of(text: str, where: str = "criteria") -> tuple[Criterion, ...]:
    """The criteria in a text; `where` names its origin in messages."""
    top = parse_yaml(text, where) if text.strip() else None
    listed = {key.text: value for key, value in top.pairs} if isinstance(top, Entries) else {}
    entries = listed.get("criteria")
    if set(listed) != {"criteria"} or not isinstance(entries, YamlList) or not entries.values:
        rule = "must hold a list under the key criteria, and nothing else."
        raise SchemaError([Problem(where, rule, "See docs/check.md.")])
    if len(entries.values) > MOST_CRITERIA:
        raise SchemaError([Problem(where, f"holds more than {MOST_CRITERIA:,} criteria.", "State fewer.")])
    found, problems = [], []
    for tree in entries.values:
        try:
            found.append(_criterion(tree))
        except UsageError as error:
            at = f"{where}, line {tree.line}"
            problems.append(Problem(f"{at}: {error.problem.where}", error.problem.rule, error.problem.fix))
    if problems:
        raise SchemaError(problems)
    return tuple(found)


def _criterion(tree: Tree) -> Criterion:
    if not isinstance(tree, Entries):
        raise UsageError("criterion", "must be a mapping such as {columns: all, within: 0.05}.")
    given = {key.text: value for key, value in tree.pairs}
    unknown = sorted(set(given) - {*KINDS, "within", "name"})
    if unknown:
        raise UsageError(f"key {shown(unknown[0])}", "is not known.", nearest(unknown[0], [*KINDS, "within", "name"]))
    kinds = [kind for kind in KINDS if kind in given]
    if len(kinds) != 1 or "within" not in given:
        raise UsageError("criterion", f"needs within and one of {', '.join(KINDS)}.")
    (kind,) = kinds
    within = _limit(given["within"])
    name = _text(given["name"], "name") if "name" in given else ""
    if kind == "share_of":
        columns, values = _held(given[kind])
        return Criterion(kind, (columns,), within, values, name)
    return Criterion(kind, _READERS[kind](given[kind]), within, (), name)


def _limit(tree: Tree) -> float:
    text = _text(tree, "within")
    points = _PERCENT.fullmatch(text)
    try:
        limit = float(points[1]) / 100 if points else float(text)
    except ValueError:
        limit = math.nan
    if not 0 < limit < 1:
        rule = f"must be a distance between 0 and 1, or points such as 2 points, got {shown(text)}."
        raise UsageError("within", rule)
    return limit


def _text(tree: Tree, key: str) -> str:
    if not isinstance(tree, Leaf) or tree.null:
        raise UsageError(key, "must be one value.")
    return tree.text


def _texts(tree: Tree, key: str) -> tuple[str, ...]:
    """One text, or a list of different ones."""
    texts = tuple(_text(one, key) for one in tree.values) if isinstance(tree, YamlList) else (_text(tree, key),)
    if not texts or len(set(texts)) < len(texts):
        raise UsageError(key, "must name at least one, and none twice.")
    return texts


def _columns(tree: Tree) -> tuple[tuple[str, ...], ...]:
    if isinstance(tree, Leaf) and tree.plain and tree.text == "all":
        return ()
    return tuple((name,) for name in _texts(tree, "columns"))


def _partners(tree: Tree) -> tuple[tuple[str, ...], ...]:
    return tuple((name,) for name in _texts(tree, "pairs_with"))


def _pairs(tree: Tree) -> tuple[tuple[str, ...], ...]:
    pairs = tuple(_texts(one, "pairs") for one in tree.values) if isinstance(tree, YamlList) else ()
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise UsageError("pairs", "must be a list of pairs such as [[sex, income]].")
    if len(set(map(frozenset, pairs))) < len(pairs):
        raise UsageError("pairs", "must name no pair twice.")
    return pairs


_READERS: dict[str, Callable[[Tree], tuple[tuple[str, ...], ...]]] = {
    "columns": _columns,
    "pairs_with": _partners,
    "pairs": _pairs,
}


def _held(tree: Tree) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    pairs = tree.pairs if isinstance(tree, Entries) else ()
    if not 1 <= len(pairs) <= 2:
        raise UsageError("share_of", "must name one column or two with their values, such as {sex: F}.")
    values = tuple(_texts(value, "share_of") for _, value in pairs)
    if sum(map(len, values)) > MOST_VALUES:
        raise UsageError("share_of", f"must list at most {MOST_VALUES:,} values.", "Write numbers as a range, 20..29.")
    return tuple(key.text for key, _ in pairs), values
