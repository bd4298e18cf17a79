"""Planted bugs: leaks and blunders that were seen in this field, put into our own code one at a time.

A safety net that catches nothing proves nothing. Every bug here must be caught by the net it names; a bug that
survives is a hole in the net and fails the suite. Bugs are patches that last as long as their context.
"""

import logging
import math
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.nets.doubles import Chooser, PairError
from understudy.arrays import Ints
from understudy.codec.table import TableCodec
from understudy.counts import source as contribution
from understudy.counts import source as labels
from understudy.counts import streaming as streamed_source
from understudy.counts.kernels import hash_rows
from understudy.counts.opening import open_table
from understudy.counts.source import Texts
from understudy.counts.streaming import ChunkedSource
from understudy.domain import GROWTH_UNIT, SCORE_UNIT, Clique, Course, Distribution
from understudy.errors import LedgerError, UsageError
from understudy.methods import dpwgan as wgan
from understudy.methods.dpwgan import WganTrainer
from understudy.methods.independent import Independent
from understudy.methods.method import Plan, facts_of
from understudy.methods.networks import contributions
from understudy.methods.preparation import prepare
from understudy.models.product import BlockModel
from understudy.privacy import cost as calibrate
from understudy.privacy import curator
from understudy.privacy import randomizer as secure
from understudy.privacy import training as accountant
from understudy.privacy import training as train
from understudy.privacy.cost import DELTA_UNIT, UNIT, Budget, Cost
from understudy.privacy.curator import Curator
from understudy.privacy.ledger import Ledger, Mark, Receipt
from understudy.privacy.noise import discrete_gaussian, discrete_laplace
from understudy.privacy.randomizer import choose_each, choose_exponentially
from understudy.privacy.scores import MarginalError, PublicOrPrivate
from understudy.privacy.training import Contributions, bounded_sum, rate_of, training_distributions
from understudy.release import release as release_room
from understudy.release import store
from understudy.release.release import RunConfig
from understudy.release.statement import Statement
from understudy.schema import Category, Integer, Schema, Unit
from understudy.synthesizer import account, pipeline
from understudy.synthesizer.design import Design

Plant = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A bug, how to plant it, and the net that must catch it."""

    name: str
    net: str
    plant: Plant


def patched(target: object, name: str, wrong: object) -> Plant:
    """The bug of putting something else in the place of a name."""
    return lambda: mock.patch.object(target, name, wrong)


def _exact(curator: Curator, clique: Clique) -> Any:
    """What no method may see."""
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


def _fixed_by(look: Callable[[Curator, Schema], Schema]) -> Plant:
    """Codes fixed under a schema that somebody adjusted to the rows."""

    @contextmanager
    def plant() -> Iterator[None]:
        def peeking(curator: Curator, schema: Schema, costs: Any) -> TableCodec:
            prepare(curator, schema, costs)
            codec = TableCodec.of(look(curator, schema))
            curator.fix_codec(codec)
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
    return BlockModel.of_marginals(model.domain, parts, curator.structural_zeros, model.total)


def _for_one_row(cost: Cost, unit_rows: int, step: str, **more: Any) -> Distribution:
    """The noise of the check alone is that of tables in which everybody has one row."""
    return calibrate.distribution_for(cost, 1 if step.startswith("check ") else unit_rows, step, **more)


@contextmanager
def _loop_from_data() -> Iterator[None]:
    run = Independent.run

    def looping(self: Independent, curator: Curator, plan: Plan) -> BlockModel:
        part = plan.granted.share(Fraction(9, 10))
        model = run(self, curator, self.plan(facts_of(curator), part))
        if _rows(curator) % 2:
            curator.measure([curator.domain.clique(curator.domain.columns[:1])], plan.granted.share(Fraction(1, 20)))
        return model

    with mock.patch.object(Independent, "run", looping):
        yield


@contextmanager
def _leaving(what: str) -> Iterator[None]:
    """The distance to the real table is written into the settings, or its counts into the folder."""
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
    PlantedBug("domain from data", "replay", _fixed_by(_domain_from_data)),
    PlantedBug("bounds from data", "replay", _fixed_by(_bounds_from_data)),
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
        lambda: mock.patch("understudy.release.files.seal"),
    ),
    PlantedBug(
        "time of day in the ledger", "replay", lambda: mock.patch("understudy.privacy.ledger._today", _to_second)
    ),
    PlantedBug("time of day in the statement", "replay", _date_to_second),
    PlantedBug(
        "rows of a person not cut", "replay", lambda: mock.patch("understudy.counts.frames.kept_rows", _everybody)
    ),
)


def _nothing(*_: object) -> None:
    """What a step that was forgotten does."""


@contextmanager
def _free_retry() -> Iterator[None]:
    charge, receipts = Ledger.charge, {}

    def forgiving(self: Ledger, dataset: str, *, run: str, **rest: Any) -> Any:
        with suppress(LedgerError):
            receipts[run] = charge(self, dataset, run=run, **rest)
        return receipts[run]

    with mock.patch.object(Ledger, "charge", forgiving):
        yield


@contextmanager
def _refund() -> Iterator[None]:
    close = account.Charged.close

    def refunding(self: account.Charged, outcome: Any) -> None:
        if outcome != "failed":
            return close(self, outcome)
        with sqlite3.connect(self.ledger.path) as connection:
            names = connection.execute("select type, name, tbl_name from sqlite_master").fetchall()
            for _, name, _ in (entry for entry in names if entry[0] == "trigger"):
                connection.execute(f'drop trigger "{name}"')
            table = next(entry[1] for entry in names if entry[0] == "table" and "sqlite" not in entry[1])
            connection.execute(f'delete from "{table}" where rowid = (select max(rowid) from "{table}")')
        return None

    with mock.patch.object(account.Charged, "close", refunding):
        yield


@contextmanager
def _read_first() -> Iterator[None]:
    def eager(data: object, schema: Schema, **rest: Any) -> Any:
        table = open_table(data, schema, **rest)
        table.bind(TableCodec.of(schema)).counts([Clique()])
        return table

    with mock.patch.object(pipeline, "open_table", eager):
        yield


@contextmanager
def _charged_again() -> Iterator[None]:
    take_up = Ledger.take_up

    def charging(self: Ledger, run: str, mark: Mark | None) -> Receipt:
        (line,) = (entry for entry in self.entries() if entry.kind == "charge" and entry.run == run)
        budget = Budget(line.budget_epsilon / UNIT, line.budget_delta / DELTA_UNIT)
        said = {"method": line.method, "cost": line.cost, "budget": budget, "unit": line.unit}
        self.charge(line.dataset, run=f"{run} again {len(self.entries())}", **said)  # type: ignore[arg-type]
        return take_up(self, run, mark)

    with mock.patch.object(Ledger, "take_up", charging):
        yield


UNPAID: tuple[PlantedBug, ...] = (
    PlantedBug("retry not charged", "ledger", _free_retry),
    PlantedBug("refund on crash", "ledger", _refund),
    PlantedBug("rows read before the charge", "ledger", _read_first),
    PlantedBug("continued run charged again", "resume", _charged_again),
    PlantedBug("release not recorded before it is seen", "resume", patched(account.Charged, "complete", _nothing)),
)


@contextmanager
def _noise_distribution(factor: int) -> Iterator[None]:
    """Noise as if the query had `factor` times its share of the budget."""

    def wrong(cost: Cost, sensitivity: int, step: str, **settings: Any) -> Distribution:
        more = Cost(cost.epsilon * factor, cost.rho * factor, cost.delta)
        return calibrate.distribution_for(more, sensitivity, step, **settings)

    with mock.patch("understudy.privacy.curator.distribution_for", wrong):
        yield


@contextmanager
def _no_half() -> Iterator[None]:
    def wrong(cost: Cost, sensitivity: Fraction, step: str, **_: bool) -> Fraction:
        return calibrate.selection_rate(cost, sensitivity, step, monotone=True)

    with mock.patch("understudy.privacy.curator.selection_rate", wrong):
        yield


def _flip(scores: list[int], rate: Fraction) -> int:
    """Permute-and-flip: ε-DP, but not with the bounded range that ε²/8 rests on."""
    rng = np.random.default_rng()
    gaps = np.max(scores) - np.array(scores)
    for index in rng.permutation(len(scores)):
        if rng.random() < np.exp(-float(rate) * gaps[index]):
            return int(index)
    return int(np.argmax(scores))


def _worst(scores: list[int], rate: Fraction) -> int:
    return choose_exponentially([-score for score in scores], rate)


def _worst_each(scores: Any, allowed: Any, rate: Fraction) -> Any:
    return choose_each(-scores, allowed, rate)


@contextmanager
def _choices_for_one_row() -> Iterator[None]:
    """Choices within cells paid for once per layer, but calibrated as if a unit held one row."""
    right = Curator.select_within

    def wrong(self: Curator, *query: Any) -> Any:
        rows, self._unit_rows = self._unit_rows, 1
        try:
            return right(self, *query)
        finally:
            self._unit_rows = rows

    with mock.patch.object(Curator, "select_within", wrong):
        yield


def _not_lowered(exact: Any, *_: object) -> Any:
    """Counts of nodes as they are: every layer of a tree then costs anew."""
    return exact * GROWTH_UNIT


def _tree_for_one_row(cost: Cost, _: int, decay: Fraction, step: str) -> Any:
    return calibrate.growth_rule(cost, 1, decay, step)


def _distribution_of_one_score(cost: Cost, _: int, sensitivity: Fraction, step: str, **settings: Any) -> Distribution:
    return calibrate.score_distribution(cost, 1, sensitivity, step, **settings)


def _residuals_of_half_a_row(cost: Cost, shape: tuple[int, ...], unit_rows: int, step: str, **settings: Any) -> Any:
    return calibrate.residual_distribution(Cost(rho=4 * cost.rho), shape, unit_rows, step, **settings)


def _with_row_sums(table: Any, shape: tuple[int, ...]) -> Any:
    """Differences from the first column alone: row sums can be told from them."""
    found = table.reshape(shape)
    return np.ascontiguousarray((found - found[..., :1])[..., 1:].reshape(-1)[: math.prod(size - 1 for size in shape)])


@contextmanager
def _reused_noise() -> Iterator[None]:
    draw, kept = secure._noisy, {}

    def reusing(distribution: Distribution, exact: Any) -> Any:
        key = (distribution, exact.size)
        if key not in kept:
            kept[key] = draw(distribution, np.zeros_like(exact))
        return kept[key] + exact

    with mock.patch.object(secure, "_noisy", reusing):
        yield


def _float_noise(distribution: Distribution, exact: Any) -> Any:
    return exact + np.random.default_rng().normal(0.0, distribution.scale, exact.size)


def _biased(draw: Callable[..., Any]) -> Callable[..., Any]:
    """One in twenty zeros becomes a one: the size of a bias that a released library once had."""

    def biased(size: int, parameter: Fraction) -> Any:
        values = draw(size, parameter)
        zeros = np.flatnonzero(values == 0)[::20]
        values[zeros] = 1
        return values

    return biased


@contextmanager
def _fixed_seed() -> Iterator[None]:
    def fixed(size: int) -> bytes:
        return np.random.default_rng(0).bytes(size)

    with mock.patch("os.urandom", fixed):
        yield


@contextmanager
def _continuous_accounting() -> Iterator[None]:
    """ρ from the formula of the continuous Gaussian, which integer noise of small scale does not obey."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def rho(epsilon: Fraction, delta: Fraction) -> Fraction:
        def excess(mu: float) -> float:
            far = norm.cdf(-float(epsilon) / mu + mu / 2)
            return float(far - np.exp(float(epsilon)) * norm.cdf(-float(epsilon) / mu - mu / 2) - float(delta))

        return Fraction(brentq(excess, 1e-3, 30.0)) ** 2 / 2

    with mock.patch("understudy.privacy.cost.rho_of_epsilon", rho):
        yield


def _generous_share(self: Cost, fraction: Fraction | float) -> Cost:
    part = Fraction(fraction)
    return Cost(-((-self.epsilon * part) // 1), -((-self.rho * part) // 1))


def _as_if_of_one_row(self: Statement, otherwise: float) -> float:
    return _BY_EXACT_DISTRIBUTION(replace(self, unit=Unit()), otherwise)


_BY_EXACT_DISTRIBUTION = Statement._by_exact_distribution


def _low_threshold(_: Distribution, unit_rows: int, *__: object) -> int:
    return unit_rows + 1


def _no_empty(*_: object) -> Any:
    return np.empty(0, dtype=np.int64)


BLUNDERS: tuple[PlantedBug, ...] = (
    PlantedBug("half the noise", "replay", lambda: _noise_distribution(4)),
    PlantedBug("noise as if each query had all of the budget", "replay", lambda: _noise_distribution(3)),
    PlantedBug("missing ½ in selection", "replay", _no_half),
    PlantedBug("permute-and-flip charged as exponential", "selection", patched(secure, "choose_exponentially", _flip)),
    PlantedBug("worst option chosen", "selection", patched(secure, "choose_exponentially", _worst)),
    PlantedBug("worst option of a cell chosen", "selection", patched(secure, "choose_each", _worst_each)),
    PlantedBug("choices within cells as if a unit held one row", "tree replay", _choices_for_one_row),
    PlantedBug("nodes of a tree not lowered", "growth", patched(curator, "biased_counts", _not_lowered)),
    PlantedBug("tree as if a unit held one row", "tree replay", patched(curator, "growth_rule", _tree_for_one_row)),
    PlantedBug(
        "scores as if there were one", "tree replay", patched(curator, "score_distribution", _distribution_of_one_score)
    ),
    PlantedBug(
        "residuals as if a row were half a row",
        "residual replay",
        patched(curator, "residual_distribution", _residuals_of_half_a_row),
    ),
    PlantedBug("residuals that tell row sums", "residuals", patched(secure, "contrasts", _with_row_sums)),
    PlantedBug("fixed seed", "noise", _fixed_seed),
    PlantedBug("noise reused", "noise", _reused_noise),
    PlantedBug("float noise", "noise", patched(secure, "_noisy", _float_noise)),
    PlantedBug("biased Laplace sampler", "noise", patched(secure, "discrete_laplace", _biased(discrete_laplace))),
    PlantedBug("biased Gaussian sampler", "noise", patched(secure, "discrete_gaussian", _biased(discrete_gaussian))),
    PlantedBug("sparse noise forgets empty cells", "noise", patched(secure, "rare_positions", _no_empty)),
    PlantedBug(
        "discovery threshold too low",
        "discovery",
        lambda: mock.patch("understudy.privacy.curator.discovery_threshold", _low_threshold),
    ),
    PlantedBug("continuous accounting", "accounting", _continuous_accounting),
    PlantedBug(
        "exact distributions of one row for a unit of several",
        "claims",
        patched(Statement, "_by_exact_distribution", _as_if_of_one_row),
    ),
    PlantedBug("shares rounded up", "accounting", patched(Cost, "share", _generous_share)),
)

_scores = PublicOrPrivate.scores


def _not_halved(self: PublicOrPrivate, exact: Mapping[Clique, Ints]) -> Ints:
    """Both absolute values of a public score can move, in opposite directions; a published program counts one."""
    found = _scores(self, exact)
    for place, (_, source) in enumerate(self.options):
        found[place] *= 2 if source == "public" else 1
    return found


def _of_shares(self: MarginalError) -> Fraction:
    """Half a row: right for total variation, which is half the L1 distance that is scored."""
    return Fraction(max(self._multipliers) * SCORE_UNIT, 2)


UNDERSTATED: tuple[PlantedBug, ...] = (
    PlantedBug("public scores not halved", "choice replay", patched(PublicOrPrivate, "scores", _not_halved)),
    PlantedBug(
        "errors of tables as if halved", "choice replay", patched(MarginalError, "sensitivity", property(_of_shares))
    ),
)


def _sources_everybody(unit: Any, *_: object) -> Any:
    return np.flatnonzero(unit >= 0)


def _by_codes(ids: Texts, columns: Any) -> Any:
    return hash_rows(columns, contribution.HASH_KEY, len(ids.places))


def _replaced(self: Texts, _absent: Sequence[str] = ()) -> Texts:
    """Every value a label, with a mark where its bytes say nothing."""
    texts = [None if raw is None else raw.decode("utf-8", errors="replace") for raw in self.values.to_pylist()]
    return Texts(pa.array(texts, pa.large_string()).cast(pa.large_binary()), self.places)


@contextmanager
def _short_ids() -> Iterator[None]:
    """Ids told apart by their first bytes only."""
    whole = Texts.hashes

    def cut(self: Texts, key: Any) -> Any:
        return whole(Texts(pc.binary_slice(self.values, 0, 64), self.places), key)

    with mock.patch.object(Texts, "hashes", cut):
        yield


@contextmanager
def _only_text_ids() -> Iterator[None]:
    """Rows left out whose id is not UTF-8."""
    read = labels.texts_of
    with mock.patch.object(streamed_source, "texts_of", lambda values: read(values).only_labels()):
        yield


MISREAD: tuple[PlantedBug, ...] = (
    PlantedBug(
        "rows of a person not cut anywhere", "sources", patched(contribution, "_first_rows", _sources_everybody)
    ),
    PlantedBug("the same rows kept in every unit", "sources", patched(contribution, "row_priority", _by_codes)),
    PlantedBug("text that is not UTF-8 as a label", "sources", patched(Texts, "only_labels", _replaced)),
    PlantedBug("a label of any length", "sources", patched(labels, "MOST_LABEL_BYTES", 1 << 40)),
    PlantedBug("long ids confused", "sources", _short_ids),
    PlantedBug("ids that are not UTF-8 left out", "sources", _only_text_ids),
)


def _unbounded(given: Contributions, starts: Any, _: int, cells: int) -> Any:
    return bounded_sum(given, starts, 2**20, cells)


@contextmanager
def _no_clipping() -> Iterator[None]:
    """Gradients as they are, and a door that does not look at their length."""

    def as_they_are(critic: Any, blocks: Any, most_norm: float, radius: float) -> Contributions:
        return contributions(critic, blocks, most_norm / 1000, radius * 4)

    with mock.patch.object(train, "bounded_sum", _unbounded), mock.patch.object(wgan, "contributions", as_they_are):
        yield


@contextmanager
def _clip_per_tensor() -> Iterator[None]:
    """Each array of weights cut to the whole bound by itself, as published programs did."""

    def by_itself(critic: Any, blocks: Any, most_norm: float, radius: float) -> Contributions:
        given = contributions(critic, blocks, most_norm, radius)
        lengths = [np.sqrt((part.astype(float) ** 2).sum(axis=1, keepdims=True)) for part in (given.shared, given.own)]
        stretched = [
            np.rint(part * (radius / np.maximum(length, 1.0))).astype(np.int32)
            for part, length in zip((given.shared, given.own), lengths, strict=True)
        ]
        return Contributions(given.blocks, *stretched)

    with mock.patch.object(train, "bounded_sum", _unbounded), mock.patch.object(wgan, "contributions", by_itself):
        yield


@contextmanager
def _observed_batch() -> Iterator[None]:
    """The noisy sum divided by how many rows were sampled, not by how many were expected."""
    contribute, step, seen = WganTrainer.contribute, WganTrainer.step, [1]

    def counting(self: WganTrainer, codes: Any) -> Contributions:
        seen[0] = len(codes)
        return contribute(self, codes)

    def dividing(self: WganTrainer, noisy: Any) -> None:
        step(self, noisy // max(1, seen[0]))

    with mock.patch.object(WganTrainer, "contribute", counting), mock.patch.object(WganTrainer, "step", dividing):
        yield


@contextmanager
def _centred_in_the_batch() -> Iterator[None]:
    """Gradients relative to their mean over the batch, then at full length: in bounds, but rows move each other."""

    def centred(critic: Any, blocks: Any, most_norm: float, radius: float) -> Contributions:
        given = contributions(critic, blocks, most_norm, radius)
        if not len(blocks):
            return given
        shared, own = given.shared - given.shared.mean(axis=0), given.own - given.own.mean(axis=0)
        length = np.sqrt(blocks.shape[1] * (shared**2).sum(axis=1) + (own**2).sum(axis=1))[:, np.newaxis]
        factor = radius / np.maximum(length, 1.0)
        return Contributions(blocks, *(np.rint(part * factor).astype(np.int32) for part in (shared, own)))

    with mock.patch.object(wgan, "contributions", centred):
        yield


def _half_the_steps(cost: Cost, course: Course, step: str) -> Any:
    return training_distributions(cost, replace(course, steps=max(1, course.steps // 2)), step)


def _training_everybody(limit: int, _: Fraction) -> Any:
    """No coins at all, while the cost counts on them."""
    return np.arange(limit, dtype=np.int64)


def _fixed_batches(limit: int, gap: Fraction) -> Any:
    """Batches of a fixed size, as shuffling gives, while the cost counts on independent coins."""
    size = round(limit * -np.expm1(-1 / float(gap)))
    return np.sort(np.random.default_rng().permutation(limit)[:size]).astype(np.int64)


def _low_rate(gap: Fraction) -> float:
    return 0.97 * rate_of(gap)


TRAINING: tuple[PlantedBug, ...] = (
    PlantedBug("gradients not clipped", "training replay", _no_clipping),
    PlantedBug("gradients clipped tensor by tensor", "training replay", _clip_per_tensor),
    PlantedBug("observed batch size", "training replay", _observed_batch),
    PlantedBug("gradients centred in their batch", "training replay", _centred_in_the_batch),
    PlantedBug(
        "half of the steps charged", "training replay", patched(curator, "training_distributions", _half_the_steps)
    ),
    PlantedBug("amplification without sampling", "training", patched(secure, "sampled_positions", _training_everybody)),
    PlantedBug("fewer rows accounted for than take part", "training", patched(accountant, "rate_of", _low_rate)),
    PlantedBug("shuffled batches accounted as coins", "training", patched(secure, "sampled_positions", _fixed_batches)),
)


@contextmanager
def _check_without_noise() -> Iterator[None]:
    """The check counts beside the door: its account is kept, but no noise is drawn."""
    hold_back = Curator.hold_back

    def beside(self: Curator, cliques: Sequence[Clique], *rest: Any) -> Any:
        held = hold_back(self, cliques, *rest)
        exact = [replace(one, values=_exact(self, Clique(one.columns)).copy()) for one in held]
        self.transcript.answers[-len(exact) :] = exact
        return exact

    with mock.patch.object(Curator, "hold_back", beside):
        yield


@contextmanager
def _check_on_top() -> Iterator[None]:
    """The method gets the whole budget, and the check its share of it as well."""
    of = Design.of.__func__  # type: ignore[attr-defined]

    def generous(cls: type[Design], *given: Any, check_share: Any = None, **more: Any) -> Design:
        whole, shared = of(cls, *given, **more), of(cls, *given, check_share=check_share, **more)
        return replace(whole, check=shared.check, check_cost=shared.check_cost)

    with mock.patch.object(Design, "of", classmethod(generous)):
        yield


@contextmanager
def _check_by_rows() -> Iterator[None]:
    """Which tables are held back depends on the number of rows."""
    hold_back = Curator.hold_back

    def fewer(self: Curator, cliques: Sequence[Clique], cost: Cost, weights: Sequence[float]) -> Any:
        most = len(cliques) - _rows(self) % 2
        return hold_back(self, cliques[:most], cost, weights[:most])

    with mock.patch.object(Curator, "hold_back", fewer):
        yield


@contextmanager
def _check_of_the_table() -> Iterator[None]:
    """The distances that are published are those from the private table itself."""
    held_back, judged = pipeline._held_back, release_room.checked_release
    seen: dict[str, Any] = {}

    def peeking(private: Any, design: Any, codec: TableCodec, *rest: Any) -> Any:
        clique = codec.domain.clique(codec.domain.columns[:1])
        seen["counts"] = type(private).bind(private, codec).counts([clique])[clique]
        return held_back(private, design, codec, *rest)

    def exact(release: Any, *rest: Any) -> Any:
        found = judged(release, *rest)
        check = found.statement.check
        assert check is not None
        apart = replace(check.distances[0], upper=float(seen["counts"][0]))
        stated = replace(found.statement, check=replace(check, distances=(apart, *check.distances[1:])))
        return replace(found, statement=stated)

    with mock.patch.object(pipeline, "_held_back", peeking), mock.patch.object(store, "checked_release", exact):
        yield


CHECK: tuple[PlantedBug, ...] = (
    PlantedBug("check measured outside the door", "check replay", _check_without_noise),
    PlantedBug("check share not charged", "check replay", _check_on_top),
    PlantedBug("tables of the check by the number of rows", "check replay", _check_by_rows),
    PlantedBug("distances from the exact table", "check replay", _check_of_the_table),
    PlantedBug(
        "noise of the check for one row where people hold several",
        "check replay",
        patched(curator, "distribution_for", _for_one_row),
    ),
)

PLANTED: tuple[PlantedBug, ...] = (*LEAKS, *BLUNDERS, *UNDERSTATED, *UNPAID, *TRAINING, *MISREAD, *CHECK)
