"""Whatever a form or an address holds, the answer is a refusal in words: never a fault, never a word of a row."""

import itertools
from collections.abc import Iterator
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason="needs the extra [studio]")

from tests.studio.client import Client

VALUES = (
    "", " ", "x", "0", "-1", "9" * 5000, "1e999", "nan", "\0", "\u202e", "\ud83d\ude00", "<script>alert(1)</script>",
    "{{7*7}}", "../../etc/passwd", "/etc/passwd", "people.csv\0.parquet", "a\r\nSet-Cookie: x=y", "%2e%2e%2f",
    "' OR 1=1 --", "postgresql://x:y@h/d::t", "[" * 50_000, "&a [*a, *a]", "!!python/object/apply:os.system [x]", "٣",
    "x" * 100_000, "columns: {", "&x a", "? ", "- - - -", "\u2028",
)  # fmt: skip
FEW = ("", "9" * 5000, "\0", "../../etc/passwd", "<script>alert(1)</script>")
"""For pages that plan a run, which takes a moment."""
FIELDS = {
    "/tables": ("table", "inner", "codebook", "like", "database"),
    "/drafts/{key}/change/text": ("text",),
    "/drafts/{key}/change/column": ("column", "kind", "lower", "upper", "labels", "missing", "title", "format", "note"),
    "/drafts/{key}/change/confirm": ("column",),
    "/drafts/{key}/change/drop": ("column",),
    "/drafts/{key}/change/unit": ("several", "id", "rows"),
    "/drafts/{key}/change/rule": ("when_a", "when_b", "rule_note"),
    "/drafts/{key}/change/allow": ("rule",),
    "/drafts/{key}/change/fill": ("codebook", "like"),
    "/drafts/{key}/change/nothing": ("x",),
    "/drafts/{key}/try": ("column", "kind", "lower", "labels", "missing", "format", "title"),
    "/drafts/{key}/fields": ("column", "kind", "upper", "labels"),
    "/drafts/{key}/budget": ("epsilon", "delta", "epsilon_exact", "delta_exact", "rows_hint", "method", "then"),
    "/drafts/{key}/plan": ("epsilon", "delta", "epsilon_exact", "delta_exact", "rows_hint", "method", "matter-0"),
    "/drafts/{key}/methods": ("on", "table", "is_public"),
    "/drafts/{key}/method": ("method",),
    "/drafts/{key}/run": ("confirmed", "name", "dataset", "cap_epsilon", "cap_delta"),
}
USUAL = {
    "/tables": {"table": "people.csv"},
    "/drafts/{key}/change/column": {"column": "age"},
    "/drafts/{key}/change/unit": {"several": "yes", "id": "sex", "rows": "3"},
    "/drafts/{key}/change/rule": {"when_a": "0.0", "when_b": "1.0"},
    "/drafts/{key}/try": {"column": "age"},
    "/drafts/{key}/fields": {"column": "age"},
    "/drafts/{key}/budget": {"epsilon": "6", "delta": "4"},
    "/drafts/{key}/plan": {"epsilon": "6", "delta": "4"},
    "/drafts/{key}/run": {"confirmed": "x", "name": "made", "cap_epsilon": "1", "cap_delta": "0"},
}
SCHEMA = """\
understudy: 1
unit: row
columns:
  sex: {kind: category, labels: [F, M]}
  age: {kind: integer, lower: 0, upper: 99, bins: 10}
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "people.csv").write_text("sex,age\nSECRETVALUE,44\n", encoding="utf-8")
    (folder / "book.csv").write_text("name,label\nage,Age\n", encoding="utf-8")
    return Client(folder).enter()


def forms() -> Iterator[tuple[str, str]]:
    """Every field of every form."""
    for place, names in FIELDS.items():
        yield from itertools.product((place,), names)


def values_for(place: str, field: str) -> tuple[str, ...]:
    """Fields of a form share the values among them, so that each form meets every value and each field a third."""
    if place.endswith(("/budget", "/methods", "/try")):
        return FEW
    fields = FIELDS[place]
    parts = min(3, len(fields))
    return VALUES[fields.index(field) % parts :: parts]


@pytest.mark.parametrize(("place", "field"), list(forms()))
def test_no_form_is_a_fault(client: Client, place: str, field: str) -> None:
    _no_value_is_a_fault(client, place, field, values_for(place, field))


@pytest.mark.slow
@pytest.mark.parametrize(("place", "field"), list(forms()))
def test_no_value_in_any_field_is_a_fault(client: Client, place: str, field: str) -> None:
    _no_value_is_a_fault(client, place, field, VALUES)


def _no_value_is_a_fault(client: Client, place: str, field: str, values: tuple[str, ...]) -> None:
    draft = client.studio.workspace.begin("people.csv", SCHEMA)
    changes = place.startswith("/drafts/{key}/change")
    for value in values:
        draft.write(SCHEMA)
        form = {"version": draft.version, **USUAL.get(place, {}), field: value.encode("utf-8", "ignore").decode()}
        answer = client.post(place.replace("{key}", draft.key), form)
        assert answer.status in (200, 303, 413, 422), (value[:60], answer.status, answer.words[:300])
        assert "SECRETVALUE" not in answer.text
        assert "<script>alert" not in answer.text
        assert "\n" not in answer.headers.get("location", "")
        assert "set-cookie" not in answer.headers
        assert str(client.studio.workspace.root) not in answer.text
        assert not changes or client.get(f"/drafts/{draft.key}/schema").status == 200, value[:60]
    assert client.studio.runs.all() == []
    assert not client.studio.workspace.ledger_path.exists()


@pytest.mark.parametrize("value", [one for one in VALUES if len(one) < 1000])
def test_no_address_is_a_fault(client: Client, value: str) -> None:
    value = value.encode("utf-8", "ignore").decode()
    named = quote(value, safe="")
    for place in (
        "/{}", "/drafts/{}/schema", "/drafts/{}/budget", "/drafts/{}/confirm", "/drafts/{}/methods", "/runs/{}",
        "/runs/{}/status", "/releases/{}", "/releases/{}/card", "/releases/x/download/{}", "/confidential/{}/report",
        "/confidential/x/tables/{}", "/trials/{}/report", "/static/{}", "/start/{}", "/?{}", "/ledger?{}",
    ):  # fmt: skip
        answer = client.get(place.format(named))
        harmless = (200,) if "?" in place or not value.strip() else ()
        assert answer.status in (*harmless, 307, 401, 404, 405), (place, answer.status)
        assert "SECRETVALUE" not in answer.text
        assert "<script>alert" not in answer.text
