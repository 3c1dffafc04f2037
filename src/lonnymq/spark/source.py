"""`format("lonnymq")`: chooses the reader or writer for an operation and parses its options."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from lonnymq.errors import InvalidArgument
from lonnymq.spark import columns, options, write_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


def register(spark: "SparkSession") -> None:
    """Register the source with a session; needed only if the package came by `--py-files`.

    Spark finds sources by itself only among installed packages. The process that plans a stream on the driver
    also does not find shipped files by itself: it gets their location in PYTHONPATH.
    """
    home = str(Path(__file__).parents[2])
    known = spark.sparkContext.environment.get("PYTHONPATH")
    spark.sparkContext.environment["PYTHONPATH"] = home if known is None else f"{home}{os.pathsep}{known}"
    spark.dataSource.register(LonnySource)


def activate(spark: "SparkSession") -> None:
    """Make a session the active one of this thread; needed in threads other than the one that made it.

    To write, Spark looks up the source in the thread's active session, not in the session of the frame.
    """
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.SparkSession.setActiveSession(spark._jsparkSession)


class LonnySource(DataSource):
    """The queue as a data source. Spark constructs it in many processes, so it does not use the database."""

    @classmethod
    def name(cls) -> str:
        return "lonnymq"

    def schema(self) -> str:
        """Return the columns of a read, as DDL."""
        return columns.ddl(self._columns())

    def reader(self, schema: "StructType") -> "DataSourceReader":
        """`spark.read`"""
        from lonnymq.spark.batch_read import HistoryBatchReader, LiveTableReader

        parsed = options.parse_read(self.options)
        self._refuse_other_schema(schema)
        return HistoryBatchReader(parsed) if parsed.table == "history" else LiveTableReader(parsed)

    def streamReader(self, schema: "StructType") -> "DataSourceStreamReader":  # noqa: N802
        """`spark.readStream`"""
        self._refuse_other_schema(schema)
        if options.is_consume(self.options):
            from lonnymq.spark.consume import ConsumeReader

            return ConsumeReader(options.parse_consume(self.options))
        from lonnymq.spark.history_stream import HistoryStreamReader

        return HistoryStreamReader(options.parse_follow(self.options))

    def writer(self, schema: "StructType", overwrite: bool) -> "DataSourceWriter":
        """`df.write`"""
        from lonnymq.spark.writer import BatchWriter

        parsed = options.parse_write(self.options, is_stream=False)
        _refuse_overwrite(overwrite, 'mode("append")')
        write_schema.check_schema(schema)
        return BatchWriter(parsed)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "DataSourceStreamWriter":  # noqa: N802
        """`df.writeStream`"""
        from lonnymq.spark.writer import StreamWriter

        parsed = options.parse_write(self.options, is_stream=True)
        _refuse_overwrite(overwrite, 'outputMode("append")')
        write_schema.check_schema(schema)
        return StreamWriter(parsed)

    def _columns(self) -> tuple[columns.Column, ...]:
        options.refuse_unknown(self.options)
        if options.is_consume(self.options):
            return columns.CONSUMED_MESSAGE
        return options.read_columns(self.options)

    def _refuse_other_schema(self, schema: "StructType") -> None:
        if schema.simpleString() != columns.simple_string(self._columns()):
            raise InvalidArgument("schema must not be given: choose columns with the option columns")


def _refuse_overwrite(overwrite: bool, allowed: str) -> None:
    if overwrite:
        raise InvalidArgument(f"mode must be append, because a queue cannot be overwritten: use {allowed}")
