"""`understudy schema`: a first draft from names and types, and a check that lists every problem at once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, shell
from understudy.cli.options import note_lines, reads_table, require_absent
from understudy.errors import InputError, Problem, SchemaError

if TYPE_CHECKING:
    from understudy.schema import Schema

app = typer.Typer(
    help="What the table may contain, stated by people and never read from rows.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("draft")
@reads_table("table")
def draft(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="The table; only its column names and storage types are read.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Schema file to write; must not exist.")],
    *,
    like: Annotated[
        str | None, typer.Option("--like", metavar="TABLE", help="A public table with the same columns; it is read.")
    ] = None,
    codebook: Annotated[
        list[Path] | None,
        typer.Option(
            "--codebook",
            metavar="FILE",
            help="Describes the columns: data dictionary (CSV), Frictionless, CSVW or JSON Schema, SQL, Stata, SPSS; "
            "may be repeated.",
        ),
    ] = None,
    names_are_right: Annotated[
        bool, typer.Option("--names-are-right", help="Take names that look like values (2019, a date) as they are.")
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Writes a schema to fill in: DECIDE wherever a person has to decide, guesses to confirm."""
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.counts.public import draft as draft_of
        from understudy.schema.dialect import parted

        require_absent("--out", out)
        made = draft_of(table, like=like, codebook=codebook or (), names_are_right=names_are_right)
        made.save(out)
        place.line(f"Wrote {out}. Places that say DECIDE are yours to fill in, from public knowledge only.")
        places = made.open
        guesses = sum(bool(found.guess) for found in places)
        place.line(f"To decide: {len(places) - guesses}. Guesses to confirm, by deleting their comment: {guesses}.")
        note_lines(place, table)
        place.note(f"Then: understudy schema check {out} {parted(table)[0]}")


@app.command("check")
@reads_table("table")
def check(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema file.")],
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Also compare with the column names of this table.")
    ] = None,
    *,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Lists all problems of a schema, and of a table's header under it. Reads no rows."""
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.counts.files import header_of

        known, names = _checked(schema, table)
        place.line(f"{schema}: no problems (columns: {len(known.columns)}, rules: {len(known.rules)}).")
        undeclared = [name for name in names if name not in known.names and name != known.unit.column]
        header = [] if table is None else header_of(table, known.file)
        remarks = (known.unit_remark(undeclared), known.format_remark(header))
        for remark in filter(None, remarks):
            place.line(f"Look at this: {remark}")
        if undeclared:
            place.line(f"Not in the schema, so left out: {', '.join(undeclared)}.")
        if table is not None:
            note_lines(place, table, known.file)


def _checked(schema: Path, table: str | None) -> "tuple[Schema, list[str]]":
    """The schema and the column names of the table; raises with the problems of both, so that one run tells all."""
    from understudy.counts.files import header_of
    from understudy.schema import Schema
    from understudy.schema.document import file_header_problems

    found: list[Problem] = []
    known: Schema | None = None
    try:
        known = Schema.from_yaml(schema)
    except SchemaError as error:
        found += error.problems
    names: list[str] = []
    try:
        if table is not None:
            names = [name for name, _ in header_of(table, known.file if known else None)]
            found += known.header_problems(names) if known else file_header_problems(schema, names)
    except InputError as error:
        if not found:
            raise
        found.append(error.problem)
    if known is None or found:
        raise SchemaError(found)
    return known, names
