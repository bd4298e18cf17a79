"""Synthesizer: settings untouched, fit returns itself and charges each time, sample is free."""

import inspect
from pathlib import Path

import pytest

import understudy
from tests.release.people import people, simple
from understudy.cli.synthesize import synthesize as synthesize_command
from understudy.errors import UsageError
from understudy.privacy.cost import Budget
from understudy.privacy.ledger import Ledger
from understudy.synthesizer import Synthesizer


def test_function_estimator_and_command_take_the_same_settings() -> None:
    function = inspect.signature(understudy.synthesize).parameters
    assert list(function)[:2] == ["data", "schema"]
    settings = set(function) - {"data"}
    assert settings == set(Synthesizer(simple(), epsilon=1.0).get_params())
    renamed = {"table": "data", "settings": "options", "memory": "memory_bytes", "quiet": "progress"}
    command = {renamed.get(name, name) for name in inspect.signature(synthesize_command).parameters}
    dialect = {"delimiter", "encoding", "decimal", "no_header", "names", "most_bytes"}  # in Python: us.read_table
    # What is printed, written beside, and asked of a person.
    here_alone = {"debug", "as_json", "rows_file", "rows_hint", "yes"}
    assert command - here_alone - dialect == set(function)
    assert dialect - {"no_header"} <= set(inspect.signature(understudy.read_table).parameters)


def test_the_function_is_also_called_by_keyword_alone() -> None:
    made = understudy.synthesize(data=people(5), schema=simple(), epsilon=1.0)  # type: ignore[call-arg, arg-type]
    assert made.statement.epsilon == 1.0


def test_the_estimator_saves_several_copies_where_it_is_told(tmp_path: Path) -> None:
    made = Synthesizer(simple(), epsilon=1.0, rows=7, copies=2, out=tmp_path / "release").fit(people(20))
    assert understudy.Release.load(tmp_path / "release").config.rows == made.release_.config.rows == (7, 7)


def test_settings_are_stored_untouched_and_checked_at_fit() -> None:
    options = {"colour": "red"}
    made = Synthesizer(simple(), epsilon=-1.0, options=options, method="nothing")
    assert made.get_params()["options"] is options
    assert made.get_params(deep=False)["epsilon"] == -1.0
    assert Synthesizer(**made.get_params()).get_params() == made.get_params()  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        made.fit(people(5))
    assert made.set_params(epsilon=1.0, method="auto", options=None).fit(people(5)) is made
    with pytest.raises(UsageError, match="epsilon"):
        made.set_params(epsilom=2.0)


def test_every_fit_charges_and_says_so(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(5.0))
    made = Synthesizer(simple(), epsilon=1.0, ledger=ledger)
    made.fit(people(20))
    with pytest.warns(UserWarning, match="charged again"):
        made.fit(people(20))
    assert ledger.balance("people").releases == 2
    made.sample(10)
    made.sample(10)
    assert ledger.balance("people").releases == 2
    assert made.statement_.ledger.releases == 2


def test_sample_needs_a_fit_and_repeats_with_a_seed() -> None:
    made = Synthesizer(simple(), epsilon=5.0, seed=11)
    with pytest.raises(UsageError, match="fit"):
        made.sample(1)
    made.fit(people(100))
    assert made.sample(20).equals(made.sample(20))
    assert set(made.sample(20, seed=1, where={"sex": "F"})["sex"]) == {"F"}
    assert len(made.sample()) == made.release_.config.rows[0]
    assert "independent" in repr(made) or "auto" in repr(made)


def test_what_is_missing_is_named_by_the_function_that_was_called() -> None:
    with pytest.raises(TypeError, match=r"^synthesize\(\) missing 1 required positional argument: 'schema'"):
        understudy.synthesize(people(5), epsilon=1.0)  # type: ignore[call-arg]


def test_a_release_is_shown_in_one_line() -> None:
    shown = repr(understudy.synthesize(people(50), simple(), epsilon=1.0, rows=7))
    assert shown.startswith("<Release: 7 synthetic rows of 3 columns by ")
    assert "ε = 1" in shown
    assert len(shown) < 200
