"""Hostile texts all the way: as names, labels and notes of a schema, through a release and an evaluation to the pages.

Each batch is one release with many hostile texts at once, against the same release with harmless texts: the pages must
have the same elements with the same attributes in the same order, and what they say of the table must be text.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from tests.report.test_html import PAYLOADS, Tree
from understudy import report as html
from understudy.errors import SchemaError
from understudy.evaluate import evaluate
from understudy.schema import Category, Impossible, Schema, Unit
from understudy.synthesizer import synthesize

COLUMNS = 7
LABELS = 3
SIZE = COLUMNS * (1 + LABELS)
"""Texts of a batch: every column takes one as its name and three as its labels; notes and title repeat them."""
ROWS = 150


def _accepted(text: str) -> bool:
    """Whether a schema takes this text as name and label; what it refuses cannot reach a page."""
    try:
        Schema((Category(name=text, labels=(text, "other")),), Unit())
    except SchemaError:
        return False
    return True


HOSTILE = [text for text in PAYLOADS if _accepted(text)]
BATCHES = [HOSTILE[start : start + SIZE] for start in range(0, len(HOSTILE), SIZE)]


@dataclass(frozen=True)
class Pages:
    """The two pages of one batch."""

    card: Tree
    report: Tree


def _schema(texts: list[str]) -> Schema:
    columns = []
    for place in range(COLUMNS):
        name, *labels = (texts[(place * (1 + LABELS) + part) % len(texts)] for part in range(1 + LABELS))
        columns.append(Category(name=name, labels=tuple(labels), missing=False, note=labels[0]))
    first, second = columns[:2]
    rule = Impossible(when={first.name: first.labels[:1], second.name: second.labels[:1]}, note=texts[0])
    return Schema(tuple(columns), Unit(), rules=(rule,), title=texts[1], note=texts[2])


def _pages(texts: list[str], folder: Path) -> Pages:
    """By the same codes whatever the texts: same seed, same table, and no noise to speak of at this budget."""
    schema, rng = _schema(texts), np.random.default_rng(3)
    codes = rng.integers(0, LABELS, (ROWS, COLUMNS))
    codes[(codes[:, 0] == 0) & (codes[:, 1] == 0), 0] = 1
    labels = [column.labels for column in schema.columns if isinstance(column, Category)]
    real = pd.DataFrame(
        {name: np.array(labels[place], dtype=object)[codes[:, place]] for place, name in enumerate(schema.names)}
    )
    release = synthesize(real, schema, method="independent", epsilon=1e5, rows=ROWS, seed=1, out=folder / "release")
    metrics = ["marginals", "chi2", "specks", "correlations", "rules"]
    evaluate(real, release, metrics=metrics).save(folder / "report.html")
    card = (folder / "release" / "card.html").read_text("utf-8")
    return Pages(Tree(card), Tree((folder / "report.html").read_text("utf-8")))


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    return _pages([f"text {place}" for place in range(SIZE)], tmp_path_factory.mktemp("harmless"))


def test_schemas_take_nearly_every_payload() -> None:
    assert len(HOSTILE) >= 50
    assert len(BATCHES) == 3


def _check_same(hostile: Pages, harmless: Pages) -> None:
    """The same elements, the same attributes, and nothing that a page of ours never holds."""
    for found, plain in ((hostile.card, harmless.card), (hostile.report, harmless.report)):
        assert Counter(tag for tag, _ in found.elements) == Counter(tag for tag, _ in plain.elements)
        assert Counter(found.elements) == Counter(plain.elements), "an attribute was added"
        assert not [name for _, names in found.elements for name in names if name.startswith("on")]
        assert not {"script", "iframe", "object", "img", "base"} & {tag for tag, _ in found.elements}


@pytest.mark.parametrize("batch", range(3))
def test_payloads_add_nothing_to_the_pages_of_a_release_and_its_evaluation(
    batch: int, harmless: Pages, tmp_path: Path
) -> None:
    hostile = _pages([*BATCHES[batch], *HOSTILE][:SIZE], tmp_path)
    _check_same(hostile, harmless)
    shown = "<script" if batch == 0 else "<"
    assert shown in hostile.card.text, "the payloads did not reach the card"
    assert shown in hostile.report.text, "the payloads did not reach the report"


def test_pages_that_do_not_escape_are_noticed(harmless: Pages, tmp_path: Path) -> None:
    careless = html._template("page.html").environment.overlay(autoescape=False)
    with mock.patch.object(html, "_template", careless.get_template):
        hostile = _pages(HOSTILE[:SIZE], tmp_path)
    with pytest.raises(AssertionError):
        _check_same(Pages(hostile.card, harmless.report), harmless)
    with pytest.raises(AssertionError):
        _check_same(Pages(harmless.card, hostile.report), harmless)
