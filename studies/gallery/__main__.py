"""Builds the pages of the gallery from the raw files: `python -m studies.gallery --data FOLDER`."""

import argparse
from pathlib import Path

from studies.gallery import page
from studies.gallery.exhibits import EXHIBITS
from studies.gallery.running import run

DOCS = Path(__file__).parents[2] / "docs" / "gallery"


def main() -> None:
    """Runs every exhibit, or those that are named, and writes their pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the raw files")
    parser.add_argument("--out", type=Path, default=DOCS, help="where pages and pictures go")
    parser.add_argument("--only", nargs="*", default=[], help="names of exhibits; the overview is then left as it is")
    given = parser.parse_args()
    found = []
    for exhibit in EXHIBITS:
        if not given.only or exhibit.name in given.only:
            found.append(run(exhibit, given.data))
            print(page.write(found[-1], given.out), flush=True)
    if not given.only:
        print(page.write_overview(found, given.out))


if __name__ == "__main__":
    main()
