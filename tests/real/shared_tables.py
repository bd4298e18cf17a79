"""Real tables kept beside the checkout, if they are there. Their bounds may come from the rows: for tests only."""

import json
from pathlib import Path
from typing import Any

from understudy.schema import Category, Column, Float, Integer, Schema, UniformBins, Unit

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data"


def schema_of(name: str, unit: Unit | None = None) -> Schema:
    """A schema made from the table's `domain.json`; identifiers are left out."""
    described = json.loads((FOLDER / name / "domain.json").read_text(encoding="utf-8"))["columns"]
    columns = [_column(key, facts) for key, facts in described.items() if facts["kind"] != "identifier"]
    return Schema(tuple(columns), unit or Unit())


def _column(name: str, facts: dict[str, Any]) -> Column:
    missing = bool(facts.get("missing", True))
    if facts["kind"] == "categorical":
        listed = facts.get("values") or range(int(str(facts["size"])))
        return Category(name=name, labels=tuple(_text(value) for value in listed), missing=missing)
    lower, upper = facts["min"], facts["max"]
    if facts["kind"] == "integer":
        return Integer(name=name, lower=int(str(lower)), upper=int(str(upper)), missing=missing)
    return Float(name=name, lower=float(str(lower)), upper=float(str(upper)), bins=UniformBins(16), missing=missing)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
