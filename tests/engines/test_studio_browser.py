"""The whole way through the studio in a real browser, at the width of a telephone and of a desk."""

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import understudy as us
from tests.engines.available import needs
from tests.report.browser import CHROMIUM, Browser
from tests.studio.walking import AXE, AXE_SHA256, Served, Walker
from understudy.studio.workspace import short_id

needs("starlette", "uvicorn", *([] if CHROMIUM else ["chromium()"]))

WIDTHS = (390, 1280)
NAME, LABEL = "<img src=x onerror=attacked=1>", '"><script>attacked=1</script>'
HOSTILE = f"""\
understudy: 1
title: "</title><script>attacked=1</script>"
unit: row
columns:
  "{NAME}": {{kind: category, labels: ["\\"><script>attacked=1</script>", "x' onfocus='attacked=1", "&lt;b&gt;"]}}
  "a\u202eb {{{{7*7}}}}": {{kind: integer, lower: 0, upper: 9, title: "<b>bold</b>"}}
  more: {{kind: boolean}}
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


def _budget_to_run(walker: Walker, method: str) -> None:
    """From a finished schema to a run that has begun."""
    walker.click("Next: the budget")
    assert walker.look() == []
    walker.browser.value("[...document.querySelectorAll('details')].map(e => e.open = true).length")
    for number in (0, 1):
        walker.browser.value(f"document.querySelector('[name=matter-{number}]').click()")
    walker.browser.until("document.getElementById('plan').innerText.includes('what matters to you')")
    walker.set_budget(9, "3")
    walker.browser.value(f"document.getElementById('method').value = {method!r}")
    walker.click("Next: review it")
    assert walker.look() == []
    walker.type("cap_epsilon", "4")
    walker.type("cap_delta", "1e-8")
    walker.click("Charge ε = 3 and run")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_whole_way_on_the_demo_with_the_server_killed_in_mid_run(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    with Served(tmp_path) as served:
        walker = Walker(browser, served, width)
        assert walker.look() == []
        walker.click("Start with a table")
        assert walker.look() == []
        walker.click("Try it on the simulated table")
        assert walker.look() == []
        _budget_to_run(walker, "aim")
        assert "You may close this page" in walker.words
        assert walker.look() == []
        served.kill()
    with Served(tmp_path) as served:
        walker = Walker(browser, served, width)
        assert walker.look() == []
        walker.browser.until("document.querySelector('meter')")
        if "Look at the run" in walker.words:  # else it was quicker than the server
            walker.click("Look at the run")
            walker.browser.until("document.body.innerText.includes('Look at the release')", seconds=180)
            walker.click("Look at the release")
        else:
            walker.go("/")
            walker.click("demo-voters-release-1")
        assert "nothing wrong was found" in walker.words
        assert walker.look() == []
        walker.click("Read its card")
        assert "ε = 3" in walker.words.replace("\u00a0", " ")  # a number is never parted from its sign
        _what_is_confidential(walker)
        walker.go("/ledger")
        assert "The chain of entries is consistent" in walker.words
        assert walker.look() == []
    assert us.verify(tmp_path / "demo-voters-release-1") == []
    assert len([one for one in us.Ledger.open(tmp_path / "ledger.db").entries() if one.kind == "charge"]) == 1


def _what_is_confidential(walker: Walker) -> None:
    walker.go("/confidential")
    assert walker.look() == []
    red = walker.browser.value("getComputedStyle(document.querySelector('.red')).backgroundColor")
    assert red == "rgb(176, 0, 32)"
    walker.click("Compare")
    walker.browser.until("document.body.innerText.includes('Go to the confidential pages')", seconds=180)
    walker.click("Go to the confidential pages")
    walker.click("Open the confidential report")
    assert "NOT FOR RELEASE" in walker.words.upper()


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_names_and_labels_stay_text(browser: Browser, tmp_path: Path, width: int) -> None:
    rows = "".join(f'"{LABEL.replace(chr(34), chr(34) * 2)}",{row % 10},true\n' for row in range(200))
    names = f'"{NAME}","a\u202eb {{{{7*7}}}}",more\n'
    (tmp_path / "<b>odd & 'so'.csv").write_text(names + rows, encoding="utf-8")
    with Served(tmp_path) as served:
        walker = Walker(browser, served, width)
        walker.click("Start with a table")
        walker.browser.value("document.getElementById('table').selectedIndex = 1")
        walker.browser.value("document.querySelector('[name=names_are_right]').checked = true")
        walker.click("Read its header")
        assert NAME in walker.words
        assert walker.look() == []
        walker.type("text", HOSTILE)
        walker.press("Keep the text")
        walker.browser.until("document.body.innerText.includes('Nothing is open')")
        assert walker.look() == []
        _as_one_types(walker)
        _a_rule_and_back(walker)
        _budget_to_run(walker, "independent")
        walker.browser.until("document.body.innerText.includes('Look at the release')", seconds=180)
        walker.click("Look at the release")
        assert NAME in walker.words
        assert "49" not in walker.browser.value("document.querySelector('table').tHead.innerText")
        assert walker.look() == []


def _as_one_types(walker: Walker) -> None:
    """A problem stands beside its field before anything is kept, and goes when it is put right."""
    walker.browser.value("document.getElementById('c1-upper').closest('details').open = true")
    walker.type("c1-upper", "-5")
    walker.browser.until("document.getElementById('c1-upper-wrong').innerText !== ''")
    box = "document.getElementById({!r}).getBoundingClientRect()"
    below = walker.browser.value(f"{box.format('c1-upper-wrong')}.top - {box.format('c1-upper')}.bottom")
    assert -1 <= below < 40
    assert walker.look() == []
    walker.type("c1-upper", "9")
    walker.browser.until("document.getElementById('c1-upper-wrong').innerText === ''")
    assert "Nothing is open" in walker.words
    walker.type("c1-kind", "category")
    walker.browser.until("document.getElementById('c1-labels') && !document.getElementById('c1-upper')")
    assert walker.look() == []
    walker.go(walker.browser.value("location.pathname"))
    assert walker.browser.value("document.getElementById('c1-upper').value") == "9"


def _a_rule_and_back(walker: Walker) -> None:
    """Chosen from lists, kept beside the text, and taken back: the text is as it was."""
    before = walker.browser.value("document.getElementById('text').value")
    walker.browser.value("document.getElementById('rule-a').closest('details').open = true")
    for end, value in (("a", "0.0"), ("b", "2.1")):
        walker.browser.value(f"document.getElementById('rule-{end}').value = {value!r}")
    walker.press("Add the rule")
    walker.browser.until("document.getElementById('text').value.includes('impossible')")
    assert walker.look() == []
    walker.press("Undo the last change")
    walker.browser.until("!document.getElementById('text').value.includes('impossible')")
    assert walker.browser.value("document.getElementById('text').value") == before


def test_methods_are_tried_side_by_side(browser: Browser, tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        walker = Walker(browser, served, 390)
        walker.click("Try it on the simulated table")
        walker.click("Next: the budget")
        walker.click("Try methods side by side")
        assert walker.look() == []
        walker.browser.value("document.querySelectorAll('[name^=try-]').forEach(e => e.checked = false)")
        walker.browser.value("document.querySelector('[name=try-independent]').checked = true")
        walker.click("Try them")
        walker.browser.until("document.body.innerText.includes('See the results')", seconds=300)
        walker.click("See the results")
        assert walker.look() == []
        walker.click("Use independent")
        assert walker.browser.value("document.getElementById('method').value") == "independent"
    assert not (tmp_path / "ledger.db").exists()


def test_two_tabs_with_different_names_begin_one_run(browser: Browser, tmp_path: Path) -> None:
    """Both are shown before anything is charged, to a dataset that is open already."""
    us.Ledger.create(tmp_path / "ledger.db", "demo-voters", us.Budget(4.0, 1e-8))
    with Served(tmp_path) as served:
        walker = Walker(browser, served, 1280)
        walker.click("Try it on the simulated table")
        walker.click("Next: the budget")
        walker.click("Next: review it")
        place, first = browser.value("location.pathname"), browser.tab
        walker.type("name", "mine")
        second = browser.open_tab()
        walker.go(place)
        walker.type("name", "yours")
        browser.tab = first
        walker.click("Charge ε = 1 and run")
        assert "Run mine" in walker.words
        browser.tab = second
        walker.click("Charge ε = 1 and run")
        assert "the run 'mine' was begun after this page was shown" in walker.words
        assert "Running now: mine" in walker.words
        assert browser.value("document.getElementById('name').value") == "yours"
        assert walker.look() == []
        browser.tab = first
        browser.until("document.body.innerText.includes('Look at the release')", seconds=180)
    assert len([one for one in us.Ledger.open(tmp_path / "ledger.db").entries() if one.kind == "charge"]) == 1
    assert not (tmp_path / "yours").exists()


def test_a_page_says_when_the_studio_is_gone_and_what_was_refused(browser: Browser, tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        walker = Walker(browser, served, 390)
        walker.click("Try it on the simulated table")
        browser.value("(document.getElementById('text').value += '#'.repeat(2 << 20), true)")
        walker.press("Keep the text")
        browser.until("document.getElementById('trouble').innerText.includes('This form is too large.')")
        assert walker.look() == []
        walker.go(browser.value("location.pathname"))
        walker.click("Next: the budget")
        walker.set_budget(9, "3")
        assert not browser.value("document.getElementById('trouble').innerText")
        served.kill()
        walker.type("epsilon", "6")
        browser.until("document.getElementById('trouble').innerText.includes('does not answer any more')")
        assert browser.value("document.getElementById('epsilon-now').innerText") == "1"


def test_a_slider_says_where_it_stands_and_takes_the_place_of_a_typed_number(browser: Browser, tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        walker = Walker(browser, served, 390)
        walker.click("Try it on the simulated table")
        walker.click("Next: the budget")
        walker.type("epsilon_exact", "1.25")
        assert browser.value("document.getElementById('epsilon-now').innerText") == "1.25"
        browser.until("document.getElementById('plan').innerText.includes('ε = 1.25,')")
        walker.set_budget(9, "3")
        assert browser.value("document.getElementById('epsilon').getAttribute('aria-valuetext')") == "3"
        assert browser.value("document.getElementById('epsilon_exact').value") == ""
        walker.click("Back to the schema")
        walker.click("Next: the budget")
        assert browser.value("document.getElementById('epsilon-now').innerText") == "3"


def test_whoever_uses_the_keyboard_keeps_their_place(browser: Browser, tmp_path: Path) -> None:
    """A guess that is confirmed takes its button along; the next key must not begin at the top of the page again."""
    (tmp_path / "people.csv").write_text("sex,age,married\n", encoding="utf-8")
    with Served(tmp_path) as served:
        walker = Walker(browser, served, 1280)
        walker.click("Start with a table")
        browser.value("document.getElementById('table').selectedIndex = 1")
        walker.click("Read its header")
        button = (
            "[...document.querySelectorAll('#c1 ~ form button')].find(e => e.textContent.startsWith('This is right'))"
        )
        browser.value(f"{button}.focus()")
        browser.value(f"{button}.click()")
        browser.until("!document.querySelector('#c1 .guess')")
        browser.until("document.activeElement.tagName === 'SUMMARY'")
        assert browser.value("document.activeElement.closest('article').getAttribute('aria-labelledby')") == "c1"
        assert walker.look() == []


CARD = """<!DOCTYPE html><meta http-equiv="refresh" content="0;url=/tables"><title>A card</title>
<p id="told">The card of a stranger</p><form action="/tables" method="post"><button>Send</button></form>
"""


def test_the_card_of_a_stranger_is_shown_and_leads_nowhere(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "statement.json").write_text("{}", encoding="utf-8")
    (tmp_path / "strange" / "card.html").write_text(CARD, encoding="utf-8")
    with Served(tmp_path) as served:
        walker = Walker(browser, served, 1280)
        walker.go(f"/releases/{short_id('strange')}/card")
        assert walker.browser.value("self.origin") == "null"
        walker.browser.value("document.querySelector('button').click()")
        time.sleep(1.0)
        assert "The card of a stranger" in walker.words


def test_axe_is_the_file_that_npm_has() -> None:
    assert hashlib.sha256(AXE).hexdigest() == AXE_SHA256
    assert b"axe v4.14.0" in AXE[:200]


def test_a_page_that_cannot_be_read_aloud_is_noticed(browser: Browser, tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        walker = Walker(browser, served, 1280)
        browser.value("document.body.insertAdjacentHTML('beforeend', '<input><img src=\"/x.png\">')")
        assert any(one.startswith(("label", "image-alt")) for one in walker.look())
