"""`understudy ledger`: open a ledger with a cap per dataset, look at it, check that it is consistent."""

import dataclasses
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, shell
from understudy.cli.options import Json
from understudy.errors import LedgerError, UsageError, nearest

if TYPE_CHECKING:
    from understudy.privacy.ledger import Balance, Composition, Ledger
    from understudy.privacy.ledger_file import Entry

app = typer.Typer(
    help="Keep an account of what each dataset has spent over all its releases.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

OPEN = "interrupted or still running"
"""State of a charge whose run has no end in the ledger yet."""
LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file.")]


@app.command("init")
def init(
    path: LedgerFile,
    dataset: Annotated[str, typer.Option("--dataset", help="The name you give the dataset.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="Cap on ε over all releases.")],
    delta: Annotated[float, typer.Option("--delta", help="Cap on δ over all releases.")] = 0.0,
    composition: Annotated[
        str, typer.Option("--composition", help='How the costs of runs add up: "basic" (ε and δ) or "zcdp" (ρ).')
    ] = "basic",
    *,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Opens a dataset in a ledger, with a cap.

    The ledger is created if the file does not exist. A cap cannot be changed later.
    """
    with shell("ledger init", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.privacy.cost import Budget
        from understudy.privacy.ledger import Ledger
        from understudy.release.files import refuse_release_folder

        cap = Budget(epsilon, delta)
        rule = _composition(composition)
        if path.exists() and path.stat().st_size:
            Ledger.open(path).add_dataset(dataset, cap, rule)
            place.note(f"Dataset {dataset!r} was added to {path}.")
        else:
            refuse_release_folder(path)
            Ledger.create(path, dataset, cap, rule)
            place.note(f"Ledger {path} was created with dataset {dataset!r}.")
        place.note("Keep one copy only: what is charged to one copy of a ledger is missing in the other.")
        _show(place, Ledger.open(path), [dataset], as_json=as_json)


@app.command("show")
def show(
    path: LedgerFile,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Only this dataset.")] = None,
    *,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Shows caps, what was spent, what is left, and every charge.

    Each charge is shown with the outcome of its run, and counts whether or not it led to a release. A run without an
    outcome is still working or was interrupted.
    """
    with shell("ledger show", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.privacy.ledger import Ledger

        ledger = Ledger.open(path)
        known = ledger.datasets()
        if dataset is not None and dataset not in known:
            raise UsageError(f"dataset {dataset!r}", "is not in this ledger.", nearest(dataset, known))
        _show(place, ledger, known if dataset is None else [dataset], as_json=as_json)


@app.command("verify")
def verify(
    path: LedgerFile,
    known: Annotated[
        list[str] | None,
        typer.Option(
            "--known",
            metavar="HASH",
            help="Ledger head from the statement of an earlier release, which the ledger must hold; may be repeated.",
        ),
    ] = None,
    *,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Checks the chain of entries.

    A ledger that was edited does not pass. One that was rolled back to an earlier state passes, unless --known names
    an entry that it lacks.
    """
    with shell("ledger verify", quiet=quiet, debug=debug, as_json=as_json) as place:
        from understudy.privacy.ledger import Ledger

        ledger = Ledger(path)
        problems = ledger.verify(known or [])
        if problems:
            found = [dataclasses.asdict(problem) for problem in problems]
            place.json({"problems": found, "entries": None, "head": None})
            first, *others = problems
            rest = "".join(f"\n{problem}" for problem in others)
            raise LedgerError(first.where, f"{first.rule} {first.fix}{rest}")
        place.json({"problems": [], "entries": len(ledger.entries()), "head": ledger.head()})
        place.line(f"The ledger is consistent: {len(ledger.entries())} entries, head {ledger.head()}.")


def _composition(text: str) -> "Composition":
    if text == "basic":
        return "basic"
    if text in ("zcdp", "concentrated"):  # the name it had first
        return "zcdp"
    raise UsageError("--composition", f"must be basic or zcdp, got {text!r}.")


def _show(place: Shell, ledger: "Ledger", datasets: list[str], *, as_json: bool) -> None:
    balances = {name: ledger.balance(name) for name in datasets}
    entries = ledger.entries()
    charges = [entry for entry in entries if entry.kind == "charge" and entry.dataset in balances]
    outcomes = {entry.run: entry.outcome for entry in entries if entry.kind == "finish"}
    continued = Counter(entry.run for entry in entries if entry.kind == "continue")
    became = [(entry, outcomes.get(entry.run, OPEN), continued[entry.run]) for entry in charges]
    if as_json:
        parts = {name: _balance_document(balance) for name, balance in balances.items()}
        listed = [entry.to_json() | {"state": state, "continued": times} for entry, state, times in became]
        place.json({"datasets": parts, "charges": listed, "head": ledger.head()})
        return
    headers = ["dataset", "composition", ">cap", ">spent", ">left", ">charges"]
    place.table(headers, [[name, *_balance_row(balance)] for name, balance in balances.items()])
    if charges:
        headers = ["made", "dataset", "run", "method", ">claim", "state", ">continued"]
        place.table(headers, [_charge_row(*one) for one in became])


def _balance_row(balance: "Balance") -> list[str]:
    amounts = [str(balance.cap), str(balance.claim()), str(balance.left)]
    return [balance.composition, *amounts, f"{balance.releases:,}"]


def _balance_document(balance: "Balance") -> dict[str, object]:
    from understudy.privacy.cost import DELTA_UNIT, UNIT

    document: dict[str, object] = {"composition": balance.composition, "charges": balance.releases}
    for name, cost in (("cap", balance.cap), ("spent", balance.claim()), ("left", balance.left)):
        document[name] = {
            "epsilon": cost.epsilon / UNIT,
            "rho": cost.rho / UNIT,
            "delta": cost.delta / DELTA_UNIT,
        }
    return document


def _charge_row(entry: "Entry", state: str, continued: int) -> list[str]:
    from understudy.privacy.cost import Cost

    claim = str(Cost(epsilon=entry.budget_epsilon, delta=entry.budget_delta))
    return [entry.made[:10], entry.dataset, entry.run[:8], entry.method, claim, state, f"{continued:,}"]
