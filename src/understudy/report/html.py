"""Page → one HTML file, chart → one SVG file: they open offline, without a script or a request to anywhere.

Every text is escaped by the template engine. A content security policy in the page itself forbids whatever a label
might try all the same.
"""

from functools import cache
from typing import cast

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from understudy.report.charts import draw_bars, draw_lines, draw_points
from understudy.report.page import Lines, Page, Points

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@cache
def _template(name: str) -> Template:
    environment = Environment(
        loader=PackageLoader("understudy.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def render_page(page: Page) -> str:
    """The page as HTML text. Characters that may not stand in a file (lone surrogates, NUL) are shown escaped."""
    drawing = {"draw_bars": draw_bars, "draw_lines": draw_lines, "draw_points": draw_points}
    return _written(_template("page.html").render(page=page, policy=POLICY, **drawing))


def render_picture(chart: Lines | Points) -> str:
    """One chart as an SVG file of its own: nothing to load, every text escaped."""
    cloud = draw_points(chart) if isinstance(chart, Points) else None
    graph = cloud.graph if cloud is not None else draw_lines(cast(Lines, chart))
    return _written(_template("picture.svg").render(graph=graph, cloud=cloud)).lstrip()


def _written(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\0")
