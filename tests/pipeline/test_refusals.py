"""What the steps refuse before they use Spark."""

import fcntl
from pathlib import Path
from typing import Any

import pytest

from lonnymq.errors import InvalidArgument
from lonnymq.pipeline.archive import LOCK_NAME, ArchiveFailed
from lonnymq.pipeline.steps import Lake, Source, archive, ingest

REMOTE: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()


def test_a_second_archive_of_a_lake_is_refused_at_once(tmp_path: Path) -> None:
    lake, spark = Lake(str(tmp_path)), object()
    with open(tmp_path / LOCK_NAME, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ArchiveFailed, match=r"another archive is writing to .*: run one at a time"):
            archive(spark, Source(dsn="dbname=x"), lake)  # type: ignore[arg-type]


def test_steps_that_need_a_jvm_refuse_spark_connect_and_say_why(tmp_path: Path) -> None:
    lake, source = Lake(str(tmp_path)), Source(dsn="dbname=x")
    with pytest.raises(InvalidArgument, match="Spark Connect for the step archive, which writes the batches"):
        archive(REMOTE, source, lake)
    with pytest.raises(InvalidArgument, match="Spark Connect for the step ingest, which reads the sizes"):
        ingest(REMOTE, ["a.json"], source, lake)
