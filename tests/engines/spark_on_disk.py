"""Run as a program: what Spark leaves on disk while it counts, in a session without encryption or compression.

Prints "refused" when the unencrypted session is refused by default, "found" when a plain shuffle of the same table
leaves ids and values on disk (so that the search can find them), and "absent" when counting leaves neither.
"""

import sys
from pathlib import Path

from tests.engines.conftest import start
from tests.engines.test_spark import COLUMNS, SECRET
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.counts.spark import SparkTable
from understudy.errors import InputError
from understudy.schema import Schema, Unit

VALUES = (SECRET.encode(), b"spyglass maker")  # labels are public: they stand in the codec, which is broadcast
PLAIN = {
    "spark.io.encryption.enabled": "false",
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.broadcast.compress": "false",
    "spark.sql.execution.arrow.compression.codec": "none",
    "spark.cleaner.referenceTracking": "false",  # else a garbage collection removes the blocks before they are read
}


def on_disk(folder: Path) -> bytes:
    """All bytes of the blocks that Spark holds on disk."""
    return b"".join(path.read_bytes() for path in (folder / "spark").rglob("*") if path.is_file())


def main(folder: Path, stored: str) -> None:
    """Looks, and says what was found."""
    spark = start(folder, "local[2]", **PLAIN)
    schema = Schema(COLUMNS, Unit("person", 2))
    codec = TableCodec.of(schema)
    frame = spark.read.parquet(stored)
    try:
        open_table(frame, schema)
    except InputError as error:
        print("refused" if "spark.io.encryption.enabled" in str(error) else error)
    source = SparkTable(frame, schema, encrypted_elsewhere=True).bind(codec)
    source.counts([codec.domain.clique(codec.domain.columns[:2])])
    counted = on_disk(folder)
    frame.select("person", "`job.title`").repartition(3, "person").sortWithinPartitions("person").collect()
    plain = on_disk(folder)
    print("found" if all(value in plain for value in VALUES) else "not found")
    if len(counted) < 10_000 or not any("shuffle" in path.name for path in (folder / "spark").rglob("*.data")):
        print("nothing to search")
    print("present" if any(value in counted for value in VALUES) else "absent")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
