"""Planted leaks: somebody looks past the door, and something that leaves depends on it."""

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from understudy.codec.table_codec import TableCodec
from understudy.counts.chunked_source import ChunkedSource
from understudy.errors import UsageError
from understudy.marginals.clique import Clique
from understudy.mechanisms.independent import Independent
from understudy.mechanisms.prepare import prepare
from understudy.models.blocks import BlockModel
from understudy.privacy.cost import Cost
from understudy.privacy.curator import Curator
from understudy.privacy.quality import SCORE_UNIT
from understudy.release.config import RunConfig
from understudy.schema import Category, Integer, Schema
from understudy.synthesizer import pipeline
from understudy.testing.chooser import Chooser, PairError
from understudy.testing.planted.bug import Plant, PlantedBug, patched

__all__ = ["LEAKS"]


def _exact(curator: Curator, clique: Clique) -> Any:
    """What no mechanism may see."""
    return curator._bound().counts([clique])[clique]


def _rows(curator: Curator) -> int:
    return int(_exact(curator, Clique())[0])


def _after_run(change: Callable[[Curator, BlockModel], BlockModel]) -> Plant:
    """A method whose model is changed by somebody who looks at the exact counts; both methods of the net."""

    @contextmanager
    def plant() -> Iterator[None]:
        def changed(run: Callable[..., BlockModel]) -> Callable[..., BlockModel]:
            return lambda self, curator, cost: change(curator, run(self, curator, cost))

        with (
            mock.patch.object(Independent, "run", changed(Independent.run)),
            mock.patch.object(Chooser, "run", changed(Chooser.run)),
        ):
            yield

    return plant


def _settled_by(look: Callable[[Curator, Schema], Schema]) -> Plant:
    """Codes settled under a schema that somebody adjusted to the rows."""

    @contextmanager
    def plant() -> Iterator[None]:
        def peeking(curator: Curator, schema: Schema, costs: Any) -> TableCodec:
            prepare(curator, schema, costs)
            codec = TableCodec.of(look(curator, schema))
            curator.settle(codec)
            return codec

        with mock.patch.object(pipeline, "prepare", peeking):
            yield

    return plant


def _domain_from_data(curator: Curator, schema: Schema) -> Schema:
    columns = []
    for column in schema.columns:
        if isinstance(column, Category):
            counts = _exact(curator, curator.domain.clique([column.name]))
            held = tuple(label for label, count in zip(column.labels, counts, strict=False) if count)
            column = replace(column, labels=held or column.labels[:1])
        columns.append(column)
    return replace(schema, columns=tuple(columns), rules=())


def _bounds_from_data(curator: Curator, schema: Schema) -> Schema:
    columns = []
    for column in schema.columns:
        if isinstance(column, Integer):
            held = np.flatnonzero(_exact(curator, curator.domain.clique([column.name]))[:5])
            if held.size > 1:
                column = replace(column, lower=18 + int(held[0]), upper=18 + int(held[-1]))
        columns.append(column)
    return replace(schema, columns=tuple(columns))


def _log_rows(curator: Curator, model: BlockModel) -> BlockModel:
    logging.getLogger("understudy").info("read %d rows", _rows(curator))
    return model


def _warn_small(curator: Curator, model: BlockModel) -> BlockModel:
    if _rows(curator) < 10:
        warnings.warn("few rows: the result may look uniform", stacklevel=1)
    return model


def _true_size(curator: Curator, model: BlockModel) -> BlockModel:
    return BlockModel(model.domain, model.blocks, float(_rows(curator)))


def _counts_in_model(curator: Curator, model: BlockModel) -> BlockModel:
    return BlockModel(model.domain, model.blocks, model.total + 1e-9 * _rows(curator))


def _error_on_empty(curator: Curator, model: BlockModel) -> BlockModel:
    for name in model.domain.columns:
        if not _exact(curator, model.domain.clique([name])).all():
            raise UsageError(f"column {name!r}", "has a category without rows.")
    return model


def _second_look(curator: Curator, model: BlockModel) -> BlockModel:
    parts = {}
    for name in model.domain.columns:
        clique = model.domain.clique([name])
        parts[clique] = model.marginal(clique) * max(model.total, 1.0) + _exact(curator, clique)
    return BlockModel.of_marginals(model.domain, parts, curator.forbidden, model.total)


@contextmanager
def _loop_from_data() -> Iterator[None]:
    run = Independent.run

    def looping(self: Independent, curator: Curator, cost: Cost) -> BlockModel:
        part = cost.share(Fraction(9, 10))
        model = run(self, curator, part)
        if _rows(curator) % 2:
            curator.measure([curator.domain.clique(curator.domain.columns[:1])], cost.share(Fraction(1, 20)))
        return model

    with mock.patch.object(Independent, "run", looping):
        yield


@contextmanager
def _leaving(what: str) -> Iterator[None]:
    """The distance to the real table is written into the settings, or its counts into the folder."""
    from understudy.release import store

    fit, write = pipeline._fit, store._write_fits
    seen: dict[str, Any] = {}

    def peeking(curator: Curator, *rest: Any) -> Any:
        fitted = fit(curator, *rest)
        clique = fitted.model.domain.clique(fitted.model.domain.columns[:1])
        seen["counts"] = _exact(curator, clique)
        seen["distance"] = float(np.abs(seen["counts"] - fitted.model.marginal(clique) * fitted.model.total).sum())
        return fitted

    def reporting(**settings: Any) -> Any:
        options = {**settings["options"], "distance": round(seen["distance"], 6)}
        return RunConfig(**{**settings, "options": options if what == "report" else settings["options"]})

    def caching(release: Any, folder: Path) -> None:
        write(release, folder)
        if what == "cache":
            (folder / "model" / "cache.bin").write_bytes(seen["counts"].tobytes())

    with (
        mock.patch.object(pipeline, "_fit", peeking),
        mock.patch.object(pipeline, "RunConfig", reporting),
        mock.patch.object(store, "_write_fits", caching),
    ):
        yield


@contextmanager
def _outside_raises() -> Iterator[None]:
    encode = TableCodec.encode

    def strict(self: TableCodec, name: str, values: Any) -> Any:
        column = self.schema.column(name)
        if isinstance(column, Category) and set(values.to_pylist()) - {None, *column.labels}:
            raise UsageError(f"column {name!r}", "holds a value outside the schema.")
        return encode(self, name, values)

    with mock.patch.object(TableCodec, "encode", strict):
        yield


def _doubled(counts: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, cliques: {clique: 2 * part for clique, part in counts(self, cliques).items()}


def _by_rows(scores: Callable[..., Any]) -> Callable[..., Any]:
    def divided(self: PairError, exact: Any) -> Any:
        rows = max(1, int(next(iter(exact.values())).sum()))
        return scores(self, exact) * 50 // rows

    return divided


def _property(wrong: object) -> property:
    return property(lambda _: wrong)


def _everybody(ids: Any, *_: object) -> Any:
    return np.flatnonzero(ids.places >= 0)


def _to_second() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time()))


def _date_to_second() -> AbstractContextManager[object]:
    """The statement says when its run ended, to the second."""
    stated = pipeline._stated

    def timed(*given: Any, environment: Any, **more: Any) -> Any:
        return replace(stated(*given, environment=environment, **more), date=_to_second())

    return mock.patch.object(pipeline, "_stated", timed)


_HALF = Fraction(SCORE_UNIT // 2)

LEAKS: tuple[PlantedBug, ...] = (
    PlantedBug("domain from data", "replay", _settled_by(_domain_from_data)),
    PlantedBug("bounds from data", "replay", _settled_by(_bounds_from_data)),
    PlantedBug("number of rows in the log", "replay", _after_run(_log_rows)),
    PlantedBug("warning about a small table", "replay", _after_run(_warn_small)),
    PlantedBug("true number of rows as output size", "replay", _after_run(_true_size)),
    PlantedBug("error on an empty category", "replay", _after_run(_error_on_empty)),
    PlantedBug("error on a value outside the schema", "replay", _outside_raises),
    PlantedBug("unledgered measurement", "replay", _after_run(_second_look)),
    PlantedBug("score sensitivity too small", "replay", patched(PairError, "sensitivity", _property(_HALF))),
    PlantedBug(
        "score divided by the number of rows", "replay", patched(PairError, "scores", _by_rows(PairError.scores))
    ),
    PlantedBug("score claimed to be monotone", "replay", patched(PairError, "monotone", _property(True))),
    PlantedBug("loop count from data", "replay", _loop_from_data),
    PlantedBug("double counting", "replay", patched(ChunkedSource, "counts", _doubled(ChunkedSource.counts))),
    PlantedBug("report on real data", "replay", lambda: _leaving("report")),
    PlantedBug("counts in the model", "replay", _after_run(_counts_in_model)),
    PlantedBug("cache in the release folder", "replay", lambda: _leaving("cache")),
    PlantedBug(
        "times of files as written",
        "replay",
        lambda: mock.patch("understudy.release.folder.settle"),
    ),
    PlantedBug(
        "time of day in the ledger", "replay", lambda: mock.patch("understudy.privacy.ledger._today", _to_second)
    ),
    PlantedBug("time of day in the statement", "replay", _date_to_second),
    PlantedBug(
        "rows of a person not cut", "replay", lambda: mock.patch("understudy.counts.frame_source.kept_rows", _everybody)
    ),
)
