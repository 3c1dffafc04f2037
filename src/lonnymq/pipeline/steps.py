"""The steps of the pipeline, for Python programs, the command line and spark-submit."""

from pyspark.sql import SparkSession

from lonnymq.pipeline import synthetic as synthetic_history
from lonnymq.pipeline.analyse import AnalyseResult, analyse
from lonnymq.pipeline.archive import ArchiveResult, archive
from lonnymq.pipeline.day_range import DayRange
from lonnymq.pipeline.follow import FollowResult, FollowSettings, follow
from lonnymq.pipeline.ingest import FileFormat, IngestResult, Mapping, ingest
from lonnymq.pipeline.lake import Batch, Lake, LakeFormat
from lonnymq.pipeline.lake.files import by_day
from lonnymq.pipeline.maintain import TableMaintenance, maintain
from lonnymq.pipeline.source import OnProgress, Source, ignore_progress
from lonnymq.pipeline.synthetic import SyntheticHistory
from lonnymq.pipeline.write_report import report, report_page

__all__ = [
    "AnalyseResult",
    "ArchiveResult",
    "DayRange",
    "FileFormat",
    "FollowResult",
    "FollowSettings",
    "IngestResult",
    "Lake",
    "LakeFormat",
    "Mapping",
    "Source",
    "SyntheticHistory",
    "TableMaintenance",
    "analyse",
    "archive",
    "follow",
    "generate",
    "ingest",
    "maintain",
    "report",
    "report_page",
]


def generate(
    spark: SparkSession,
    synthetic: SyntheticHistory,
    lake: Lake,
    *,
    on_progress: OnProgress = ignore_progress,
) -> int:
    """Add a synthetic history and its policies to the lake, once; return how many rows were added."""
    batch = Batch(f"generate {synthetic!r}", 0)
    on_progress(f"attempts: {synthetic.rows:,}, days: {synthetic.days}")
    rows = lake.attempts.append(by_day(synthetic_history.generate(spark, synthetic)), batch)
    lake.policies.append(synthetic_history.policies(spark, synthetic), batch)
    return rows or 0
