"""What changed on a page against an earlier edition of it: the statements whose verdict is another one."""

import re
from collections.abc import Sequence
from pathlib import Path

from studies.verdicts import kind_of
from studies.writing import Finding, StudyPage, table

__all__ = ["changes", "finished", "verdicts_of"]

_HEAD, _BETWEEN = 2, re.compile(r"(?<!\\) \| ")


def finished(page: StudyPage) -> Path:
    """Writes the page, with what changed against the edition before it where that was given."""
    if page.form.earlier:
        page.after.append(changes(page.findings, page.form.earlier))
    return page.write()


def verdicts_of(page: str) -> dict[str, str]:
    """The verdict of every statement of a page, as it is printed there."""
    part = page.partition("## Statement by statement")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")][_HEAD:]
    cells = [_BETWEEN.split(line.removeprefix("| ").removesuffix(" |")) for line in lines]
    return {line[0].replace("\\|", "|"): line[2] for line in cells if len(line) == 3}


def changes(findings: Sequence[Finding], earlier: str) -> str:
    """A section that says how many verdicts changed, and which."""
    before, now = verdicts_of(earlier), {one.printed: one.verdict for one in findings}
    common = [printed for printed in now if printed in before]
    other = [printed for printed in common if kind_of(before[printed]) != kind_of(now[printed])]
    said = (
        f"Of {len(common)} statements in both editions {len(other)} have another verdict; "
        f"{len(now) - len(common)} are new or worded anew, {len(before) - len(common)} of the last edition are gone or "
        "worded otherwise."
    )
    rows = [(printed, before[printed], now[printed]) for printed in other]
    changed = [table(("statement", "last edition", "now"), rows)] if rows else []
    return "\n\n".join(["## Against the last edition", said, *changed])
