"""Progress: how a long run tells its caller where it stands.

Stage names are fixed and public, shares follow from public plans only. No count, label or file content ever passes
through here: a progress bar is an output like any other.
"""

from typing import Protocol

__all__ = ["STAGES", "Progress", "silent"]

STAGES = ("check", "charge", "prepare", "measure", "draw", "write")
"""Every stage a run may report, in order; a stage that is not needed is skipped."""


class Progress(Protocol):
    """Receives the stage that is running and the share of that stage already done."""

    def stage(self, name: str, done: float) -> None:
        """Called at the start (0.0), now and then, and at the end (1.0) of each stage."""
        ...


class _Silent:
    """Says nothing."""

    def stage(self, name: str, done: float) -> None:
        """Ignores the report."""


silent: Progress = _Silent()
