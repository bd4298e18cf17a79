"""`understudy verify`: whether a release folder is whole and consistent, without private data."""

from typing import Annotated

import typer

from understudy.cli.console import Debug, Quiet, shell
from understudy.cli.options import ReleaseFolder
from understudy.errors import ReleaseError

__all__ = ["verify"]


def verify(
    release: ReleaseFolder,
    *,
    everything: Annotated[
        bool, typer.Option("--everything", help="Check every value of a very large folder, however long it takes.")
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Checks every file of a release: complete, unaltered, and consistent with what its statement claims."""
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.models.plain_files import read_json
        from understudy.release.label import read_statement
        from understudy.release.verify import inspect_release

        found = inspect_release(release, everything=everything)
        if found.problems:
            raise ReleaseError(found.problems)
        place.line(f"{release}: nothing wrong was found.")
        for part in found.unchecked:
            place.line(f"Not checked, because there is too much of it: {part}. Check it with --everything.")
        place.line(read_statement(read_json(release / "statement.json")).promise)
        place.note("Not checkable from here: that the noise was drawn honestly, and from which table.")
