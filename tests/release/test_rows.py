"""Rows: the same for the same seed whatever the output, exact conditions, streamed files."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from understudy.errors import InputError, UsageError
from understudy.models.model import CHUNK_ROWS
from understudy.release.release import Release, draw_tables, one_table, write_rows


def _drawn(release: Release, rows: int, **options: object) -> pa.Table:
    pieces = draw_tables(release.fits[0], rows, **({"seed": 1} | options))  # type: ignore[arg-type]
    return one_table(release.codec, pieces)


def test_a_seed_gives_the_same_rows_and_copies_differ(full_release: Release) -> None:
    assert _drawn(full_release, 100).equals(_drawn(full_release, 100))
    assert not _drawn(full_release, 100).equals(_drawn(full_release, 100, seed=2))
    assert not _drawn(full_release, 100).equals(_drawn(full_release, 100, copy=2))
    assert _drawn(full_release, 0).schema.equals(full_release.codec.arrow_schema)


def test_rows_come_in_bounded_pieces(plain_release: Release) -> None:
    sizes = [piece.num_rows for piece in draw_tables(plain_release.fits[0], 2 * CHUNK_ROWS + 5, seed=1)]
    assert sizes == [CHUNK_ROWS, CHUNK_ROWS, 5]


@pytest.mark.parametrize(
    ("where", "allowed"),
    [
        ({"sex": "F"}, {"sex": {"F"}}),
        ({"sex": ["F", "M"]}, {"sex": {"F", "M"}}),
        ({"member": True}, {"member": {True}, "sex": {"F"}}),
        ({"mood": None}, {"mood": {None}}),
        ({"age": "0..19"}, {"age": set(range(20))}),
        ({"job": "nurse", "sex": "M"}, {"job": {"nurse"}, "sex": {"M"}, "member": {False, None}}),
    ],
)
def test_conditions_hold_for_every_row(full_release: Release, where: dict, allowed: dict[str, set]) -> None:
    table = _drawn(full_release, 200, where=where)
    assert table.num_rows == 200
    for name, values in allowed.items():
        assert set(table[name].to_pylist()) <= values


def test_conditioning_keeps_the_other_columns(full_release: Release) -> None:
    free = np.asarray(_drawn(full_release, 20_000)["height"]).mean()
    held = np.asarray(_drawn(full_release, 20_000, where={"sex": "F"})["height"]).mean()
    assert abs(free - held) < 0.03  # heights do not depend on sex under `independent`; 5 standard errors


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"sx": "F"}, "sex"),
        ({"tall": "yes"}, "not a modelled column"),
        ({"sex": "X"}, "matches no code"),
        ({"age": 5}, 'ask for "0..19"'),
        ({"age": "0..25"}, 'ask for "0..19" or "0..39"'),
        ({"sex": []}, "no code"),
        ({"sex": "M", "member": True}, "cannot happen"),
    ],
)
def test_impossible_conditions_are_refused(full_release: Release, where: dict, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        _drawn(full_release, 1, where=where)


@pytest.mark.parametrize("bad", [{"rows": -1}, {"rows": 1.5}, {"seed": -1}, {"seed": "x"}])
def test_bad_numbers_are_refused(plain_release: Release, bad: dict) -> None:
    settings = {"rows": 1, "seed": 1} | bad
    with pytest.raises(UsageError):
        draw_tables(plain_release.fits[0], settings["rows"], seed=settings["seed"])


@pytest.mark.parametrize("name", ["rows.parquet", "rows.pq", "rows.csv", "rows.tsv"])
def test_files_hold_the_same_rows(full_release: Release, tmp_path: Path, name: str) -> None:
    wanted = _drawn(full_release, 300)
    write_rows(tmp_path / name, wanted.schema, iter([wanted]), {"mark": "yes"})
    if "p" in Path(name).suffix:
        read = pq.read_table(tmp_path / name)
        assert read.equals(wanted)
        assert read.schema.metadata[b"mark"] == b"yes"
    else:
        delimiter = pacsv.ParseOptions(delimiter="," if name.endswith("csv") else "\t")
        text = pacsv.ConvertOptions(
            column_types={field.name: pa.string() for field in wanted.schema}, strings_can_be_null=True
        )
        read = pacsv.read_csv(tmp_path / name, parse_options=delimiter, convert_options=text)
        assert read.column_names == wanted.column_names
        assert read["job"].to_pylist() == wanted["job"].to_pylist()
        assert read["age"].to_pylist() == wanted["age"].cast(pa.string()).to_pylist()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_files_are_whole_or_absent(full_release: Release, tmp_path: Path) -> None:
    schema = full_release.codec.arrow_schema

    def broken() -> object:
        yield schema.empty_table()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_rows(tmp_path / "a.csv", schema, broken(), {})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="suffix"):
        write_rows(tmp_path / "a.doc", schema, [], {})
    with pytest.raises(InputError):
        write_rows(tmp_path / "no" / "a.csv", schema, [], {})
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "a.csv").write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        write_rows(tmp_path / "a.csv", schema, [], {})
    assert (tmp_path / "a.csv").read_text() == "mine"


def test_files_do_not_go_into_a_release(full_release: Release, plain_folder: Path) -> None:
    before = sorted(plain_folder.rglob("*"))
    for place in (plain_folder / "more.csv", plain_folder / "model" / "more.parquet"):
        with pytest.raises(UsageError, match="lies in a release folder"):
            write_rows(place, full_release.codec.arrow_schema, [], {})
    assert sorted(plain_folder.rglob("*")) == before
