"""Page → one HTML file that opens offline: inline style, inline SVG, no script, no request to anywhere.

Every text is escaped by the template engine. A content security policy in the page itself forbids whatever a label
might try all the same.
"""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from understudy.report.charts import draw_bars
from understudy.report.curves import draw_lines, draw_points
from understudy.report.page import Page

__all__ = ["POLICY", "render_page"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("understudy.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html")


def render_page(page: Page) -> str:
    """The page as HTML text. Characters that may not stand in a file (lone surrogates, NUL) are shown escaped."""
    drawing = {"draw_bars": draw_bars, "draw_lines": draw_lines, "draw_points": draw_points}
    text = _template().render(page=page, policy=POLICY, **drawing)
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")
