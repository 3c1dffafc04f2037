"""A lake on S3, which moto emulates: the whole pipeline, in a Spark that has no library for S3.

Moto is not among the tools of this project: install it anywhere (`pip install "moto[s3]" flask flask-cors`),
and put its `moto_server` on PATH.
"""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from pyarrow import fs

from lonnymq import Queue
from tests.pipeline.test_follow import work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOTO = shutil.which("moto_server")
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(MOTO is None, reason="moto_server is not on PATH"),
]


@pytest.fixture
def bucket(spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket in an S3 that listens on loopback; the driver and the tasks have its credentials."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
    }
    assert MOTO is not None
    moto = subprocess.Popen([MOTO, "-H", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    try:
        wait_until_answered(variables["AWS_ENDPOINT_URL"])
        address = {"endpoint_override": f"127.0.0.1:{port}", "scheme": "http", "region": "eu-central-1"}
        fs.S3FileSystem(allow_bucket_creation=True, **address).create_dir("lakes")
        yield "lakes"
    finally:
        moto.terminate()
        moto.wait(30)


def wait_until_answered(url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urlopen(url, timeout=5).close()
        except URLError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_lake_on_s3_needs_no_library_of_hadoop(
    spark: "SparkSession", queue: Queue, dsn: str, bucket: str, scheme: str, tmp_path: Path
) -> None:
    from lonnymq.pipeline.archive import ArchiveFailed
    from lonnymq.pipeline.steps import FollowSettings, Lake, Source, analyse, archive, follow, report
    from lonnymq.pipeline.steps import maintain as maintain_lake

    queue.set(history="full")
    work(queue, "acme", 6)
    lake, source = Lake(f"{scheme}://{bucket}/{scheme}"), Source(dsn=dsn, max_rows=4)
    # Spark's own checkpoint needs a file system of Spark's.
    checkpoint = str(tmp_path / "checkpoint")
    assert archive(spark, source, lake, checkpoint=checkpoint).rows == 6
    assert archive(spark, source, lake, checkpoint=checkpoint).rows == 0
    with pytest.raises(ArchiveFailed, match="was written by another stream"):
        archive(spark, source, lake, checkpoint=str(tmp_path / "another"))
    assert len(analyse(spark, lake).days) == 2
    assert analyse(spark, lake).days == ()
    work(queue, "beta", 3)
    done = follow(spark, source, lake, FollowSettings(is_once=True, checkpoint=checkpoint))
    assert (done.rounds, done.rows) == (1, 3)
    page = report(spark, lake, tmp_path / "report.html")
    assert "beta" in page.read_text(encoding="utf-8")
    attempts = next(one for one in maintain_lake(lake) if one.table == "attempts")
    assert attempts.files_after < attempts.files_before
    assert analyse(spark, lake).days == ()
    rows = lake.attempts.read(spark).select("channel", "content").collect()
    assert sorted(row.channel for row in rows) == ["acme"] * 6 + ["beta"] * 3
    assert all(row.content.startswith(b'{"n"') for row in rows)
