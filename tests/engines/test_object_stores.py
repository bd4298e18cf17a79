"""Object stores: a table in S3, and keys that must not be in a location."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.counts.places import full_counts, people
from tests.engines import lakes
from tests.engines.available import needs
from understudy.cli.app import app
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.counts.stores import place_of
from understudy.errors import InputError

TABLE = pa.table({"sex": ["F", "M", None, "F"], "age": [1, 2, 3, 4], "city": ["Rome", "Oslo", None, "Rome"]})
LOCATIONS = (
    f"s3://somebody:{lakes.SECRET}@people/table/*.parquet",
    f"s3://{lakes.SECRET}@people/table/*.parquet",
    f"s3://people/table/x.parquet?secret_key={lakes.SECRET}",
    f"gs://somebody:{lakes.SECRET}@people/table",
    f"abfss://people:{lakes.SECRET}@account.dfs.core.windows.net/table",
    f"az://people/table?sig={lakes.SECRET}",
    f"delta:s3://somebody:{lakes.SECRET}@people/table@3",
    f"hdfs://somebody:{lakes.SECRET}@people/table.csv",
)


@pytest.fixture(scope="module")
def store() -> Iterator[fs.FileSystem]:
    needs("moto")
    with lakes.bucket() as found:
        yield found


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_key_in_a_location_is_refused_and_not_repeated(location: str) -> None:
    with pytest.raises(InputError) as caught:
        open_table(location, people())
    assert lakes.SECRET not in f"{caught.value!r} {caught.value.__context__!r}"


def test_places_of_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="needs a key in the environment"):
        place_of("abfss://box@account.dfs.core.windows.net/folder/*.parquet")
    monkeypatch.setenv("AZURE_STORAGE_KEY", "a2V5")
    place = place_of("abfss://box@account.dfs.core.windows.net/folder/*.parquet")
    assert (place.root, place.pattern, place.remote) == ("box/folder", "*.parquet", True)


def test_text_in_a_store_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with pytest.raises(InputError, match="only Parquet"):
        open_table("s3://people/table.csv", people())


def test_s3_counts_as_a_local_file_does(store: fs.FileSystem) -> None:
    codec = TableCodec.of(people())
    expected = full_counts(open_table(TABLE, people()).bind(codec))
    location = lakes.as_bucket(TABLE, store)
    for written in (location, f"{location}/", f"{location}/**/*.parquet", Path(location)):
        assert full_counts(open_table(written, people()).bind(codec)) == expected


def test_an_object_replaced_between_passes_ends_the_run(store: fs.FileSystem) -> None:
    """The same size at the same second: its etag tells."""
    location = lakes.as_bucket(TABLE, store)
    table = open_table(location, people())
    path = next(path for path, part in lakes.parts(TABLE) if part.num_rows == 1)
    with store.open_output_stream(f"{location.removeprefix('s3://')}/{path}") as file:
        pq.write_table(pa.table({"age": [9], "city": ["Rome"]}), file)
    with pytest.raises(InputError, match="was changed"):
        list(table.batches(["age"]))


def test_what_a_store_says_is_not_shown(store: fs.FileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    for location in ("s3://nobody/table", "s3://people/nothing/*.parquet"):
        with pytest.raises(InputError, match="cannot be listed") as caught:
            open_table(location, people())
        assert caught.value.__context__ is None


def test_the_whole_way_by_the_command_line_leaves_no_key(store: fs.FileSystem, tmp_path: Path) -> None:
    """Draft, check, synthesize and evaluate from a bucket; the key of the environment is in no output and no file."""
    location, schema = lakes.as_bucket(TABLE, store), tmp_path / "schema.yaml"
    people().to_yaml(schema)
    release = tmp_path / "release"
    asked = ["--schema", str(schema), "--epsilon", "1", "--ledger", str(tmp_path / "ledger.jsonl")]
    commands = [
        ["ledger", "init", str(tmp_path / "ledger.jsonl"), "--dataset", "people", "--epsilon", "9"],
        ["schema", "draft", location, "-o", str(tmp_path / "draft.yaml")],
        ["schema", "check", str(schema), location],
        ["synthesize", location, *asked, "--method", "laplace", "-o", str(release)],
        ["evaluate", location, str(release), "-o", str(tmp_path / "report.html")],
    ]
    said = ""
    for command in commands:
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        said += done.output + done.stderr
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert lakes.SECRET not in said
    assert lakes.SECRET.encode() not in written
