"""Release folders made from fixed answers and a fixed seed, as digests of files: to hold machines side by side.

    python -m tests.release.reproduced > digests.json

Noise is frozen, so are the run's name and the day of the charge. All else is as this interpreter and machine have it.
"""

import hashlib
import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.release.people import everything, people, simple
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.release.files import PACKAGES_FILE
from understudy.schema import Schema
from understudy.synthesizer import Environment, synthesize
from understudy.testing.doubles import SeededRandomizer

DAY = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RUNS: dict[str, tuple[Schema, dict[str, object]]] = {
    "independent": (everything(), {"delta": 1e-6, "copies": 2, "check_share": 0.1}),
    "mst": (simple(), {"delta": 1e-6}),
    "privsyn": (simple(), {}),
    "privbayes": (simple(), {}),
    "dpwgan": (simple(), {"delta": 1e-6, "options": {"steps": 40, "hidden": 4, "latent": 2, "batch": 8}}),
}
ENVIRONMENTAL = {"statement.json", "statement.md", "config.yaml", "card.html", PACKAGES_FILE, "manifest.json"}
"""Files that name the versions of Python and of packages, and the manifest with the digests of these files."""


def digests(place: Path) -> dict[str, str]:
    """Every file of every release by name, with the SHA-256 of its bytes."""
    found = {}
    for method, (schema, more) in RUNS.items():
        ledger = Ledger.create(place / f"{method}.db", "people", Budget(30.0, 1e-3))
        environment = Environment(SeededRandomizer(3), lambda: DAY, lambda: "run-of-a-test")
        table = people(400)
        data = table if schema == everything() else table[["sex", "age", "voted"]]
        settings = {"epsilon": 9.0, "seed": 4, "method": method, "ledger": ledger, "out": place / method, **more}
        synthesize(data, schema, _environment=environment, **settings)
        for path in sorted((place / method).rglob("*")):
            if path.is_file():
                name = path.relative_to(place).as_posix()
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        json.dump(digests(Path(place)), sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
