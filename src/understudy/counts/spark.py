"""Spark: rows are coded, bounded and counted on the executors, and only integers come back.

A location is "spark:catalog.schema.table", read by the active Spark session or by one made from the environment's
configuration (`spark-defaults.conf`, SPARK_HOME); from Python also a Spark DataFrame. Codec, kernels and the bound of
k rows per unit are the ones of all sources (`spark_tasks`), so counts equal those of the same rows in a file, bit by
bit. A session of Spark Connect is refused: it runs on a driver whose encryption and logs cannot be looked at from here.

One snapshot
------------
The first question codes all rows in one job and keeps the codes, after the bound, as blocks of the executors (a local
checkpoint). Every later question is answered from these blocks. Spark forgets how they were made, so a block that is
lost is never made again from a table that may have changed since, or from a DataFrame that gives other rows each time
it runs: on a cluster each block is kept twice, and if both copies are lost the run ends. So all answers of one run are
about one set of rows. Within that first job Spark may run a task again, after a failure or because another one is slow.
It takes the output of one attempt per task, and every count here is the output of tasks; there are no accumulators. So
no row counts twice, as long as a task that runs again reads what it read before. Spark itself sees to that for tables
of files, pinned versions and shuffles. Where it cannot (a database that changes during the job, `rand()`), the bound
of a unit still holds: its rows go to one task by a hash whose key is fixed for the job, and that task keeps k of them.
Without a unit column such a DataFrame could hand over one row twice when a task is repeated; write it to a table first.
Labels of open columns are counted in passes of their own, two where units are bounded, and charged as such.

What moves where
----------------
Shuffled, and possibly written to the executors' disks, are keyed 128-bit hashes of ids, a public hash as rank key,
codes, and counts. No id, no value. The key is drawn from the operating system for each pass. It travels to the
executors inside the serialised task, is part of no broadcast, plan, setting or message, and is gone with the pass.
Labels of open columns (and rows, where a table is compared with or profiled) go to the driver as results of tasks.

Since exact counts and codes are private, Spark must encrypt what it writes (`spark.io.encryption.enabled`) and, on a
cluster, what it sends (`spark.network.crypto.enabled` or `spark.ssl.rpc.enabled`). Sessions made here encrypt what they
write. A session that does not is refused before anything is charged, unless `SparkTable` is made with
`encrypted_elsewhere=True`, by which the user says that disks and network are encrypted by other means.

Before the charge and after it
------------------------------
Opening asks Spark to analyse and plan a query of the wanted columns, which reads no row, and runs one job without rows
that asks the executors for their versions. Afterwards nothing that Spark says is shown: it quotes values (a failing
cast does). Its errors are replaced by messages that depend on the location alone, raised outside of the handler, and
the logs of the driver are silent while rows are read, the JVM's and PySpark's own. Logs of executors on a cluster
belong to the cluster.
"""

import contextlib
import logging
import os
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from understudy.arrays import Ints
from understudy.codec.table import TableCodec
from understudy.counts import spark_tasks as tasks
from understudy.counts.partials import FAN_IN, PIECE_CELLS, CellMerge, Merge, VectorMerge
from understudy.counts.readers import Header, batch_rows, unbroken
from understudy.counts.source import (
    DEFAULT_MEMORY_BYTES,
    Batch,
    HashKey,
    LabelCounts,
    OccupiedCells,
    PrivateTable,
    new_key,
    texts_of,
)
from understudy.counts.streaming import Chunk, ChunkedSource
from understudy.domain import Clique, Partition
from understudy.errors import InputError, UnderstudyError
from understudy.schema import Schema
from understudy.schema.columns import missing_texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Result = TypeVar("Result")

READABLE = frozenset(
    {
        *("boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string", "char", "varchar"),
        *("binary", "date", "timestamp", "timestamp_ntz", "time", "void"),
    }
)
"""Spark's types whose values the codec can read."""
PACKAGES = ("understudy", "numpy", "pyarrow", "numba")
ENCRYPTED_DISK = "spark.io.encryption.enabled"
ENCRYPTED_NETWORK = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
RECORDS_PER_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
# Spark's own limit counts records; ours are whole blocks of rows, so few of them make a batch.
CODED_RECORDS = 8  # records of coded rows in one Arrow batch; each holds up to 4 million codes
MOST_PASS_BYTES = 64 << 20  # tables of one pass on an executor, at four bytes a cell
MOST_TASK_BYTES = 512 << 20
MOST_BUCKETS = 1 << 15
MOST_ASKED = 64  # tasks that tell their versions
_PACKAGE = "Install understudy[spark], which needs Java 17 or later."


class SparkTable(PrivateTable):
    """A private table behind Spark. Opening it plans a query and asks executors for their versions; it reads no row."""

    def __init__(
        self,
        data: "str | Path | DataFrame",
        schema: Schema,
        *,
        memory_bytes: int = DEFAULT_MEMORY_BYTES,
        threads: int = 1,
        encrypted_elsewhere: bool = False,
    ) -> None:
        """Opens a table of the catalogue ("spark:catalog.schema.table") or a DataFrame.

        Args:
            data: the location or the DataFrame.
            schema: what the table may contain.
            memory_bytes: the most memory that answers may take on the driver.
            threads: ignored; Spark decides how many tasks run.
            encrypted_elsewhere: True says that the disks and the network of the session are encrypted by other means
                than Spark's own, so that its settings are not looked at.

        Raises:
            InputError: Spark or the table cannot be used.
            SchemaError: the header does not fit the schema; every problem is listed.
        """
        self.where = str(data) if isinstance(data, str | Path) else "Spark DataFrame"
        frame, self._own = _frame_of(data, self.where)
        try:
            header = _header(frame, self.where)
            super().__init__([name for name, _ in header], schema, memory_bytes=memory_bytes, threads=threads)
            self.spark: SparkSession = frame.sparkSession
            self._place = {name: f"c{place}" for place, (name, _) in enumerate(header)}
            wanted = [column.name for column in schema.modelled]
            self._wanted = [*wanted, *([] if schema.unit.column is None else [schema.unit.column])]
            _check_types(frame, self._wanted, self.where)
            if not encrypted_elsewhere:
                _check_encryption(self.spark, self.where)
            # By position: names may hold dots and backticks, or differ in case alone.
            # Also so that no name from the table becomes part of a query.
            self._frame = frame.toDF(*(f"c{place}" for place in range(len(header))))
            self._plan()
            _check_versions(self.spark, self.where)
        except BaseException:
            if self._own:
                frame.sparkSession.stop()
            raise

    @staticmethod
    def header_of(data: Any) -> list[tuple[str, str]]:
        """Names and storage types of the columns, without a schema; reads no row."""
        where = str(data) if isinstance(data, str | Path) else "Spark DataFrame"
        frame, own = _frame_of(data, where)
        try:
            return list(_header(frame, where))
        finally:
            if own:
                frame.sparkSession.stop()

    def columns(self, names: Sequence[str]) -> "DataFrame":
        """A DataFrame of these columns, as they are stored."""
        return self._frame.select(*(self._place[name] for name in names))

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Rows of these columns, batch by batch, brought to the driver. Private."""
        return unbroken(self.where, self._unpacked(list(columns)))

    def _unpacked(self, columns: list[str]) -> Iterator[Batch]:
        def task(batches: tasks.Batches) -> tasks.Batches:
            return tasks.unraised(lambda: tasks.pack(batches), tasks.FAILED_PACKED)

        # A query of no column at all would reach Python without rows.
        read = columns or self._wanted[:1]
        with running(self.spark, batch_rows(len(read))):
            for row in self.columns(read).mapInArrow(task, tasks.PACKED).toLocalIterator():
                packed = pa.ipc.open_stream(row["rows"]).read_all()
                yield packed.num_rows, dict(zip(columns, packed.columns, strict=False))

    def close(self) -> None:
        """Ends the Spark session, if it was made for this table."""
        if self._own:
            self.spark.stop()

    def _plan(self) -> None:
        """Has Spark plan a query of the wanted columns, which finds tables and files that cannot be read."""
        with contextlib.suppress(AttributeError), quiet(self.spark):
            _asked(
                lambda: self.columns(self._wanted)._jdf.queryExecution().executedPlan(),
                self.where,
                "cannot be queried for the columns of the schema.",
                "Check that this session may select from it and that its files are there.",
            )


def _asked(ask: Callable[[], Result], where: str, rule: str, fix: str = "") -> Result:
    """What Spark answers. Its own words are replaced: they may quote values, paths or passwords."""
    try:
        return ask()
    except UnderstudyError:
        raise
    except Exception:  # noqa: BLE001 - whatever Spark, Java or the connection to it raises
        answer = None
    del ask
    raise InputError(where, rule, fix) from answer


def _frame_of(data: "str | Path | DataFrame", where: str) -> "tuple[DataFrame, bool]":
    """The DataFrame, and whether its session was made here."""
    try:
        from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
    except ImportError:
        ClassicFrame = None
    if ClassicFrame is None:
        raise InputError(where, "needs Spark, which is not installed.", _PACKAGE)
    if isinstance(data, str | Path):
        return _table(str(data).partition(":")[2], where)
    if not isinstance(data, ClassicFrame):
        kind = f"{type(data).__module__}.{type(data).__qualname__}"
        rule = f"must be a DataFrame of a Spark session in this process, got {kind}."
        raise InputError("data", rule, "Spark Connect is not supported; use a classic session, or df.to_spark().")
    if data.isStreaming:
        raise InputError(where, "is an unbounded stream.", "Write it to a table, and open that.")
    return data, False


def _table(name: str, where: str) -> "tuple[DataFrame, bool]":
    spark, own = _session(where)
    fix = 'Name it as in SQL: "spark:catalog.schema.table", names with dots in backticks.'
    try:
        with quiet(spark):
            frame = _asked(
                lambda: spark.table(name), where, "is not a table or view that this Spark session knows.", fix
            )
        if frame.isStreaming:
            raise InputError(where, "is an unbounded stream.", "Write it to a table, and open that.")
    except BaseException:
        if own:
            spark.stop()
        raise
    return frame, own


def _session(where: str) -> "tuple[SparkSession, bool]":
    """The active session, or a new one by the environment's configuration that encrypts what it writes."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    # The user's own session, which is not ours to stop or to set up anew.
    if active is not None:
        return active, False
    builder = SparkSession.builder.appName("understudy").config(ENCRYPTED_DISK, "true")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    fix = "It needs Java 17 or later (JAVA_HOME), and a configuration that starts (SPARK_CONF_DIR)."
    spark = _asked(builder.getOrCreate, where, "needs a Spark session, and none could be started.", fix)
    if _is_local(spark) and "PYSPARK_PYTHON" not in os.environ:
        spark.sparkContext.pythonExec = sys.executable  # tasks run on this machine: no other Python is meant
    return spark, True


def _header(frame: "DataFrame", where: str) -> Header:
    with quiet(frame.sparkSession):
        fields = _asked(lambda: frame.schema.fields, where, "does not say what its columns are.")
    return tuple((field.name, field.dataType.simpleString()) for field in fields)


def _check_types(frame: "DataFrame", wanted: Sequence[str], where: str) -> None:
    odd = [
        f"{field.name!r} ({field.dataType.simpleString()})"
        for field in frame.schema.fields
        if field.name in wanted and field.dataType.typeName() not in READABLE
    ]
    if odd:
        rule = f"holds values that no column of a schema can describe: {', '.join(odd)}."
        raise InputError(where, rule, "Select what is inside them as columns of their own, or leave them out.")


def _is_local(spark: "SparkSession") -> bool:
    return str(spark.sparkContext.master).partition("[")[0] == "local"


def _check_encryption(spark: "SparkSession", where: str) -> None:
    """Refuses a session that writes codes or counts to disk, or sends them to other machines, in the clear."""
    fix = (
        "Set it where the session is made, or make SparkTable with encrypted_elsewhere=True if other means encrypt it."
    )
    if not _is_set(spark, ENCRYPTED_DISK):
        raise InputError(where, f"is read by a Spark session that does not set {ENCRYPTED_DISK} to true.", fix)
    if not _is_local(spark) and not any(_is_set(spark, name) for name in ENCRYPTED_NETWORK):
        names = " or ".join(ENCRYPTED_NETWORK)
        raise InputError(where, f"is read by a Spark session on a cluster that does not set {names} to true.", fix)


def _is_set(spark: "SparkSession", setting: str) -> bool:
    return str(spark.sparkContext.getConf().get(setting, "false")).lower() == "true"


_AGREED: set[tuple[str, str]] = set()


def _check_versions(spark: "SparkSession", where: str) -> None:
    """Asks the executors, once per session, whether they run what the driver runs."""
    context = spark.sparkContext
    known = (str(context.applicationId), str(context.pythonExec))
    if known in _AGREED:
        return
    here = _versions()
    need = ", ".join(f"{name} {version}" for name, version in here.items())
    asked = max(1, min(MOST_ASKED, context.defaultParallelism))
    rows = spark.range(0, asked, 1, asked).mapInArrow(_version_task(PACKAGES), "name string, version string")
    with quiet(spark):
        found = _asked(
            rows.distinct().collect,
            where,
            "is read by executors whose Python could not be asked for its versions.",
            f"They need {need} (docs/engines.md says how to send them).",
        )
    apart = sorted({row["name"] for row in found if here[row["name"]] != row["version"]})
    if apart:
        rule = f"is read by executors with other versions of {', '.join(apart)} than the driver."
        raise InputError(where, rule, f"They need {need} (docs/engines.md says how to send them).")
    _AGREED.add(known)


def _versions() -> dict[str, str]:
    found = {"Python": platform.python_version().rpartition(".")[0], "byte order": sys.byteorder}
    return {**found, **{name: metadata.version(name) for name in PACKAGES}}


def _version_task(packages: Sequence[str]) -> Callable[[tasks.Batches], tasks.Batches]:
    """A task that needs nothing of understudy, which executors may lack; so it is sent by value."""

    def task(batches: tasks.Batches) -> tasks.Batches:
        import platform
        import sys
        from importlib import metadata

        import pyarrow

        found = {"Python": platform.python_version().rpartition(".")[0], "byte order": sys.byteorder}
        for name in packages:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                found[name] = "none"
        for _ in batches:
            pass
        yield pyarrow.record_batch([list(found), list(found.values())], names=["name", "version"])

    return task


@contextlib.contextmanager
def running(spark: "SparkSession", records: int) -> Iterator[None]:
    """While it lasts, jobs hand over that many records per Arrow batch, and the driver's JVM logs nothing."""
    before = spark.conf.get(RECORDS_PER_BATCH)
    with quiet(spark):
        spark.conf.set(RECORDS_PER_BATCH, str(records))
        try:
            yield
        finally:
            with contextlib.suppress(Exception):
                spark.conf.set(RECORDS_PER_BATCH, str(before))


@contextlib.contextmanager
def quiet(spark: "SparkSession") -> Iterator[None]:
    """While it lasts, the driver logs nothing, in Java or in Python: what is logged of a failing task quotes values."""
    context = spark.sparkContext
    level = "WARN"
    with contextlib.suppress(Exception):
        java: Any = context._jvm
        level = str(java.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString())
    with contextlib.suppress(Exception):
        context.setLogLevel("OFF")
    loggers = _python_loggers()
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
        with contextlib.suppress(Exception):
            context.setLogLevel(level)


def _python_loggers() -> list[logging.Logger]:
    """The loggers by which PySpark writes the text of an error to standard error before it is raised."""
    from pyspark.logger import PySparkLogger

    return [PySparkLogger.getLogger(name) for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger")]


class SparkSource(ChunkedSource):
    """Exact counts of a Spark table under fixed codes, from one snapshot of coded rows on the executors."""

    def __init__(self, table: SparkTable, codec: TableCodec) -> None:
        super().__init__(codec, table.memory_bytes, table.schema)
        self._table_bytes = min(self._table_bytes, MOST_PASS_BYTES)
        self._table, self._spark = table, table.spark
        unit = table.schema.unit
        origins = dict.fromkeys(map(codec.origin, self._held))
        self._coding = tasks.Coding(
            codec,
            tuple(self._held),
            tuple(origins if unit.column is None else dict.fromkeys([*origins, unit.column])),
            unit.column,
            unit.rows,
            _buckets(table.spark),
            min(table.memory_bytes // 4, MOST_TASK_BYTES),
        )
        self._kept: DataFrame | None = None

    def partition_counts(self, partitions: Sequence[Partition]) -> list[Ints]:
        """Counts of each partition's cells, in as many passes as memory of the executors asks for."""
        self._check_partitions(partitions)
        found: list[Ints] = []
        for part in _within(partitions, MOST_PASS_BYTES // 8):
            merged = self._ask(tasks.PartitionsAsked(tuple(part)), sum(one.cells for one in part))
            assert isinstance(merged, VectorMerge)
            found += [merged.vector(number, one.cells) for number, one in enumerate(part)]
        return found

    def occupied(self, clique: Clique) -> OccupiedCells:
        """Only the occupied cells of a table too large to hold (fewer than 2⁶² cells)."""
        self._check_sparse(clique)
        merged = self._ask(tasks.CellsAsked(clique), self.domain.cells(clique))
        assert isinstance(merged, CellMerge)
        return merged.cells()

    def _count_tables(self, tables: Sequence[Clique]) -> Iterator[Ints]:
        sizes = [self.domain.cells(table) for table in tables]
        merged = self._ask(tasks.TablesAsked(tuple(tables)), sum(sizes))
        assert isinstance(merged, VectorMerge)
        return (merged.vector(number, cells) for number, cells in enumerate(sizes))

    def _total(self, found: Mapping[Clique, Ints]) -> Ints:
        if found:
            return super()._total(found)
        merged = self._ask(tasks.TablesAsked(()), 1)
        assert isinstance(merged, VectorMerge)
        return merged.vector(0, 1)

    def _chunks(self, columns: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        for rows, chunk, _ in self._brought():
            yield rows, chunk

    def _holders(self) -> Iterator[tuple[int, Chunk, Ints | None]]:
        alone = self._coding.unit is None or self._coding.bound == 1
        for rows, chunk, units in self._brought():
            yield rows, chunk, None if alone else units

    def _brought(self) -> Iterator[tuple[int, Chunk, Ints | None]]:
        """Coded rows brought to the driver, for training, with numbers of units."""
        kept, kinds = self._snapshot(), tasks.kinds_of(self._coding)
        with running(self._spark, CODED_RECORDS):
            parts = _asked(lambda: kept.toArrow(), self._table.where, _BROKE, _LOOK)
        first, last_task, most = 0, -1, -1
        # Task by task: numbers of units go on from those of the task before.
        for batch in parts.sort_by([("task", "ascending")]).to_batches():
            for task, (rows, packed) in zip(_tasks_of(batch), tasks.records_of(batch), strict=True):
                columns = tasks.uncoded(packed, rows, kinds)
                units: Ints | None = None
                if self._coding.unit is not None:
                    # Each task numbers its units from 0.
                    first, last_task = (most + 1 if task != last_task else first), task
                    units = columns.pop(0).astype(np.int64) + first
                    most = max(most, int(units.max()))
                yield rows, dict(zip(self._coding.names, columns, strict=True)), units

    def _ask(self, question: tasks.TaskQuery, cells: int) -> Merge:
        """The merged answer of all tasks."""
        # One snapshot for all questions of a run: a table that changes in between would be two tables under one charge.
        kept, merge = self._snapshot(), question.merge()
        with _sent(self._spark, (self._coding, question)) as public:

            def task(batches: tasks.Batches) -> tasks.Batches:
                def counted() -> tasks.Batches:
                    coding, asked = tasks.unpacked(public.value)
                    return tasks.count(batches, coding, asked, level=tasks.task_number())

                return tasks.unraised(counted, tasks.FAILED_COUNTED)

            with running(self._spark, CODED_RECORDS):
                return _merged(self._spark, kept.mapInArrow(task, tasks.COUNTED), merge, cells, self._table.where)

    def _snapshot(self) -> "DataFrame":
        """Codes of all rows that count, as blocks of the executors; made on first use."""
        if self._kept is None:
            with _sent(self._spark, self._coding) as public, running(self._spark, _rows_each(self._coding.columns)):
                rows = self._table.columns(self._coding.columns)
                coded = _coded_rows(rows, public, self._coding, new_key())
                self._kept = _asked(lambda: _checkpoint(coded, self._spark), self._table.where, _BROKE, _LOOK)
                _check_whole(self._kept, self._table.where)
        return self._kept

    def __del__(self) -> None:
        """Gives the blocks back; else Spark would, when its own collector runs."""
        if getattr(self, "_kept", None) is not None:
            with contextlib.suppress(Exception):
                self._kept._jdf.queryExecution().analyzed().rdd().unpersist(False)  # type: ignore[union-attr]


_BROKE = "could not be read to its end."
_LOOK = "Check that it is whole and that the cluster is up."


def _rows_each(columns: Sequence[str]) -> int:
    return batch_rows(len(columns)) // 2


def _tasks_of(batch: pa.RecordBatch) -> list[int]:
    """The task of each record that holds rows."""
    return [task for task, rows in zip(batch["task"].to_pylist(), batch["n"].to_pylist(), strict=True) if rows > 0]


def _coded_rows(rows: "DataFrame", public: Any, coding: tasks.Coding, key: HashKey) -> "DataFrame":
    """Coded rows after the bound. The key is in the tasks alone."""

    def code(batches: tasks.Batches) -> tasks.Batches:
        number = tasks.task_number()
        return tasks.unraised(lambda: tasks.code(batches, tasks.unpacked(public.value), number), tasks.FAILED_CODED)

    def key_rows(batches: tasks.Batches) -> tasks.Batches:
        return tasks.unraised(lambda: tasks.key_rows(batches, tasks.unpacked(public.value), key), tasks.FAILED_KEYED)

    def bound_rows(batches: tasks.Batches) -> tasks.Batches:
        number = tasks.task_number()
        return tasks.unraised(
            lambda: tasks.bound_rows(batches, tasks.unpacked(public.value), key, number), tasks.FAILED_CODED
        )

    if coding.unit is None:
        return rows.mapInArrow(code, tasks.CODED)
    # A stated number of partitions is one that adaptive execution neither splits nor joins.
    keyed = rows.mapInArrow(key_rows, tasks.KEYED).repartition(coding.buckets, "bucket")
    return keyed.mapInArrow(bound_rows, tasks.CODED)


def _checkpoint(coded: "DataFrame", spark: "SparkSession") -> "DataFrame":
    from pyspark import StorageLevel

    # Twice on a cluster, since a lost block is never made again: the table may be another one by then.
    level = StorageLevel.MEMORY_AND_DISK if _is_local(spark) else StorageLevel.MEMORY_AND_DISK_2
    return coded.localCheckpoint(eager=True, storageLevel=level)


def _check_whole(kept: "DataFrame", where: str) -> None:
    """Ends the run if a task has failed, or if the rows of some unit came to two tasks: the bound would not hold."""
    rows = _asked(lambda: kept.filter("n <= 0").select("bucket", "n").collect(), where, _BROKE, _LOOK)
    # A task that fails answers with −1 instead of raising, because Spark would quote a row in its own message.
    if any(row["n"] < 0 for row in rows):
        raise InputError(where, _BROKE, _LOOK)
    _check_buckets(Counter(row["bucket"] for row in rows))


def _check_buckets(tasks_of_bucket: Mapping[int, int]) -> None:
    if max(tasks_of_bucket.values(), default=0) > 1:
        # Each task would keep k rows of a unit that came to both.
        raise AssertionError("Spark sent rows of one bucket to two tasks, so that the bound of units would not hold")


@contextlib.contextmanager
def _sent(spark: "SparkSession", public: object) -> Iterator[Any]:
    """Something public that all tasks need, as bytes that are sent to each executor once."""
    sent = spark.sparkContext.broadcast(tasks.packed(public))
    try:
        yield sent
    finally:
        with contextlib.suppress(Exception):
            sent.destroy()


def _merged(spark: "SparkSession", parts: "DataFrame", merge: Merge, cells: int, where: str) -> Merge:
    """The sum of all pieces: added up by the executors, group by group where there are many, and then read here."""
    kind = type(merge)

    def task(batches: tasks.Batches) -> tasks.Batches:
        return tasks.unraised(lambda: tasks.merge_pieces(batches, kind), tasks.FAILED_COUNTED)

    places = max(1, min(_buckets(spark), cells // PIECE_CELLS + 1))
    for groups in merge_levels(int(spark.sparkContext.defaultParallelism)):
        level = f"level % {groups} as level"
        grouped = parts.selectExpr(level, "vector", "start", "width", "cells")
        grouped = grouped.repartition(min(_buckets(spark), places * groups), "level", "vector", "start")
        parts = grouped.mapInArrow(task, tasks.COUNTED)
    found = _asked(lambda: parts.toArrow(), where, _BROKE, _LOOK)
    try:
        for batch in found.to_batches():
            for _, piece in tasks.pieces_in(batch):
                merge.add(piece)
        whole = True
    except tasks.TaskFailedError:
        whole = False
    if not whole:
        raise InputError(where, _BROKE, _LOOK)
    return merge


def merge_levels(parallel: int) -> list[int]:
    """Into how many groups tasks are merged, step by step, where so many run at a time; the last is one.

    >>> merge_levels(2), merge_levels(1000)
    ([1], [64, 1])
    """
    return [1] if parallel <= FAN_IN else [FAN_IN, 1]


def _buckets(spark: "SparkSession") -> int:
    """Into how many parts rows are shuffled, by the session's own setting."""
    return max(1, min(MOST_BUCKETS, int(str(spark.conf.get("spark.sql.shuffle.partitions")))))


def _within(partitions: Sequence[Partition], most_cells: int) -> Iterator[list[Partition]]:
    """The partitions in groups of at most so many cells (one at least)."""
    group: list[Partition] = []
    for partition in partitions:
        if group and sum(one.cells for one in group) + partition.cells > most_cells:
            yield group
            group = []
        group.append(partition)
    if group:
        yield group


def spark_labels(table: SparkTable, column: str) -> LabelCounts:
    """Labels of an open column, after the unit's bound on rows was applied (to rows that have a label).

    Labels come to the driver from each task by themselves. Where units are bounded, a second pass counts them as
    numbers: tasks know a label's number by its keyed hash, so that no label is shuffled.
    """
    unit, key = table.schema.unit, new_key()
    absent = tuple(missing_texts(table.schema.column(column)))
    room = min(table.memory_bytes // 4, MOST_TASK_BYTES)
    empty = np.zeros((0, 2), np.uint64)
    labelling = tasks.Labelling(absent, unit.rows, _buckets(table.spark), room, empty)
    found = _all_labels(table, column, labelling)
    labels = sorted(found)  # bytes of UTF-8, so in the order of code points
    if unit.column is None:
        times = np.array([found[label] for label in labels], np.int64)
    else:
        # Tasks know a label by its keyed hash, so that no label is shuffled or written to an executor's disk.
        hashes = texts_of(pa.array(labels, pa.binary())).hashes(key)
        order = np.lexsort((hashes[:, 1], hashes[:, 0]))
        times = np.zeros(len(labels), np.int64)
        times[order] = _bounded_labels(table, column, labelling.knowing(hashes[order]), key)
    # Without labels of which the bound left no row; see `LabelNumbers.counted`.
    held = np.flatnonzero(times)
    return LabelCounts(tuple(labels[place].decode("utf-8") for place in held.tolist()), times[held])


def _all_labels(table: SparkTable, column: str, labelling: tasks.Labelling) -> Counter[bytes]:
    """Every label with its rows, before any bound."""
    with _sent(table.spark, labelling) as public, running(table.spark, _rows_each([column])):

        def task(batches: tasks.Batches) -> tasks.Batches:
            return tasks.unraised(
                lambda: tasks.find_labels(batches, tasks.unpacked(public.value)), tasks.FAILED_LABELLED
            )

        rows = table.columns([column]).mapInArrow(task, tasks.LABELLED)
        parts = _asked(lambda: rows.toArrow(), table.where, _BROKE, _LOOK)
    found: Counter[bytes] = Counter()
    for label, times in zip(parts["label"].to_pylist(), parts["n"].to_pylist(), strict=True):
        if times < 0:
            raise InputError(table.where, _BROKE, _LOOK)
        found[label] += times
    return found


def _bounded_labels(table: SparkTable, column: str, labelling: tasks.Labelling, key: HashKey) -> Ints:
    """The rows of each label by its number, after the bound."""
    assert table.schema.unit.column is not None
    with _sent(table.spark, labelling) as public, running(table.spark, _rows_each([column])):

        def key_labels(batches: tasks.Batches) -> tasks.Batches:
            return tasks.unraised(
                lambda: tasks.key_labels(batches, tasks.unpacked(public.value), key), tasks.FAILED_KEYED
            )

        def count_labels(batches: tasks.Batches) -> tasks.Batches:
            group = tasks.task_number()
            return tasks.unraised(
                lambda: tasks.count_labels(batches, tasks.unpacked(public.value), key, group), tasks.FAILED_COUNTED
            )

        keyed = table.columns([column, table.schema.unit.column]).mapInArrow(key_labels, tasks.KEYED)
        counted = keyed.repartition(labelling.buckets, "bucket").mapInArrow(count_labels, tasks.COUNTED)
        merged = _merged(table.spark, counted, VectorMerge(), len(labelling.hashes), table.where)
    assert isinstance(merged, VectorMerge)
    _check_buckets(dict(enumerate(merged.vector(1, labelling.buckets).tolist())))
    return merged.vector(0, len(labelling.hashes))
