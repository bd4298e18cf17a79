"""Labels for given records: every frame kind, files, the same labels by seed, clear refusals."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from understudy.errors import InputError, SchemaError, UsageError
from understudy.release import Release, verify_release
from understudy.release.labelling import labelled_file, private_columns
from understudy.schema import Category, Derived, Integer, Lookup, Schema, Unit
from understudy.synthesizer import synthesize
from understudy.testing import cases as tables

SCHEMA = Schema(
    columns=(
        Category(name="job", labels=("cook", "clerk", "nurse"), missing=False),
        Category(name="sex", labels=("F", "M"), missing=False),
        Integer(name="age", lower=20, upper=29),
        Integer(name="pay", lower=0, upper=9),
    ),
    unit=Unit(),
)


def people(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    job = rng.integers(0, 3, rows)
    return pa.table(
        {
            "job": np.array(["cook", "clerk", "nurse"])[job],
            "sex": np.where(job == 0, "M", "F"),
            "age": rng.integers(20, 30, rows),
            "pay": job * 3 + rng.integers(0, 3, rows),
        }
    )


RECORDS = people(700, seed=5).drop(["sex", "pay"]).append_column("id", pa.array(range(700)))


@pytest.fixture(scope="module")
def release() -> Release:
    return synthesize(
        people(4000),
        SCHEMA,
        method="rdt",
        epsilon=100.0,
        options={"private": "sex,pay", "leaf_size": 50},
        public=people(1000, seed=1).drop(["sex", "pay"]),
        rows=50,
        seed=1,
    )


def test_arrow_records_keep_what_is_named_and_gain_their_labels(release: Release) -> None:
    assert release.label(RECORDS, seed=3).column_names == ["job", "age", "sex", "pay"]
    found = release.label(RECORDS, seed=3, keep=["id"])
    assert isinstance(found, pa.Table)
    assert found.column_names == ["job", "age", "id", "sex", "pay"]
    assert found.select(RECORDS.column_names).equals(RECORDS)
    frame = found.to_pandas()
    assert (frame["sex"] == np.where(frame["job"] == "cook", "M", "F")).mean() > 0.95
    assert frame.groupby("job", observed=True)["pay"].mean().loc[["cook", "clerk", "nurse"]].is_monotonic_increasing


def test_no_true_value_passes_beside_the_labels(tmp_path: Path) -> None:
    """Records of the private table itself, with its sex, a column derived from it, and a copy under another name."""
    codes = Derived(name="code", formula=Lookup(column="sex", entries={"F": "1", "M": "2"}))
    schema = Schema(columns=(*SCHEMA.columns, codes), unit=Unit())
    private = people(500)
    options = {"private": "sex", "leaf_size": 50}
    release = synthesize(private, schema, method="rdt", epsilon=0.01, options=options, seed=1)
    sex = private["sex"].to_pylist()
    records = private.append_column("code", pa.array(["1" if one == "F" else "2" for one in sex]))
    records = records.append_column("copy", private["sex"])
    for frame in (records, records.to_pandas(), pl.from_arrow(records)):
        found = release.label(frame, seed=2)
        assert list(found.column_names if isinstance(found, pa.Table) else found.columns) == [
            "job",
            "sex",
            "age",
            "pay",
        ]
    pq.write_table(records, tmp_path / "records.parquet")
    release.label_to(tmp_path / "out.parquet", tmp_path / "records.parquet", seed=2)
    assert pq.read_schema(tmp_path / "out.parquet").names == ["job", "sex", "age", "pay"]
    for wrong, why in (("code", "made from a private column"), ("nobody", "not a column of the records")):
        with pytest.raises(UsageError, match=why):
            release.label(records, keep=[wrong])


def test_every_kind_of_frame_and_file_gets_the_same_labels(release: Release, tmp_path: Path) -> None:
    expected = release.label(RECORDS, seed=3)
    frame = RECORDS.to_pandas().set_index(pd.Index(range(100, 800)))
    by_pandas = release.label(frame, seed=3)
    assert isinstance(by_pandas, pd.DataFrame)
    assert list(by_pandas.index) == list(range(100, 800))
    assert "sex" not in frame.columns, "the caller's frame was changed"
    assert by_pandas["sex"].tolist() == expected["sex"].to_pylist()
    for given in (pl.from_arrow(RECORDS), pl.from_arrow(RECORDS).lazy()):
        by_polars = release.label(given, seed=3)
        assert isinstance(by_polars, pl.DataFrame)
        assert by_polars["pay"].to_list() == expected["pay"].to_pylist()
    pacsv.write_csv(RECORDS, tmp_path / "records.csv")
    pq.write_table(RECORDS, tmp_path / "records.parquet")
    for source, target in (("records.csv", "out.csv"), ("records.parquet", "out.parquet")):
        release.label_to(tmp_path / target, tmp_path / source, seed=3, keep=["id"])
    assert pacsv.read_csv(tmp_path / "out.csv").select(["sex", "pay"]).to_pylist() == [
        {"sex": sex, "pay": pay}
        for sex, pay in zip(expected["sex"].to_pylist(), expected["pay"].to_pylist(), strict=True)
    ]
    written = pq.read_table(tmp_path / "out.parquet")
    assert written["pay"].to_pylist() == expected["pay"].to_pylist()
    assert written["id"].to_pylist() == list(range(700))
    marks = {key.decode(): value.decode() for key, value in pq.read_schema(tmp_path / "out.parquet").metadata.items()}
    assert marks["understudy.synthetic"] == "sex, pay"
    assert "as they were given" in marks["understudy.notice"]


def test_chunks_do_not_change_labels(release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.release.labelling.CHUNK_ROWS", 97)
    pq.write_table(RECORDS, tmp_path / "records.parquet", row_group_size=60)
    schema, pieces = labelled_file(release.fits[0], tmp_path / "records.parquet", 3)
    streamed = list(pieces)
    assert [piece.num_rows for piece in streamed] == [97] * 7 + [21]
    assert pa.concat_tables(streamed)["pay"].to_pylist() == release.label(RECORDS, seed=3)["pay"].to_pylist()
    assert schema == streamed[0].schema


def test_private_columns_that_are_there_are_replaced_in_place(release: Release) -> None:
    whole = people(50, seed=6)
    for given in (whole, whole.to_pandas(), pl.from_arrow(whole)):
        found = release.label(given, seed=1)
        names = found.column_names if isinstance(found, pa.Table) else list(found.columns)
        assert names == ["job", "sex", "age", "pay"]
    blank = whole.set_column(1, "sex", pa.nulls(50))
    assert release.label(blank, seed=1)["sex"].equals(release.label(whole, seed=1)["sex"])


def test_other_seeds_give_other_labels_and_no_seed_a_fresh_one(release: Release) -> None:
    first, second = release.label(RECORDS, seed=1), release.label(RECORDS, seed=2)
    assert first["pay"].to_pylist() != second["pay"].to_pylist()
    assert release.label(RECORDS)["pay"].to_pylist() != release.label(RECORDS)["pay"].to_pylist()


def test_values_outside_the_schema_are_read_by_its_rule(release: Release) -> None:
    odd = pa.table({"job": ["pilot", None, "cook"], "age": [1000, None, -5]})
    assert release.label(odd, seed=1).num_rows == 3
    assert release.label(odd.slice(0, 0), seed=1).column_names == ["job", "age", "sex", "pay"]


def test_saved_and_loaded_the_release_gives_the_same_labels(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "release")
    problems = [problem for problem in verify_release(tmp_path / "release") if "NOT PRIVATE" not in str(problem)]
    assert problems == []
    loaded = Release.load(tmp_path / "release")
    assert loaded.label(RECORDS, seed=3).equals(release.label(RECORDS, seed=3))
    assert loaded.statement.labels == ("sex", "pay")
    assert loaded.statement.label_claim == release.statement.label_claim


def test_records_that_cannot_be_labelled_are_refused(release: Release, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="age"):
        release.label(RECORDS.drop(["age"]))
    with pytest.raises(InputError, match="frame"):
        release.label([1, 2, 3])
    with pytest.raises(UsageError, match="seed"):
        release.label(RECORDS, seed=-1)
    with pytest.raises(UsageError, match="copy"):
        release.label(RECORDS, copy=2)
    pacsv.write_csv(RECORDS.drop(["age"]), tmp_path / "few.csv")
    with pytest.raises(SchemaError, match="age"):
        release.label_to(tmp_path / "out.csv", tmp_path / "few.csv")
    pacsv.write_csv(RECORDS, tmp_path / "records.csv")
    with pytest.raises(UsageError, match="suffix"):
        release.label_to(tmp_path / "out.txt", tmp_path / "records.csv")


def test_other_methods_cannot_label() -> None:
    release = synthesize(people(50), SCHEMA, method="independent", epsilon=1.0, rows=5)
    with pytest.raises(UsageError, match="rdt"):
        release.label(RECORDS)


def test_split_columns_are_labelled_as_wholes() -> None:
    schema = tables.split_amounts()
    rows = tables.possible_rows(schema, 200, seed=2)
    release = synthesize(
        rows,
        schema,
        method="rdt",
        epsilon=10.0,
        options={"leaf_size": 5, "private": "wage"},
        public=rows.drop(["wage"]),
        rows=5,
    )
    assert private_columns(release.fits[0]) == ("wage",)
    labelled = release.label(rows, seed=1)
    assert labelled.column_names == rows.column_names
    assert set(labelled["wage"].to_pylist()) <= {None, *range(401), 998, 999}
