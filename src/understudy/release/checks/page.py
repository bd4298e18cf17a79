"""The card as a page: no script, no request, no element that could make one, and the policy that forbids them."""

import re
from html.parser import HTMLParser

from understudy.errors import Problem
from understudy.report.html import POLICY

__all__ = ["check_page"]

ALLOWED = frozenset(
    {"html", "head", "meta", "title", "style", "body", "header", "footer", "main", "nav", "section", "div"}
    | {"p", "h1", "h2", "h3", "a", "ol", "ul", "li", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    | {"figure", "figcaption", "svg", "text", "rect", "line"}
)
_TAG = re.compile(r"!DOCTYPE html|/?[a-z][a-z0-9]{0,20}(?:\s{1,9}[a-zA-Z0-9:-]{1,30}(?:=\"[^\"]*\")?)*\s{0,9}/?")
_REQUEST = re.compile(r"(?i)@import|url\s*\(|expression\s*\(")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.strange: set[str] = set()
        self.policies: list[str] = []
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what an element could do."""
        self._style = tag == "style"
        values = dict(attrs)
        if tag not in ALLOWED:
            self.strange.add(f"element <{tag}>")
        for name, value in attrs:
            local = name in ("href", "xlink:href") and (value or "").startswith("#")
            if name.startswith("on") or (name in ("src", "href", "xlink:href", "srcset", "action") and not local):
                self.strange.add(f"attribute {name}")
            if name == "style" and _REQUEST.search(value or ""):
                self.strange.add("a request in a style")
        if tag == "meta" and "http-equiv" in values:
            if (values["http-equiv"] or "").lower() == "content-security-policy":
                self.policies.append(values.get("content") or "")
            else:
                self.strange.add("attribute http-equiv")

    def handle_data(self, data: str) -> None:
        """Notes requests made by the style sheet."""
        if self._style and _REQUEST.search(data):
            self.strange.add("a request in the style sheet")

    def handle_endtag(self, tag: str) -> None:
        """Leaves the style sheet."""
        self._style = self._style and tag != "style"


def check_page(name: str, text: str) -> list[Problem]:
    """Findings about a page that must open offline and run nothing."""
    fix = "Do not open or publish it; write the release again."
    if not _is_well_formed(text):
        return [Problem(name, "is not the plain page that a card is.", fix)]
    reader = _Reader()
    reader.feed(text)
    reader.close()
    found = [Problem(name, f"holds {thing}, which a card never does.", fix) for thing in sorted(reader.strange)]
    if reader.policies != [POLICY]:
        found.append(Problem(name, "lacks its content security policy.", fix))
    return found


def _is_well_formed(text: str) -> bool:
    """Whether every tag is closed and plainly written. The parser's time grows with the square of what is not."""
    tags = (piece.partition(">") for piece in text.split("<")[1:])
    return all(closed and _TAG.fullmatch(tag) for tag, closed, _ in tags)
