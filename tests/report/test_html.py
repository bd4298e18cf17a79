"""HTML: whatever stands in a text, it stays text."""

from html.parser import HTMLParser

import pytest

from understudy.charts import (
    Amounts,
    Between,
    Bundle,
    CurveNames,
    CurvePanel,
    Forest,
    IntervalRow,
    Lines,
    Matrix,
    MatrixCell,
    PointMap,
    Points,
    Series,
    SharesChart,
)
from understudy.report import (
    POLICY,
    BulletList,
    Code,
    Figure,
    FoldedBlocks,
    Gallery,
    Link,
    Page,
    Paragraph,
    Section,
    TextTable,
    Verdict,
    Verdicts,
    render_page,
    render_panels,
    render_picture,
)

PAYLOADS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg onload=alert(1)>",
    "</title><script>1</script>",
    "</style><script>1</script>",
    "</text></svg><script>1</script>",
    "<!--",
    "--><b>x</b>",
    "<![CDATA[<b>x</b>]]>",
    "&lt;script&gt;",
    "&#60;script&#62;",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "\u2028</p><b>x</b>",
    "\x00<b>x</b>",
    "\udc80<b>x</b>",
    "<b" + "\n" + ">x</b>",
    "`${alert(1)}`",
    "<" * 1000,
    *(
        template.format(tag=tag)
        for tag in ("script", "img", "svg", "iframe", "object", "math", "style", "base")
        for template in (
            "<{tag} src=x onerror=alert(1)>",
            "</{tag}><{tag}/onload=alert(1)>",
            "'\"></td></tr></table><{tag}>",
            "<{tag}\t\nonfocus=alert(1) autofocus",
            "&lt;{tag}&gt;<{tag}>",
        )
    ),
]


class Tree(HTMLParser):
    """Elements and attribute names in order, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Long names make a chart so wide that it may be scrolled by key: that attribute follows from their length.
        self.elements.append((tag, tuple(name for name, _ in attrs if (tag, name) != ("div", "tabindex"))))

    def handle_data(self, data: str) -> None:
        self.text += data


def _page(text: str) -> Page:
    blocks = (
        Paragraph(text, strong=True),
        BulletList((text, text)),
        TextTable((text, "plain"), ((text, text),), caption=text, numeric=frozenset({text})),
        Link(text, "tables/x.csv"),
        Code(text, text),
        Verdicts((Verdict(text, "good", text, text, Between(text, 0.5, text, text, text), "there"),)),
        Figure(SharesChart(text, (text,), (Amounts("made", text, (3.0,), (1.0,)),)), "there", text, "tables/y.csv"),
        Gallery((Figure(Matrix(text, (text,), (text,), (MatrixCell(0, 0, 1.0, text, "there"),), 1.0)),)),
        FoldedBlocks(text, (Paragraph(text), FoldedBlocks(text, (BulletList((text,)),)))),
        Figure(Forest(text, (IntervalRow(text, (0.0, -1.0, 1.0), None),))),
        Figure(PointMap(text, "real", text, text, ((0.0, 0.0),), (-1.0, 1.0, -1.0, 1.0), text)),
        Lines(text, text, text, (Series(text, (0.1, 1.0), (3.0, 2.0), (2.0, 1.0), (4.0, 3.0)),), yardstick=1.0),
        Points(text, text, text, ((0.0, 1.0), (1.0, 0.5))),
    )
    return Page(text, text, (Section(text, text, blocks),), footer=text)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_payloads_create_no_element(payload: str) -> None:
    plain, hostile = Tree(render_page(_page("plain text"))), Tree(render_page(_page(payload)))
    assert hostile.elements == plain.elements
    assert "49" not in hostile.text


def test_texts_are_shown_as_they_are() -> None:
    assert Tree(render_page(_page("a <b> & \"c\" 'd' é"))).text.count("a <b> & \"c\" 'd' é") >= 9


def test_the_page_is_self_contained_and_forbids_the_rest() -> None:
    text = render_page(_page("x"))
    assert f'content="{POLICY}"'.replace("'", "&#39;") in text
    assert "http" not in text.replace("http-equiv", "")
    assert "<script" not in text
    assert text.encode("utf-8")


@pytest.mark.parametrize("payload", PAYLOADS)
def test_payloads_create_no_element_in_a_picture(payload: str) -> None:
    def pictures(text: str) -> list[str]:
        curve = Series(text, (0.1, 1.0), (3.0, 2.0), (2.0, 1.0), (4.0, 3.0))
        return [
            render_picture(Lines(text, text, text, (curve,), yardstick=1.0)),
            render_picture(Points(text, text, text, ((0.0, 1.0), (1.0, 0.5)))),
            render_picture(CurvePanel(text, text, (curve,), yardstick=1.0)),
            render_picture(Bundle(text, text, (0.5, 1.0), ((0.1, 0.2),), yardstick=1.0)),
            render_picture(CurveNames(text, (text,))),
            render_panels(text, [[Points(text, text, text, ((0.0, 1.0), (1.0, 0.5)))], [CurveNames(text, (text,))]]),
        ]

    for plain, hostile in zip(pictures("plain"), pictures(payload), strict=True):
        assert Tree(hostile).elements == Tree(plain).elements
        assert hostile.startswith("<svg xmlns=")
