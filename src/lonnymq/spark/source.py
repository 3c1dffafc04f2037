"""`format("lonnymq")`: which door a user goes through, and the options it has."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from lonnymq.errors import InvalidArgument
from lonnymq.spark import columns, frame, options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


# Which options of a source Spark hides.
REDACTED = "spark.sql.redaction.options.regex"


def register(spark: "SparkSession") -> None:
    """Tell a session of this source, where the package is not installed but came by `--py-files`.

    Spark looks for sources only where packages are installed. And the process on the driver that plans a
    stream looks for shipped files in a place where they are not: it is told by PYTHONPATH.
    """
    home = str(Path(__file__).parents[2])
    known = spark.sparkContext.environment.get("PYTHONPATH")
    spark.sparkContext.environment["PYTHONPATH"] = home if known is None else f"{home}{os.pathsep}{known}"
    spark.dataSource.register(LonnySource)
    hide_dsn(spark)


def hide_dsn(spark: "SparkSession") -> None:
    """Have plans of a session, which show the options of a stream, hide the connection string."""
    hidden = spark.conf.get(REDACTED) or ""
    if "dsn" not in hidden.split("|"):
        spark.conf.set(REDACTED, f"{hidden}|dsn" if hidden else "dsn")


def activate(spark: "SparkSession") -> None:
    """Make a session this thread's, in a thread that is not the one which made it.

    Spark looks for a source that is written to in the thread's session, whatever session the frame is of.
    """
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.SparkSession.setActiveSession(spark._jsparkSession)


class LonnySource(DataSource):
    """The queue as Spark sees it. Constructed in many processes: nothing here touches the database."""

    @classmethod
    def name(cls) -> str:
        return "lonnymq"

    def schema(self) -> str:
        """Say which columns a read has."""
        return columns.ddl(self._columns())

    def reader(self, schema: "StructType") -> "DataSourceReader":
        """`spark.read`"""
        from lonnymq.spark.reader import HistoryReader, LiveReader

        found = options.read(self.options)
        self._require_own(schema)
        return HistoryReader(found) if found.table == "history" else LiveReader(found)

    def streamReader(self, schema: "StructType") -> "DataSourceStreamReader":  # noqa: N802
        """`spark.readStream`"""
        self._require_own(schema)
        if options.is_consume(self.options):
            from lonnymq.spark.consume import ConsumeReader

            return ConsumeReader(options.consume(self.options))
        from lonnymq.spark.stream import HistoryStreamReader

        return HistoryStreamReader(options.follow(self.options))

    def writer(self, schema: "StructType", overwrite: bool) -> "DataSourceWriter":
        """`df.write`"""
        from lonnymq.spark.writer import BatchWriter

        found = options.write(self.options, is_stream=False)
        _refuse_overwrite(overwrite, 'mode("append")')
        frame.require(schema)
        return BatchWriter(found)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "DataSourceStreamWriter":  # noqa: N802
        """`df.writeStream`"""
        from lonnymq.spark.writer import StreamWriter

        found = options.write(self.options, is_stream=True)
        _refuse_overwrite(overwrite, 'outputMode("append")')
        frame.require(schema)
        return StreamWriter(found)

    def _columns(self) -> tuple[columns.Column, ...]:
        options.require_known(self.options)
        if options.is_consume(self.options):
            return columns.CONSUMED
        return options.read_columns(self.options)

    def _require_own(self, schema: "StructType") -> None:
        if schema.simpleString() != columns.simple(self._columns()):
            raise InvalidArgument("schema must not be given: choose columns by option columns")


def _refuse_overwrite(overwrite: bool, right: str) -> None:
    if overwrite:
        raise InvalidArgument(f"mode must be append: a queue is added to, never overwritten; use {right}")
