import dataclasses

from understudy.schema import Derived, Integer, LinearSum, UniformBins
from understudy.schema.document import FORMULAS, KINDS, Reader, read_column
from understudy.schema.yaml_text import parse_yaml


def read(text: str) -> tuple[object, list[str]]:
    reader = Reader("f")
    column, _ = read_column(reader, "a", parse_yaml(text, "f"))
    return column, [str(problem) for problem in reader.problems]


def test_every_kind_names_its_required_keys_when_they_lack() -> None:
    for kind, made in KINDS.items():
        _, found = read(f"kind: {kind}")
        required = [
            field.name
            for field in dataclasses.fields(made)
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        ]
        assert len(found) == len(set(required) - {"name"}), (kind, found)


def test_every_formula_names_its_required_keys_when_they_lack() -> None:
    for key in FORMULAS:
        _, found = read(f"kind: derived\n{key}: {{}}")
        assert found
        assert all("is not stated" in message for message in found)


def test_empty_optional_keys_mean_none_but_others_are_problems() -> None:
    column, found = read("{kind: integer, lower: 0, upper: 9, bins: , note: , storage: ~}")
    assert (column, found) == (Integer(name="a", lower=0, upper=9), [])
    column, found = read("{kind: integer, lower: 0, upper: 9, missing: , step: }")
    assert column is None
    assert len(found) == 2


def test_bins_and_formulas_are_read() -> None:
    assert read("{kind: integer, lower: 0, upper: 9, bins: 3}")[0] == Integer(
        name="a", lower=0, upper=9, bins=UniformBins(3)
    )
    assert read("{kind: integer, lower: 0, upper: 9, bins: {privat: 3}}")[0] is None
    assert read("{kind: derived, sum: {weights: {x: 2}, constant: 1}}")[0] == Derived(
        name="a", formula=LinearSum({"x": 2.0}, 1.0)
    )
