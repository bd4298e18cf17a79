"""`understudy schema`: a first draft from names and types, a walk through what is open, a check that tells all."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, shell
from understudy.cli.options import Dataset, Delta, Json, LedgerFile, note_lines, reads_table, require_absent
from understudy.errors import InputError, Problem, SchemaError, UsageError
from understudy.schema.table_check import TableCheck

if TYPE_CHECKING:
    from understudy.schema import Schema
    from understudy.schema.edit import Question, SchemaEditor

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
        str | None,
        typer.Option("--like", metavar="TABLE", help="A public table with the same columns; its values are read."),
    ] = None,
    codebook: Annotated[
        list[Path] | None,
        typer.Option(
            "--codebook",
            metavar="FILE",
            help="File that describes the columns: data dictionary (CSV), Frictionless, CSVW, JSON Schema, SQL, Stata "
            "or SPSS; may be repeated.",
        ),
    ] = None,
    names_are_right: Annotated[
        bool,
        typer.Option("--names-are-right", help="Accept column names that look like values, such as 2019 or a date."),
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Writes the draft of a schema, from column names and types.

    It says DECIDE wherever a person has to decide, and marks guesses that a person has to confirm.
    """
    with shell("schema draft", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.counts.public import draft as draft_of
        from understudy.schema.schema import parted

        require_absent("--out", out)
        made = draft_of(table, like=like, codebook=codebook or (), names_are_right=names_are_right)
        made.save(out)
        place.line(f"Wrote {out}. Places that say DECIDE are yours to fill in, from public knowledge only.")
        places = made.open
        guesses = sum(bool(found.guess) for found in places)
        place.line(f"To decide: {len(places) - guesses}. Guesses to confirm, by deleting their comment: {guesses}.")
        place.json({"schema": str(out), "decide": len(places) - guesses, "guesses": guesses})
        note_lines(place, table)
        place.note(f"Then: understudy schema edit {out}")
        place.note(f"and:  understudy schema check {out} {parted(table)[0]}")


HELP = """\
Enter    accept the guess, where there is one
u        undo the last answer or skip
s        skip this place; it stays open
x        leave this column out of the release
q        quit; everything answered so far is saved
?        this page
Anything else is the answer, as you would write it in the file; lists as A, B, C or [A, B, C].
For a whole column that was guessed, state only what differs: upper: 99, or another kind: date.
For a whole column or a kind, a list of labels means a category: Low, Medium, High. One label: [Low].
Put quotes around an answer that is one of these letters: "s".
Answers come from public knowledge (a codebook, a form, a law), never from the rows.\
"""


@app.command("edit")
def edit(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema file to fill in.")],
    *,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Walks through the open places of a schema.

    A place is open if it says DECIDE or holds a guess to confirm. Each is shown with its column, what to state, a hint
    and the guess if there is one. Enter accepts the guess, x leaves the column out, u undoes, s skips, q quits, ?
    helps. Answers are checked and saved at once, so you may stop at any time and go on later. The file keeps its
    comments and its layout. Reads no table.
    """
    with shell("schema edit", quiet=quiet, debug=debug) as place:
        from understudy.schema.document import schema_from_text, text_of
        from understudy.schema.edit import SchemaEditor

        editor = SchemaEditor(text_of(schema), str(schema))
        if editor.left:
            keys = "Enter accepts a guess, x leaves a column out, u undoes, s skips, q quits, ? helps."
            place.line(f"{schema}: {editor.left} open. {keys}")
        else:
            place.line(f"{schema}: nothing is open.")
        try:
            _walk(place, editor, schema)
        except (KeyboardInterrupt, UsageError):
            # A signal may have struck while a line was being printed, and left that console of no use.
            Shell(quiet=quiet).line(f"\n{_standing(editor, schema)}")
            raise
        if editor.left:
            place.line(_standing(editor, schema))
            return
        known = schema_from_text(editor.text, str(schema))
        place.line(f"{schema}: no problems (columns: {len(known.columns)}, rules: {len(known.rules)}).")


def _standing(editor: "SchemaEditor", schema: Path) -> str:
    """Where the walk stands, by what is in the file: a signal may have come between an answer and its saving."""
    from understudy.schema.document import text_of
    from understudy.schema.edit import SchemaEditor

    held = text_of(schema)
    done = f"{editor.answered} answered and saved" if held == editor.text else "the last answer is not saved"
    open_now = SchemaEditor(held, str(schema)).left
    left = f"{open_now} still open. Go on with: understudy schema edit {schema}" if open_now else "nothing open."
    return f"{schema}: {done}, {left}"


def _walk(place: Shell, editor: "SchemaEditor", schema: Path) -> None:
    """Asks until nothing is left or the person has had enough; every change is on disk before the next question."""
    from understudy.schema.edit import save_text

    while (question := editor.question()) is not None:
        _show_question(place, question)
        said = place.ask("> ")
        before = editor.text
        if said == "q":
            return
        if said == "?":
            place.line(HELP)
        elif said == "s":
            editor.skip()
        elif said == "u":
            if not editor.undo():
                place.line("There is nothing to undo.")
        else:
            for reason in editor.leave_out() if said == "x" else editor.answer(said):
                place.line(f"  Not accepted: {reason}")
        if editor.text != before:
            save_text(schema, editor.text, before)


def _show_question(place: Shell, question: "Question") -> None:
    kind = f" ({question.kind})" if question.kind else ""
    place.line(f"\n{question.number} of {question.total}: {question.subject}{kind}")
    place.line(f"  {'Confirm or state' if question.default else 'State'} {question.asked}.")
    if question.hint:
        place.line(f"  Hint: {question.hint}")
    if question.default:
        place.line(f"  Guess: {question.default}")


@app.command("check")
@reads_table("table")
def check(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema file.")],
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="Also compare with the column names of this table.")
    ] = None,
    *,
    rows: Annotated[
        bool, typer.Option("--rows", help="Also look at the rows of TABLE. CONFIDENTIAL, unless you give --epsilon.")
    ] = False,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="With --rows: privacy budget ε of a look with noise.")
    ] = None,
    delta: Delta = 0.0,
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Lists all problems of a schema, and of a table's header under it. Reads no rows without --rows.

    With --rows it shows for each column the shares of values that are inside the bounds or the list, outside, missing
    or unreadable, and the most frequent shapes of values that cannot be read (letters as a, digits as 9). That is for
    your eyes only: it is written nowhere, and no guarantee covers decisions based on it. With --epsilon the shares
    have noise, their cost is charged to --ledger before a row is read, and they may be shown to anybody.
    """
    with shell("schema check", quiet=quiet, debug=debug, as_json=as_json, charges=epsilon is not None) as place:
        from understudy.counts.opening import header_of

        if rows and table is None:
            raise UsageError("--rows", "needs a table to look at.", "Name it after the schema.")
        known, names = _checked(schema, table)
        found = TableCheck(tuple(undeclared := _undeclared(known, names)), (known.unit_remark(undeclared),))
        if rows or epsilon is not None or delta or ledger is not None or dataset is not None:
            with place.running(("measure",)):
                found = known.check(table, rows=rows, epsilon=epsilon, delta=delta, ledger=ledger, dataset=dataset)
        found = replace(found, remarks=tuple(filter(None, found.remarks)))
        if table is not None:
            note_lines(place, table, known)
            formless = known.format_remark(header_of(table, known))
            if formless:  # no warning: most text is in ISO form
                place.note(formless[0].upper() + formless[1:])
        if as_json:
            place.json({**found.to_json(), "schema": str(schema)})
            return
        _show(place, known, found, schema)
        if ledger is not None:
            _show_balance(place, ledger, dataset)


def _undeclared(known: "Schema", names: list[str]) -> list[str]:
    return [name for name in names if name not in known.names and name != known.unit.column]


def _show(place: Shell, known: "Schema", found: TableCheck, schema: Path) -> None:
    """What the check found; a confidential one begins and ends by saying so."""
    if found.first_line:
        place.line(found.first_line)
    place.line(f"{schema}: no problems (columns: {len(known.columns)}, rules: {len(known.rules)}).")
    for remark in found.remarks:
        place.line(f"Please check: {remark}")
    if found.left_out:
        place.line(f"Not in the schema, so left out: {', '.join(found.left_out)}.")
    if found.rows is not None:
        place.line(f"{'Rows' if found.confidential else 'Rows, with noise'}: {found.rows:,}")
        place.table(*found.table())
    if found.last_line:
        place.line(found.last_line)


def _show_balance(place: Shell, ledger: Path, dataset: str | None) -> None:
    """What is left of the cap after a look with noise."""
    from understudy.privacy.ledger import Ledger

    opened = Ledger.open(ledger)
    name = dataset or opened.datasets()[0]
    place.line(f"Charged to {name!r} in {ledger}; left: {opened.balance(name).left}.")


def _checked(schema: Path, table: str | None) -> "tuple[Schema, list[str]]":
    """The schema and the column names of the table; raises with the problems of both, so that one run tells all."""
    from understudy.counts.files import container_of
    from understudy.counts.opening import header_of, is_of_files
    from understudy.schema import Schema
    from understudy.schema.document import file_dialect, file_header_problems

    found: list[Problem] = []
    known: Schema | None = None
    try:
        known = Schema.from_yaml(schema)
    except SchemaError as error:
        found += error.problems
    names: list[str] = []
    try:
        if table is not None:
            if known or not is_of_files(table):
                names = [name for name, _ in header_of(table, known)]
            else:
                names = list(container_of(table, file_dialect(schema)).names)
            found += known.header_problems(names) if known else file_header_problems(schema, names)
    except InputError as error:
        if not found:
            raise
        found.append(error.problem)
    if known is None or found:
        raise SchemaError(found)
    return known, names
