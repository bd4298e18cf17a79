"""A password planted where passwords lie: after success and every kind of failure it is found nowhere.

In a location it is refused; from libpq's own places (PGPASSWORD, a password file) it works. Either way every file that
a command leaves and everything it prints is searched for it, in plain and in percent signs.
"""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

import understudy as us
from tests.engines.servers import Server
from understudy.counts.opening import header_of, open_table
from understudy.errors import InputError
from understudy.schema import Category, Integer, Schema, Unit

PASSWORD = "Xq7/tr:ee@8 frog"
SPELLINGS = (PASSWORD, quote(PASSWORD, safe=""), quote(PASSWORD))
SCHEMA = Schema((Category(name="s", labels=("a", "b")), Integer(name="n", lower=0, upper=9)), Unit())
SAID = quote(PASSWORD, safe="")
REFUSED = (
    f"postgresql://ada:{SAID}@127.0.0.1/d::t",
    f"postgres://ada:{PASSWORD}@127.0.0.1/d::t",
    f"postgresql://:{SAID}@/d::t",
    f"postgresql://127.0.0.1/d?password={SAID}::t",
    f"postgresql://127.0.0.1/d?p%61ssword={SAID}&sslmode=require::t",
    f"postgresql://127.0.0.1/d?sslpassword={SAID}::t",
    f"postgresql://127.0.0.1/d?sslmode=require&PASSWORD={SAID}::t",
    f"postgresql://ada:{SAID}@127.0.0.1/d",
    f"postgresql:ada:{SAID}@127.0.0.1/d::t",
    f"postgressql://ada:{SAID}@127.0.0.1/d::t",
    f"postgresql+psycopg://ada:{SAID}@127.0.0.1/d::t",
    f"mysql://ada:{SAID}@127.0.0.1/d",
    f"host=127.0.0.1 password='{PASSWORD}'",
)


def holding(text: str) -> bool:
    return any(spelling in text for spelling in SPELLINGS) or "frog" in text


@pytest.mark.parametrize("location", REFUSED)
def test_a_password_in_a_location_is_refused_and_not_repeated(location: str) -> None:
    for ask in (lambda: open_table(location, SCHEMA), lambda: header_of(location), lambda: us.Schema.draft(location)):
        with pytest.raises(InputError) as caught:
            ask()
        told = f"{caught.value} {caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r}"
        assert not holding(told), "the password is in the message"


def understudy(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command, with everything it could write in one folder."""
    found = {**os.environ, "TMPDIR": str(folder), "HOME": str(folder), **environment}
    command = [sys.executable, "-m", "understudy", *words]
    done = subprocess.run(command, cwd=folder, env=found, capture_output=True, text=True, check=False, timeout=300)
    assert not holding(done.stdout + done.stderr), "the password was printed"
    left = [path for path in folder.rglob("*") if path.is_file() and path.name != "password"]
    assert not any(holding(path.read_bytes().decode("latin-1")) for path in left), "the password is in a file"
    return done


@pytest.fixture(scope="module")
def people(server: Server) -> str:
    """A table that only a role with that password may read, through the network."""
    name = server.hold(pa.table({"s": ["a", "b", None] * 40, "n": list(range(10)) * 12}))
    server.run(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'", f"GRANT SELECT ON {name} TO guarded")
    server.run(
        "CREATE TABLE kept_away (s text, n int)",
        f"CREATE VIEW breaking AS SELECT s, (CASE WHEN n = 9 THEN 'x' ELSE n::text END)::int AS n FROM {name}",
        "GRANT SELECT ON breaking TO guarded",
    )
    return name


def test_runs_that_succeed_and_runs_that_fail_tell_nobody(server: Server, people: str, tmp_path: Path) -> None:
    SCHEMA.to_yaml(tmp_path / "schema.yaml")
    (tmp_path / "password").write_text(f"127.0.0.1:*:*:guarded:{PASSWORD.replace(':', chr(92) + ':')}\n")
    (tmp_path / "password").chmod(0o600)
    made = ("--schema", "schema.yaml", "--epsilon", "1", "--method", "independent", "--debug", "--out")
    where = server.tcp(people, user="guarded")
    by_file = understudy(tmp_path, "synthesize", where, *made, "one", PGPASSFILE=str(tmp_path / "password"))
    assert by_file.returncode == 0, by_file.stderr
    right, wrong = {"PGPASSWORD": PASSWORD}, {"PGPASSWORD": f"no {PASSWORD}"}
    assert understudy(tmp_path, "evaluate", where, "one", "--out", "scores.html", **right).returncode == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "schema.yaml").write_text((tmp_path / "schema.yaml").read_text())
    endings = {
        "a password inside": (f"postgresql://guarded:{SAID}@127.0.0.1:{server.port}/postgres::{people}", right),
        "a wrong password": (where, wrong),
        "no server": ("postgresql://guarded@127.0.0.1:1/postgres::t", right),
        "no table": (server.tcp("nowhere", user="guarded"), right),
        "no privilege": (server.tcp("kept_away", user="guarded"), right),
        "broken during the pass": (server.tcp("breaking", user="guarded"), right),
    }
    for number, (location, environment) in enumerate(endings.values()):
        ended = understudy(other, "synthesize", location, *made, f"r{number}", **environment)
        assert ended.returncode == 2, ended.stderr
        assert not (other / f"r{number}").exists()


def test_a_study_hands_its_processes_no_location(server: Server, people: str, tmp_path: Path) -> None:
    SCHEMA.to_yaml(tmp_path / "schema.yaml")
    where = server.tcp(people, user="guarded")
    asked = ("--method", "independent", "--epsilon", "1", "--repeats", "1", "--out", "study")
    done = understudy(tmp_path, "compare", where, "--schema", "schema.yaml", *asked, PGPASSWORD=PASSWORD)
    assert done.returncode == 0, done.stderr
    left = [path for path in (tmp_path / "study").rglob("*") if path.is_file()]
    assert left
    assert not any(b"guarded" in path.read_bytes() for path in left)
