"""A studio in a process of its own, and a person who walks through it in a real browser."""

import gzip
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from tests.report.browser import Browser

AXE = gzip.decompress((Path(__file__).parent / "axe.min.js.gz").read_bytes())
"""axe-core's one file as npm has it (`make axe` renews it): what it finds serious makes a page fail."""
AXE_SHA256 = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"
"""Of `axe.min.js` in axe-core 4.14.0."""
FAULTS = """axe.run(document, {resultTypes: ['violations']}).then(found => found.violations
  .filter(one => ['serious', 'critical'].includes(one.impact))
  .map(one => one.id + ': ' + one.nodes.slice(0, 3).map(node => node.html.slice(0, 120)).join(' | ')))"""
WIDER = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, .wide, textarea'))
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + ' ' + e.className).slice(0, 5)"""


class Served:
    """`understudy studio` on a folder; use it in a `with` statement."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._command = [sys.executable, "-m", "understudy", "studio", str(folder), "--port", "0", *words]

    def __enter__(self) -> "Served":
        self.process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        found = re.search(r"http://\S+", self.process.stdout.readline())
        assert found is not None
        self.start = found[0]
        self.address = self.start.rpartition("/start/")[0]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Ends it as a power cut would."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.communicate()


class Walker:
    """A person at a browser: looks, clicks, types, and minds what does not fit or cannot be read aloud."""

    def __init__(self, browser: Browser, served: Served, width: int) -> None:
        self.browser, self.served, self.width = browser, served, width
        browser.open(served.start, width)
        browser.until("location.pathname === '/' && document.readyState === 'complete'")

    def go(self, path: str) -> None:
        self.browser.open(self.served.address + path, self.width)

    def look(self) -> list[str]:
        """What is wrong with the page as it stands."""
        self.browser.value("[...document.querySelectorAll('details')].map(e => e.open = true).length")
        wide = [f"wider than the window: {one}" for one in self.browser.value(WIDER)]
        scripts = self.browser.value(
            "document.querySelectorAll('script:not([src]), style, [onerror], [onclick]').length"
        )
        found = wide + (["a script or style in the page"] if scripts or self.browser.value("!!window.attacked") else [])
        self.browser.value(AXE.decode() + "; true")
        return found + list(self.browser.promised(FAULTS))

    def click(self, text: str) -> None:
        """Clicks the button or link whose words begin so, and waits for the next page."""
        self.browser.value("document.body.dataset.left = 'yes'")
        chosen = f"[...document.querySelectorAll('button, a')].find(e => e.textContent.trim().startsWith({text!r}))"
        self.browser.until(chosen)
        self.browser.value(f"{chosen}.click()")
        self.browser.until("!document.body.dataset.left && document.readyState === 'complete'")

    def press(self, text: str) -> None:
        """Clicks a button that changes a part of the page."""
        chosen = f"[...document.querySelectorAll('button')].find(e => e.textContent.trim().startsWith({text!r}))"
        self.browser.value(f"{chosen}.click()")

    def type(self, field: str, text: str) -> None:
        """Puts a text into a field, as typing does."""
        self.browser.value(
            f"(() => {{ const e = document.getElementById({field!r}); e.focus(); e.value = {text!r};"
            " e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change',"
            " {bubbles: true})); return true; })()"
        )

    def set_budget(self, step: int, epsilon: str) -> None:
        """Moves the slider of ε, and waits until the page says what that means."""
        self.type("epsilon", str(step))
        self.browser.until(f"document.getElementById('plan').innerText.includes('ε = {epsilon},')")

    @property
    def words(self) -> str:
        return str(self.browser.value("document.body.innerText"))
