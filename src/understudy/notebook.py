"""How objects show themselves in a notebook: a title, a few facts, and a table that never gets long.

Every text is escaped: labels and titles come from people. Styles are inherited from the page, so that light and dark
themes both fit.
"""

from collections.abc import Iterable, Sequence
from html import escape

MOST_LINES = 40


def shown_as_html(
    title: str,
    facts: Iterable[tuple[str, str]] = (),
    header: Sequence[str] = (),
    rows: Sequence[Sequence[object]] = (),
    note: str = "",
) -> str:
    """A title, facts beside their names, and the first lines of a table, as a piece of HTML.

    >>> shown_as_html("a < b", [("rows", "7")])
    '<div><strong>a &lt; b</strong><table><tr><th style="text-align:left">rows</th><td>7</td></tr></table></div>'
    """
    parts = [f"<strong>{escape(title)}</strong>"]
    if note:
        parts.append(f"<p>{escape(note)}</p>")
    lines = [_line([name], [text]) for name, text in facts]
    if lines:
        parts.append(f"<table>{''.join(lines)}</table>")
    if rows:
        body = "".join(_line([], row) for row in rows[:MOST_LINES])
        parts.append(f"<table><thead>{_line(header, [])}</thead><tbody>{body}</tbody></table>")
    if len(rows) > MOST_LINES:
        parts.append(f"<p>… and {len(rows) - MOST_LINES:,} more.</p>")
    return f"<div>{''.join(parts)}</div>"


def _line(heads: Sequence[object], cells: Sequence[object]) -> str:
    named = "".join(f'<th style="text-align:left">{escape(str(head))}</th>' for head in heads)
    return f"<tr>{named}{''.join(f'<td>{escape(str(cell))}</td>' for cell in cells)}</tr>"


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "column"), counted(1200, "column"), counted(2, "query", "queries")
    ('1 column', '1,200 columns', '2 queries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
