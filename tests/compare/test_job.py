import os
from pathlib import Path

from understudy.compare.runs import Found, Job, Outcome, read_outcome

OUTCOME = Outcome("done", "", 1.5, 2.5, 2**20, (Found("marginals", "2-way", 0.1, None, "lower", 0.0, ""),))


def test_an_outcome_reads_back_as_it_was(tmp_path: Path) -> None:
    OUTCOME.write(tmp_path / "run.json")
    assert read_outcome(tmp_path / "run.json") == OUTCOME
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_torn_or_absent_outcome_is_none(tmp_path: Path) -> None:
    place = tmp_path / "run.json"
    assert read_outcome(place) is None
    OUTCOME.write(place)
    whole = place.read_bytes()
    for length in range(0, len(whole), 7):
        place.write_bytes(whole[:length])
        assert read_outcome(place) is None


def test_a_job_reads_back_as_it_was(tmp_path: Path) -> None:
    options = {"specks": {"terms": "main"}, "slopes": {"outcomes": ("a", "b")}}
    run = {"method": "aim", "options": {"rounds": "3"}, "epsilon": 1.0, "delta": 1e-9, "rows": None, "copies": 2}
    job = Job("t.csv", "s.yaml", run, {"metrics": ["specks"], "options": options, "formula": "a ~ b", "seed": 7})
    job.write(tmp_path / "job.json")
    assert Job.read(tmp_path / "job.json") == job


def test_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        OUTCOME.write(tmp_path / "run.json")
    finally:
        os.umask(before)
    assert (tmp_path / "run.json").stat().st_mode & 0o777 == 0o600
