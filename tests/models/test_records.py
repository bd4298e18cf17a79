"""Records as a model: the contract, drawing without loss, files that are checked."""

import json
from pathlib import Path

import numpy as np
import pytest

from understudy.domain import Clique, Domain
from understudy.errors import ReleaseError, UsageError
from understudy.models.model import load_model, save_model
from understudy.models.records import RecordModel
from understudy.testing.contracts import check_model

DOMAIN = Domain.of({"a": 3, "b": 2, "c": 4})


def model(records: int = 50) -> RecordModel:
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(0, size, records).astype(np.uint8) for name, size in DOMAIN.sizes.items()}
    codes["a"][codes["b"] == 1] = 0  # some cells stay empty
    return RecordModel(DOMAIN, codes, 123.5)


def test_contract() -> None:
    made = model()
    check_model(made, made.marginal(DOMAIN.everything()))


def test_as_many_rows_as_records_are_the_records() -> None:
    made = model()
    drawn = made.draw(50, np.random.default_rng(2))
    assert sorted(zip(*drawn.values(), strict=True)) == sorted(zip(*made.codes.values(), strict=True))
    assert any((drawn[name] != made.codes[name]).any() for name in DOMAIN.columns), "the order must not give rows away"


@pytest.mark.parametrize("rows", [0, 1, 7, 99, 151])
def test_every_record_is_drawn_equally_often(rows: int) -> None:
    domain = Domain.of({"id": 50})
    made = RecordModel(domain, {"id": np.arange(50, dtype=np.uint8)}, 50.0)
    counts = np.bincount(made.draw(rows, np.random.default_rng(rows))["id"], minlength=50)
    assert counts.sum() == rows
    assert counts.max() - counts.min() <= 1


def test_wide_columns_survive_the_files(tmp_path: Path) -> None:
    domain = Domain.of({"narrow": 2, "wide": 300, "widest": 70_000, "one": 1})
    codes = {
        "narrow": np.array([0, 1, 1], np.uint8),
        "wide": np.array([299, 0, 256], np.uint16),
        "widest": np.array([69_999, 1, 0], np.uint32),
        "one": np.zeros(3, np.uint8),
    }
    save_model(RecordModel(domain, codes, 3.0), tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert isinstance(again, RecordModel)
    assert all(np.array_equal(again.codes[name], codes[name]) for name in domain.columns)


def test_a_condition_nobody_meets_is_refused() -> None:
    with pytest.raises(UsageError, match="no synthetic record"):
        model().condition({"b": np.array([1]), "a": np.array([2])})


def test_total_shrinks_with_the_condition() -> None:
    made = model()
    share = float(made.marginal(Clique(("b",)))[1])
    assert made.condition({"b": np.array([1])}).total == pytest.approx(123.5 * share)


@pytest.mark.parametrize(
    "change", [{"records": 49}, {"records": 0}, {"total": -1.0}, {"domain": [["a", 2], ["b", 2], ["c", 4]]}]
)
def test_altered_files_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    save_model(model(), tmp_path / "model")
    place = tmp_path / "model" / "model.json"
    place.write_text(json.dumps(json.loads(place.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(ReleaseError):
        load_model(tmp_path / "model")


def test_no_records_are_refused() -> None:
    with pytest.raises(UsageError, match="at least one"):
        RecordModel(Domain.of({"a": 2}), {"a": np.zeros(0, np.uint8)}, 0.0)
