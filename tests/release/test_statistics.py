"""Statistics of a release: right sums with right errors, nothing beyond what was released, and checked by verify."""

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.release.people import copied, relisted, simple
from understudy.codec.table import TableCodec
from understudy.domain import RESIDUAL_UNIT, Distribution, Measurement, ResidualTable, SparseMeasurement, Transcript
from understudy.errors import ResourceError, UsageError
from understudy.models.product import BlockModel
from understudy.release import Release, statistics, verify_release
from understudy.release.release import Fitted
from understudy.release.statistics import STATISTICS_FILE, noisy_sums, overview, table_statistics
from understudy.schema import Category, Schema, Unit

LAPLACE, GAUSSIAN = Distribution("laplace", Fraction(7, 3)), Distribution("gaussian", Fraction(9))


def _codec() -> TableCodec:
    return TableCodec.of(simple(), unreadable=False)  # two sexes, five bins of age, two votes


def _table(columns: tuple[str, ...], values: Any, noise: Distribution = GAUSSIAN) -> Measurement:
    shape = _codec().domain.shape(columns)
    return Measurement(" × ".join(columns), columns, shape, np.asarray(values, np.int64).ravel(), noise)


def _fitted(*answers: Any) -> Fitted:
    codec = _codec()
    return Fitted(codec, Transcript(list(answers)), BlockModel.uniform(codec.domain, (), 100.0))


def test_a_measured_table_is_shown_as_it_was_answered() -> None:
    found = table_statistics([_fitted(_table(("sex", "voted"), [5, -1, 7, 2]))], ["voted", "sex"]).to_pydict()
    assert found["sex"] == ["F", "F", "M", "M"]
    assert found["voted"] == ["false", "true", "false", "true"]
    assert found["noisy_count"] == [5.0, -1.0, 7.0, 2.0]
    assert found["standard_error"] == [3.0] * 4
    assert found["estimate"] == [25.0] * 4
    assert set(found["basis"]) == {"measured"}


def test_sums_of_a_larger_table_have_the_error_of_a_sum() -> None:
    found = table_statistics([_fitted(_table(("sex", "age"), np.arange(10)))], ["sex"])
    assert found["noisy_count"].to_pylist() == [10.0, 35.0]
    assert found["standard_error"].to_pylist() == pytest.approx([3.0 * 5**0.5] * 2)
    assert set(found["basis"].to_pylist()) == {"sums of sex × age"}


def test_what_was_measured_several_times_is_averaged_by_precision() -> None:
    wide = _table(("sex", "age"), np.arange(10))  # variance 45 for each sex
    once = _table(("sex",), [20, 40])  # variance 9
    found = noisy_sums([_fitted(wide, once)], ["sex"])
    assert found is not None
    assert found.counts == pytest.approx([(10 / 45 + 20 / 9) / (1 / 45 + 1 / 9), (35 / 45 + 40 / 9) / (1 / 45 + 1 / 9)])
    assert found.error == pytest.approx((1 / 45 + 1 / 9) ** -0.5)
    again = noisy_sums([_fitted(once), _fitted(once)], ["sex"])
    assert again is not None
    assert again.error == pytest.approx(3.0 / 2**0.5)


def _residuals(lattice: Any, noise: Fraction = Fraction(4)) -> ResidualTable:
    """The residuals of sex × age of these noisy counts, in steps of their lattice."""
    y = np.asarray(lattice, np.int64)
    values = (y[1:, 1:] - y[1:, :1] - y[:1, 1:] + y[0, 0]).ravel()
    return ResidualTable(
        "sex × age", ("sex", "age"), y.shape, values, Distribution("gaussian", noise * RESIDUAL_UNIT**2)
    )


TABLE = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


def _rebuilt(lattice: Any, sex: Any, age: Any) -> statistics.Sums:
    columns = [_table(("sex",), sex), _table(("age",), age, Distribution("gaussian", Fraction(25)))]
    found = noisy_sums([_fitted(*columns, _residuals(lattice))], ["sex", "age"])
    assert found is not None
    return found


def test_residuals_and_columns_give_the_table_of_a_pair() -> None:
    found = _rebuilt(TABLE * RESIDUAL_UNIT, TABLE.sum(axis=1), TABLE.sum(axis=0))
    assert found.counts == pytest.approx(TABLE.ravel())
    assert found.sources == ("residuals of sex × age",)


def test_the_error_of_residuals_and_columns_is_never_too_small_for_any_sum() -> None:
    """The covariance of all cells, by moving each noisy number alone: no sum varies more than is said."""
    nothing = (np.zeros_like(TABLE), np.zeros(2), np.zeros(5))
    moves, step = [], 10**6
    for part, variance in zip(range(3), (4.0, 9.0, 25.0), strict=True):  # of residuals, of sex, of age
        for cell in range(nothing[part].size):
            moved = [one.copy() for one in nothing]
            moved[part].flat[cell] = step * (RESIDUAL_UNIT if part == 0 else 1)
            found = _rebuilt(*moved)
            moves.append(found.counts / step * variance**0.5)
    covariance = np.array(moves).T @ np.array(moves)
    assert found.cell_error is not None
    assert np.diagonal(covariance) == pytest.approx([found.cell_error**2] * TABLE.size)
    most = float(np.linalg.eigvalsh(covariance)[-1])
    assert most <= found.error**2 <= 1.5 * most


def test_the_bound_on_records_in_wrong_cells_holds_as_often_as_it_says() -> None:
    """Noise as the door draws it; the truth as the model, which is then off by nothing."""
    rng, truth, tries = np.random.default_rng(7), TABLE * 400.0, 400
    held, bounds = 0, []
    for _ in range(tries):
        sex, age = (truth.sum(axis=axis) + rng.normal(0, scale, size) for axis, scale, size in ((1, 3, 2), (0, 5, 5)))
        columns = [_table(("sex",), sex), _table(("age",), age, Distribution("gaussian", Fraction(25)))]
        lattice = np.rint((truth + rng.normal(0, 2, truth.shape)) * RESIDUAL_UNIT)
        ((_, pair),) = [one for one in statistics.tables_of(_fitted(*columns, _residuals(lattice))) if one[0] == 2]
        assert isinstance(pair, statistics.PairTable)
        off = truth.copy()
        off[0, 0] += 60.0  # what the model puts in a wrong cell
        off[1, 1] -= 60.0
        bounds.append(pair.misplaced(off, 0.95))
        held += bounds[-1] >= 60.0 / truth.sum()
    assert held >= 0.95 * tries
    assert max(bounds) < 0.01


def test_pairs_of_residuals_are_listed_cell_by_cell(tmp_path: Path) -> None:
    answers = [_table(("sex",), TABLE.sum(axis=1)), _table(("age",), TABLE.sum(axis=0))]
    fits = [_fitted(*answers, _residuals(TABLE * RESIDUAL_UNIT))]
    assert overview(fits)["kind"].to_pylist() == ["table", "table", "residuals and columns"]
    statistics.write_statistics_file(tmp_path / STATISTICS_FILE, fits)
    found = pq.read_table(tmp_path / STATISTICS_FILE)
    assert found["noisy_count"].to_pylist()[-10:] == TABLE.ravel().tolist()
    assert statistics.check_statistics(tmp_path / STATISTICS_FILE, fits) == ([], "")
    shown = table_statistics(fits, ["age", "sex"])
    assert set(shown["basis"].to_pylist()) == {"residuals and columns"}


def test_residuals_without_a_column_of_merged_codes_or_measured_twice() -> None:
    sex, age = _table(("sex",), TABLE.sum(axis=1)), _table(("age",), TABLE.sum(axis=0))
    once = _residuals(TABLE * RESIDUAL_UNIT)
    assert noisy_sums([_fitted(sex, once)], ["sex", "age"]) is None
    merged = replace(once, shape=(2, 3), values=once.values[:2])
    assert noisy_sums([_fitted(sex, age, merged)], ["sex", "age"]) is None
    one, two = (noisy_sums([_fitted(sex, age, *[once] * number)], ["sex", "age"]) for number in (1, 2))
    assert one is not None
    assert two is not None
    assert two.counts == pytest.approx(TABLE.ravel())
    columns = 9.0 / 5 + 9.0 / 2  # the noise of columns is not made less by measuring residuals again
    assert two.error**2 == pytest.approx((one.error**2 - columns) / 2 + columns)


def test_a_table_that_was_not_measured_is_the_models_and_says_so() -> None:
    found = table_statistics([_fitted(_table(("sex",), [3, 4]))], ["sex", "voted"])
    assert set(found["basis"].to_pylist()) == {"model"}
    assert found["noisy_count"].null_count == found["standard_error"].null_count == 4
    assert found["estimate"].to_pylist() == [25.0] * 4


def test_a_release_without_tables_has_an_empty_file(tmp_path: Path) -> None:
    nothing = [_fitted()]
    statistics.write_statistics_file(tmp_path / STATISTICS_FILE, nothing)
    assert pq.read_table(tmp_path / STATISTICS_FILE).num_rows == 0
    assert statistics.check_statistics(tmp_path / STATISTICS_FILE, nothing) == ([], "")


@dataclass(frozen=True)
class _Unheard:
    """An answer of a kind that this version does not know."""

    name: str = "sex × voted"
    columns: tuple[str, ...] = ("sex", "voted")


def test_other_answers_are_never_taken_for_a_table() -> None:
    leaves = Measurement("leaves of tree 1", ("sex", "voted"), (2, 2), np.arange(4), GAUSSIAN)
    merged = Measurement("sex × age", ("sex", "age"), (2, 3), np.arange(6), GAUSSIAN)
    kept = SparseMeasurement("sex × age", ("sex", "age"), (2, 5), np.array([1, 7]), np.array([8, 9]), LAPLACE, 8)
    fitted = _fitted(leaves, merged, kept, _Unheard())
    assert noisy_sums([fitted], ["sex"]) is None
    assert overview([fitted])["kind"].to_pylist() == ["cells of its own", "cells of its own", "large cells only"]
    shown = table_statistics([fitted], ["sex", "age"]).to_pydict()
    assert (shown["sex"], shown["age"]) == (["F", "M"], ["[10, 20)", "[20, 30)"])
    assert shown["noisy_count"] == [8.0, 9.0]
    assert shown["estimate"] == [10.0, 10.0]
    assert "8 or more were kept" in shown["basis"][0]


def test_unknown_columns_and_tables_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = _fitted(_table(("sex",), [3, 4]))
    with pytest.raises(UsageError, match="not a modelled column"):
        table_statistics([fitted], ["sexx"])
    monkeypatch.setattr(statistics, "MOST_ASKED", 3)
    with pytest.raises(ResourceError):
        table_statistics([fitted], ["sex", "voted"])


def test_intervals_of_sums_cover_what_was_counted() -> None:
    """2 standard errors either way hold 95.4 % of normal noise; 4,000 cells leave less than 0.4 % to chance (1 sd)."""
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 500, (2, 5, 2))
    hits = []
    for _ in range(400):
        noise = [np.rint(rng.normal(0, 3, shape)).astype(int) for shape in ((2, 5), (5, 2))]
        pair = _table(("sex", "age"), counts.sum(2) + noise[0])
        votes = _table(("age", "voted"), counts.sum(0) + noise[1])
        found = noisy_sums([_fitted(pair, votes)], ["age"])
        assert found is not None
        hits.append(np.abs(found.counts - counts.sum((0, 2))) <= 2 * found.error)
    assert 0.935 <= np.mean(hits) <= 0.975


def test_columns_called_like_a_statistic_are_kept_apart() -> None:
    schema = Schema(columns=(Category(name="estimate", labels=("a", "b"), missing=False),), unit=Unit())
    codec = TableCodec.of(schema, unreadable=False)
    answers = Transcript([Measurement("estimate", ("estimate",), (2,), np.array([3, 4]), GAUSSIAN)])
    found = table_statistics([Fitted(codec, answers, BlockModel.uniform(codec.domain, (), 10.0))], ["estimate"])
    assert found["estimate"].to_pylist() == ["a", "b"]
    assert found["estimate (statistic)"].to_pylist() == [5.0, 5.0]


def test_release_lists_what_was_measured_and_shows_one_copy(plain_release: Release, plain_folder: Path) -> None:
    loaded = Release.load(plain_folder)
    listed = loaded.stats()
    assert isinstance(listed, pa.Table)
    assert set(listed["kind"].to_pylist()) <= {"table", "cells of its own"}
    for asked in ("sex,age", ["sex", "age"], ("age", "sex")):
        assert pa.table(loaded.stats(asked)).equals(pa.table(loaded.stats("sex, age", copy=1)))
    with pytest.raises(UsageError, match="from 1 to 1"):
        loaded.stats("sex", copy=2)


def test_file_holds_every_measured_cell(full_release: Release, full_folder: Path) -> None:
    found = pq.read_table(full_folder / STATISTICS_FILE)
    tables = full_release.transcript.of(Measurement)
    assert found["noisy_count"].to_pylist() == [int(value) for one in tables for value in one.values]
    assert found["label"].to_pylist()[:2] == ["F", "M"]
    assert found["standard_error"].to_pylist()[0] == pytest.approx(tables[0].distribution.variance ** 0.5)
    sex = full_release.model.marginal(full_release.codec.domain.clique(["sex"])) * full_release.model.total
    assert found["estimate"].to_pylist()[:3] == pytest.approx(list(sex))


def test_folder_without_the_file_verifies_as_before(plain_folder: Path, tmp_path: Path) -> None:
    folder = copied(plain_folder, tmp_path / "copy")
    (folder / STATISTICS_FILE).unlink()
    assert verify_release(relisted(folder)) == []


def _changed(column: str, value: object) -> Any:
    def change(table: pa.Table) -> pa.Table:
        values = table[column].to_pylist()
        field = table.schema.field(column)
        changed = pa.array([value, *values[1:]], _written_out(field.type)).cast(field.type)
        return table.set_column(table.schema.get_field_index(column), field, changed)

    return change


def _written_out(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


CHANGES = {
    "count": _changed("noisy_count", 10**6),
    "error": _changed("standard_error", 0.5),
    "estimate": _changed("estimate", 10.0**6),
    "no estimate": _changed("estimate", None),
    "label": _changed("label", "nobody"),
    "table": _changed("table", "voted"),
    "fewer rows": lambda table: table.slice(1),
    "no metadata": lambda table: table.replace_schema_metadata(None),
    "other columns": lambda table: table.drop_columns(["kind"]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_file_is_found(change: Any, full_folder: Path, tmp_path: Path) -> None:
    folder = copied(full_folder, tmp_path / "copy")
    table = pq.read_table(folder / STATISTICS_FILE)
    (folder / STATISTICS_FILE).unlink()
    pq.write_table(change(table), folder / STATISTICS_FILE)
    found = verify_release(relisted(folder))
    assert {problem.where for problem in found} == {STATISTICS_FILE}


def test_tables_beyond_the_bound_are_left_out_and_named(
    plain_release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "MOST_OF_TABLE", 2)
    plain_release.save(tmp_path / "small")
    stored = pq.read_table(tmp_path / "small" / STATISTICS_FILE)
    large = [one for one in plain_release.transcript.of(Measurement) if one.values.size > 2]
    said = (stored.schema.metadata or {})[statistics.STATISTICS_KEY].decode()
    assert large
    assert said.count('"table"') == len(large)
    assert verify_release(tmp_path / "small") == []


def test_estimates_beyond_the_bound_are_said_to_be_unchecked(
    full_folder: Path, full_release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "MOST_CHECKED", 2)
    problems, unchecked = statistics.check_statistics(full_folder / STATISTICS_FILE, full_release.fits)
    assert (problems, unchecked) == ([], "the model's estimates of 5 tables in statistics.parquet")
    assert statistics.check_statistics(full_folder / STATISTICS_FILE, full_release.fits, everything=True) == ([], "")


def test_copies_with_labels_of_their_own_are_not_added_up() -> None:
    first = _fitted(_table(("sex",), [3, 4]))
    other = TableCodec.of(
        replace(simple(), columns=(replace(simple().columns[0], labels=("M", "F")), *simple().columns[1:]))
    )
    with pytest.raises(UsageError, match="other labels in each copy"):
        table_statistics([first, replace(first, codec=other)], ["sex"])
