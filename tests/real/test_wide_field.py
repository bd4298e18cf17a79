"""The methods of the field on a real table of 110 columns: each runs, within the memory its plan states."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.shared_tables import FOLDER, schema_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (FOLDER / "stroke_ist").is_dir(), reason="the real tables are not beside this checkout"),
]

SCRIPT = """
import json, resource, sys
import pyarrow.parquet as pq
from tests.real.shared_tables import FOLDER, schema_of
from understudy import plan, synthesize

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

method, delta = sys.argv[1], float(sys.argv[2])
schema = schema_of("stroke_ist")
table = pq.read_table(FOLDER / "stroke_ist" / "data.parquet").select(list(schema.names))
stated = plan(schema, method=method, epsilon=1.0, delta=delta).bytes
synthesize(table, schema, method="independent", epsilon=1.0, rows=1000)  # reads the table, loads what all methods load
before = peak()
release = synthesize(table, schema, method=method, epsilon=1.0, delta=delta, rows=1000, seed=1)
print(json.dumps({"stated": stated, "used": peak() - before, "columns": release.table.num_columns,
                  "rows": release.table.num_rows}))
"""


@pytest.mark.parametrize(
    ("method", "delta"), [("privbayes", 1e-9), ("privbayes", 0.0), ("fieldgroups", 0.0), ("pfr", 0.0)]
)
def test_a_table_of_110_columns_runs_within_the_memory_stated(method: str, delta: float) -> None:
    command = [sys.executable, "-c", SCRIPT, method, str(delta)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).resolve().parents[2])
    seen = json.loads(done.stdout.splitlines()[-1])
    assert (seen["columns"], seen["rows"]) == (len(schema_of("stroke_ist").columns), 1000)
    assert seen["used"] <= seen["stated"]
