import pytest

from understudy.compare.runs import plain_options
from understudy.compare.study import Candidate, StudySettings
from understudy.errors import UsageError

AIM, LAPLACE = Candidate.read("aim"), Candidate.read("laplace")


def test_options_follow_the_name() -> None:
    read = Candidate.read("  laplace   n_policy=estimated ")
    assert (read.name, read.method, read.options) == (
        "laplace n_policy=estimated",
        "laplace",
        {"n_policy": "estimated"},
    )


@pytest.mark.parametrize("text", ["", "   ", "laplace n_policy", "laplace =x", "laplace a=1 a=2"])
def test_text_that_is_no_candidate_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Candidate.read(text)


def test_quotes_keep_a_value_with_spaces_whole() -> None:
    found = Candidate.read("fieldgroups 'groups=home town+age'")
    assert found.options == {"groups": "home town+age"}
    assert Candidate.read(found.name) == found


def test_a_method_of_pure_epsilon_gets_no_delta() -> None:
    assert LAPLACE.budget(1.0, 1e-9).delta == 0.0
    assert AIM.budget(1.0, 1e-9).delta == 1e-9
    assert Candidate.read("dpwgan").budget(1.0, 1e-9).delta == 1e-9  # pays in ε and δ by itself
    assert LAPLACE.budget(1.0, 1e-9, open_labels=True).delta == 1e-9


def test_only_some_methods_use_a_public_table() -> None:
    assert AIM.uses_public
    assert not LAPLACE.uses_public


def test_options_of_metrics_are_values_that_can_be_written_down() -> None:
    given: dict[str, dict[str, object]] = {"slopes": {"outcomes": ["age"]}, "pmse": {"draws": 3, "complexity": None}}
    assert plain_options(given) == {"slopes": {"outcomes": ("age",)}, "pmse": {"draws": 3, "complexity": None}}
    assert plain_options(None) == {}
    with pytest.raises(UsageError, match=r"nist\.tests"):
        plain_options({"nist": {"tests": object()}})


def test_every_method_runs_once_before_any_runs_twice() -> None:
    cells = StudySettings((AIM, LAPLACE), (0.1, 1.0), 1e-9, repeats=2).cells
    assert len(cells) == 8
    assert [cell.repeat for cell in cells] == [1] * 4 + [2] * 4
    assert len({cell.key for cell in cells}) == 8


def test_names_that_look_alike_get_files_of_their_own() -> None:
    settings = StudySettings((Candidate("a b", "aim"), Candidate("a-b", "aim")), (1.0,), 1e-9)
    assert len({cell.key for cell in settings.cells}) == len(settings.cells)


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": ()},
        {"candidates": (AIM, AIM)},
        {"epsilons": ()},
        {"epsilons": (1.0, 1.0)},
        {"epsilons": (-1.0,)},
        {"repeats": 0},
        {"copies": 0},
        {"metrics": ()},
        {"seed": -1},
        {"rows": 0},
        {"rows": -1},
        {"copies_mode": "again"},
        {"delta": 1.0},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    right: dict[str, object] = {"candidates": (AIM,), "epsilons": (1.0,), "delta": 1e-9}
    StudySettings(**right)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        StudySettings(**(right | wrong))  # type: ignore[arg-type]
