"""The `understudy` command, also as `python -m understudy`.

Loading the command takes a moment in which nothing is read, charged or written: Ctrl-C ends it there at once.
"""

import os
import signal
import sys
from contextlib import suppress
from types import FrameType


def _leave(_number: int, _frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, b"Stopped before anything was read, charged or written.\n")
    os._exit(130)


def main() -> int:
    """Runs the command that was typed and returns its exit status."""
    before = signal.getsignal(signal.SIGINT)
    ignored = before is signal.SIG_IGN  # as a shell does for what it runs in the background
    signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else _leave)
    from understudy.cli.app import main as run

    signal.signal(signal.SIGINT, before)
    status = run()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is over, and its status is known
    return status


if __name__ == "__main__":
    sys.exit(main())
