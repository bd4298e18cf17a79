"""`understudy schema`: a first draft from names and types, and a check that lists every problem at once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, shell
from understudy.cli.options import note_lines, require_absent
from understudy.errors import InputError, Problem, SchemaError

if TYPE_CHECKING:
    from understudy.schema import Schema

app = typer.Typer(
    help="What the table may contain, stated by people and never read from rows.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("draft")
def draft(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="The table; only its column names and storage types are read.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Schema file to write; must not exist.")],
    *,
    names_are_right: Annotated[
        bool, typer.Option("--names-are-right", help="Take names that look like values (2019, a date) as they are.")
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Writes a schema to fill in: one entry per column, DECIDE wherever a person has to decide."""
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.counts.files import container_of
        from understudy.schema.draft import draft_schema

        require_absent("--out", out)
        container = container_of(table)
        text = draft_schema(container.header, names_are_right=names_are_right)
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
        place.line(f"Wrote {out}. Places that say DECIDE are yours to fill in, from public knowledge only.")
        note_lines(place, table)
        place.note(f"Then: understudy schema check {out} {table}")


@app.command("check")
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
        remark = known.unit_remark(undeclared)
        if remark:
            place.line(f"Look at this: {remark}")
        if undeclared:
            place.line(f"Not in the schema, so left out: {', '.join(undeclared)}.")
        if table is not None:
            note_lines(place, table)
            formless = known.format_remark(header_of(table))
            if formless:  # no warning: most text is in ISO form
                place.note(formless[0].upper() + formless[1:])


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
            names = [name for name, _ in header_of(table)]
            found += known.header_problems(names) if known else file_header_problems(schema, names)
    except InputError as error:
        if not found:
            raise
        found.append(error.problem)
    if known is None or found:
        raise SchemaError(found)
    return known, names
