"""The card's page: whatever could run or ask for something is found."""

import pytest

from understudy.release.verify import check_page
from understudy.report import POLICY, Page, render_page

GOOD = render_page(Page("title", "banner", ()))


def test_our_own_pages_pass() -> None:
    assert check_page("card.html", GOOD) == []


@pytest.mark.parametrize(
    "addition",
    [
        "<script>1</script>",
        "<script src=x>",
        "<img src='data:,'>",
        "<iframe></iframe>",
        "<object data=x>",
        "<link rel=stylesheet href=x>",
        "<base href='//x'>",
        "<form action=x></form>",
        "<a href='http://x'>x</a>",
        "<a href='javascript:1'>x</a>",
        "<p onclick='1'>x</p>",
        "<p style='background: url(//x)'>x</p>",
        "<style>@import '//x';</style>",
        "<style>p { background: URL( //x ) }</style>",
        "<meta http-equiv=refresh content='0;url=//x'>",
        "<svg><image href='//x'/></svg>",
        "<svg><use xlink:href='//x'/></svg>",
        "<svg><foreignObject></foreignObject></svg>",
        "<video srcset=x>",
    ],
)
def test_additions_are_found(addition: str) -> None:
    assert check_page("card.html", GOOD.replace("</main>", addition + "</main>"))


def test_the_policy_must_be_there_once_and_unchanged() -> None:
    assert "content security policy" in check_page("x", GOOD.replace("Content-Security-Policy", "x"))[-1].rule
    assert check_page("x", GOOD.replace("default-src &#39;none&#39;", "default-src *"))
    assert POLICY.startswith("default-src 'none'")
