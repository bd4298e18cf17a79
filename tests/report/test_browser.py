"""Pages in a real browser: nothing wider than the window, no chart without marks, text of a readable size."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.compare.studies import made_up
from tests.evaluate.examples import mixed, mixed_frame, shuffled
from tests.real.shared_tables import FOLDER, schema_of
from tests.release.people import release_of_simple
from tests.report.browser import CHROMIUM, Browser
from understudy.compare.page import build_page
from understudy.evaluate import evaluate
from understudy.evaluate.page import build_report
from understudy.release.criteria import criteria_of
from understudy.report import render_page

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (Debian package: chromium)")

CENSUS = FOLDER / "nist_crc_acs2019" / "ma2019.parquet"
WIDTHS = (1600, 1280, 820, 390)
WIDER = """[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, .wide'))
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + ' ' + e.className).slice(0, 5)"""
EMPTY = "[...document.querySelectorAll('svg')].filter(e => !e.querySelector('rect, path, .mark, .point')).length"
UNTOLD = "[...document.querySelectorAll('svg')].filter(e => !e.querySelector('title')?.textContent.trim()).length"
OPENED = "[...document.querySelectorAll('details')].map(e => e.open = true).length"
CUT = """[...document.querySelectorAll('svg text')].filter(e => {
  const text = e.getBoundingClientRect(), whole = e.ownerSVGElement.getBoundingClientRect();
  return text.left < whole.left - 1 || text.right > whole.right + 1 || text.bottom > whole.bottom + 1
    || text.top < whole.top - 1; }).map(e => e.textContent).slice(0, 5)"""
FAINT = """(() => { const light = c => { const n = c.match(/[0-9.]+/g).map(Number).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * n[0] + 0.7152 * n[1] + 0.0722 * n[2]; };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (c !== 'rgba(0, 0, 0, 0)') return c; } return 'rgb(255, 255, 255)'; };
  return [...document.querySelectorAll('p, td, th, li, h1, h2, h3, summary, figcaption, svg text, :not(svg) > a')]
    .map(e => { const style = getComputedStyle(e), ink = e.ownerSVGElement ? style.fill : style.color;
    const pair = [light(ink), light(behind(e))].sort((a, b) => b - a);
    return [(pair[0] + 0.05) / (pair[1] + 0.05), e.textContent.trim().slice(0, 30)]; })
    .filter(([ratio, text]) => text && ratio < 4.5).slice(0, 5); })()"""
CLIPPED = """[...document.querySelectorAll('p, td, th, li, h1, h2, h3, summary, figcaption, caption')]
  .filter(e => e.clientWidth && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 2)
    && getComputedStyle(e).overflow !== 'visible').map(e => e.textContent.slice(0, 30)).slice(0, 5)"""
OVERLAPPING = """[...document.querySelectorAll('svg')].flatMap(svg => { const all = [...svg.querySelectorAll('text')]
  .filter(e => e.textContent.trim() && !e.getAttribute('transform')).map(e => [e, e.getBoundingClientRect()]);
  return all.flatMap(([one, a], place) => all.slice(place + 1).filter(([other, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 5)
    .map(([other]) => one.textContent + ' / ' + other.textContent)); }).slice(0, 5)"""
FAULTS = {"wider": WIDER, "cut": CUT, "faint": FAINT, "clipped": CLIPPED, "overlapping": OVERLAPPING}
"""What may be nowhere on a page, each as an expression that gives the first few places."""
FOCUSABLE = """(() => { globalThis.reachable = [...document.querySelectorAll('a[href], summary, [tabindex]')]
  .filter(e => e.checkVisibility ? e.checkVisibility() : true); return reachable.length; })()"""
AT = "reachable.indexOf(document.activeElement)"
MOST_TABS = 60
REACHED = "[...document.querySelectorAll('a[href], summary, [tabindex]')].filter(e => e.tabIndex < 0).length"
CHARTS_OF = {"report": 26, "study": 7, "alone": 5, "card": 3, "checked card": 3}
PAPER, SMALLEST_IN_PRINT = 718, 7.5
"""Pixels of a printed line on A4 paper with usual margins, and the smallest letters (5.6 points) of scaled charts."""
HIDDEN = """[...document.querySelectorAll('main *, header *, footer *')]
  .filter(e => e.textContent.trim() && !e.checkVisibility() && !e.closest('nav, title, desc, .narrow > summary'))
  .filter(e => !e.closest('details:has(.gallery):not(.narrow)'))
  .map(e => e.tagName + ' ' + e.textContent.trim().slice(0, 40)).slice(0, 5)"""
NAMED = """[...document.querySelectorAll('details:not(.narrow, [open]):has(.gallery) > summary')]
  .map(e => getComputedStyle(e, '::after').content)"""
BEYOND = """[...document.querySelectorAll('svg, table, pre, p, li')].filter(e => e.checkVisibility())
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1 && e.clientWidth
    && getComputedStyle(e).overflowX === 'hidden').map(e => e.tagName + ' ' + e.textContent.trim().slice(0, 40))
  .slice(0, 5)"""
BROKEN = r"""[...document.querySelectorAll('table.text:not(:has(th:nth-child(11))) td.number')]
  .filter(e => e.checkVisibility())
  .filter(e => !/[\s-]/.test(e.textContent)).filter(e => {
    const range = document.createRange(); range.selectNodeContents(e); return range.getClientRects().length > 1; })
  .map(e => e.textContent).slice(0, 5)"""
CHARTS = "document.querySelectorAll('svg').length"
SIZES = """[...document.querySelectorAll('p, td, th, li, svg text')].map(e => {
  const shown = e.ownerSVGElement ? e.getScreenCTM() : {a: 1, b: 0};
  return parseFloat(getComputedStyle(e).fontSize) * Math.hypot(shown.a, shown.b); })"""
SMALLEST = 11.99
"""Pixels on the screen; 12 but for the rounding of scaled charts."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, plain_folder: Path) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("pages")
    frame = mixed_frame(300)
    found = evaluate(frame, shuffled(frame), mixed(), metrics=["marginals", "correlations", "rules", "nist"], seed=4)
    names = {"a": [0.1, 0.2, 0.3], "a method with=a very=long name=indeed": [0.2] * 3}
    others = dict(zip(names, (1.0, 2.0), strict=True))
    study = made_up(names, other=others, epsilons=(0.1, 0.3, 1.0, 3.0, 10.0))
    alone = made_up(names, other=others)
    (place / "alone.html").write_text(render_page(build_page(alone)), encoding="utf-8")
    (place / "report.html").write_text(render_page(build_report(found)), encoding="utf-8")
    (place / "study.html").write_text(render_page(build_page(study)), encoding="utf-8")
    limits = criteria_of(
        "criteria: [{columns: all, within: 0.2, name: single columns}, {pairs_with: age, within: 0.01}]"
    )
    release_of_simple(check_share=0.3, criteria=limits, out=place / "checked")
    cards = {"card": plain_folder / "card.html", "checked card": place / "checked" / "card.html"}
    made = {name: place / f"{name}.html" for name in ("report", "study", "alone")}
    return {**made, **cards}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CHARTS_OF)
def test_a_page_fits_its_window(browser: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    browser.open(pages[name], width)
    _check(browser, charts=CHARTS_OF[name])


@pytest.mark.parametrize("name", CHARTS_OF)
def test_a_page_can_be_read_in_the_dark(browser: Browser, pages: dict[str, Path], name: str) -> None:
    browser.prefer("dark")
    browser.open(pages[name], 820)
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    browser.value(OPENED)
    assert browser.value(FAINT) == []
    browser.prefer("light")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "understudy", "demo", "--out", "release"]
    subprocess.run(command, cwd=place, check=True, capture_output=True, timeout=600)
    return place


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("page", "charts"), [("demo-confidential/report.html", 40), ("release/card.html", 15)])
def test_the_pages_of_the_demo_fit_their_window(
    browser: Browser, demo: Path, page: str, charts: int, width: int
) -> None:
    browser.open(demo / page, width)
    _check(browser, charts=charts)


@pytest.mark.parametrize("page", ["demo-confidential/report.html", "release/card.html"])
def test_the_pages_of_the_demo_fit_the_paper(browser: Browser, demo: Path, page: str) -> None:
    browser.print_media(True)
    browser.open(demo / page, PAPER)
    beyond, smallest, broken = browser.value(BEYOND), min(browser.value(SIZES)), browser.value(BROKEN)
    browser.print_media(False)
    assert beyond == []
    assert broken == [], "no number is cut in two"
    assert smallest >= SMALLEST_IN_PRINT


def test_every_cell_of_the_map_of_pairs_leads_to_something_that_is_shown(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["report"], 1280)
    links = browser.value("[...document.querySelectorAll('#pairs svg a')].map(e => e.getAttribute('href'))")
    assert len(links) == len(set(links)) == 15
    folded = browser.value("document.querySelector('#pairs details:not(.narrow) [id^=pair-]').id")
    assert browser.value("document.querySelector('#pairs details:not(.narrow)').open") is False
    for anchor in (links[0], f"#{folded}"):
        click = "{ const e = document.querySelector(`#pairs svg a[href='ANCHOR']`); e.dispatchEvent(new MouseEvent("
        browser.value(click.replace("ANCHOR", anchor) + "'click', {bubbles: true, cancelable: true})) }")
        browser.until(f"document.querySelector('{anchor}').checkVisibility()", 10)
        top = f"document.querySelector('{anchor}').getBoundingClientRect().top"
        browser.until(f"{top} >= -1 && {top} < innerHeight", 10)
    assert browser.value("document.querySelector('#pairs details:not(.narrow)').open") is True


@pytest.mark.parametrize("page", ["demo-confidential/report.html", "release/card.html"])
def test_what_is_long_is_folded_on_narrow_screens_alone(browser: Browser, demo: Path, page: str) -> None:
    shown = "[...document.querySelectorAll('#columns figure')].filter(e => e.checkVisibility()).length"
    titles = "[...document.querySelectorAll('details.narrow > summary')].filter(e => e.checkVisibility()).length"
    browser.open(demo / page, 390)
    assert (browser.value(shown), browser.value(titles) >= 1) == (6, True)
    browser.value("document.querySelector('#columns details.narrow').open = true")
    assert browser.value(shown) == 15
    for width in (820, 1280):
        browser.open(demo / page, width)
        assert (browser.value(shown), browser.value(titles)) == (15, 0)
    browser.print_media(True)
    browser.open(demo / page, PAPER - 200)
    assert (browser.value(shown), browser.value(titles)) == (15, 0)
    browser.print_media(False)


@pytest.mark.parametrize("width", [820, 1280])
def test_the_map_of_pairs_of_fifteen_columns_is_seen_whole(browser: Browser, demo: Path, width: int) -> None:
    browser.open(demo / "demo-confidential/report.html", width)
    cut = "[...document.querySelectorAll('#pairs .wide')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert browser.value(cut) == 0
    browser.open(demo / "demo-confidential/report.html", 390)
    assert browser.value(cut) == 1, "there it can be scrolled"


def test_a_link_to_what_is_folded_opens_it(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["report"], 390)
    inside = "document.querySelector('#pairs details.narrow [id^=pair-]')"
    assert browser.value(f"{inside}.checkVisibility()") is False
    click = "{ const e = document.querySelector(`#pairs svg a[href='#${ID.id}']`); e.dispatchEvent(new MouseEvent("
    browser.value(click.replace("ID", inside) + "'click', {bubbles: true, cancelable: true})) }")
    browser.until(f"{inside}.checkVisibility()", 10)


@pytest.mark.parametrize("name", CHARTS_OF)
def test_a_printed_page_hides_nothing_that_must_be_read(browser: Browser, pages: dict[str, Path], name: str) -> None:
    browser.print_media(True)
    browser.open(pages[name], PAPER)
    hidden = browser.value(HIDDEN)
    galleries = browser.value(NAMED)
    assert browser.value(BEYOND) == []
    assert min(browser.value(SIZES)) >= SMALLEST_IN_PRINT
    browser.print_media(False)
    assert hidden == [], "all but the list of sections, and galleries that are named, is printed"
    assert all("not printed unless opened" in text for text in galleries)
    assert browser.value("document.querySelectorAll('details:not([open])').length") > len(galleries)
    assert browser.value(HIDDEN), "folded parts are hidden on the screen, so the test can fail"
    if name == "report":
        assert len(galleries) == 1, "the pairs that are not among the worst"


def test_a_page_that_does_not_fit_is_noticed(browser: Browser, tmp_path: Path) -> None:
    wide = '<!DOCTYPE html><meta name="viewport" content="width=device-width"><p style="width:2000px">x</p><svg></svg>'
    small = '<svg viewBox="0 0 300 90" width="150"><text y="40" font-size="16">read me</text></svg>'
    (tmp_path / "wide.html").write_text(wide + small, encoding="utf-8")
    browser.open(tmp_path / "wide.html", 390)
    assert browser.value(WIDER)
    assert (browser.value(CHARTS), browser.value(EMPTY)) == (2, 2)
    assert min(browser.value(SIZES)) == pytest.approx(8), "text in a chart counts as large as it is shown"
    assert browser.value(UNTOLD) == 2
    cut = '<svg width="40" height="20"><text x="30" y="9">beyond</text></svg>'
    (tmp_path / "faint.html").write_text(f'<!DOCTYPE html><p style="color:#888">faint</p>{cut}', encoding="utf-8")
    browser.open(tmp_path / "faint.html", 390)
    assert [text for _, text in browser.value(FAINT)] == ["faint"]
    assert browser.value(CUT) == ["beyond"]


@pytest.mark.skipif(not CENSUS.is_file(), reason="the real tables are not on this machine")
@pytest.mark.parametrize("width", WIDTHS)
def test_the_report_of_a_real_table_fits_its_window(browser: Browser, census_report: Path, width: int) -> None:
    browser.open(census_report, width)
    _check(browser, charts=50)


@pytest.fixture(scope="module")
def census_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    schema = schema_of("nist_crc_acs2019")
    table = pq.read_table(CENSUS).slice(0, 2000)
    first, second = table.slice(0, 1000), table.slice(1000)
    found = evaluate(first, second, schema, seed=2)
    place = tmp_path_factory.mktemp("census") / "report.html"
    place.write_text(render_page(build_report(found)), encoding="utf-8")
    return place


def _check(browser: Browser, *, charts: int) -> None:
    assert browser.value("document.documentElement.scrollWidth <= innerWidth + 1"), browser.value(WIDER)
    assert _faults(browser) == {}
    assert browser.value(CHARTS) >= charts
    assert browser.value(EMPTY) == 0
    sizes = browser.value(SIZES)
    assert len(sizes) > 10
    assert min(sizes) >= SMALLEST
    assert browser.value("document.querySelectorAll('script').length") == 0
    assert browser.value(UNTOLD) == 0
    assert browser.value(REACHED) == 0
    assert browser.complaints == []
    assert len(browser.requests) == 1, browser.requests
    assert browser.requests[0].startswith("file://")
    _tab_through(browser)
    browser.value(OPENED)
    assert browser.value("document.documentElement.scrollWidth <= innerWidth + 1"), browser.value(WIDER)
    assert _faults(browser) == {}, "in what was folded"


def _faults(browser: Browser) -> dict[str, object]:
    """What is wrong with the page as it stands, by the name of the fault."""
    found = {name: browser.value(expression) for name, expression in FAULTS.items()}
    return {name: places for name, places in found.items() if places}


def _tab_through(browser: Browser) -> None:
    """The key moves from one link or control to the next in the order in which they are read."""
    count = min(browser.value(FOCUSABLE), MOST_TABS)
    for place in range(count):
        browser.press_tab()
        assert browser.value(AT) == place


def test_what_a_page_asks_for_and_complains_about_is_noticed(browser: Browser, tmp_path: Path) -> None:
    page = (
        '<!DOCTYPE html><img src="missing.png"><p style="width:3rem;overflow:hidden;white-space:nowrap">long text</p>'
    )
    over = '<svg width="90" height="40"><text y="20">one</text><text y="22">two</text></svg>'
    script = "<script>console.error('oh')</script><a href='#b' tabindex='2'>b</a><a href='#a' tabindex='1'>a</a>"
    (tmp_path / "noisy.html").write_text(page + over + script, encoding="utf-8")
    browser.open(tmp_path / "noisy.html", 390)
    assert any("oh" in one for one in browser.complaints)
    assert [Path(one).name for one in browser.requests] == ["noisy.html", "missing.png"]
    assert browser.value(CLIPPED) == ["long text"]
    assert browser.value(OVERLAPPING) == ["one / two"]
    with pytest.raises(AssertionError):
        _tab_through(browser)
