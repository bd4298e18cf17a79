"""Which packages made a release: a bill of materials in CycloneDX form, as one small file of the folder.

It lists understudy and every installed package that it requires, directly or through others, by name and version. That
depends on the machine and not on any row, so it tells nothing private; it has no time and no serial number, so that the
same installation writes the same bytes. Extras are listed where what they bring is installed.
"""

import json
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

PACKAGES_FILE = "packages.cdx.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@cache
def packages_text() -> str:
    """The bill of materials of this installation."""
    root, *others = _component("understudy"), *map(_component, _required())
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**root, "type": "application"}},
        "components": others,
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def _required() -> list[str]:
    """Normalised names of installed packages that understudy reaches through requirements."""
    found: set[str] = set()
    waiting = ["understudy"]
    while waiting:
        try:
            requires = distribution(waiting.pop()).requires or []
        except PackageNotFoundError:
            continue
        names = {_normal(match[0]) for match in map(_NAME.match, requires) if match}
        fresh = {name for name in names - found - {"understudy"} if _is_installed(name)}
        found |= fresh
        waiting += fresh
    return sorted(found)


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _component(name: str) -> dict[str, str]:
    version = distribution(name).version
    return {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
