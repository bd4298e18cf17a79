from pathlib import Path

import pytest

from understudy.errors import SchemaError, UsageError
from understudy.schema import Boolean, Cut, Derived, Integer, Schema, Unit

SCHEMA = Schema(
    (
        Integer(name="age", lower=0, upper=99),
        Derived(name="band", formula=Cut("age", (0.0, 99.0), ("all",))),
        Boolean(name="voted"),
    ),
    Unit("person", 2),
)


def test_names_keep_order_and_derived_columns_are_not_modelled() -> None:
    assert SCHEMA.names == ("age", "band", "voted")
    assert [column.name for column in SCHEMA.modelled] == ["age", "voted"]


def test_unknown_column_raises_with_the_closest_name() -> None:
    assert SCHEMA.column("voted") == Boolean(name="voted")
    with pytest.raises(UsageError, match='Did you mean "voted"'):
        SCHEMA.column("votes")


def test_header_must_hold_the_modelled_columns_and_the_unit() -> None:
    assert SCHEMA.header_problems(["person", "voted", "age", "extra"]) == []
    found = [str(problem) for problem in SCHEMA.header_problems(["Age", "voted", "voted"])]
    assert len(found) == 3
    assert any("'age' " in message or "'age':" in message for message in found)
    assert any("'person'" in message for message in found)
    assert any("appears twice" in message for message in found)


def test_names_that_only_the_table_has_are_not_quoted() -> None:
    good = ["person", "voted", "age"]
    assert SCHEMA.header_problems([*good, "extra", "", "B19001_001E"]) == []
    for strange, problems in (
        (["Zaphod", "31"], 1),
        (["2001-02-03"], 1),
        (["Zaphod", "Zaphod"], 1),
        (["Zaphod", "31", "31"], 2),
        (["x" * 300], 1),
    ):
        found = SCHEMA.header_problems([*good, *strange])
        assert len(found) == problems, strange
        assert not any(name in str(problem) for name in strange for problem in found)
    merged = SCHEMA.header_problems(["person", "voted", "ageZaphod", "Rome", "nurse"])
    assert [str(problem).count("'age'") for problem in merged] == [1]
    assert not any(word in str(merged) for word in ("Zaphod", "Rome", "nurse"))


def test_a_name_spelled_otherwise_is_shown() -> None:
    (found,) = SCHEMA.header_problems(["person", "voted", " Age"])
    assert 'The table has " Age"' in str(found)


def test_an_invalid_schema_cannot_exist() -> None:
    with pytest.raises(SchemaError) as caught:
        Schema((), Unit("id", 0))
    assert len(caught.value.problems) == 2


def test_files_round_trip_through_the_class(tmp_path: Path) -> None:
    SCHEMA.to_yaml(tmp_path / "s.yaml")
    assert Schema.from_yaml(str(tmp_path / "s.yaml")) == SCHEMA
