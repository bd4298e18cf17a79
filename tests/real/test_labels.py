"""rdt on real people: private columns of one half of a table, learned from the other half, come back as they were."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.real.shared_tables import FOLDER, schema_of
from understudy.release import Release
from understudy.schema import Schema, Unit
from understudy.synthesizer import synthesize

PRIVATE = ("gender", "race")

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the real tables are not beside this checkout")


@pytest.fixture(scope="module")
def halves() -> tuple[pa.Table, pa.Table]:
    table = pq.read_table(FOLDER / "us_military" / "data.parquet")
    order = np.random.default_rng(1).permutation(table.num_rows)[:100_000]
    return table.take(order[:50_000]), table.take(order[50_000:])


def _schema() -> Schema:
    return Schema(schema_of("us_military").columns, Unit())


def _released(halves: tuple[pa.Table, pa.Table], **options: object) -> Release:
    given = {"private": ",".join(PRIVATE), "leaf_size": 1000} | options
    public = halves[1].drop(list(PRIVATE))
    return synthesize(halves[0], _schema(), method="rdt", epsilon=2.0, options=given, public=public, rows=0)


def _indicators(release: Release, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """0/1 columns of every level: of the private columns, and of all."""
    codec = release.codec
    levels = {name: np.eye(size)[codec.encode(name, table.column(name))] for name, size in codec.domain.sizes.items()}
    return np.hstack([levels[name] for name in PRIVATE]), np.hstack(list(levels.values()))


def _slopes(private: np.ndarray, every: np.ndarray) -> np.ndarray:
    """P(y | x) − P(y | not x) for each private level y and each level x."""
    count = every.sum(axis=0)
    joint, own = private.T @ every, private.sum(axis=0)[:, None]
    return joint / count - (own - joint) / (len(every) - count)


@pytest.mark.slow
def test_slopes_and_shares_of_labelled_records_are_those_of_the_truth(halves: tuple[pa.Table, pa.Table]) -> None:
    release = _released(halves)
    truth = halves[1]
    labelled = release.label(truth, seed=1)
    assert isinstance(labelled, pa.Table)
    real, made = _indicators(release, truth), _indicators(release, labelled)
    shares = np.corrcoef(*((private.T @ every).ravel() for private, every in (real, made)))[0, 1]
    assert shares > 0.999
    count = real[1].sum(axis=0)
    used = (count >= 500) & (count <= len(truth) - 500)  # rarer levels have slopes of mere noise
    first, second = (_slopes(private, every[:, used]).ravel() for private, every in (real, made))
    assert np.corrcoef(first, second)[0, 1] > 0.97
    assert np.polyfit(first, second, 1)[0] == pytest.approx(1.0, abs=0.1)


def test_the_route_by_true_values_keeps_the_association(halves: tuple[pa.Table, pa.Table]) -> None:
    distances = {}
    for route in ("true", "synthetic"):
        release = _released(halves, route=route)
        labelled = release.label(halves[1], seed=1)
        assert isinstance(labelled, pa.Table)
        tables = []
        for table in (halves[1], labelled):
            first, second = (release.codec.encode(name, table.column(name)).astype(int) for name in PRIVATE)
            tables.append(np.bincount(first * 100 + second, minlength=1000) / len(first))
        distances[route] = float(np.abs(tables[0] - tables[1]).sum() / 2)
    assert distances["true"] < 0.025
    assert distances["synthetic"] > 2 * distances["true"]
