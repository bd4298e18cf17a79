"""Run as a program: executors of a small cluster on this machine are killed while they work, and counts stay exact.

Prints "killed" and "exact" for an executor that dies while rows are coded (its tasks are done again by others), and the
same for one that dies between two questions (its blocks lie on another executor too). Spark may also start slow tasks
twice here (speculation), so that results of the same task arrive more than once. Where all executors die, and with them
every copy of the codes, the run has "ended".
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from tests.engines.conftest import start
from tests.engines.test_spark import COLUMNS, SECRET, all_pairs, same_counts
from understudy.codec.table import TableCodec
from understudy.counts.opening import open_table
from understudy.counts.source import CountSource
from understudy.domain import Clique
from understudy.errors import InputError
from understudy.schema import Schema, Unit

CLUSTER = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "between these processes",
    "spark.network.crypto.enabled": "true",
    "spark.executor.memory": "512m",
    "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.sql.files.maxPartitionBytes": "20000",
}


def executors(application: str) -> list[int]:
    """The processes of this application's executors."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            said = (folder / "cmdline").read_bytes() if folder.name.isdigit() else b""
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in said and application.encode() in said and b"java" in said:
            found.append(int(folder.name))
    return sorted(found)


class Cluster:
    """The executors, of which two are alive whenever it is asked to kill some."""

    def __init__(self, application: str) -> None:
        self._application = application
        self._killed: set[int] = set()

    def alive(self) -> list[int]:
        """Waits until there are two; the master starts another one for each that died."""
        while True:
            found = [process for process in executors(self._application) if process not in self._killed]
            if len(found) == 2:
                return found
            time.sleep(0.05)

    def kill(self, number: int) -> None:
        """Kills so many."""
        for process in self.alive()[:number]:
            self._killed.add(process)
            os.kill(process, signal.SIGKILL)
        print("killed")


def main(folder: Path, stored: str) -> None:
    """Counts with an executor less while rows are coded, with one less afterwards, and with none of those left."""
    spark = start(folder, "local-cluster[2,1,1024]", **CLUSTER)
    cluster = Cluster(spark.sparkContext.applicationId)
    schema = Schema(COLUMNS, Unit("person", 2))
    codec = TableCodec.of(schema)
    local = open_table(f"{stored}/*.parquet", schema).bind(codec)
    frame = spark.read.option("datetimeRebaseMode", "CORRECTED").parquet(stored)
    pairs = all_pairs(codec)

    def compared(source: CountSource, cliques: list[Clique]) -> None:
        print("exact" if same_counts(source, local, cliques) else "not exact")

    cluster.alive()
    during = threading.Timer(1.0, cluster.kill, (1,))  # workers take longer than that to load their modules
    during.start()
    compared(open_table(frame, schema).bind(codec), pairs[:5])
    during.join()
    cluster.alive()
    source = open_table(frame, schema).bind(codec)
    compared(source, pairs[:1])
    cluster.kill(1)
    compared(source, pairs[1:])
    cluster.kill(2)
    try:
        compared(source, pairs[:1])
    except InputError as error:
        print("ended" if SECRET not in str(error) else error)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
