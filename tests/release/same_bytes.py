"""Compares what several Pythons wrote of the same answers: `same_bytes.py A.json B.json …` (`make same-bytes`).

Files that name versions may differ. No import beyond the standard library: it runs before anything is installed.
"""

import json
import sys
from pathlib import Path

ENVIRONMENTAL = {"statement.json", "statement.md", "config.yaml", "card.html", "packages.cdx.json", "manifest.json"}


def differing(documents: list[dict[str, str]]) -> list[str]:
    """Names of files that are not the same in all, or not in all."""
    names = sorted({name for one in documents for name in one if name.split("/", 1)[1] not in ENVIRONMENTAL})
    return [name for name in names if len({one.get(name) for one in documents}) > 1]


def main(words: list[str]) -> int:
    documents = [json.loads(Path(word).read_text(encoding="utf-8")) for word in words]
    found = differing(documents)
    print(f"{len(documents)} Pythons, {len(documents[0])} files each; different: {', '.join(found) or 'none'}")
    return 1 if found or len(documents) < 2 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
