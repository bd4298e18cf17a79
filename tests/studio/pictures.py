"""Pictures of the studio's pages on the simulated table, for docs/studio.md: `python -m tests.studio.pictures`."""

import tempfile
from pathlib import Path

from tests.report.browser import CHROMIUM, Browser
from tests.studio.walking import Served, Walker

PLACE = Path(__file__).parents[2] / "docs" / "studio"
WIDTH = 1000
MOST_BYTES = 150_000
NAMES = ("home", "schema", "budget", "methods", "confirm", "run", "release", "confidential", "ledger")
"""One picture of each, in the order of the way."""


def main() -> None:
    """Walks the whole way once, and keeps what each page shows first."""
    if CHROMIUM is None:
        raise SystemExit("make pictures: needs chromium (Debian package: chromium).")
    PLACE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Served(Path(folder)) as served, Browser() as browser:
        _walk(Walker(browser, served, WIDTH))


def _walk(walker: Walker) -> None:
    def keep(name: str) -> None:
        target = PLACE / f"{name}.png"
        walker.browser.value("scrollTo(0, 0)")
        walker.browser.picture(target, whole=False)
        assert target.stat().st_size <= MOST_BYTES, f"{target} is too large"

    keep("home")
    walker.click("Try it on the simulated table")
    keep("schema")
    walker.click("Next: the budget")
    walker.set_budget(6, "1")
    walker.browser.value("document.querySelector('[name=matter-0]').closest('details').open = true")
    for number in (0, 2):
        walker.browser.value(f"document.querySelector('[name=matter-{number}]').click()")
    walker.browser.until("document.getElementById('plan').innerText.includes('what matters to you')")
    walker.browser.value("document.querySelector('[name=matter-0]').closest('details').open = false")
    keep("budget")
    place = walker.browser.value("location.pathname")
    walker.go(place.replace("budget", "methods"))
    keep("methods")
    walker.go(place)
    walker.click("Next: review it")
    walker.type("cap_epsilon", "3")
    walker.type("cap_delta", "1e-8")
    keep("confirm")
    walker.click("Charge ε = 1 and run")
    keep("run")
    walker.browser.until("document.body.innerText.includes('Look at the release')", seconds=180)
    walker.click("Look at the release")
    keep("release")
    walker.go("/confidential")
    keep("confidential")
    walker.go("/ledger")
    keep("ledger")


if __name__ == "__main__":
    main()
