import pytest

from understudy import errors


def test_problem_reads_as_place_rule_next_step() -> None:
    problem = errors.Problem("columns.age.upper", "(0) must be above lower (17).", "Fix the bounds.")
    assert str(problem) == "columns.age.upper: (0) must be above lower (17). Fix the bounds."


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
