"""The `understudy` command: its subcommands, and the exit status of each ending.

0 done · 1 a fault of ours · 2 usage, schema or input · 3 budget or ledger refused · 4 not enough memory or disk ·
5 a criterion is not met · 6 a criterion is undecided (both of `verify --criteria` alone) ·
130, 143, 129, 141 ended by Ctrl-C, a request to terminate, a closed terminal, a reader gone (128 plus the signal).
Packages that do the work are imported inside the commands, so that `--help` answers at once.
"""

import errno
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from understudy.cli import compare, demo, evaluate, ledger, methods, sample, schema, studio, synthesize
from understudy.cli.console import OutputError, end, has_output, orderly_signals, show_error, stopped_by

ORDER = (
    "demo",
    "methods",
    "schema",
    "plan",
    "leafsize",
    "synthesize",
    "sample",
    "stats",
    "label",
    "sign",
    "verify",
    "metrics",
    "evaluate",
    "compare",
    "pool",
    "audit",
    "ledger",
    "studio",
)
"""Commands in the order a steward meets them."""


class _InOrder(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        """The names for the help page."""
        return [*ORDER, *sorted(set(self.commands) - set(ORDER))]


app = typer.Typer(
    name="understudy",
    cls=_InOrder,
    help="Differentially private stand-ins for private tables.",
    epilog="Exit status: 0 done, 1 a fault in understudy, 2 usage or schema, 3 budget or ledger, 4 memory or disk. "
    "With --criteria, verify also ends with 5 (not met) or 6 (undecided).",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=True,
    pretty_exceptions_enable=False,  # typer's tracebacks print local variables, so private values
    rich_markup_mode=None,
)
app.command("demo", short_help="Run the whole workflow on a simulated table.")(demo.demo)
app.command("methods", short_help="List the methods: guarantee, needs, limits, source.")(methods.methods)
app.add_typer(schema.app, name="schema", short_help="Draft, fill in and check a schema: what the table may contain.")
app.command("plan", short_help="Plan a run: its cost, memory and time; reads no data.")(synthesize.plan)
app.command("leafsize", short_help="Find leaf_size for method rdt; reads no data.")(sample.leafsize)
app.command("synthesize", short_help="Make a release folder from a private table.")(synthesize.synthesize)
app.command("sample", short_help="Draw more rows from a release, at no privacy cost.")(sample.sample)
app.command("stats", short_help="Show measured tables with their standard errors, at no privacy cost.")(sample.stats)
app.command("label", short_help="Fill in private columns of your own records, at no privacy cost.")(sample.label)
app.command("sign", short_help="Sign a release folder with your key.")(sample.sign)
app.command("verify", short_help="Check a release folder without private data.")(sample.verify)
app.command("metrics", short_help="List the metrics: question, scores, options.")(methods.metrics)
app.command("evaluate", short_help="Compare a release with the real table; NOT FOR RELEASE.")(evaluate.evaluate)
app.command("compare", short_help="Compare methods and budgets; NOT FOR RELEASE.")(compare.compare)
app.command("pool", short_help="Compute estimates whose intervals include the noise.")(evaluate.pool)
app.command("audit", short_help="Test a method's privacy claim by many runs; reads no data.")(methods.audit)
app.add_typer(ledger.app, name="ledger", short_help="Keep an account of what each dataset has spent.")
app.command("studio", short_help="Run the whole workflow in a browser, on this machine.")(studio.studio)

# Newer versions of typer carry click inside themselves, older ones import it: ask typer for the class either way.
_CLICK_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"understudy {version('understudy')}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Differentially private stand-ins for private tables."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status; never raises for a mistake of the user."""
    if not has_output():
        show_error("Standard output", ["It is closed. Send it to a file, or to /dev/null."])
        return 2
    with orderly_signals():
        try:
            status = _run(list(sys.argv[1:] if arguments is None else arguments))
            sys.stdout.flush()  # help pages and versions: what commands print has left by now
        except SystemExit as leaving:
            if not leaving.code:  # shell completion ends in this way
                return 0
            # and so does click where a reader has gone
            return _ended(OutputError(errno.EPIPE))
        except OSError as error:  # commands end their own errors: what fails out here is printing a page
            return _ended(OutputError(error.errno or errno.EIO))
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - no traceback may reach the terminal
            return _ended(error)
        number = stopped_by()
        return status if number is None or status == 0 else 128 + number


def _ended(error: BaseException) -> int:
    try:
        end(error)
    except typer.Exit as ending:
        return ending.exit_code


def _run(words: list[str]) -> int:
    try:
        status = app(args=words, prog_name="understudy", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except _CLICK_ERROR as error:
        text = error.format_message()
        if text:  # empty when the help page was printed instead
            command = error.ctx.command_path if error.ctx else "understudy"
            show_error("Usage", [text, f'Try "{command} --help".'])
        return 2
    return status if isinstance(status, int) else 0
