"""Checks a built site: every link and anchor leads somewhere in it, and no page loads anything from a network.

    python -m website.links FOLDER

mkdocs itself checks links in the text of pages; this looks at what was built, with everything that the theme adds.
Links that a reader may follow out of the site are allowed; what a browser would fetch by itself is not.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href"), ("use", "href")}
IN_STYLES = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])\s*((?:https?:)?//[^'\")\s]+)")


class _Found(HTMLParser):
    """The ids of a page, the links on it, and what a browser fetches for it."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what one element names, links to or fetches."""
        given = dict(attrs)
        self.ids |= {value for key in ("id", "name") if (value := given.get(key))}
        for key, value in attrs:
            if value is None:
                continue
            if tag == "a" and key == "href":
                self.links.append(value)
            elif tag == "link" and given.get("rel") in ("canonical", "next", "prev"):
                continue
            elif (tag, key) in FETCHED:
                self.fetched.append(value)


def problems(folder: Path) -> list[str]:
    """Everything wrong with a built site, a line each."""
    pages = {path: _read(path) for path in sorted(folder.rglob("*.html"))}
    found = [f"{folder}: holds no page"] if not pages else []
    for path, page in pages.items():
        where = path.relative_to(folder)
        found += [f"{where}: loads {place} from a network" for place in page.fetched if _outside(place)]
        found += [f"{where}: {said}" for said in _broken(path, page, pages)]
    for style in sorted(folder.rglob("*.css")):
        loaded = IN_STYLES.findall(style.read_text(encoding="utf-8"))
        found += [f"{style.relative_to(folder)}: loads {place} from a network" for place in loaded]
    return found


def _broken(path: Path, page: _Found, pages: dict[Path, _Found]) -> Iterator[str]:
    for link in [*page.links, *page.fetched]:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or link.startswith("/") or path.name == "404.html":
            continue
        goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
        goal = goal / "index.html" if goal.is_dir() else goal
        if not goal.exists():
            yield f"links to {link}, which is not there"
        elif parts.fragment and goal in pages and unquote(parts.fragment) not in pages[goal].ids | {"__top"}:
            yield f"links to {link}, but that page has no such place"


def _outside(place: str) -> bool:
    return place.startswith("//") or urlsplit(place).scheme in ("http", "https", "ftp")


def _read(path: Path) -> _Found:
    found = _Found()
    found.feed(path.read_text(encoding="utf-8"))
    return found


def main(folder: Path) -> int:
    """Prints what is wrong and returns the exit status."""
    lines = problems(folder.resolve())
    times = Counter(lines)
    shown = [line + (f" ({times[line]} times)" if times[line] > 1 else "") for line in times]
    pages = len(list(folder.rglob("*.html")))
    sys.stdout.write("\n".join([*shown, f"{pages} pages, {len(lines)} problems\n"]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
