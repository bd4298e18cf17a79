import pytest

from understudy import errors
from understudy.errors import below, place, shown, suggest


def test_problem_reads_as_place_rule_next_step() -> None:
    problem = errors.Problem("columns.age.upper", "(0) must be above lower (17).", "Fix the bounds.")
    assert str(problem) == "columns.age.upper (0) must be above lower (17). Fix the bounds."


@pytest.mark.parametrize(
    ("error", "code", "builtin"),
    [
        (errors.UsageError("x", "y"), 2, ValueError),
        (errors.InputError("x", "y"), 2, ValueError),
        (errors.SchemaError([errors.Problem("a", "b")]), 2, ValueError),
        (errors.ReleaseError([errors.Problem("a", "b")]), 2, ValueError),
        (errors.BudgetError("measure", "ε = 2", "ε = 1", "Ask for less."), 3, ValueError),
        (errors.LedgerError("x", "y"), 3, RuntimeError),
        (errors.ResourceError("plan", 10, 5, "Use fewer bins."), 4, MemoryError),
    ],
)
def test_every_error_has_an_exit_code_and_a_builtin_parent(
    error: errors.UnderstudyError, code: int, builtin: type[Exception]
) -> None:
    assert isinstance(error, errors.UnderstudyError)
    assert isinstance(error, builtin)
    assert error.exit_code == code


def test_all_schema_problems_are_in_the_message() -> None:
    error = errors.SchemaError([errors.Problem("a", "first."), errors.Problem("b", "second.")])
    assert str(error).splitlines() == ["a: first.", "b: second."]


def test_budget_error_carries_its_numbers() -> None:
    error = errors.BudgetError("measure age", "ε = 2", "ε = 1", "Ask for less.")
    assert (error.step, error.requested, error.left) == ("measure age", "ε = 2", "ε = 1")


def test_nearest_offers_no_guess_when_nothing_is_near() -> None:
    assert errors.nearest("zzz", ["aim", "mst"]) == "Known: aim, mst."


def test_odd_parts_stand_in_brackets() -> None:
    assert place("columns", "a.b", "upper") == "columns['a.b'].upper"
    assert place("columns", "") == "columns['']"
    assert below(place("rules", 3), "größe") == "rules[3].größe"


def test_nothing_shown_can_act_on_a_terminal_or_fill_it() -> None:
    assert "\x1b" not in shown("\x1b[31mred\u202e")
    assert "\u202e" not in shown("\u202e")
    assert len(shown(["x" * 1000])) <= 60
    assert len(place("columns", "y" * 10_000)) < 80
    assert shown(10**5000) == "a number of more than 60 digits"
    assert shown([10**5000]) == "a list"


def test_suggestions_are_short() -> None:
    assert suggest("uper", ["lower", "upper"]) == 'Did you mean "upper"? Known: lower, upper.'
    many = [f"label {i}" for i in range(500)]
    assert suggest("lable 7", many) == 'Did you mean "label 7"?'
    assert suggest("x", []) == ""
    assert suggest("x", ["\x1b[31m"]) == ""


def test_a_size_beyond_every_machine_reads_well() -> None:
    said = str(errors.ResourceError("method x", 2**80, 2**30, "Use fewer columns."))
    assert said == "method x needs over 1,000,000 PiB, but the limit is 1 GiB. Use fewer columns."
