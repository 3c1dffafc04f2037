"""What the steps refuse before they use Spark."""

import fcntl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lonnymq.errors import InvalidArgument
from lonnymq.pipeline.archive import LOCK_NAME, ArchiveFailed
from lonnymq.pipeline.steps import (
    FollowSettings,
    Lake,
    LakeFormat,
    Source,
    analyse,
    archive,
    follow,
    ingest,
    maintain,
)

SPARK: Any = object()
REMOTE: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()


def test_a_second_archive_of_a_lake_is_refused_at_once(tmp_path: Path) -> None:
    lake, spark = Lake(str(tmp_path)), object()
    with open(tmp_path / LOCK_NAME, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ArchiveFailed, match=r"another archive is writing to .*: run one at a time"):
            archive(spark, Source(dsn="dbname=x"), lake)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [partial(analyse, SPARK), maintain], ids=["analyse", "maintain"])
def test_a_lake_that_is_not_there_is_refused_and_not_made(
    tmp_path: Path, step: Callable[[Lake], Any]
) -> None:
    with pytest.raises(
        InvalidArgument, match=r"lake must be a directory that archive, .* has made, got .*tpyo"
    ):
        step(Lake(str(tmp_path / "tpyo")))
    assert not list(tmp_path.iterdir())


def test_steps_that_need_a_jvm_refuse_spark_connect_and_say_why(tmp_path: Path) -> None:
    lake, source = Lake(str(tmp_path)), Source(dsn="dbname=x")
    with pytest.raises(InvalidArgument, match="Spark Connect for the step archive, which writes the batches"):
        archive(REMOTE, source, lake)
    with pytest.raises(InvalidArgument, match="Spark Connect for the step ingest, which reads the sizes"):
        ingest(REMOTE, ["a.json"], source, lake)


def test_follow_refuses_what_it_cannot_keep_up_with(tmp_path: Path) -> None:
    lake, spark, source = Lake(str(tmp_path), LakeFormat.PARQUET), object(), Source(dsn="dbname=x")
    with pytest.raises(InvalidArgument, match="form must be delta, because each round would compute"):
        follow(spark, source, lake)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="interval_s must be from 0 to 86400 seconds, got 86401"):
        FollowSettings(interval_s=86_401)
    with pytest.raises(InvalidArgument, match="Spark Connect for the step follow"):
        follow(REMOTE, source, lake)
