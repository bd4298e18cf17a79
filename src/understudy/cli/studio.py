"""`understudy studio` runs the whole workflow in a browser, on this machine."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.console import Debug, Quiet, Shell, shell
from understudy.errors import UsageError

PORT = 8321


def studio(
    folder: Annotated[Path, typer.Argument(help="Folder with the tables; nothing outside it can be opened.")] = Path(),
    *,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port of this machine; 0: any free one.")
    ] = PORT,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Ledger to charge; ledger.db in the folder by default.")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Only show releases and their cards; nothing can be run or changed.")
    ] = False,
    host: Annotated[
        str | None,
        typer.Option("--host", help="Address to listen on, behind a proxy that speaks TLS; needs --password-file."),
    ] = None,
    password_file: Annotated[
        Path | None, typer.Option("--password-file", help="File with the hashed password.")
    ] = None,
    address: Annotated[
        str, typer.Option("--address", help="Address under which the proxy is reached, such as https://studio.example.")
    ] = "",
    make_password: Annotated[
        Path | None,
        typer.Option("--make-password", metavar="FILE", help="Ask for a password, write its hash, and stop."),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Opens the studio: from a table to a release in a browser, without commands.

    It listens on this machine alone and prints the address to open, which works once. Needs the extra [studio].
    """
    with shell("studio", quiet=quiet, debug=debug) as place:
        _require_extra()
        if make_password is not None:
            _write_password(place, make_password)
            return
        _require_outside(folder)
        _check(host, password_file, address)
        from understudy.studio.server import LOCAL, listening, serve, studio_of

        taken = listening(host or LOCAL, port)
        own = taken.getsockname()[1]
        made = studio_of(
            folder, own, ledger=ledger, read_only=read_only, password_file=password_file, address=address
        )  # fmt: skip
        _welcome(place, made, own, address)
        serve(made, taken)


def _check(host: str | None, password_file: Path | None, address: str) -> None:
    """Options that only make sense together."""
    if host is not None and password_file is None:
        raise UsageError("--host", "lets others reach the studio.", "Give --password-file too.")
    if host is not None and not address:
        raise UsageError("--host", "needs the address that others use.", "Give --address https://NAME too.")
    if address and password_file is None:
        raise UsageError("--address", "is for a studio that others reach.", "Give --host and --password-file too.")


def _require_outside(folder: Path) -> None:
    """Refuses a release folder: the studio keeps drafts and reports beside the tables."""
    from understudy.release.files import refuse_release_folder

    try:
        refuse_release_folder(folder)
    except UsageError as error:
        raise UsageError("folder", error.problem.rule, "Name the folder that contains the release.") from error


def _require_extra() -> None:
    from importlib.util import find_spec

    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise UsageError("studio", "needs packages that are not installed.", 'Run: pip install "understudy[studio]"')


def _welcome(place: Shell, made: object, port: int, address: str) -> None:
    token = getattr(getattr(made, "doors"), "token")  # noqa: B009 - the studio is an extra, whose types are not loaded
    place.line(
        f"Open {address or f'http://127.0.0.1:{port}'}" if not token else f"Open http://127.0.0.1:{port}/start/{token}"
    )
    place.line("The address works once. Stop the studio with Ctrl-C; runs go on." if token else "Stop it with Ctrl-C.")
    sys.stdout.flush()


def _write_password(place: Shell, path: Path) -> None:
    """Asks twice, and writes the hash to a new file for its owner alone."""
    from understudy.release.files import check_free
    from understudy.studio.guard import hashed

    check_free(path)
    password = str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
    if len(password) < 12:
        raise UsageError("password", "is too short.", "Use at least 12 characters.")
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(f"{hashed(password)}\n")
    except OSError as error:
        raise UsageError(
            "--make-password", f"{str(path)!r} cannot be created.", "Name a file that does not exist yet."
        ) from error
    place.line(f"Wrote {path}. Give it as --password-file, with --host and --address.")
