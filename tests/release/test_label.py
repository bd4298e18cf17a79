"""The written forms of a statement: JSON that comes back equal, Markdown that shows labels as text."""

import json

import pytest

from tests.release.people import QUOTES
from understudy.errors import ReleaseError
from understudy.release.release import Release
from understudy.release.statement import read_statement, statement_document, statement_markdown


def test_json_gives_the_same_statement_back(full_release: Release, plain_release: Release) -> None:
    for release in (full_release, plain_release):
        document = json.loads(json.dumps(statement_document(release.statement)))
        assert read_statement(document) == release.statement
        assert statement_document(read_statement(document)) == document


def test_the_label_answers_every_question(full_release: Release) -> None:
    document = statement_document(full_release.statement)
    wanted = {"variant", "epsilon", "delta", "unit", "neighbours", "contribution_bound", "charges", "spent", "ledger"}
    wanted |= {"copies", "not_protected", "left_out", "odds", "versions", "schema_sha256", "date", "run", "promise"}
    assert wanted <= set(document)
    charges = document["charges"]
    assert isinstance(charges, list)
    assert all(charge["distribution"]["scale"] > 0 for charge in charges)


def test_markdown_says_the_same_and_escapes(full_release: Release) -> None:
    text = statement_markdown(full_release.statement)
    assert full_release.statement.promise in text
    assert full_release.statement.odds in text
    assert full_release.statement.ledger.head in text
    assert QUOTES not in text
    assert "<" not in text
    assert text.count("| 1 | ") == len(full_release.statement.charges)
    assert str(full_release.statement) == text
    assert f"| ε | {full_release.statement.epsilon:.9g} |" in text
    assert "\\." not in text


@pytest.mark.parametrize("field", ["format", "run", "budget", "unit", "charges", "ledger", "copies", "currency"])
def test_a_missing_or_strange_field_is_refused(field: str, plain_release: Release) -> None:
    document = statement_document(plain_release.statement)
    for broken in (
        {key: value for key, value in document.items() if key != field},
        document | {field: 3.5},
        [document],
    ):
        with pytest.raises(ReleaseError):
            read_statement(broken)
