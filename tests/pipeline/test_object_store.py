"""A lake on S3, which moto emulates: the whole pipeline, in a Spark that has no library for S3."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from pyarrow import fs

from lonnymq import Queue
from tests.pipeline.test_follow import work
from tests.pipeline.test_lake import InterruptedFrame
from tests.spark.conftest import ROOT, subprocess_environment
from tests.spark.killing import kill_session

pytest.importorskip("pyspark")
from lonnymq.pipeline.lake import Lake, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("moto") is None, reason="moto, of the extra dev, is not installed"),
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
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    moto = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
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


def kill_while_committing(dsn: str, lake: str, checkpoint: Path) -> None:
    """Run `archive` in a process of its own, and kill it between the lake's commit and Spark's."""
    environment = subprocess_environment() | {name: os.environ[name] for name in os.environ if "AWS_" in name}
    command = [sys.executable, "-m", "lonnymq", "pipeline", "archive", "--lake", lake, "--dsn", dsn]
    process = subprocess.Popen(
        [*command, "--checkpoint", str(checkpoint), "--master", "local[1]"],
        env=environment,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            # Spark logs a batch as done after this line.
            if line.startswith("batch"):
                break
        else:
            raise AssertionError("".join(lines))
        process.send_signal(signal.SIGKILL)
    finally:
        kill_session(process.pid)
        process.communicate(timeout=60)


class InterruptedLake(Lake):
    """A lake that calls a function after attempts were added to it, and before they are committed."""

    callback: Callable[[], object]

    def __init__(self, path: str, callback: Callable[[], object]) -> None:
        super().__init__(path)
        object.__setattr__(self, "callback", callback)

    @property
    def attempts(self) -> Table:
        table = super().attempts
        add = table.add

        def interrupted(frame: Any, addition: Any) -> int | None:
            slow: Any = InterruptedFrame(frame, self.callback)
            return add(slow, addition)

        object.__setattr__(table, "add", interrupted)
        return table


def test_a_lake_on_s3_has_each_attempt_once_and_needs_no_library_of_hadoop(
    spark: "SparkSession", queue: Queue, dsn: str, bucket: str, connect: Callable[..., Any], tmp_path: Path
) -> None:
    from lonnymq.pipeline.archive import ArchiveFailed
    from lonnymq.pipeline.steps import FollowSettings, Source, analyse, archive, follow, report
    from lonnymq.pipeline.steps import maintain as maintain_lake

    queue.set(history="full")
    work(queue, "acme", 6)
    lake, source = Lake(f"s3a://{bucket}/lake"), Source(dsn=dsn, max_rows=4)
    # Spark's own checkpoint needs a file system of Spark's.
    checkpoint = str(tmp_path / "checkpoint")
    with pytest.raises(ArchiveFailed, match="name a directory for the checkpoint"):
        archive(spark, source, lake)
    kill_while_committing(dsn, lake.path, tmp_path / "checkpoint")
    assert archive(spark, source, lake, checkpoint=checkpoint).rows == 0
    work(queue, "acme", 2)
    # Another archive, with a checkpoint of its own, commits the same attempts a moment earlier.
    others: list[int] = []

    def run_another() -> None:
        others.append(archive(spark.newSession(), source, lake, checkpoint=str(tmp_path / "another")).rows)

    with pytest.raises(ArchiveFailed, match=r"another process committed to s3a://.*one process at a time"):
        archive(spark, source, InterruptedLake(lake.path, run_another), checkpoint=checkpoint)
    assert others == [2]
    lake = Lake(f"s3://{bucket}/lake")
    assert archive(spark, source, lake, checkpoint=checkpoint).rows == 0
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
    columns = "id, channel, content"
    rows = lake.attempts.read(spark).selectExpr(*columns.split(", ")).orderBy("id").collect()
    expected = connect().execute(f"select {columns} from history order by id".encode()).fetchall()
    assert [tuple(row) for row in rows] == [(id_, channel, content) for id_, channel, content in expected]
    assert len(rows) == 11
