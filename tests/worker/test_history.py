"""Workers create the partitions of history; nothing else has to."""

from lonnymq import ExitCode, HistoryMode, NewMessage, Queue
from tests.conftest import Connect
from tests.worker.conftest import StartWorker
from tests.worker.workers import WorkerProcess, eventually


def read_logs(workers: list[WorkerProcess]) -> str:
    return "".join(worker.log_text() for worker in workers)


def test_a_fleet_creates_each_partition_once_and_moves_what_overflowed(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    connection = connect()
    queue.set(history=HistoryMode.METADATA)
    for partition in queue.history.partitions():
        connection.execute(f"drop table {partition.name}".encode())
    queue.enqueue("a", None)
    [message] = queue.dequeue()
    message.complete()
    assert queue.status().history_overflow == 1

    workers = [start_worker() for _ in range(3)]
    eventually(lambda: len(queue.history.partitions()) == 15, "the workers create partitions")
    eventually(lambda: queue.status().history_overflow == 0, "the workers empty the overflow")
    eventually(lambda: "created" in read_logs(workers), "a worker says so")
    eventually(lambda: read_logs(workers).count("working as") == 3, "all workers run")
    assert [worker.stop() for worker in workers] == [ExitCode.FINISHED] * 3
    assert read_logs(workers).count("created 15 partitions of history") == 1
    assert "preparing history failed" not in read_logs(workers)


def test_messages_are_processed_while_partitions_cannot_be_created(
    queue: Queue, connect: Connect, start_worker: StartWorker
) -> None:
    owner = connect()
    queue.set(history=HistoryMode.METADATA)
    for partition in queue.history.partitions():
        owner.execute(f"drop table {partition.name}".encode())
    with owner.transaction():
        owner.execute("lock table history in share update exclusive mode")
        start_worker()
        queue.enqueue_many(
            [NewMessage(channel="a", payload={"do": "sleep", "seconds": 0}) for _ in range(20)]
        )
        eventually(lambda: queue.status().history_overflow == 20, "attempts end in the overflow")
        assert queue.history.partitions() == []
    eventually(lambda: len(queue.history.partitions()) == 15, "a worker comes back")
