"""A real table of 110 columns: methods that make records stay within the memory that their plan states."""

import subprocess
import sys

import pytest

from tests.real.shared_tables import FOLDER

RUN = """
import resource, sys
import pyarrow.parquet as pq
from tests.real.shared_tables import FOLDER, schema_of
from understudy import plan, synthesize

method, options = sys.argv[1], dict(pair.split("=", 1) for pair in sys.argv[2:])
table, schema = pq.read_table(FOLDER / "stroke_ist" / "data.parquet"), schema_of("stroke_ist")
stated = plan(schema, method=method, epsilon=1.0, delta=1e-9, options=options).bytes
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
release = synthesize(table, schema, method=method, epsilon=1.0, delta=1e-9, options=options, rows=table.num_rows)
assert release.table.num_rows == table.num_rows
assert release.table.num_columns == len(schema.names)
print(stated, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before)
"""


@pytest.mark.skipif(not (FOLDER / "stroke_ist").is_dir(), reason="the real tables are not beside this checkout")
@pytest.mark.parametrize(
    "method",
    [
        ["privsyn", "sweeps=3"],
        pytest.param(["dpsyn", "marginals=pairs", "sweeps=1", "table_cells=400"], marks=pytest.mark.slow),
    ],
)
def test_stays_within_stated_bytes(method: list[str]) -> None:
    made = subprocess.run([sys.executable, "-c", RUN, *method], capture_output=True, text=True, check=True)
    stated, used = map(int, made.stdout.split())
    assert used <= stated
