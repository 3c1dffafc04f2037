"""Reads the files of a table: with Spark's reader or, if Spark cannot open them, with pyarrow.

Spark opens files on object stores with a library for each of them, which Databricks, EMR and Dataproc
have and a plain Spark has not. Without it, executors read with what they write with.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lonnymq.pipeline.lake.files import arrow_schema, days_of
from lonnymq.pipeline.lake.storage import is_local, open_location


def read(spark: SparkSession, schema: StructType, root: str, paths: Iterable[str]) -> DataFrame:
    """Return all rows of these files of the table below `root`."""
    chosen = sorted(paths)
    if not chosen:
        return spark.createDataFrame([], schema)
    if can_open(spark, root):
        return spark.read.schema(schema).option("basePath", root).parquet(*chosen)
    types = arrow_schema(schema)
    listed = spark.createDataFrame([(path,) for path in chosen], "path string").repartition(len(chosen))
    return listed.mapInArrow(lambda batches: _read_batches(batches, types), schema)


def can_open(spark: SparkSession, root: str) -> bool:
    """Whether Spark has a file system for this URL. A session of Spark Connect cannot be asked."""
    if is_local(root) or type(spark).__module__.startswith("pyspark.sql.connect"):
        return True
    context = spark.sparkContext
    assert context._jvm is not None
    try:
        context._jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(
            root.partition("://")[0], context._jsc.hadoopConfiguration()
        )
    except (Py4JJavaError, PySparkException):
        return False
    return True


def _read_batches(batches: Iterator[Any], types: Any) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in (path for batch in batches for path in batch["path"].to_pylist()):
        files, name = open_location(path)
        [day] = days_of([path])
        with files.open_input_file(name) as opened:
            for part in pq.ParquetFile(opened).iter_batches():
                # Older files lack newer columns, and the day is in their path only.
                known = dict(zip(part.schema.names, part.columns, strict=True))
                known["day"] = pa.array([day] * part.num_rows, pa.date32())
                yield pa.RecordBatch.from_arrays(
                    [
                        known[field.name].cast(field.type)
                        if field.name in known
                        else pa.nulls(part.num_rows, field.type)
                        for field in types
                    ],
                    schema=types,
                )
