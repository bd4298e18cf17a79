"""The sentences of a statement: right numbers, plain text, no markup from labels."""

import math
import re

import pytest

from understudy.release import wording
from understudy.release.statement import promise_text
from understudy.schema import Unit
from understudy.synthesizer.account import unit_words


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_odds_follow_from_epsilon(epsilon: float) -> None:
    text = wording.odds_text(epsilon, 0.0)
    factor, percent = (float(found) for found in re.findall(r"at most ([\d.]+)", text)[:2])
    assert factor == pytest.approx(math.exp(epsilon), rel=1e-3)
    prior = 1 / 100
    odds = prior / (1 - prior) * math.exp(epsilon)
    assert 0 <= percent - 100 * odds / (1 + odds) < 0.1 + 1e-9
    assert "δ" not in text


def test_odds_mention_delta_and_admit_defeat() -> None:
    assert "1 in 1,000,000 (δ)" in wording.odds_text(1.0, 1e-6)
    assert "1 in 1,000,000,000 (δ)" in wording.odds_text(1.0, 1e-9)
    assert "1 in 333 (δ)" in wording.odds_text(1.0, 0.003), "rounded down: a bound may not shrink"
    assert "too large" in wording.odds_text(1000.0, 0.0)
    assert "no bound" in wording.odds_text(None, None)


def test_promise_states_the_claim_or_refuses_it() -> None:
    assert "ε = 0.5 for" in promise_text(0.5, 0.0, "")
    assert "δ = 1e-09" in promise_text(0.5, 1e-9, "")
    refused = promise_text(None, None, wording.TEST_DOUBLE)
    assert refused.startswith("NOT PRIVATE: test double")
    assert "Do not publish" in refused


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            wording.unit_text(Unit()),
            "One row of the table. Somebody with several rows is protected row by row only.",
        ),
        (
            wording.unit_text(Unit("person", 3)),
            "Everybody named in column 'person', with at most 3 rows each; further rows were left out.",
        ),
        (
            promise_text(0.5, 1e-9, ""),
            "Everything in this folder together satisfies differential privacy with ε = 0.5 and δ = 1e-09 for adding "
            "or removing one protected unit.",
        ),
        (
            wording.odds_text(1.0, 1e-6, unit=Unit()),
            "For any conclusion drawn from this release, the odds would change by a factor of at most 2.718 (e^ε) if "
            "one unit's rows had been left out. Someone 1 % sure that a certain row is in the data could become at "
            "most 2.7 % sure. With a probability of at most 1 in 1,000,000 (δ) this bound may not hold.",
        ),
        (
            wording.odds_text(1.0, 0.0, unit=Unit("person", 3)).split(". ")[1],
            "Someone 1 % sure that a certain protected unit is in the data could become at most 2.7 % sure.",
        ),
        (
            wording.odds_text(1.0, 1e-6, wording.SENTENCES[2]),
            "For any conclusion drawn from this release, the odds would change by a factor of at most 2.718 (e^ε) if "
            "one unit's rows had been left out. Someone 1 % sure that a unit is in the table could become at most "
            "2.7 % sure. With a probability of at most 1e-06 (δ) this bound may not hold.",
        ),
        (
            wording.odds_text(1.0, 1e-6, wording.SENTENCES[1]),
            "Whatever anybody may conclude from this folder, its odds differ by a factor of at most 2.718 (e^ε) from "
            "the odds if one unit's rows had been left out. A suspicion of 1 in 100 can become at most 1 in 37.4 "
            "because of that unit. With a probability of at most 1e-06 (δ) this bound may not hold.",
        ),
        (
            wording.label_text(["vote"], (1.0, 1e-6)),
            "Tables that differ only in 'vote' of one unit's rows, all other columns equal: ε = 1, δ = 1e-06.",
        ),
        (unit_words(Unit("person", 3)), "each 'person', at most 3 rows"),
        (unit_words(Unit()), "one row"),
    ],
)
def test_the_sentences_of_the_guarantee_say_this_word_for_word(said: str, expected: str) -> None:
    """One word of these changes what is promised ("at most", "adding or removing", "one unit's rows")."""
    assert said == expected


def test_variants() -> None:
    assert wording.variant_text("pure", 0.0).startswith("pure")
    assert "zero-concentrated" in wording.variant_text("zcdp", 1e-6)
    assert "Gaussian differential privacy" in wording.variant_text("gaussian", 1e-6)
    assert wording.variant_text("pure", 1e-6) == "(ε, δ)-differential privacy"


def test_copies_say_what_they_mean_for_inference() -> None:
    assert "share" in wording.copies_text(3, "resample")
    assert "equal part of the budget" in wording.copies_text(3, "remeasure")


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "| a | b |",
        "[x](javascript:alert(1))",
        "![x](http://evil.example/x.png)",
        "line\n# heading",
        "- item",
        "1. item",
        "http://evil.example",
        "www.evil.example",
        "`code` **bold** __bold__ ~~gone~~ $x$",
        "\u202eright to left\u0000",
        "<!-- comment",
        "&lt;b&gt;",
    ],
)
def test_markdown_shows_hostile_text_as_text(hostile: str) -> None:
    shown = wording.escape_markdown(hostile)
    assert not re.search(r"[<>\n\r\x00\u202e]", shown)
    assert not re.search(r"(?<!\\)[|\[\]`*_~$]", shown)
    assert "://" not in shown or "\\://" in shown
    assert "www." not in shown
    assert not re.match(r"\d+[.)]|[-+#]", shown)


@pytest.mark.parametrize("number", ["0.5", "1e-09", "12", "3.", "-0.5"])
def test_numbers_look_like_numbers(number: str) -> None:
    assert wording.escape_markdown(number) == ("3\\." if number == "3." else number)


def test_a_change_of_labels_is_stated_or_refused() -> None:
    assert wording.label_text(["sex"], (0.5, 1e-9)).endswith("ε = 0.5, δ = 1e-09.")
    assert wording.label_text(["sex", "race"], (0.5, 0.0)).endswith("ε = 0.5.")
    assert "'race'" in wording.label_text(["sex", "race"], (0.5, 0.0))
    assert "No claim" in wording.label_text(["sex"], None)
