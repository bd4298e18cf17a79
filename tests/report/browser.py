"""A headless Chromium driven through its debugging pipe, with the standard library alone: how a page really looks.

Chromium reads commands from file descriptor 3 and writes answers to 4, as JSON texts that end in NUL.
"""

import base64
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["CHROMIUM", "Browser"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)


class Browser:
    """One browser with one page; use it in a `with` statement."""

    def __init__(self) -> None:
        # Helpers of a browser may outlive it by a moment and still write into its folder.
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read_commands, self._write = _pipe()
        self._read, write_answers = _pipe()

        def arrange() -> None:
            os.dup2(read_commands, 3)
            os.dup2(write_answers, 4)

        self._process = subprocess.Popen(
            [str(CHROMIUM), *FLAGS, f"--user-data-dir={self._folder.name}", "about:blank"],
            pass_fds=(3, 4),
            preexec_fn=arrange,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        self._number = 0
        self._rest = b""
        self.complaints: list[str] = []
        """What the console was told since the page was opened: errors, warnings, whatever the page's policy stopped."""
        self.requests: list[str] = []
        """Every address that the page asked for, its own first."""
        self.tab = ""
        """The tab that is looked at; another one that was opened can be put here."""
        self.open_tab()

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._folder.cleanup()

    def open_tab(self) -> str:
        """Opens one more tab and looks at it."""
        self.tab = ""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self.tab = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{part}.enable")
        return self.tab

    def open(self, page: Path | str, width: int, height: int = 900) -> None:
        """Shows a file or an address in a window of that width, and waits until it is there."""
        self.complaints, self.requests = [], []
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._ask("Emulation.setDeviceMetricsOverride", **screen)
        self._ask("Page.navigate", url=page if isinstance(page, str) else page.absolute().as_uri())
        self._wait("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives on the page; the page's own policy forbids its scripts, not this."""
        found = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def promised(self, expression: str) -> Any:
        """What the promise that a JavaScript expression gives comes to."""
        found = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = 60.0) -> None:
        """Waits until a JavaScript expression is true on whatever page is there by then."""
        deadline = time.monotonic() + seconds
        while not self._holds(expression):
            assert time.monotonic() < deadline, f"waited in vain for {expression}"
            time.sleep(0.05)

    def _holds(self, expression: str) -> bool:
        try:
            return bool(self.promised(f"(async () => !!({expression}))()"))
        except AssertionError:  # a page that is being left, or is not there yet
            return False

    def press_tab(self) -> None:
        """Moves on to the next link or control."""
        for kind in ("rawKeyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)

    def prefer(self, scheme: str) -> None:
        """Sets what the reader prefers: light or dark pages."""
        self._ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def print_media(self, on: bool) -> None:
        """Shows the page as it is printed, or on the screen again."""
        self._ask("Emulation.setEmulatedMedia", media="print" if on else "")

    def hide_scrollbars(self) -> None:
        """Gives pages the whole width of the window, as on a phone."""
        self._ask("Emulation.setScrollbarsHidden", hidden=True)

    def picture(self, target: Path, *, whole: bool = True) -> None:
        """Writes a screenshot of the whole page, or of what the window shows."""
        found = self._ask("Page.captureScreenshot", captureBeyondViewport=whole)
        target.write_bytes(base64.b64decode(found["data"]))

    def _ask(self, method: str, **given: object) -> dict[str, Any]:
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": given}
        if self.tab:
            message["sessionId"] = self.tab
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _wait(self, event: str) -> None:
        while self._next().get("method") != event:
            pass

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._read, 2**16)
            assert part, "the browser is gone"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        message = dict(json.loads(text))
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, event: str, facts: dict[str, Any]) -> None:
        if event in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(json.dumps(facts)[:500])
        elif event == "Network.requestWillBeSent":
            self.requests.append(str(facts["request"]["url"]))


def _pipe() -> tuple[int, int]:
    """Both ends of a pipe, well above the descriptors that the browser wants."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 16) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
