"""Real tables, from file to verified release: wide, long, with gaps, with several rows per person."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.real.shared_tables import FOLDER, schema_of
from understudy.counts.opening import open_table
from understudy.release import Release, verify_release
from understudy.schema import Unit
from understudy.synthesizer import synthesize

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the real tables are not beside this checkout")

TABLES = {
    "titanic": Unit(),
    "sd2011": Unit(),
    "diabetes130": Unit(column="patient_nbr", rows=2),
    "stroke_ist": Unit(),
    "taxcalc_cps": Unit(),
}


def _one_way_error(release: Release, path: Path) -> float:
    """Mean total variation of the columns between the model and the rows that count."""
    codec = release.codec
    cliques = [codec.domain.clique([name]) for name in codec.domain.columns]
    exact = open_table(path, release.schema).bind(codec).counts(cliques)
    distances = []
    for clique in cliques:
        shares = exact[clique] / exact[clique].sum()
        distances.append(np.abs(shares - release.model.marginal(clique)).sum() / 2)
    return float(np.mean(distances))


@pytest.mark.parametrize("name", TABLES)
def test_from_file_to_verified_release(name: str, tmp_path: Path) -> None:
    path = FOLDER / name / "data.parquet"
    schema = schema_of(name, TABLES[name])
    release = synthesize(
        path, schema, method="independent", epsilon=10.0, delta=1e-9, out=tmp_path / "release", rows=5000
    )
    assert verify_release(tmp_path / "release") == []
    assert _one_way_error(release, path) < 0.05
    assert release.table.num_rows == 5000
    assert set(release.table.column_names) <= set(pq.read_schema(path).names)
    if TABLES[name].column is not None:
        assert TABLES[name].column not in release.table.column_names
