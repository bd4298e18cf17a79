"""Reads README.md for a package index: links to files of the repository become absolute.

In the source tree the README's links are relative, so that they work in a checkout and on any host. A package index has
no such files, so that every link and picture is given the address of the source (`project.urls` in pyproject.toml).
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(\]\()(?!https?://|#|mailto:)([^)\s]+)(\))")


def absolute(text: str, source: str) -> str:
    """The text with every relative link led to the source.

    >>> absolute("[a](docs/a.md#b) [c](https://example.org)", "https://example.org/s")
    '[a](https://example.org/s/docs/a.md#b) [c](https://example.org)'
    """
    return LINK.sub(rf"\g<1>{source.rstrip('/')}/\g<2>\g<3>", text)


class ReadmeHook(MetadataHookInterface):
    """Gives the package its long description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets `readme`, which pyproject.toml names as dynamic."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, metadata["urls"]["Source"])}
