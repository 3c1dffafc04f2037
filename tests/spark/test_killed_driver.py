"""A driver is killed with SIGKILL in the middle of every operation; another driver finishes them."""

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lonnymq import NewMessage, Queue
from lonnymq.pipeline.steps import archive
from tests.conftest import Connect
from tests.spark import doomed_driver
from tests.spark.conftest import ROOT, complete_due, run_to_end, subprocess_environment
from tests.spark.killing import kill_session

pytestmark = [pytest.mark.heavy, pytest.mark.slow, pytest.mark.fault, pytest.mark.timeout(600)]


def fetch_value(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    return None if row is None else row[0]


def kill_in_the_middle_of_everything(
    dsn: str, home: Path, connection: psycopg.Connection[Any], holder: psycopg.Connection[Any]
) -> None:
    """Kill the driver after its first published and archived batches, while it works on everything else."""
    log = home / "driver.log"
    with log.open("w") as output:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.doomed_driver", dsn, str(home)],
            env=subprocess_environment(),
            cwd=ROOT,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 240
        publishing = (
            "select pid from pg_stat_activity where datname = current_database()"
            f" and {holder.info.backend_pid} = any (pg_blocking_pids(pid))"
        )
        while (backend := fetch_value(connection, publishing)) is None or fetch_value(
            connection, "select max(last_batch) from stream"
        ) is None:
            assert driver.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
    finally:
        kill_session(driver.pid)
        driver.wait(30)
    # The backend has received the whole command and would still publish the job.
    assert fetch_value(connection, f"select pg_terminate_backend({backend}, 60000)")


def test_a_killed_driver_leaves_nothing_half_done(
    spark: Any, dsn: str, history_queue: Queue, connect: Connect, tmp_path: Path
) -> None:
    history_queue.enqueue_many([NewMessage(channel="done", payload=n) for n in range(10)])
    assert complete_due(history_queue) == 10
    history_queue.enqueue_many([NewMessage(channel="waiting", payload=n) for n in range(12)])
    for number in range(3):
        spark.range(number * 20, number * 20 + 20).selectExpr(
            "'streamed' as channel", "cast(id as string) as content"
        ).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    connection, holder = connect(), connect()
    holder.execute("begin")
    holder.execute(
        "insert into publication (role, name, created, duplicates) values (session_user, 'nightly', 0, 0)"
    )
    kill_in_the_middle_of_everything(dsn, tmp_path, connection, holder)
    holder.execute("rollback")

    # None of the job's messages is visible; its staged rows are left over.
    assert fetch_value(connection, "select count(*) from message_status where channel = 'job'") == 0
    for _ in range(2):
        doomed_driver.numbers(spark).write.format("lonnymq").options(dsn=dsn, job="nightly").mode(
            "append"
        ).save()
    assert fetch_value(connection, "select count(*) from message_status where channel = 'job'") == 50
    assert fetch_value(connection, "select count(*) from stage where publication = 'nightly'") == 0

    run_to_end(doomed_driver.stream_writer(spark, dsn, tmp_path).trigger(availableNow=True).start)
    rows = connection.execute("select content from message_status where channel = 'streamed'").fetchall()
    assert sorted(int(content) for (content,) in rows) == list(range(60))

    taken: list[tuple[int, int]] = []
    query = doomed_driver.consumer(spark, dsn, tmp_path).foreachBatch(
        lambda frame, _: taken.extend((row["message_id"], row["attempt"]) for row in frame.collect())
    )
    run_to_end(query.trigger(availableNow=True).start)
    # Messages of the interrupted batch are consumed by the next driver, still as their first attempt.
    assert len(taken) == len({message_id for message_id, _ in taken}) == 12 + 50 + 60
    assert {attempt for _, attempt in taken} == {1}
    outcomes = connection.execute("select outcome, count(*) from history group by outcome").fetchall()
    assert outcomes == [("completed", 10 + 12 + 50 + 60)]

    source, lake = doomed_driver.archive_arguments(tmp_path, dsn)
    source = replace(source, max_rows=1_000)
    progress: list[str] = []
    assert archive(spark, source, lake, on_progress=progress.append).rows == 4 + 12 + 50 + 60
    assert "batch 0 was archived before" in progress
    archived = sorted(row["id"] for row in lake.attempts.read(spark).select("id").collect())
    assert archived == [id_ for (id_,) in connection.execute("select id from history order by id")]
