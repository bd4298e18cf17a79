"""The contract of count sources, kept by Spark."""

from typing import TYPE_CHECKING

import pyarrow as pa

from tests.engines.available import needs
from understudy.counts.opening import open_table
from understudy.counts.source import PrivateTable
from understudy.schema import Schema
from understudy.testing.contracts import check_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

needs("pyspark", "java()")


def test_spark_keeps_the_contract_of_count_sources(spark: "SparkSession") -> None:
    def opened(table: pa.Table, schema: Schema) -> PrivateTable:
        return open_table(spark.createDataFrame(table), schema)

    check_source(opened)
