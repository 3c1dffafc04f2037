"""A sleeper that works between two waits withdraws its registration, and misses no message."""

import threading
import time
from collections.abc import Iterator

import pytest
from psycopg import sql

from lonnymq import Queue
from tests.conftest import Connect
from tests.races.sessions import create, value

pytestmark = pytest.mark.race

# Longer than a sleeper stays registered without having waited.
HANDLER_S = 0.3
PAUSES_S = (0.0, 0.001, 0.002, 0.004, 0.008, 0.016, 0.05)


@pytest.fixture
def queue(dsn: str) -> Iterator[Queue]:
    with Queue(dsn) as queue:
        yield queue


@pytest.mark.parametrize("is_early", [False, True], ids=["autocommit", "open transaction"])
def test_a_worker_with_slow_handlers_misses_no_message_when_it_waits_again(
    queue: Queue, connect: Connect, is_early: bool
) -> None:
    """With an open transaction, the producer has looked for sleepers before the worker registers again."""
    producer = connect()
    create(producer, "a")
    worked: list[float] = []

    def work() -> None:
        for _ in range(1 + len(PAUSES_S)):
            for message in queue.dequeue(wait=20):
                worked.append(time.monotonic())
                message.complete()
            time.sleep(HANDLER_S)

    worker = threading.Thread(target=work)
    worker.start()
    for number, pause_s in enumerate(PAUSES_S):
        while len(worked) <= number:
            time.sleep(0.001)
        producer.execute("begin")
        if is_early:
            create(producer, "a")
        time.sleep(max(0.0, worked[-1] + HANDLER_S + pause_s - time.monotonic()))
        if not is_early:
            create(producer, "a")
        producer.execute("commit")
        began = time.monotonic()
        while len(worked) <= number + 1 and time.monotonic() < began + 10:
            time.sleep(0.001)
        assert worked[-1] - began < 2, f"missed after {pause_s} s"
    worker.join()


def test_a_busy_thread_causes_no_notifications_beside_waits_that_have_ended(
    queue: Queue, connect: Connect
) -> None:
    producer, listener = connect(), connect()
    event = sql.Identifier(value(listener, "select queue_event()"))
    listener.execute(sql.SQL("listen {}").format(event))
    waits = [threading.Thread(target=lambda: queue.dequeue(wait=20)) for _ in range(3)]
    for wait in waits:
        wait.start()
    while value(producer, "select count(*) from sleeper") < len(waits):
        time.sleep(0.01)
    create(producer, "a", len(waits))
    for _ in waits:
        # Whichever dequeue takes several leaves the others waiting.
        create(producer, "a")
        time.sleep(0.1)
    for wait in waits:
        wait.join()
    for message in queue.dequeue(limit=100):
        message.complete()
    time.sleep(HANDLER_S)
    queue.enqueue("a", 1)
    queue.dequeue(wait=5)[0].complete()
    list(listener.notifies(timeout=0.1))
    for _ in range(20):
        queue.enqueue("a", 1)
        queue.dequeue(wait=5)[0].complete()
    assert list(listener.notifies(timeout=0.1)) == []
