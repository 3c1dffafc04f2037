"""The driver is killed with SIGKILL, everywhere at once; another goes on, and each row is there once."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lonnymq import NewMessage, Queue
from lonnymq.pipeline.steps import archive
from tests.conftest import Connect
from tests.spark import victim
from tests.spark.conftest import environment, to_the_end, work

pytestmark = [pytest.mark.slow, pytest.mark.fault, pytest.mark.timeout(600)]


def value(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    return None if row is None else row[0]


def living(session: int) -> list[int]:
    """Return the processes of a session: Spark's Python has a group of its own."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, _, _, of, *_ = stat.read_text(errors="replace").rpartition(")")[2].split()
            if state != "Z" and int(of) == session:
                found.append(int(stat.parent.name))
    return found


def kill(session: int) -> None:
    """Kill all of it, whatever it starts meanwhile, and wait for its end."""
    deadline = time.monotonic() + 60
    while found := living(session):
        assert time.monotonic() < deadline, found
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def kill_when_all_is_under_way(
    dsn: str, home: Path, connection: psycopg.Connection[Any], holder: psycopg.Connection[Any]
) -> None:
    """It has published a batch and archived one, is in the middle of others, and about to publish its job."""
    said = home / "said"
    with said.open("w") as output:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.victim", dsn, str(home)],
            env=environment(),
            cwd=environment()["PYTHONPATH"],
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
        while (backend := value(connection, publishing)) is None or value(
            connection, "select max(last_batch) from stream"
        ) is None:
            assert driver.poll() is None, said.read_text()
            assert time.monotonic() < deadline, said.read_text()
            time.sleep(0.05)
    finally:
        kill(driver.pid)
        driver.wait(30)
    # Nobody is left who could publish the job; PostgreSQL itself would, having heard all it needs.
    assert value(connection, f"select pg_terminate_backend({backend}, 60000)")


def test_a_killed_driver_leaves_nothing_half_done(
    spark: Any, dsn: str, keeping: Queue, connect: Connect, tmp_path: Path
) -> None:
    keeping.enqueue_many([NewMessage(channel="done", payload=n) for n in range(10)])
    assert work(keeping) == 10
    keeping.enqueue_many([NewMessage(channel="waiting", payload=n) for n in range(12)])
    for number in range(3):
        spark.range(number * 20, number * 20 + 20).selectExpr(
            "'streamed' as channel", "cast(id as string) as content"
        ).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    connection, holder = connect(), connect()
    holder.execute("begin")
    holder.execute(
        "insert into publication (role, name, created, duplicates) values (session_user, 'nightly', 0, 0)"
    )
    kill_when_all_is_under_way(dsn, tmp_path, connection, holder)
    holder.execute("rollback")

    # Nothing of the job is visible; the rows that it staged are nobody's.
    assert value(connection, "select count(*) from message_status where channel = 'job'") == 0
    for _ in range(2):
        victim.numbers(spark).write.format("lonnymq").options(dsn=dsn, job="nightly").mode("append").save()
    assert value(connection, "select count(*) from message_status where channel = 'job'") == 50
    assert value(connection, "select count(*) from stage where publication = 'nightly'") == 0

    to_the_end(victim.writing(spark, dsn, tmp_path).trigger(availableNow=True).start)
    rows = connection.execute("select content from message_status where channel = 'streamed'").fetchall()
    assert sorted(int(content) for (content,) in rows) == list(range(60))

    taken: list[tuple[int, int]] = []
    consuming = victim.consuming(spark, dsn, tmp_path).foreachBatch(
        lambda frame, _: taken.extend((row["message_id"], row["attempt"]) for row in frame.collect())
    )
    to_the_end(consuming.trigger(availableNow=True).start)
    # What it was in the middle of came again to its successor, as the first attempt that it is.
    assert len(taken) == len({message_id for message_id, _ in taken}) == 12 + 50 + 60
    assert {attempt for _, attempt in taken} == {1}
    outcomes = connection.execute("select outcome, count(*) from history group by outcome").fetchall()
    assert outcomes == [("completed", 10 + 12 + 50 + 60)]

    source, lake = victim.archiving(tmp_path, dsn)
    source = replace(source, max_rows=1_000)
    said: list[str] = []
    assert archive(spark, source, lake, say=said.append).rows == 4 + 12 + 50 + 60
    assert said[0] == "batch 0 was archived before"
    archived = sorted(row["id"] for row in lake.attempts.read(spark).select("id").collect())
    assert archived == [id_ for (id_,) in connection.execute("select id from history order by id")]
