"""What mkdocs is told beyond its configuration: generated pages, parts of pages, and links that leave the docs folder.

Pages are written so that they read well, and their links work, in the source tree as well. So nothing in them is meant
for this build alone; what is added is added here: the pages of `reference.py`, the facts of each method and metric at
the end of its page, its picture at the top, and documents from the root of the repository.
"""

import os
import posixpath
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from website import reference

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
GENERATED = {"reference/commands.md": reference.commands_page, "reference/api.md": reference.api_page}
FROM_ROOT = {
    "PRIVACY.md": "project/privacy.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
"""Documents outside of the docs folder, and where the site has them."""
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
CODE = re.compile(r"^(```|~~~).*?^\1[ \t]*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
FILE_BLOCK = re.compile(r"^<!-- (file|status|within): (\S+) -->\n```(\w+)$", re.MULTILINE)
CAPTION = {"file": "{}", "within": "in {}", "status": "exit status {}"}


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Adds the generated pages and the documents of the repository's root."""
    from mkdocs.structure.files import File

    for place, make in GENERATED.items():
        files.append(File.generated(config, place, content=make()))
    for source, place in FROM_ROOT.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: "Page", **_: object) -> str:
    """The page with its generated parts, captions of code, and links as the site has them."""
    place = page.file.src_uri
    markdown = FILE_BLOCK.sub(lambda found: captioned(*found.groups()), markdown)
    markdown = with_facts(place, markdown)
    return outside_code(markdown, lambda text: LINK.sub(lambda link: relinked(place, *link.groups()), spaced(text)))


def captioned(key: str, value: str, language: str) -> str:
    """The first line of a block of code that says which file it is, or how the commands in it end."""
    return f'```{language} title="{CAPTION[key].format(value)}"'


def with_facts(place: str, markdown: str) -> str:
    """A page about a method or metric with its picture and with the facts of the code."""
    folder, name = posixpath.split(place.removesuffix(".md"))
    if folder == "methods" and name in reference.all_methods():
        title, _, text = markdown.partition("\n")
        picture = "" if "](pictures/" in markdown else f"\n![How {name} works](pictures/{name}.svg)\n"
        return f"{title}\n{picture}{text}\n\n{reference.method_facts(name)}"
    if folder == "metrics" and name in reference.all_metrics():
        return f"{markdown}\n\n{reference.metric_facts(name)}"
    return markdown


def outside_code(markdown: str, change: Callable[[str], str]) -> str:
    """The text with everything changed that is no code."""
    parts, end = [], 0
    for found in CODE.finditer(markdown):
        parts += [change(markdown[end : found.start()]), found.group()]
        end = found.end()
    return "".join([*parts, change(markdown[end:])])


def spaced(text: str) -> str:
    """A blank line before every list: this renderer wants one, other readers of Markdown do not."""
    return re.sub(r"^((?![*-] |\d+\. |\s|\||<!--).+)\n(?=[*-] |\d+\. )", r"\1\n\n", text, flags=re.MULTILINE)


def relinked(place: str, words: str, target: str) -> str:
    """A link as the site has it; to a file that only the source tree has, its path in words."""
    path, mark, anchor = target.partition("#")
    if not path or ":" in path:
        return f"[{words}]({target})"
    origin = PurePosixPath(_source_of(place)).parent
    meant = posixpath.normpath(str(origin / path))
    if meant in FROM_ROOT or meant.startswith("docs/"):
        goal = FROM_ROOT.get(meant, meant.removeprefix("docs/"))
        return f"[{words}]({os.path.relpath(goal, posixpath.dirname(place) or '.')}{mark}{anchor})"
    if (ROOT / meant).exists():
        return words if meant in words else f"{words} (`{meant}`)"
    return f"[{words}]({target})"


def _source_of(place: str) -> str:
    """Where in the repository a page of the site is written."""
    return next((source for source, site in FROM_ROOT.items() if site == place), f"docs/{place}")
