"""How much of a schema draft is left to a person, on real public tables: `python -m benchmarks.drafts [FOLDER]`.

FOLDER holds one folder per table, each with a `domain.json` (see its README); ../shared/data by default. Three drafts
are made of every table: from the names alone (a text file's header), from names and storage types (Parquet), and from
names with the domain written out as a data dictionary. Columns are counted as

* open: something says DECIDE, so a person has to state it;
* wrong: nothing does, but what is guessed could not hold every value of the domain (a bound is passed, a label is
  absent, a column that has a domain is left out, a number is an open category), so a confirmation would not be enough;
  words for a missing value may go missing;
* fine: a confirmation is all it takes.

The domain judges, and is never shown to the guesses.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from understudy.schema import Boolean, Category, Column, Float, Integer, OpenCategory
from understudy.schema.codebooks import ColumnFacts, read_codebook
from understudy.schema.document import schema_from_text
from understudy.schema.draft import draft_schema, open_places
from understudy.schema.schema import Unit

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
_MEANS_MISSING = re.compile(
    r"\?|null|unknown(/invalid)?|no response.*|don't know|refused|not in universe", re.IGNORECASE
)
_TRUTHS = {"true", "false", "t", "f", "yes", "no", "y", "n", "1", "0"}

Domain = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Burden:
    """Columns of one draft by what they ask of a person."""

    columns: int
    open: tuple[str, ...]
    wrong: tuple[str, ...]
    discovered: int
    """Columns that are fine as open categories, whose labels a release would have to pay for."""

    @property
    def share(self) -> float:
        return (len(self.open) + len(self.wrong)) / self.columns


def domain_of(folder: Path) -> Domain:
    """Column by column what the table's documentation says, in one form."""
    if (folder / "domain.json").exists():
        described = json.loads((folder / "domain.json").read_text(encoding="utf-8"))
        return {name: _one_form(facts) for name, facts in described["columns"].items()}
    sizes = json.loads(next(folder.glob("*domain.json")).read_text(encoding="utf-8"))
    return {
        name: {"kind": "categorical", "values": [str(code) for code in range(size)]} for name, size in sizes.items()
    }


def _one_form(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    if facts["kind"] != "categorical":
        return facts
    listed = facts.get("values", facts.get("values_in_codebook"))
    if listed is None and "size" not in facts:
        return {"kind": "integer", "min": 0, "max": facts["maxval_in_specs"]}
    values = list(range(int(facts["size"]))) if listed is None else listed
    return {**facts, "values": [_text(value) for value in values]}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def types_of(folder: Path) -> Mapping[str, str]:
    """Storage types by name; nothing for a table without a Parquet file."""
    files = sorted(folder.glob("*.parquet"))
    return {field.name: str(field.type) for field in pq.read_schema(files[0])} if files else {}


def write_dictionary(domain: Domain, path: Path) -> None:
    """The domain as a data dictionary: name, type, min, max, values."""
    lines = ["name,type,min,max,values"]
    for name, facts in domain.items():
        values = "|".join(facts.get("values", ()))
        cells = [name, facts["kind"], _text(facts.get("min", "")), _text(facts.get("max", "")), values]
        lines.append(",".join('"' + cell.replace('"', '""') + '"' for cell in cells))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def burden(domain: Domain, types: Mapping[str, str], facts: list[ColumnFacts]) -> Burden:
    """What a draft asks of a person; without types every column is text."""
    header = [(name, types.get(name, "string")) for name in domain]
    text = draft_schema(header, facts=facts, unit=Unit(), names_are_right=True)
    opened = {found.column for found in open_places(text) if not found.guess}
    confirmed = "\n".join(line.partition("  # guess:")[0] for line in text.splitlines())
    stated = {column.name: column for column in _confirmed(confirmed, opened)}
    wrong = [name for name in domain if name not in opened and not holds(stated.get(name), domain[name])]
    paid = sum(isinstance(column, OpenCategory) for name, column in stated.items() if name not in wrong)
    return Burden(len(domain), tuple(name for name in domain if name in opened), tuple(wrong), paid)


def _confirmed(text: str, opened: set[str]) -> tuple[Column, ...]:
    """The columns of the draft once every guess is confirmed; those that are open stand in as open categories."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.startswith("  ") and not line.startswith("   ") and not line.lstrip().startswith("#"):
            inside = any(line.startswith(f"  {mark}{name}{mark}:") for name in opened for mark in ("", '"'))
        if not inside:
            kept.append(line)
    if kept[-1] == "columns:":
        return ()
    return schema_from_text("\n".join(kept), "draft").columns


def holds(column: Column | None, facts: Mapping[str, Any]) -> bool:
    """Whether every value of the domain can be read under the column."""
    if column is None or facts["kind"] == "identifier":
        return (column is None) == (facts["kind"] == "identifier")
    values = facts.get("values") or [_text(facts["min"]), _text(facts["max"])]
    values = [value for value in values if not (column.missing and _MEANS_MISSING.fullmatch(value))]
    match column:
        case Category():
            known = {label.lower() if column.ignore_case else label for label in column.labels}
            return all((value.lower() if column.ignore_case else value) in known for value in values)
        case Boolean():
            return all(value.lower() in _TRUTHS for value in values)
        case Integer() | Float():
            return all(_between(value, column.lower, column.upper) for value in values)
        case _:
            return isinstance(column, OpenCategory) and "values" in facts


def _between(value: str, lower: float, upper: float) -> bool:
    try:
        return lower <= float(value) <= upper
    except ValueError:
        return False


def measured(folder: Path, scratch: Path) -> Iterator[tuple[str, Burden, Burden, Burden]]:
    """Every table with its three burdens: names alone, names and types, a data dictionary."""
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        domain = domain_of(place)
        dictionary = scratch / f"{place.name}.csv"
        write_dictionary(domain, dictionary)
        types = types_of(place)
        yield (
            place.name,
            burden(domain, {}, []),
            burden(domain, types, []),
            burden(domain, {}, read_codebook(dictionary)),
        )


def main() -> None:
    import tempfile

    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    total, paid = [0, 0, 0], [0, 0, 0]
    columns = 0
    print("| table | columns | names: open + wrong | share | types: open + wrong | share | dictionary: open + wrong |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for name, *found in measured(folder, Path(scratch)):
            shown = [f"{len(one.open)} + {len(one.wrong)} | {one.share:.0%}" for one in found[:2]]
            last = f"{len(found[2].open)} + {len(found[2].wrong)}"
            print(f"| {name} | {found[0].columns} | {' | '.join(shown)} | {last} |")
            if "-v" in sys.argv:
                print("   names open:", *found[0].open, "\n   names wrong:", *found[0].wrong)
                print("   types open:", *found[1].open, "\n   types wrong:", *found[1].wrong)
                print("   dictionary:", *found[2].open, *found[2].wrong)
            columns += found[0].columns
            total = [so_far + len(one.open) + len(one.wrong) for so_far, one in zip(total, found, strict=True)]
            paid = [so_far + one.discovered for so_far, one in zip(paid, found, strict=True)]
    print(f"| all | {columns} | | {total[0] / columns:.0%} | | {total[1] / columns:.0%} | {total[2]} |")
    print(f"Fine as open categories: {paid[0]} by names, {paid[1]} by names and types, {paid[2]} by a dictionary.")


if __name__ == "__main__":
    main()
