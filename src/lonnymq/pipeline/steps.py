"""The five steps as they are run by hand, by the command line and by spark-submit."""

from pyspark.sql import SparkSession

from lonnymq.pipeline import demo
from lonnymq.pipeline.analyse import Analysed, analyse
from lonnymq.pipeline.archive import Archived, archive
from lonnymq.pipeline.demo import Synthetic
from lonnymq.pipeline.ingest import FileFormat, Ingested, Mapping, ingest
from lonnymq.pipeline.lake import Batch, Lake, LakeFormat
from lonnymq.pipeline.publish import report
from lonnymq.pipeline.source import Say, Source, silent

__all__ = [
    "Analysed",
    "Archived",
    "FileFormat",
    "Ingested",
    "Lake",
    "LakeFormat",
    "Mapping",
    "Source",
    "Synthetic",
    "analyse",
    "archive",
    "generate",
    "ingest",
    "report",
]


def generate(spark: SparkSession, synthetic: Synthetic, lake: Lake, *, say: Say = silent) -> int:
    """Add a synthetic history and its policies to the lake; the same one is added once. Return its rows."""
    batch = Batch(f"generate {synthetic!r}", 0)
    say(f"attempts: {synthetic.rows:,}, days: {synthetic.days}")
    rows = lake.attempts.append(demo.generate(spark, synthetic), batch)
    lake.policies.append(demo.policies(spark, synthetic), batch)
    return rows or 0
