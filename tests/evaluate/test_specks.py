"""specks: what it sees, what it cannot see, and which columns give rows away."""

import re

import pandas as pd
import pytest

from tests.evaluate.examples import context, mixed, mixed_frame, pair_of, shuffled
from understudy.errors import UsageError
from understudy.evaluate.propensity import Pmse, Specks, common_complexity
from understudy.schema import Category, Schema, Unit

FRAME = mixed_frame(500)


def test_other_shares_are_seen_by_the_regression() -> None:
    other = FRAME.copy()
    other.loc[other.index[:250], "sex"] = "F"
    result = Specks().compare(pair_of(FRAME, other), context("specks"))
    assert result.score("logistic").value > 1.5 * result.score("logistic").yardstick  # type: ignore[operator]
    assert result.detail("columns").records(1)[0]["column"] == "sex"


def test_lost_associations_are_seen_with_interactions() -> None:
    pair = pair_of(FRAME, shuffled(FRAME))
    main = Specks().compare(pair, context("specks"))
    every = Specks(terms="interactions").compare(pair, context("specks"))
    assert every.score("logistic").value > main.score("logistic").value + 0.2  # type: ignore[operator]
    assert "single columns" in main.notes[0]
    assert not any("single columns" in note for note in every.notes)


def test_exact_value_for_one_column() -> None:
    """One binary column: the scores take two values, and the distance is the difference of shares."""
    schema = Schema(columns=(Category(name="a", labels=("x", "y"), missing=False),), unit=Unit())
    first = pd.DataFrame({"a": ["x"] * 30 + ["y"] * 70})
    second = pd.DataFrame({"a": ["x"] * 55 + ["y"] * 45})
    result = Specks().compare(pair_of(first, second, schema=schema), context("specks"))
    assert result.value == pytest.approx(0.25)
    assert result.score("cart").value == pytest.approx(0.25)


def test_reasons() -> None:
    small = Specks().compare(pair_of(FRAME, FRAME.head(5)), context("specks"))
    assert "fewer than 10 rows" in small.why_not
    folds = Specks(scheme="folds").compare(pair_of(FRAME, FRAME.head(40)), context("specks"))
    assert "fewer than 50 rows" in folds.why_not
    assert mixed().title == "mixed"


def _complexities(notes: tuple[str, ...]) -> set[str]:
    return {found for note in notes for found in re.findall(r"at complexity ([0-9.e+-]+\d)", note)}


def test_one_complexity_for_all_data_sets_and_both_metrics() -> None:
    """Copies that differ by much: each of them, the halves and the other metric used to get a complexity of its own."""
    copies = (shuffled(FRAME), mixed_frame(500, seed=9), FRAME.assign(sex="F"))
    pair = pair_of(FRAME, *copies)
    by_specks = _complexities(Specks().compare(pair, context("specks")).notes)
    by_pmse = _complexities(Pmse(draws=2).compare(pair, context("pmse")).notes)
    assert len(by_specks) == 1
    assert by_pmse == by_specks
    (chosen,) = by_specks
    alone = [
        Specks(complexity=common_complexity(pair, None)).compare(pair_of(FRAME, copy), context("specks"))
        for copy in copies
    ]
    whole = Specks().compare(pair, context("specks"))
    assert whole.score("cart").value == pytest.approx(sum(one.score("cart").value or 0 for one in alone) / 3)
    assert f"{common_complexity(pair, None):.3g}" == chosen


def test_the_complexity_can_be_set_for_both_metrics() -> None:
    pair = pair_of(FRAME, shuffled(FRAME))
    assert Specks(complexity=1.0).compare(pair, context("specks")).score("cart").value == 0
    assert "0.25" in _complexities(Specks(complexity=0.25).compare(pair, context("specks")).notes)
    for kind in (Specks, Pmse):
        with pytest.raises(UsageError, match="between 0 and 1"):
            kind(complexity=1.5)
