"""Runs the command line inside the test process and keeps what it printed."""

import contextlib
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

from understudy.cli.app import main

__all__ = ["Outcome", "listing", "run"]


@dataclass(frozen=True)
class Outcome:
    """Exit status and output of one command."""

    status: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Everything printed, with panel borders and line breaks folded into single spaces."""
        return " ".join((self.out + " " + self.err).replace("│", " ").split())

    @property
    def panels(self) -> int:
        return self.err.count("╭")


def run(*arguments: object) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(argument) for argument in arguments])
    return Outcome(status, out.getvalue(), err.getvalue())


def listing(folder: Path) -> dict[str, str]:
    """Every path below the folder with a digest of its content; two equal listings mean nothing was written."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found
