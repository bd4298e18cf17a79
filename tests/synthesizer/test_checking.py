"""`schema.check`: the header for free, the rows confidentially, the rows with noise after a charge."""

import math
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.cli.terminal import listing
from understudy.counts.opening import open_table
from understudy.counts.profile import OutcomeCodec
from understudy.counts.readers import StreamedTable
from understudy.domain import Measurement
from understudy.errors import BudgetError, InputError, LedgerError, SchemaError, UsageError
from understudy.evaluate.suite import NOTICE
from understudy.privacy.cost import Budget, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.ledger import Ledger
from understudy.schema import Category, Integer, Schema, Unit
from understudy.schema.table_check import CONFIDENTIAL, OUTCOMES
from understudy.synthesizer import Environment, checking
from understudy.testing.doubles import NoNoise

SCHEMA = Schema((Category(name="sex", labels=("F", "M")), Integer(name="age", lower=0, upper=99)), Unit())
FRAME = pd.DataFrame({"sex": ["F", "M", "female", None] * 25, "age": ["5", "-5", "5 years", "7"] * 25, "note": "x"})
PEOPLE = replace(SCHEMA, unit=Unit("who", 2))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.db", "people", Budget(10.0, 1e-6))


def noiseless() -> Environment:
    return Environment(NoNoise(), lambda: datetime(2026, 1, 1, tzinfo=UTC), lambda: "run-1")


def test_the_header_alone_reads_no_row() -> None:
    found = SCHEMA.check(FRAME)
    assert (found.left_out, found.rows, found.columns, found.confidential) == (("note",), None, (), False)
    assert "CONFIDENTIAL" not in repr(found)
    with pytest.raises(SchemaError, match="'age'"):
        SCHEMA.check(FRAME.drop(columns="age"), rows=True)
    with pytest.raises(InputError):
        SCHEMA.check("absent.csv", rows=True)


def test_rows_are_told_by_column_and_marked() -> None:
    found = SCHEMA.check(FRAME, rows=True)
    assert (found.rows, found.confidential) == (100, True)
    sex, age = found.columns
    assert [getattr(sex, outcome) for outcome in OUTCOMES] == [0.5, 0.0, 0.25, 0.25]
    assert [getattr(found["age"], outcome) for outcome in OUTCOMES] == [0.5, 0.25, 0.0, 0.25]
    assert (sex.shapes, age.shapes) == ((("aaaaaa", 0.25),), (("9 aaaaa", 0.25),))
    lines = repr(found).splitlines()
    assert lines[0] == CONFIDENTIAL
    assert lines[0].endswith(NOTICE)  # the words of `evaluate`
    assert lines[-1].startswith("CONFIDENTIAL. Decisions taken from these numbers are not covered by the guarantee")
    assert found.frame().column("unreadable").to_pylist() == [0.25, 0.25]
    assert found.to_json()["confidential"] is True
    with pytest.raises(FrozenInstanceError):
        found.rows = 3  # type: ignore[misc]
    with pytest.raises(KeyError):
        found["note"]


def test_a_look_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    before = listing(tmp_path)
    assert SCHEMA.check("people.csv", rows=True)["sex"].unreadable == 0.25
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epsilon": 1.0, "ledger": "l"}, "Give rows=True"),
        ({"rows": True, "epsilon": 1.0}, "Give ledger= too"),
        ({"rows": True, "ledger": "l"}, "ledger is for a look with noise"),
        ({"rows": True, "dataset": "d"}, "dataset is for a look"),
        ({"rows": True, "delta": 1e-6}, "delta is for a look"),
        ({"rows": True, "epsilon": -1.0, "ledger": "l"}, "epsilon must be"),
        ({"rows": True, "epsilon": 1.0, "ledger": "absent.db"}, "absent.db"),
    ],
)
def test_what_does_not_go_together_is_refused_before_a_row(
    given: dict[str, object], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "profile", None)
    with pytest.raises((UsageError, LedgerError)) as caught:
        SCHEMA.check(FRAME, **given)  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_noise_is_charged_before_a_row_is_read(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FRAME.to_csv(tmp_path / "people.csv", index=False)
    charged = []

    def watch(name: str) -> None:
        read = getattr(StreamedTable, name)

        def watched(*given: object) -> object:
            charged.append([entry.method for entry in ledger.entries() if entry.kind == "charge"])
            return read(*given)

        monkeypatch.setattr(StreamedTable, name, watched)

    watch("batches")
    watch("parts")
    found = SCHEMA.check(tmp_path / "people.csv", rows=True, epsilon=2.0, ledger=ledger, dataset="people")
    assert charged
    assert all(methods == ["check"] for methods in charged)
    assert (found.confidential, found.epsilon, found.to_json()["confidential"]) == (False, 2.0, False)
    assert all(one.shapes == () for one in found.columns)
    assert "CONFIDENTIAL" not in repr(found)
    assert ledger.balance("people").left == Cost(epsilon=8 * 10**12, delta=10**12)
    assert [entry.outcome for entry in ledger.entries() if entry.kind == "finish"] == ["released"]


def test_a_refused_or_impossible_look_costs_nothing(ledger: Ledger) -> None:
    for epsilon, error in ((11.0, BudgetError), (1e-12, UsageError)):
        with pytest.raises(error):
            SCHEMA.check(FRAME, rows=True, epsilon=epsilon, ledger=ledger)
    assert [entry.kind for entry in ledger.entries()] == ["dataset"]


def test_a_look_that_breaks_off_stays_charged(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Curator, "measure", broken)
    with pytest.raises(KeyboardInterrupt) as caught:
        SCHEMA.check(FRAME, rows=True, epsilon=1.0, ledger=ledger)
    assert "The charge of ε = 1" in caught.value.__notes__[0]
    assert [entry.outcome for entry in ledger.entries() if entry.kind == "finish"] == ["failed"]


@pytest.mark.parametrize(("delta", "kind"), [(0.0, "laplace"), (1e-6, "gaussian")])
def test_the_noise_is_that_of_the_budget(
    delta: float, kind: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C tables of sensitivity k share the budget: scale k·C/ε, or σ² = k²·C/(2ρ)."""
    asked: list[Measurement] = []
    measure = Curator.measure

    def watched(self: Curator, *given: object, **more: object) -> list[Measurement]:
        asked.extend(measure(self, *given, **more))
        assert self.left.epsilon + self.left.rho <= 2  # rounding of two shares
        return asked

    monkeypatch.setattr(Curator, "measure", watched)
    frame = FRAME.assign(who=np.arange(100) // 5)
    found = PEOPLE.check(frame, rows=True, epsilon=1.0, delta=delta, ledger=ledger)
    assert [(one.columns, one.shape, one.distribution.kind) for one in asked] == [
        (("sex",), (4,), kind),
        (("age",), (4,), kind),
    ]
    rho = Budget(1.0, delta).cost("zcdp").rho / 10**12 if delta else 0.0
    expected = math.sqrt(2**2 * 2 / (2 * rho)) if delta else 2 * 2 / 1.0
    assert asked[0].distribution.scale == pytest.approx(expected, rel=1e-9)
    quantile = 1.96 if delta else math.log(20)
    assert found.error == pytest.approx(min(1.0, quantile * expected / (found.rows or 1)), rel=1e-3)


def test_without_noise_the_shares_are_those_of_the_rows_that_count(ledger: Ledger) -> None:
    frame = FRAME.assign(who=np.arange(100) // 5)  # 20 people of 5 rows each, of which 2 count
    found = checking.check_table(PEOPLE, frame, rows=True, epsilon=1.0, ledger=ledger, _environment=noiseless())
    assert found.rows == 40
    for one in found.columns:
        assert sum(getattr(one, outcome) for outcome in OUTCOMES) == pytest.approx(1.0)
    alone = checking.check_table(
        SCHEMA, FRAME, rows=True, epsilon=1.0, ledger=Ledger.create(ledger.path.with_name("b.db"), "b", Budget(1.0)),
        _environment=noiseless(),
    )  # fmt: skip
    exact = SCHEMA.check(FRAME, rows=True)
    for one, other in zip(alone.columns, exact.columns, strict=True):
        assert [getattr(one, name) for name in OUTCOMES] == [getattr(other, name) for name in OUTCOMES]


@pytest.mark.parametrize("unreadable", ["keep", "drop"])
def test_one_unit_moves_a_table_by_at_most_its_rows(unreadable: str) -> None:
    """Brute force: whoever is taken away, no table of four cells moves by more than k in all."""
    rng = np.random.default_rng(5)
    words = np.array(["F", "M", "female", "", "7", "200", "x y"], dtype=object)
    schema = Schema(tuple(replace(one, missing=False) for one in SCHEMA.columns), Unit("who", 2), unreadable=unreadable)
    rows = pa.table(
        {
            "sex": pa.array(rng.choice(words, 60), pa.string()),
            "age": pa.array(rng.choice(words, 60), pa.string()),
            "who": pa.array([f"p{number}" for number in rng.integers(0, 12, 60)]),
        }
    )

    def tables(part: pa.Table) -> list[np.ndarray]:
        codec = OutcomeCodec(schema)
        source = open_table(part, schema).bind(codec)
        cliques = [codec.domain.clique([name]) for name in codec.domain.columns]
        return [source.counts(cliques)[clique] for clique in cliques]

    whole = tables(rows)
    for who in range(12):
        left = rows.filter(pa.compute.not_equal(rows["who"], f"p{who}"))
        for before, after in zip(whole, tables(left), strict=True):
            assert np.abs(before - after).sum() <= 2
            assert (before >= after).all()
