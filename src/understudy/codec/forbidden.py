"""Rules as cells: which cells of which small tables no record can be in."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from understudy.codec.column_codec import CodeReader
from understudy.codec.label_codec import LabelCodec
from understudy.codec.number_codec import NumberCodec
from understudy.codec.split.split_codec import SplitCodec
from understudy.errors import Problem, SchemaError
from understudy.marginals.domain import Domain
from understudy.marginals.forbidden import Forbidden
from understudy.schema import Category, Range, Schema, code_names
from understudy.schema.bins import number_of

__all__ = ["MOST_CELLS", "forbidden_cells"]

MOST_CELLS = 10_000_000

Conditions = Mapping[str, tuple[str | None, ...] | Range]


def forbidden_cells(
    schema: Schema, codecs: Mapping[str, CodeReader], splits: Mapping[str, SplitCodec], domain: Domain
) -> tuple[Forbidden, ...]:
    """The cells excluded by the schema's rules, hierarchies and split columns; what names columns left out is skipped.

    A rule about a split column is one about its size.

    Raises:
        SchemaError: naming every rule whose table would have more than ten million cells.
    """
    problems: list[Problem] = []
    found: list[Forbidden] = []
    for place, rule in enumerate(schema.rules):
        when = {code_names(schema.column(name))[0]: said for name, said in rule.when.items()}
        if when.keys() <= codecs.keys() and _fits(domain, tuple(when), f"rules[{place}]", problems):
            found.append(_of_rule(when, codecs, domain))
    for column in schema.modelled:
        if isinstance(column, Category) and column.within is not None and {column.name, column.within} <= set(codecs):
            names = (column.name, column.within)
            if _fits(domain, names, f"columns.{column.name}.within", problems):
                found.append(_of_hierarchy(column, codecs, domain))
    for name, split in splits.items():
        parts = code_names(schema.column(name))
        if not split.possible.all() and _fits(domain, parts, f"columns.{name}.split", problems):
            found.append(Forbidden(domain.clique(parts), ~split.possible.ravel()))
    if problems:
        raise SchemaError(problems)
    return tuple(found)


def _fits(domain: Domain, names: tuple[str, ...], where: str, problems: list[Problem]) -> bool:
    cells = domain.cells(domain.clique(names))
    if cells > MOST_CELLS:
        rule = f"spans {cells:,} cells, above the limit of {MOST_CELLS:,}."
        problems.append(Problem(where, rule, "Use fewer columns in one rule, or wider bins."))
    return cells <= MOST_CELLS


def _of_rule(when: Conditions, codecs: Mapping[str, CodeReader], domain: Domain) -> Forbidden:
    clique = domain.clique(when)
    mask = np.ones((1,) * len(clique), dtype=bool)
    for axis, name in enumerate(clique):
        hit = np.zeros(domain.sizes[name], dtype=bool)
        hit[_codes_of(when[name], codecs[name])] = True
        mask = mask & hit.reshape(tuple(-1 if place == axis else 1 for place in range(len(clique))))
    return Forbidden(clique, np.ascontiguousarray(mask).ravel())


def _codes_of(said: tuple[str | None, ...] | Range, codec: CodeReader) -> npt.NDArray[np.int64]:
    if isinstance(said, Range):
        if not isinstance(codec, NumberCodec):
            return np.asarray([], dtype=np.int64)
        low = -np.inf if said.lower is None else number_of(said.lower)
        high = np.inf if said.upper is None else number_of(said.upper)
        return codec.codes_between(low, high)
    codes = [_code_of(text, codec) for text in said]
    return np.asarray([code for code in codes if code is not None], dtype=np.int64)


def _code_of(text: str | None, codec: CodeReader) -> int | None:
    if text is None:
        return codec.layout.missing_code
    if isinstance(codec, NumberCodec):
        return codec.special_code(text)
    found = codec.codes_matching(text)
    # No rule speaks of what cannot be read: that such a value is impossible with others nobody knows.
    return int(found[0]) if len(found) and found[0] != codec.layout.unreadable_code else None


def _of_hierarchy(column: Category, codecs: Mapping[str, CodeReader], domain: Domain) -> Forbidden:
    """A label with a group goes with that group, with missing or with unreadable; other codes go with anything."""
    coarse = codecs[str(column.within)]
    mask = np.zeros((domain.sizes[column.name], domain.sizes[str(column.within)]), dtype=bool)
    for code, label in enumerate(column.labels):
        if label in column.groups and isinstance(coarse, LabelCodec):
            mask[code, : len(coarse.labels) + coarse.layout.other] = True
            mask[code, coarse.codes_matching(column.groups[label])] = False
    clique = domain.clique([column.name, str(column.within)])
    oriented = mask if clique[0] == column.name else mask.T
    return Forbidden(clique, np.ascontiguousarray(oriented).ravel())
