"""One confirmation, one charge: in two tabs, by two people, in two studios, however often and however quickly."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import understudy as us

pytest.importorskip("starlette", reason="needs the extra [studio]")

from tests.studio.client import Answer, Client, finished, offered, paid
from understudy.studio.confirming import Confirmation
from understudy.studio.pages import Studio
from understudy.studio.workspace import Choices


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(
        "person_id,sex,age\n" + "".join(f"{row},{'FM'[row % 2]},{row % 90}\n" for row in range(400)), encoding="utf-8"
    )
    return tmp_path


@pytest.fixture
def client(folder: Path) -> Client:
    return Client(folder).enter()


@pytest.fixture
def draft(client: Client, folder: Path) -> str:
    """A table that is ready to be run. Its dataset is open already: to open one would tell the tabs apart."""
    us.Ledger.create(folder / "ledger.db", "people", us.Budget(5.0, 0.0))
    place = finished(client)
    client.studio.workspace.draft(place.rpartition("/")[2]).choose(Choices(0.5, 0.0, "independent"))
    return place


def shown(client: Client, draft: str, **typed: str) -> dict[str, str]:
    """The form of the page of confirmation, as it is shown now."""
    return {**offered(client.get(f"{draft}/confirm").text), "dataset": "people", **typed}


def charges(folder: Path) -> int:
    return [one.kind for one in us.Ledger.open(folder / "ledger.db").entries()].count("charge")


def ended(client: Client) -> None:
    for run in client.studio.runs.all():
        client.until_done(run.key)


def together(*posts: Callable[[], Answer]) -> list[Answer]:
    """The answers to posts that come at one moment."""
    answers: list[Answer] = []
    start = threading.Barrier(len(posts))

    def press(post: Callable[[], Answer]) -> None:
        start.wait()
        answers.append(post())

    threads = [threading.Thread(target=press, args=(post,)) for post in posts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_two_tabs_with_different_names_begin_one_run(client: Client, draft: str, folder: Path) -> None:
    """Both were shown before anything was charged, and the second press comes before the first run has charged."""
    first, second = shown(client, draft, name="mine"), shown(client, draft, name="yours")
    assert client.post(f"{draft}/run", first).status == 303
    assert charges(folder) == 0 or not client.studio.runs.of_release("mine").working
    late = client.post(f"{draft}/run", second)
    assert late.status == 422
    assert "the run 'mine' was begun after this page was shown" in late.words.replace("&#39;", "'")
    assert "Nothing was charged now" in late.words
    assert client.studio.runs.of_release("yours") is None
    ended(client)
    assert charges(folder) == 1
    again = client.post(f"{draft}/run", {**second, **offered(late.text)})
    assert again.status == 422, "its page was shown before the first run had charged"
    said = {**second, **offered(again.text)}
    assert said["name"] == "yours"
    assert client.post(f"{draft}/run", said).status == 303, "who confirms what is shown now is charged in addition"
    ended(client)
    assert charges(folder) == 2


def test_a_second_press_finds_the_run_of_the_first(client: Client, draft: str, folder: Path) -> None:
    form = shown(client, draft)
    answers = together(*[lambda: client.post(f"{draft}/run", form)] * 6)
    assert {(one.status, one.headers.get("location")) for one in answers} == {(303, answers[0].headers["location"])}
    ended(client)
    assert client.post(f"{draft}/run", form).headers["location"] == answers[0].headers["location"]
    assert charges(folder) == 1


def test_many_tabs_and_studios_at_one_moment_begin_one_run(client: Client, draft: str, folder: Path) -> None:
    """Each with a name of its own, and half of them in another studio of the same folder, with locks of its own."""
    other = Client(folder).enter()
    posts = []
    for number in range(4):
        for place in (client, other):
            form = shown(place, draft, name=f"{number} {place is other}")
            posts.append(lambda place=place, form=form: place.post(f"{draft}/run", form))
    answers = together(*posts)
    assert sorted(one.status for one in answers) == [303] + [422] * 7
    assert len(client.studio.runs.all()) == 1
    ended(client)
    assert charges(folder) == 1


def test_a_confirmation_is_used_up_also_after_its_run_is_off_the_list(client: Client, draft: str, folder: Path) -> None:
    form = shown(client, draft)
    run = client.post(f"{draft}/run", form).headers["location"]
    client.until_done(run)
    for path in sorted((folder / form["name"]).rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (folder / form["name"]).rmdir()
    assert client.post(f"{run}/forget").status == 303
    late = client.post(f"{draft}/run", form)
    assert (late.status, "another run was begun" in late.words) == (422, True)
    assert charges(folder) == 1


@pytest.mark.filterwarnings("ignore::understudy.errors.UnderstudyWarning")
def test_what_is_charged_from_elsewhere_is_asked_about_again(client: Client, draft: str, folder: Path) -> None:
    form = shown(client, draft)
    key = draft.rpartition("/")[2]
    schema = client.studio.workspace.draft(key).schema_path
    us.synthesize(
        folder / "people.csv", schema, method="independent", epsilon=0.5, ledger=folder / "ledger.db", dataset="people"
    )
    late = client.post(f"{draft}/run", form)
    assert (late.status, "the ledger was charged after this page was shown" in late.words) == (422, True)
    assert client.studio.runs.all() == []


def test_what_is_checked_is_what_is_run(
    client: Client, draft: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Budgets are chosen, and files edited, without the folder's lock: in the midst of a press, too."""
    place = client.studio.workspace.draft(draft.rpartition("/")[2])
    form = shown(client, draft)
    check = Confirmation.check

    def then_changed(self: Confirmation, confirmed: str, studio: Studio) -> None:
        check(self, confirmed, studio)
        place.schema_path.write_text(place.text.replace("upper: 99", "upper: 98"), encoding="utf-8")
        place.choose(Choices(1.0, 0.0, "independent"))

    monkeypatch.setattr(Confirmation, "check", then_changed)
    place.choose(Choices(4.0, 0.0, "independent"))
    assert client.post(f"{draft}/run", form).status == 422
    place.choose(Choices(0.5, 0.0, "independent"))
    run = client.post(f"{draft}/run", form).headers["location"].rpartition("/")[2]
    begun = client.studio.runs.find(run)
    assert begun.settings["epsilon"] == 0.5
    assert "upper: 99" in (begun.place / "schema.yaml").read_text(encoding="utf-8")
    ended(client)


@pytest.mark.slow
def test_what_was_shown_while_another_run_was_at_work_still_holds_when_it_ends(
    client: Client, draft: str, folder: Path
) -> None:
    """Lines about how a run goes on and ends cost nothing, and a training writes them all the time."""
    run = client.post(f"{draft}/run", shown(client, draft)).headers["location"]
    while not charges(folder):
        assert client.studio.runs.find(run.rpartition("/")[2]).working
    page = client.get(f"{draft}/confirm")
    form = {**offered(page.text), "dataset": "people"}
    lines = len(us.Ledger.open(folder / "ledger.db").entries())
    assert client.until_done(run) == "released"
    assert len(us.Ledger.open(folder / "ledger.db").entries()) >= lines
    assert client.post(f"{draft}/run", form).status == 303
    ended(client)
    assert charges(folder) == 2


def test_a_run_that_is_at_work_is_named_before_anybody_confirms_another(client: Client, draft: str) -> None:
    assert "Running now" not in client.get(f"{draft}/confirm").words
    run = client.post(f"{draft}/run", shown(client, draft, name="mine")).headers["location"]
    page = client.get(f"{draft}/confirm")
    if client.studio.runs.find(run.rpartition("/")[2]).working:
        assert f'Running now: <a href="{run}">mine</a>' in page.text
    ended(client)
    assert "Running now" not in client.get(f"{draft}/confirm").words


def test_what_was_typed_is_still_there_after_a_mistake(client: Client) -> None:
    answer = paid(client, finished(client), name="mine", cap_epsilon="0.1", cap_delta="0.25")
    assert answer.status == 422
    for said in ('name="name" value="mine"', 'value="0.1"', 'value="0.25"'):
        assert said in answer.text


@pytest.mark.parametrize("outside", ["../{name}.secret", "{parent}/{name}.secret"])
def test_a_name_does_not_tell_what_lies_outside_of_the_folder(client: Client, folder: Path, outside: str) -> None:
    name = outside.format(parent=folder.parent, name=folder.name)
    pages = []
    for there in (False, True):
        if there:
            (folder.parent / f"{folder.name}.secret").touch()
        pages.append(offered(paid(client, finished(client), name=name).text)["name"])
    assert pages[0] == pages[1]


@pytest.mark.slow
def test_the_name_of_a_run_that_failed_can_be_had_again(client: Client, draft: str, folder: Path) -> None:
    (folder / "people.csv").rename(folder / "gone.csv")
    run = client.post(f"{draft}/run", shown(client, draft, name="mine")).headers["location"]
    assert client.until_done(run) == "failed"
    (folder / "gone.csv").rename(folder / "people.csv")
    refused = client.post(f"{draft}/run", shown(client, draft, name="mine"))
    assert (refused.status, "remove that run from the list" in refused.words) == (422, True)
    assert client.post(f"{run}/forget").status == 303
    assert client.post(f"{draft}/run", shown(client, draft, name="mine")).status == 303
    ended(client)
    assert charges(folder) == 1


def test_a_table_is_charged_to_its_own_dataset_and_another_table_may_open_one(client: Client, folder: Path) -> None:
    """Tables in two folders may have one name and be about different people."""
    first = paid(client, finished(client)).headers["location"]
    client.until_done(first)
    assert '<option value="people" selected>' in client.get(f"{finished(client)}/confirm").text
    (folder / "others").mkdir()
    (folder / "others" / "people.csv").write_text((folder / "people.csv").read_text(encoding="utf-8"), encoding="utf-8")
    other = finished(client, "others/people.csv")
    assert "a new one for other people: people-2" in client.get(f"{other}/confirm").words
    client.until_done(paid(client, other).headers["location"])
    assert us.Ledger.open(folder / "ledger.db").datasets() == ["people", "people-2"]
    assert '<option value="people-2" selected>' in client.get(f"{other}/confirm").text


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"name": "../escaped"}, "name of the release"),
        ({"name": ".hidden"}, "name of the release"),
        ({"name": "people.csv"}, "exists"),
        ({"name": "x" * 100}, "name of the release"),
        ({"name": "\U0001f600" * 80}, "name of the release"),
        ({"name": "a\0b"}, "name of the release"),
        ({"cap_epsilon": ""}, "cap"),
        ({"cap_epsilon": "0.1"}, "cap"),
        ({"cap_epsilon": "nan"}, "cap"),
        ({"dataset": "others"}, "dataset"),
        ({"confirmed": "x"}, "another tab"),
        ({"confirmed": ""}, "another tab"),
        ({"confirmed": "...."}, "another tab"),
    ],
)
def test_a_run_that_is_not_meant_so_is_not_begun(client: Client, folder: Path, form: dict[str, str], why: str) -> None:
    answer = paid(client, finished(client), **form)
    assert answer.status == 422
    assert why in answer.words
    assert client.studio.runs.all() == []
    assert not (folder / "ledger.db").exists()


def test_a_table_charged_before_does_not_lend_its_confirmation_to_another(
    client: Client, draft: str, folder: Path
) -> None:
    """Two tables may have the same schema and budget."""
    (folder / "others.csv").write_text((folder / "people.csv").read_text(encoding="utf-8"), encoding="utf-8")
    other = finished(client, "others.csv")
    client.studio.workspace.draft(other.rpartition("/")[2]).choose(Choices(0.5, 0.0, "independent"))
    answer = client.post(f"{other}/run", shown(client, draft))
    assert (answer.status, "the schema or the budget" in answer.words) == (422, True)
