"""Statement: the claim is the sum of what ran, never what was asked for."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from understudy.domain import Distribution, Measurement, Selection
from understudy.privacy.cost import UNIT, Budget, Cost
from understudy.release.check import Check, Distance
from understudy.release.release import Release
from understudy.release.statement import (
    Charge,
    LedgerFacts,
    Statement,
    charges_of,
    digest_of,
    promise_text,
    read_statement,
    statement_document,
    total_cost,
)
from understudy.release.wording import Odd
from understudy.schema import Unit


def _statement(*costs: Cost, budget: Budget, refused: str = "") -> Statement:
    charges = tuple(
        Charge(1, f"measure {i}", cost, Distribution("laplace", Fraction(1))) for i, cost in enumerate(costs)
    )
    return Statement(
        run="r",
        date="2026-01-02",
        title="t",
        method="m",
        currency="pure",
        budget=budget,
        unit=Unit(),
        schema_digest="0",
        charges=charges,
        granted=total_cost(costs),
        ledger=LedgerFacts(None, "h", 1, 1.0, 0.0),
        refused=refused,
    )


def test_the_claim_is_the_sum_of_the_charges() -> None:
    statement = _statement(Cost(epsilon=UNIT // 4), Cost(epsilon=UNIT // 8), budget=Budget(1.0))
    assert statement.claim == (0.375, 0.0)
    assert statement.promise.endswith("ε = 0.375 for adding or removing one protected unit.")


def test_concentrated_claims_use_the_whole_delta() -> None:
    budget = Budget(1.0, 1e-6)
    statement = _statement(budget.cost("zcdp"), budget=budget)
    assert statement.delta == pytest.approx(1e-6)
    assert statement.epsilon is not None
    assert 0.999 < statement.epsilon <= 1.0


def test_a_refused_statement_has_no_claim() -> None:
    statement = _statement(Cost(epsilon=1), budget=Budget(1.0), refused="NOT PRIVATE: test double")
    assert statement.claim is None
    assert dict(statement.facts())["ε"] == "none"


def test_charges_stand_beside_the_noise_of_their_answers() -> None:
    distribution = Distribution("gaussian", Fraction(9, 4))
    answers = [
        Measurement("sex", ("sex",), (2,), np.zeros(2, np.int64), distribution),
        Selection("pair", 3, 1, Fraction(1, 7)),
    ]
    listed = charges_of(2, [("measure sex", Cost(rho=5)), ("select pair", Cost(rho=6))], answers)
    assert [(charge.run, charge.distribution, charge.rate) for charge in listed] == [
        (2, distribution, None),
        (2, None, Fraction(1, 7)),
    ]
    assert (listed[0].scale, listed[1].noise) == ("σ = 1.5", "exponential mechanism")
    with pytest.raises(ValueError):
        charges_of(1, [("measure sex", Cost(rho=5))], answers)


def test_real_runs_spend_what_they_claim(full_release: Release, plain_release: Release) -> None:
    assert plain_release.statement.claim == (2.0, 0.0)
    assert plain_release.statement.left_out == ("mood", "job", "member", "height", "born", "unasked")
    epsilon, delta = full_release.statement.claim or (0.0, 0.0)
    assert 19.9 < epsilon <= 20.0
    assert delta == pytest.approx(1e-6)
    assert full_release.statement.schema_digest == digest_of(full_release.schema)


def test_a_change_of_labels_costs_twice_what_adding_a_unit_does() -> None:
    statement = _statement(Cost(epsilon=UNIT // 4), Cost(epsilon=UNIT // 8), budget=Budget(1.0))
    assert statement.label_claim is None
    assert "Change of labels" not in dict(statement.facts())
    labelled = replace(statement, labels=("sex",))
    assert labelled.claim == (0.375, 0.0)
    assert labelled.label_claim == (0.75, 0.0)
    assert dict(labelled.facts())["Change of labels"].endswith("ε = 0.75.")
    assert replace(labelled, refused="no").label_claim is None
    undone = replace(labelled, charges=(Charge(1, "discover x", Cost(1, 0, 1)),))
    assert undone.label_claim is None, "labels found under δ change with one unit in a way that is not summed here"


def test_in_rho_gaussian_noise_costs_twice_and_everything_else_four_times() -> None:
    budget = Budget(1.0, 1e-6)
    whole = budget.cost("zcdp").rho
    gaussian = Charge(1, "measure x", Cost(rho=whole // 2), Distribution("gaussian", Fraction(1)))
    grown = Charge(1, "grow x", Cost(rho=whole // 4), Distribution("laplace", Fraction(1)), unit=1024)
    statement = _statement(budget=budget)
    for charges in ((gaussian,), (grown,)):
        spent = sum((charge.cost for charge in charges), Cost())
        facts = {"currency": "zcdp", "charges": charges, "labels": ("sex",), "granted": spent}
        labelled = replace(statement, **facts)
        assert labelled.label_claim is not None
        assert 0.999 < labelled.label_claim[0] <= 1.0
        both = replace(labelled, charges=charges * 2, granted=spent + spent)
        assert both.label_claim is not None
        assert both.label_claim[0] > 1.3
        unspent = replace(labelled, granted=spent + spent)  # what was granted and not spent counts as well
        assert unspent.label_claim is not None
        assert unspent.label_claim[0] > labelled.label_claim[0]
        assert replace(unspent, as_planned=True).label_claim == labelled.label_claim


def test_what_was_granted_in_rho_and_not_spent_counts_four_times_for_a_change_of_labels() -> None:
    budget = Budget(1.0, 1e-6)
    unspent = {"currency": "zcdp", "labels": ("sex",), "granted": Cost(rho=budget.cost("zcdp").rho // 4)}
    found = replace(_statement(budget=budget), **unspent).label_claim
    assert found is not None
    assert 0.999 < found[0] <= 1.0


def test_a_sum_of_exact_distributions_has_the_pure_part_added_to_it() -> None:
    budget = Budget(2.0, 1e-6)
    noisy = Charge(1, "measure x", Cost(rho=UNIT // 100), Distribution("gaussian", Fraction(50)))
    pure = Charge(1, "measure y", Cost(epsilon=UNIT // 4), Distribution("laplace", Fraction(4)))

    def claimed(*charges: Charge) -> float:
        granted = total_cost(charge.cost for charge in charges)
        planned = {"currency": "zcdp", "charges": charges, "granted": granted}
        statement = replace(_statement(budget=budget), as_planned=True, **planned)
        unplanned = replace(statement, as_planned=False)
        assert statement.epsilon is not None
        assert unplanned.epsilon is not None
        assert unplanned.epsilon > statement.epsilon
        return statement.epsilon

    assert claimed(noisy, pure) == pytest.approx(claimed(noisy) + 0.25, abs=1e-12)


@pytest.mark.parametrize("claim", [(None, None), (1.0, None), (None, 1e-6)])
def test_a_claim_of_which_a_number_is_missing_is_none(claim: tuple[float | None, float | None]) -> None:
    assert "No privacy claim is made" in promise_text(*claim, "")


def test_a_statement_shows_in_one_line_what_it_claims() -> None:
    one = replace(_statement(Cost(epsilon=UNIT // 4), budget=Budget(1.0)), run="0123456789abcdef")
    assert repr(one) == "<Statement: m, ε = 0.25, 1 charge, run 01234567>"
    two = _statement(Cost(epsilon=UNIT // 4), Cost(epsilon=UNIT // 4), budget=Budget(1.0), refused="no")
    assert repr(two) == "<Statement: m, no privacy claim, 2 charges, run r>"


@pytest.mark.parametrize(("copies", "named"), [(1, "sex"), (2, "sex, copy 2")])
def test_distances_of_a_check_name_a_copy_where_there_are_several(copies: int, named: str) -> None:
    check = Check(0.05, (), (Distance(2, ("sex",), 3, 0.125, 0.25),))
    statement = replace(_statement(Cost(epsilon=1), budget=Budget(1.0)), copies=copies, check=check)
    assert f"| {named} | 0.125 | 0.250 |" in statement.markdown()


def test_that_rows_were_left_out_survives_the_document_and_is_said_to_readers() -> None:
    plain = _statement(Cost(epsilon=UNIT // 4), budget=Budget(1.0))
    statement = replace(plain, drops_unreadable=True)
    assert read_statement(json.loads(json.dumps(statement_document(statement)))) == statement
    assert "Rows left out" in dict(statement.facts())
    assert "rows_left_out" not in statement_document(plain)


def test_labels_survive_the_document() -> None:
    statement = replace(_statement(Cost(epsilon=UNIT // 4), budget=Budget(1.0)), labels=("sex", "race"))
    document = statement_document(statement)
    assert read_statement(json.loads(json.dumps(document))) == statement
    assert "label_change" not in statement_document(replace(statement, labels=()))


def test_that_a_date_has_no_format_survives_the_document_and_is_not_said_of_others() -> None:
    odd = (Odd("sex", "missing", 0.5, labelled=True), Odd("born", "missing", 0.75, labelled=False, formless=True))
    statement = replace(_statement(Cost(epsilon=UNIT), budget=Budget(1.0)), odd=odd)
    document = json.loads(json.dumps(statement_document(statement)))
    assert ["formless" in one for one in document["odd_values"]] == [False, True]
    assert read_statement(document).odd == odd
    assert odd[1].text.endswith("could not be read; text in another form than ISO needs a `format`.")


def test_a_statement_of_many_columns_is_one_page_and_its_file_holds_all() -> None:
    budget = Budget(1.0, 1e-6)
    tables = tuple(
        Charge(1, f"measure c{place}", Cost(rho=UNIT // 1000), Distribution("gaussian", Fraction(9 + place % 2)))
        for place in range(250)
    )
    choices = tuple(
        Charge(1, "select pair", Cost(rho=UNIT // 1000), rate=Fraction(1), sensitivity=Fraction(1), options=100 + place)
        for place in range(200)
    )
    titles = {f"c{place}": f"Title {place}" for place in range(250)}
    whole = replace(_statement(budget=budget), charges=(*tables, *choices), titles=titles, left_out=tuple(titles))
    whole = replace(whole, currency="zcdp", granted=whole.spent)
    text = whole.markdown()
    assert len(text.splitlines()) < 90
    assert len(replace(whole, format=2).markdown().splitlines()) > 900
    assert "| measure | 250 | ρ = 0.25 | discrete Gaussian | σ = 3 to 3.16228 |" in text
    assert "| select | 200 | ρ = 0.2 | exponential mechanism | chose 1 of 100 to 299 each time |" in text
    assert "Each of the 450 charges stands in statement.json." in text
    assert text.count("- and 238 more, in statement.json") == 2
    document = statement_document(whole)
    assert len(document["charges"]) == 450  # type: ignore[arg-type]
    assert read_statement(json.loads(json.dumps(document))) == whole
