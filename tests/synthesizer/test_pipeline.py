"""synthesize: the order of things, every kind of input, copies, test doubles, and bytes that repeat."""

import warnings
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.release.people import everything, people, simple
from tests.synthesizer.watched import Watched
from understudy.errors import (
    BudgetError,
    ColumnWarning,
    InputError,
    LedgerError,
    ResourceError,
    SchemaError,
    UnderstudyError,
    UnderstudyWarning,
    UsageError,
)
from understudy.methods.independent import Independent
from understudy.models.product import BlockModel
from understudy.privacy import ledger as ledger_room
from understudy.privacy.cost import UNIT, Budget
from understudy.privacy.ledger import Ledger
from understudy.progress import STAGES
from understudy.release.release import Release
from understudy.release.verify import check_odd, verify_release
from understudy.schema import Category, Column, Float, Integer, OpenCategory, Schema, UniformBins, Unit
from understudy.synthesizer import Environment, plan, synthesize
from understudy.synthesizer.design import Copies, delta_remark, hazards
from understudy.synthesizer.pipeline import _rows
from understudy.testing.doubles import SeededRandomizer


def _environment(seed: int = 3) -> Environment:
    return Environment(SeededRandomizer(seed), lambda: datetime(2026, 1, 2, tzinfo=UTC), lambda: "run-of-a-test")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.db", "people", Budget(3.0, 1e-6))


def _spent(ledger: Ledger) -> float:
    return ledger.balance("people").spent.epsilon / UNIT


def test_frames_come_back_as_they_came() -> None:
    frame = people(50)
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    for data, kind in ((frame, pd.DataFrame), (pl.from_arrow(arrow), pl.DataFrame), (arrow, pa.Table)):
        release = synthesize(data, simple(), epsilon=5.0, rows=7)
        assert isinstance(release.table, kind)
        assert len(release.table) == 7
        assert list(getattr(release.table, "columns", ())) or release.table.num_columns == 3


@pytest.mark.parametrize("name", ["people.csv", "people.tsv", "people.parquet"])
def test_files_are_read_and_released(name: str, tmp_path: Path) -> None:
    frame, path = people(200), tmp_path / name
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    release = synthesize(path, simple(), epsilon=200.0, out=tmp_path / "out")
    assert isinstance(release.table, pa.Table)
    assert abs(release.table.num_rows - 200) < 20  # the noisy total has scale ½: off by 20 once in 10¹⁷ runs
    assert "unasked" in release.statement.left_out
    assert verify_release(tmp_path / "out") == []
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(["out", name])


def test_the_charge_is_on_disk_before_the_first_read(ledger: Ledger) -> None:
    def check() -> None:
        assert _spent(Ledger.open(ledger.path)) == 2.0, "read before the charge"

    table = Watched(simple(), check)
    synthesize(table, simple(), epsilon=2.0, method="laplace", ledger=ledger.path, dataset="people")
    assert table.reads >= 1


def test_without_a_ledger_a_charge_is_on_disk_all_the_same(tmp_path: Path) -> None:
    seen = []

    def check() -> None:
        (path,) = tmp_path.rglob("ledger.db")
        opened = Ledger.open(path)
        seen.append(opened.balance(opened.datasets()[0]).releases)

    release = synthesize(Watched(simple(), check), simple(), epsilon=2.0, method="independent", out=tmp_path / "out")
    assert seen == [1]
    assert "not counted" in release.statement.markdown()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_crash_after_the_charge_leaves_the_charge_and_no_folder(ledger: Ledger, tmp_path: Path) -> None:
    def crash() -> None:
        raise RuntimeError("the disk broke")

    with pytest.raises(RuntimeError):
        synthesize(Watched(simple(), crash), simple(), epsilon=1.0, ledger=ledger, out=tmp_path / "out")
    assert _spent(ledger) == 1.0
    assert [entry.kind for entry in ledger.entries("people")] == ["dataset", "charge", "finish"]
    assert not (tmp_path / "out").exists()


def test_a_refused_budget_reads_nothing(ledger: Ledger) -> None:
    table = Watched(simple(), lambda: None)
    with pytest.raises(BudgetError):
        synthesize(table, simple(), epsilon=3.5, ledger=ledger)
    assert table.reads == 0
    assert _spent(ledger) == 0


BAD: dict[str, tuple[dict[str, object], type[UnderstudyError]]] = {
    "epsilon zero": ({"epsilon": 0.0}, UsageError),
    "epsilon not a number": ({"epsilon": float("nan")}, UsageError),
    "epsilon text": ({"epsilon": "1"}, UsageError),
    "negative delta": ({"delta": -1e-9}, UsageError),
    "delta one": ({"delta": 1.0}, UsageError),
    "delta that buys nothing": ({"delta": 1e-6, "method": "laplace"}, UsageError),
    "unknown method": ({"method": "laplce"}, UsageError),
    "unknown option": ({"options": {"colour": "red"}}, UsageError),
    "negative rows": ({"rows": -1}, UsageError),
    "fractional rows": ({"rows": 1.5}, UsageError),
    "no copies": ({"copies": 0}, UsageError),
    "unknown copies mode": ({"copies": 2, "copies_mode": "redraw"}, UsageError),
    "negative seed": ({"seed": -1}, UsageError),
    "too little memory": ({"memory_bytes": 100}, ResourceError),
    "memory of no size": ({"memory_bytes": 0}, UsageError),
    "unknown dataset": ({"dataset": "poeple"}, UsageError),
    "no ledger file": ({"ledger": "no-such-ledger.db"}, LedgerError),
    "data of no kind": ({"data": 42}, InputError),
    "no such file": ({"data": "no-such-file.csv"}, InputError),
    "column missing": ({"data": people(5).drop(columns=["age"])}, SchemaError),
    "opened under another schema": ({"data": Watched(everything(), lambda: None)}, UsageError),
    "output exists": ({"out": "."}, UsageError),
    "output nowhere": ({"out": "no/such/place"}, InputError),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_charges_and_writes_nothing(kind: str, ledger: Ledger, tmp_path: Path) -> None:
    changes, error = BAD[kind]
    settings: dict[str, object] = {"data": people(5), "schema": simple(), "epsilon": 1.0, "ledger": ledger}
    settings |= {"method": "independent"} | changes
    with pytest.raises(error):
        synthesize(settings.pop("data"), settings.pop("schema"), **settings)  # type: ignore[arg-type]
    assert _spent(ledger) == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["ledger.db"]


@pytest.mark.parametrize("megabytes", [68, 75, 90, 105, 120])
def test_memory_is_refused_before_the_charge_or_not_at_all(megabytes: int, ledger: Ledger, tmp_path: Path) -> None:
    """A pair of a million cells: its plan has room in some of these limits while its count overfills a quarter."""
    labels = tuple(f"l{code}" for code in range(1_000))
    wide = Schema((Category(name="a", labels=labels), Category(name="b", labels=labels)), Unit())
    pq.write_table(pa.table({"a": labels[:300], "b": labels[-300:]}), tmp_path / "wide.parquet")
    settings: dict[str, object] = {"epsilon": 1.0, "delta": 1e-9, "ledger": ledger, "dataset": "people"}
    try:
        synthesize(tmp_path / "wide.parquet", wide, method="mst", memory_bytes=megabytes * 10**6, **settings)  # type: ignore[arg-type]
    except ResourceError:
        assert _spent(ledger) == 0


def test_open_categories_need_delta() -> None:
    with pytest.raises(UsageError, match="delta"):
        synthesize(people(5), everything(), epsilon=1.0)


def test_several_datasets_must_be_named(ledger: Ledger) -> None:
    ledger.add_dataset("houses", Budget(1.0))
    with pytest.raises(UsageError, match="must be named"):
        synthesize(people(5), simple(), epsilon=1.0, ledger=ledger)
    with pytest.raises(UsageError, match="no ledger is given"):
        synthesize(people(5), simple(), epsilon=1.0, dataset="people")


def test_releases_add_up_in_a_ledger(ledger: Ledger) -> None:
    first = synthesize(people(50), simple(), epsilon=1.0, ledger=ledger)
    second = synthesize(people(50), simple(), epsilon=1.5, ledger=ledger)
    assert (first.statement.ledger.epsilon, second.statement.ledger.epsilon) == (1.0, 2.5)
    assert second.statement.ledger.releases == 2
    assert second.statement.run in second.ledger[-1]
    assert ledger.verify([first.statement.ledger.head, second.statement.ledger.head]) == []


def test_resampled_copies_share_a_model(tmp_path: Path) -> None:
    # Rows are given: a noisy total (scale 50) leaves none at times, and empty copies are equal.
    release = synthesize(people(300), simple(), epsilon=2.0, copies=3, rows=300, out=tmp_path / "out")
    assert len(release.fits) == 1
    assert release.statement.spent.epsilon <= 2 * UNIT
    assert len({table.to_string() for table in release.tables}) == 3
    assert {path.name for path in (tmp_path / "out").glob("data*")} == {f"data-{i}.parquet" for i in (1, 2, 3)}
    assert verify_release(tmp_path / "out") == []


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_resanitized_copies_split_the_budget(delta: float, tmp_path: Path) -> None:
    settings = {"copies": 3, "copies_mode": "remeasure", "method": "independent"}
    release = synthesize(people(300), simple(), epsilon=3.0, delta=delta, out=tmp_path / "out", **settings)
    assert len(release.fits) == 3
    shares = [
        sum(charge.cost.epsilon + charge.cost.rho for charge in release.statement.charges if charge.run == run)
        for run in (1, 2, 3)
    ]
    assert len(set(shares)) == 1
    whole = release.statement.granted.epsilon + release.statement.granted.rho
    assert 0.999 * whole < sum(shares) <= whole
    assert release.statement.epsilon is not None
    assert 2.98 < release.statement.epsilon <= 3.0
    # All nine noisy cells: those of one column alone are the same in three runs once in 10,000 times.
    noisy = {str([answer.values.tolist() for answer in fitted.transcript.answers]) for fitted in release.fits}
    assert len(noisy) == 3
    loaded = Release.load(tmp_path / "out")
    assert loaded.sample(5, seed=1, copy=3).num_rows == 5
    assert verify_release(tmp_path / "out") == []


def test_a_test_double_makes_no_claim(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    release = synthesize(people(50), simple(), epsilon=1.0, out=folder, _environment=_environment())
    assert release.statement.epsilon is None
    assert release.statement.promise.startswith("NOT PRIVATE: test double")
    assert "NOT PRIVATE" in (folder / "card.html").read_text()
    assert pq.read_schema(folder / "data.parquet").metadata[b"understudy.epsilon"] == b"none"
    assert any("NOT PRIVATE" in problem.rule for problem in verify_release(folder))


def test_same_noise_and_seed_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_room, "_today", lambda: "2026-01-02")
    for name in ("a", "b"):
        settings = {"epsilon": 9.0, "delta": 1e-6, "seed": 4, "out": tmp_path / name, "method": "independent"}
        synthesize(people(), everything(), _environment=_environment(), **settings)
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert len(files) == 15
    for path in files:
        assert (tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes(), path


def test_rows_follow_the_noisy_total_or_the_caller() -> None:
    release = synthesize(people(400), simple(), epsilon=1.0)
    assert len(release.table) == release.config.rows[0] == round(release.model.total)
    assert release.config.rows_from == "noisy total"
    assert len(synthesize(people(400), simple(), epsilon=1.0, rows=0).table) == 0


@pytest.mark.parametrize("rows", [0, 1])
def test_tiny_tables_are_released_all_the_same(rows: int, tmp_path: Path) -> None:
    frame = people(5).head(rows)
    synthesize(frame, everything(), epsilon=1.0, delta=1e-6, out=tmp_path / "out")
    assert verify_release(tmp_path / "out") == []


def test_strange_values_never_stop_a_run(tmp_path: Path) -> None:
    table = pa.table(
        {
            "sex": ["F", None, "\x00", "é" * 10_000],
            "age": pa.array(["-1", "1e400", "nan", "twelve"]),
            "voted": pa.array([b"\xff", b"1", None, b"true"], pa.binary()),
        }
    )
    synthesize(table, simple(), epsilon=1.0, out=tmp_path / "out")
    assert verify_release(tmp_path / "out") == []


class _Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, float]] = []

    def stage(self, name: str, done: float) -> None:
        self.heard.append((name, done))


def test_progress_names_public_stages_in_order(tmp_path: Path) -> None:
    listener = _Listener()
    synthesize(people(50), simple(), epsilon=1.0, out=tmp_path / "out", progress=listener)
    order = [STAGES.index(name) for name, _ in listener.heard]
    assert order == sorted(order)
    assert set(order) == set(range(len(STAGES)))
    assert all(0.0 <= done <= 1.0 for _, done in listener.heard)
    assert listener.heard[0] == ("check", 0.0)
    assert listener.heard[-1] == ("write", 1.0)


def test_planted_values_leave_no_trace(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    planted = "PLANTED7f3a"
    frame = people(300)
    frame["mood"] = planted
    frame.loc[0, "job"] = planted
    frame["unasked"] = planted
    synthesize(frame, everything(), epsilon=1.0, delta=1e-9, out=tmp_path / "out")
    for path in (tmp_path / "out").rglob("*"):
        assert planted not in path.name
        if path.suffix == ".parquet":
            assert planted not in pq.read_table(path).to_pandas().to_string()
        elif path.is_file():
            assert planted.encode() not in path.read_bytes(), path.name
    assert capfd.readouterr() == ("", "")


def test_a_unit_with_several_rows_pays_for_them(tmp_path: Path) -> None:
    schema = replace(simple(), unit=Unit("person", 4))
    frame = people(300).assign(person=[f"p{i // 10}" for i in range(300)])
    release = synthesize(frame, schema, epsilon=3.0, method="independent", out=tmp_path / "out")
    assert {charge.distribution.parameter for charge in release.statement.charges if charge.distribution} == {
        Fraction(4)
    }
    assert abs(release.model.total - 120) < 60, "30 people, at most 4 rows each"
    assert "'person'" in release.statement.markdown()
    assert verify_release(tmp_path / "out") == []


def test_open_categories_under_pure_noise(tmp_path: Path) -> None:
    schema = Schema(columns=everything().columns[:3], unit=Unit())
    release = synthesize(people(), schema, epsilon=50.0, delta=1e-6, method="laplace", out=tmp_path / "out")
    assert release.statement.currency == "pure"
    assert release.statement.delta == pytest.approx(1e-6)
    assert set(release.codec.labels["job"]) == {"nurse", "clerk", "<b>baker</b>"}
    assert verify_release(tmp_path / "out") == []


def test_a_noisy_total_beyond_measure_is_cut() -> None:
    fitted = synthesize(people(20), simple(), epsilon=1.0, method="independent").fits[0]
    assert isinstance(fitted.model, BlockModel)
    huge = replace(fitted, model=replace(fitted.model, total=1e15))
    most = 100_000_000
    assert _rows([huge], Copies(2)) == ((most, most), f"noisy total, at most {most}")
    assert _rows([fitted, huge], Copies(2, "remeasure", 7)) == ((7, 7), "given")


def test_a_plan_may_refuse_the_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method as it was published, mistakes included: the reason stands in the statement, and verification fails."""
    reason = "as published: the noise is half of what the cost buys"
    planned = Independent.plan
    monkeypatch.setattr(Independent, "plan", lambda *given: replace(planned(*given), refused=reason))
    release = synthesize(people(30), simple(), method="independent", epsilon=1.0, out=tmp_path / "r")
    assert release.statement.claim is None
    assert release.statement.refused == reason
    assert reason in release.statement.markdown()
    assert any(reason in problem.rule for problem in verify_release(tmp_path / "r"))
    doubled = synthesize(people(30), simple(), method="independent", epsilon=1.0, _environment=_environment())
    assert doubled.statement.refused == f"NOT PRIVATE: test double; {reason}"


def test_hazards_of_a_setting_are_warnings_that_point_at_the_call() -> None:
    schema = Schema((Category(name="patient_id", labels=("a", "b")),), Unit())
    frame = pd.DataFrame({"patient_id": ["a", "b"] * 1000})
    with pytest.warns(UnderstudyWarning) as seen:
        synthesize(frame, schema, method="independent", epsilon=1.0, delta=0.25)
    large, unit = [str(one.message) for one in seen]
    assert "δ = 0.25 is large" in large
    assert "about 25 % of the rows" in large
    assert "column 'patient_id' looks like an identifier of people" in unit
    assert {one.filename for one in seen} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnderstudyWarning)
        synthesize(people(20), simple(), method="independent", epsilon=1.0, delta=1e-6, rows=5)


def test_a_large_delta_is_said_of_the_unit_that_is_protected() -> None:
    said = delta_remark(Budget(1.0, 0.01), Unit("person", 3))
    assert "1 % of the protected units with all their rows" in said
    assert delta_remark(Budget(1.0), Unit()) == ""


def test_a_table_without_rows_is_a_warning_that_never_costs_the_release() -> None:
    def run(seed: int) -> Release:
        return synthesize(people(1), simple(), epsilon=1.0, method="laplace", _environment=_environment(seed))

    with warnings.catch_warnings(record=True):
        empty = next(seed for seed in range(60) if run(seed).config.rows == (0,))
    with pytest.warns(UnderstudyWarning, match="has no rows: their number was measured with noise"):
        run(empty)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnderstudyWarning)
        assert run(empty).config.rows == (0,)


def test_a_schema_may_be_named_by_its_file(tmp_path: Path) -> None:
    simple().to_yaml(tmp_path / "schema.yaml")
    settings = {"method": "laplace", "epsilon": 1.0, "rows": 10}
    release = synthesize(people(50), tmp_path / "schema.yaml", **settings)
    assert release.schema == simple()
    with pytest.raises(UsageError, match="must be a Schema or the path of its file, got a dict"):
        synthesize(people(50), {"sex": ["F", "M"]}, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": np.float64(1.0)},
        {"options": {"total_share": np.float64(0.05)}},
        {"options": {"n_policy": np.str_("estimated")}},
        {"copies": 2, "copies_mode": np.str_("remeasure")},
        {"seed": 2**127},
    ],
    ids=str,
)
def test_what_is_charged_can_be_saved_and_verified(settings: dict[str, object], tmp_path: Path) -> None:
    """Numbers and text of other libraries passed every check and could not be written when the budget was spent."""
    given = {"method": "laplace", "epsilon": 1.0, "rows": 5, **settings}
    synthesize(people(50), simple(), out=tmp_path / "release", **given)
    assert verify_release(tmp_path / "release") == []


def test_the_old_name_of_remeasure_is_understood_with_a_note() -> None:
    with pytest.warns(UnderstudyWarning, match="is now called 'remeasure'"):
        release = synthesize(
            people(50), simple(), method="laplace", epsilon=1.0, rows=5, copies=2, copies_mode="resanitize"
        )
    assert release.config.copies_mode == "remeasure"


@pytest.mark.parametrize(
    "settings", [{"method": None}, {"options": ["a"]}, {"options": {1: 2}}, {"seed": 2**128}], ids=str
)
def test_settings_of_no_known_form_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        synthesize(people(50), simple(), **{"method": "laplace", "epsilon": 1.0, **settings})


def _labelled_by_trees(unreadable: int) -> Release:
    """2,000 rows of three columns; the last, which the trees label, has so many values that no code stands for."""
    rng = np.random.default_rng(1)
    last = rng.choice(list("0123456789"), 2_000)
    last[:unreadable] = "?"
    rows = pa.table({"a": rng.choice(list("xyz"), 2_000), "b": rng.choice(list("pq"), 2_000), "c": last})
    labels = {"a": "xyz", "b": "pq", "c": "0123456789"}
    columns = tuple(Category(name=name, labels=tuple(its), missing=False) for name, its in labels.items())
    schema = Schema(columns=columns, unit=Unit(rows=1))
    return synthesize(rows, schema, method="rdt", epsilon=1.0, rows=10, _environment=_environment())


def test_label_trees_tell_of_no_unreadable_values_in_a_clean_table() -> None:
    """Their shares hold clipped noise, which was once taken for values that could not be read, in every run."""
    assert _labelled_by_trees(0).statement.odd == ()


def test_label_trees_tell_of_unreadable_values_that_are_there() -> None:
    (odd,) = _labelled_by_trees(600).statement.odd
    assert (odd.column, odd.meaning) == ("c", "unreadable")
    assert odd.share == pytest.approx(0.3, abs=0.05)


def _crowded(columns: tuple[Column, ...], rows: dict[str, object]) -> list[tuple[str, str]]:
    table = pa.table(rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = synthesize(
            table, Schema(columns, Unit()), epsilon=20.0, delta=1e-6, method="independent", _environment=_environment()
        )
    told = [str(one.message) for one in caught if issubclass(one.category, ColumnWarning)]
    assert told == [odd.text for odd in release.statement.odd]
    return [(odd.column, odd.meaning) for odd in release.statement.odd]


def test_a_column_that_lies_in_one_bin_is_told(tmp_path: Path) -> None:
    """Bounds that miss the values, and amounts that are nearly all zero, end in one bin without a trace."""
    years = Integer(name="year", lower=1900, upper=2030)
    gain = Float(name="gain", lower=0.0, upper=100_000.0)
    fine = Float(name="fine", lower=0.0, upper=100.0)
    rng = np.random.default_rng(5)
    rows: dict[str, object] = {
        "year": [66, 73] * 500,
        "gain": [0.0] * 900 + [90_000.0] * 100,
        "fine": rng.uniform(0, 100, 1000),
    }
    assert _crowded((years, gain, fine), rows) == [("year", "lowest"), ("gain", "lowest")]
    assert _crowded((replace(gain, special=(0.0,)),), {"gain": rows["gain"]}) == []
    assert _crowded((Integer(name="n", lower=0, upper=20),), {"n": [0] * 990 + [3] * 10}) == []
    top = Integer(name="iq", lower=0, upper=100, bins=UniformBins(10))
    assert _crowded((top,), {"iq": [95 + i % 40 for i in range(1000)]}) == [("iq", "highest")]


def test_labels_that_are_all_too_rare_are_told() -> None:
    column = OpenCategory(name="code")
    assert _crowded((column,), {"code": [f"c{i}" for i in range(1000)]}) == [("code", "rare")]
    assert _crowded((column,), {"code": ["a", "b"] * 500}) == []


def test_remarks_on_bins_are_written_read_and_verified(tmp_path: Path) -> None:
    schema = Schema((Integer(name="year", lower=1900, upper=2030),), Unit())
    table = pa.table({"year": [66] * 1000})
    with pytest.warns(ColumnWarning, match="lowest bin"):
        release = synthesize(table, schema, epsilon=20.0, method="independent", out=tmp_path / "r")
    assert "## Crowded bins" in (tmp_path / "r" / "statement.md").read_text(encoding="utf-8")
    assert verify_release(tmp_path / "r") == []
    loaded = Release.load(tmp_path / "r")
    assert loaded.statement.odd == release.statement.odd
    (odd,) = release.statement.odd
    for told in ((replace(odd, bin="2030"),), (replace(odd, share=0.5),), (odd, replace(odd, meaning="highest"))):
        assert check_odd(replace(release.statement, odd=told), loaded.fits[0])
    assert check_odd(replace(release.statement, odd=()), loaded.fits[0]) == []  # earlier versions told nothing of it


def test_plans_say_which_budgets_protect_nobody_and_which_destroy_everything() -> None:
    assert hazards(Budget(10.0, 1e-9), Unit()) == ()
    (said,) = hazards(Budget(20.0, 1e-9), Unit())
    assert "could become more than 99.9 % sure" in said
    assert len(hazards(Budget(20.0, 0.01), Unit())) == 2
    assert delta_remark(Budget(1.0, 0.001), Unit(), 10), "however few rows there are"
    schema = Schema((Category(name="a", labels=("x", "y")), Category(name="b", labels=("x", "y"))), Unit())
    for epsilon, drowned in ((0.001, True), (1.0, False)):
        notes = plan(schema, method="independent", epsilon=epsilon, rows_hint=1000).notes
        assert any("hides the table" in note for note in notes) == drowned
        notes = plan(schema, method="independent", epsilon=epsilon).notes
        assert any("the noise hides the table" in note for note in notes) == drowned, "said without a guess of rows too"
    share = {"total_share": 0.01}
    for epsilon, drowned in ((0.05, True), (1.0, False)):  # 20 rows in a cell, 2,000 in their number; 1 and 100
        notes = plan(schema, method="laplace", epsilon=epsilon, rows_hint=1000, options=share).notes
        assert any("in the number of rows" in note for note in notes) == drowned
    assert any("protects almost nobody" in note for note in plan(schema, epsilon=50.0, method="independent").notes)


def test_a_package_without_a_version_is_missed_before_the_charge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(10.0))
    monkeypatch.setattr("understudy.release.release._version", absent)
    with pytest.raises(UsageError, match="not installed"):
        synthesize(people(), simple(), method="independent", epsilon=1.0, ledger=ledger, dataset="people")
    assert ledger.balance("people").releases == 0
