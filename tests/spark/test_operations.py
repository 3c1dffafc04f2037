"""Every operation of the data source with a real Spark, which finds the source by itself."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from psycopg import conninfo

from lonnymq import NewMessage, Queue
from lonnymq.spark.source import activate
from lonnymq.spark.stop_query import stop_query
from tests.conftest import Connect
from tests.spark.conftest import complete_due, run_to_end

pytestmark = pytest.mark.slow


@pytest.fixture
def secret_dsn(dsn: str) -> str:
    """A connection string with a password, which the server ignores and nothing may show."""
    return conninfo.make_conninfo(dsn, password="hunter2")


def wait_until(condition: Callable[[], Any], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def error_of(action: Callable[[], Any]) -> str:
    """Return the error that Spark reports for an action that must fail."""
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as raised:
        action()
    return str(raised.value)


def test_a_frame_is_written_once_in_order_and_read_back(
    spark: Any, secret_dsn: str, history_queue: Queue, connect: Connect
) -> None:
    from pyspark import TaskContext
    from pyspark.sql import functions as f

    rows = spark.range(0, 3000, 1, 3)

    def fail_first_attempt(batches: Iterator[Any]) -> Iterator[Any]:
        """Make Spark repeat a task that has already sent its rows."""
        yield from batches
        context = TaskContext.get()
        if context is not None and context.partitionId() == 1 and context.attemptNumber() == 0:
            raise RuntimeError("this attempt fails")

    frame = rows.mapInArrow(fail_first_attempt, rows.schema).select(
        f.lit("acme").alias("channel"),
        f.struct("id").alias("content"),
        f.col("id").cast("string").alias("key"),
        f.create_map(f.lit("id"), f.col("id").cast("string")).alias("headers"),
    )

    def write() -> None:
        activate(spark)
        frame.write.format("lonnymq").options(dsn=secret_dsn, job="nightly").mode("append").save()

    # Two writes of one job at the same time: only one of them publishes.
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(write), threads.submit(write)]:
            done.result(120)
    assert history_queue.status().waiting == 3000
    assert connect().execute("select count(*) from stage").fetchone() == (0,)
    live = (
        spark.read.format("lonnymq").options(dsn=secret_dsn, table="message", columns="key, content").load()
    )
    assert live.count() == 3000
    leased = history_queue.dequeue(500)
    assert [message.payload["id"] for message in leased] == list(range(500))
    assert [message.headers for message in leased] == [{"id": str(number)} for number in range(500)]
    connect().execute("update lease set unlock_at = 0")
    complete_due(history_queue)
    history = spark.read.format("lonnymq").options(dsn=secret_dsn, rows_per_partition=1000).load()
    assert history.rdd.getNumPartitions() == 4
    by_outcome = {row["outcome"]: row["count"] for row in history.groupBy("outcome").count().collect()}
    assert by_outcome == {"completed": 3000, "expired": 500}
    one = history.where("outcome = 'completed'").orderBy("message_id").first()
    assert one["created_at"] <= one["leased_at"] <= one["ended_at"]
    assert bytes(one["content"]) == b'{"id":0}'
    assert one["headers"] == '{"id": "0"}'
    # Spark does not redact this password by itself. Check the plans of the read and of everything executed.
    ran = spark._jsparkSession.sharedState().statusStore().executionsList()
    plans = [ran.apply(place).physicalPlanDescription() for place in range(ran.size())]
    plans.append(history._jdf.queryExecution().toString())
    assert len([plan for plan in plans if "lonnymq" in plan]) > 3
    assert not [plan for plan in plans if "hunter2" in plan]


def test_a_failed_operation_explains_itself_and_changes_nothing(
    spark: Any, secret_dsn: str, queue: Queue, connect: Connect
) -> None:
    frame = spark.createDataFrame([("a", "x"), ("", "y")], "channel string, content string")

    def write(frame: Any, mode: str = "append", **more: str) -> Callable[[], None]:
        return frame.write.format("lonnymq").options(dsn=secret_dsn, **more).mode(mode).save  # type: ignore[no-any-return]

    reader = spark.read.format("lonnymq").option("dsn", secret_dsn)
    errors = {
        "column channel is missing": error_of(write(frame.drop("channel"))),
        "jbo is not an option": error_of(write(frame, jbo="x")),
        "mode must be append": error_of(write(frame, mode="overwrite")),
        # Found only while publishing: Spark aborts, and no staged rows are left.
        "channel must be 1 to 255 characters": error_of(write(frame)),
        "table must be one of": error_of(lambda: reader.option("table", "turn").load()),
        "has no queue in schema": error_of(
            lambda: reader.options(table="history", schema="x").load().count()
        ),
    }
    for words, message in errors.items():
        assert words in message
        assert "hunter2" not in message
    assert queue.status().waiting == 0
    assert connect().execute("select count(*) from stage").fetchone() == (0,)


def test_a_restarted_stream_continues_where_it_stopped(
    spark: Any, dsn: str, history_queue: Queue, tmp_path: Path
) -> None:
    def feed(count: int) -> None:
        history_queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(count)])
        complete_due(history_queue)

    stream = spark.readStream.format("lonnymq").options(dsn=dsn, reader="lake", max_rows=400).load()
    writing = stream.writeStream.format("parquet").options(
        path=str(tmp_path / "lake"), checkpointLocation=str(tmp_path / "checkpoint")
    )
    feed(1000)
    query = run_to_end(writing.trigger(availableNow=True).start)
    assert [one["numInputRows"] for one in query.recentProgress][:3] == [400, 400, 200]
    feed(300)
    query = writing.trigger(processingTime="100 milliseconds").start()
    wait_until(lambda: spark.read.parquet(str(tmp_path / "lake")).count() >= 1300)
    query.stop()
    lake = spark.read.parquet(str(tmp_path / "lake"))
    assert (lake.count(), lake.select("message_id").distinct().count()) == (1300, 1300)
    assert [reader.name for reader in history_queue.history.readers()] == ["lake"]


def test_a_stopped_consumer_has_completed_what_it_processed_and_once_is_refused(
    spark: Any, dsn: str, queue: Queue, tmp_path: Path
) -> None:
    stream = spark.readStream.format("lonnymq").options(dsn=dsn, mode="consume").load()

    def start(**trigger: Any) -> Any:
        seen = stream.select("message_id").writeStream.format("noop").trigger(**trigger)
        return seen.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(3)])
    assert "use trigger(availableNow=True)" in error_of(lambda: start(once=True).awaitTermination())
    assert queue.status().waiting == 3
    query = start(processingTime="1 hour")
    wait_until(lambda: query.lastProgress is not None)
    assert queue.status().leased == 3
    stop_query(query, dsn)
    status = queue.status()
    assert (status.leased, status.waiting) == (0, 0)


def test_a_stream_is_written_once_even_if_its_checkpoint_is_damaged(
    spark: Any, dsn: str, queue: Queue, tmp_path: Path
) -> None:
    for number in range(3):
        spark.range(number * 10, number * 10 + 10).selectExpr(
            "'a' as channel", "cast(id as string) as content"
        ).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    checkpoint = tmp_path / "checkpoint"

    def run() -> str | None:
        stream = spark.readStream.schema("channel string, content string").option("maxFilesPerTrigger", 1)
        writing = stream.parquet(str(tmp_path / "in")).writeStream.format("lonnymq").option("dsn", dsn)
        try:
            run_to_end(writing.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start)
        except Exception as error:  # noqa: BLE001
            return str(error)
        return None

    assert run() is None
    assert queue.status().waiting == 30
    # As if the driver had been killed between publishing and logging the batch.
    for log in ("2", ".2.crc"):
        (checkpoint / "commits" / log).unlink()
    assert run() is None
    assert queue.status().waiting == 30
    # As if somebody had emptied the checkpoint.
    for folder in ("offsets", "commits", "sources"):
        for path in sorted((checkpoint / folder).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    assert "has already published batch 2 and cannot publish batch 0" in (run() or "")
    assert queue.status().waiting == 30
    assert sorted(message.payload for message in queue.dequeue(100)) == list(range(30))


# Records, at every lease, how many leases the capped channel has. Times in history cannot show this, because
# the timestamp of a lease precedes the moment at which its statement sees the completion that made room.
WATCH = """
create table public.seen (leases bigint);
create function public.watch() returns trigger language plpgsql as $$
begin
  insert into public.seen
  select count(*) from lonnymq.lease l join lonnymq.channel c on c.id = l.channel_id where c.name = 'capped';
  return null;
end
$$;
create trigger watch after insert on lonnymq.lease execute function public.watch();
"""


def test_two_queries_and_three_workers_share_a_queue(
    spark: Any, dsn: str, history_queue: Queue, connect: Connect, tmp_path: Path
) -> None:
    connection = connect()
    connection.execute(WATCH)
    history_queue.channel("capped").set(max_concurrency=2)
    for channel in ("a", "b", "c", "capped"):
        history_queue.enqueue_many([NewMessage(channel=channel, payload=n) for n in range(60)])
    upserted: list[set[int]] = [set(), set()]

    def consume(number: int) -> Any:
        stream = spark.readStream.format("lonnymq").options(dsn=dsn, mode="consume", max_messages=20)
        return (
            stream.load()
            .writeStream.foreachBatch(
                lambda frame, _: upserted[number].update(row["message_id"] for row in frame.collect())
            )
            .option("checkpointLocation", str(tmp_path / f"checkpoint {number}"))
            .start()
        )

    queries = [consume(0), consume(1)]
    wait_until(lambda: all(query.lastProgress for query in queries))
    stopping = threading.Event()

    def serve() -> None:
        with Queue(dsn) as worker:
            while not stopping.is_set():
                for message in worker.dequeue(3, wait=0.2):
                    message.complete()

    workers = [threading.Thread(target=serve) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        wait_until(lambda: (status := history_queue.status()).waiting == 0 and status.leased == 0)
    finally:
        stopping.set()
        for query in queries:
            query.stop()
        for worker in workers:
            worker.join(30)
    history = spark.read.format("lonnymq").option("dsn", dsn).load().collect()
    completed = [row for row in history if row["outcome"] == "completed"]
    assert len(completed) == len({row["message_id"] for row in completed}) == len(history) == 240
    assert all(upserted)
    assert not upserted[0] & upserted[1]
    peaks = connection.execute("select max(leases), count(*) from public.seen where leases > 0").fetchone()
    assert peaks is not None
    assert peaks[0] <= 2
    assert peaks[1] >= 30
