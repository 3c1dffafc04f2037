"""Waiting for a message: a notification ends the wait, and none is missed."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from psycopg import sql

from lonnymq import Batch, ClientSettings, LonnyError, Message, Queue, SchemaMissing
from lonnymq.client.wakeup_backoff import WakeupBackoff
from tests.conftest import Connect

Waiting = Callable[..., Future[Batch[Message]]]


@pytest.fixture
def queue(dsn: str) -> Iterator[Queue]:
    with Queue(dsn) as queue:
        yield queue


@pytest.fixture
def waiting(queue: Queue) -> Iterator[Waiting]:
    """Starts a waiting dequeue in its own thread."""
    with ThreadPoolExecutor() as threads:
        yield lambda **options: threads.submit(queue.dequeue, **{"wait": 30, **options})


@pytest.fixture
def until_asleep(connect: Connect) -> Callable[[int], None]:
    """Waits until a number of sleepers are registered and no longer poll."""
    watcher = connect()

    def until_asleep(sleepers: int = 1) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            row = watcher.execute(
                "select count(distinct a.pid) filter (where a.query like 'select%%message_dequeue%%'"
                " and a.state = 'idle' and clock_timestamp() - a.state_change > interval '300 ms')"
                " from pg_stat_activity a where a.datname = current_database()"
                " and (select count(*) from sleeper) >= %s",
                (sleepers,),
            ).fetchone()
            if row is not None and row[0] >= sleepers:
                return
            time.sleep(0.02)
        raise AssertionError("no dequeue went to sleep")

    return until_asleep


def test_a_waiting_dequeue_returns_at_once_if_there_is_a_message(queue: Any) -> None:
    queue.enqueue("a", 1)
    assert len(queue.dequeue(wait=30)) == 1


@pytest.mark.parametrize("wait", [0.2, timedelta(milliseconds=200)])
def test_a_waiting_dequeue_ends_when_its_time_is_over(queue: Any, wait: Any) -> None:
    began = time.monotonic()
    batch = queue.dequeue(wait=wait)
    assert (len(batch), batch.outcome) == (0, "empty")
    assert 0.19 < time.monotonic() - began < 5


def test_a_created_message_wakes_a_waiting_dequeue(
    queue: Any, waiting: Waiting, until_asleep: Callable[..., None]
) -> None:
    future = waiting()
    until_asleep()
    began = time.monotonic()
    created = queue.enqueue("a", 1)
    assert [message.id for message in future.result(20)] == [created.id]
    # Much less than any interval at which it would poll.
    assert time.monotonic() - began < 8


def test_a_message_from_plain_sql_wakes_a_waiting_dequeue(
    waiting: Waiting, until_asleep: Callable[..., None], connect: Connect
) -> None:
    future = waiting()
    until_asleep()
    began = time.monotonic()
    connect().execute("select message_create('a', 'x')")
    assert len(future.result(20)) == 1
    assert time.monotonic() - began < 8


def test_a_completion_in_a_capped_channel_wakes_a_waiting_dequeue(
    queue: Any, waiting: Waiting, until_asleep: Callable[..., None]
) -> None:
    queue.channel("a").set(max_concurrency=1)
    queue.enqueue("a", 1)
    queue.enqueue("a", 2)
    first = queue.dequeue()[0]
    future = waiting()
    until_asleep()
    first.complete()
    assert future.result(20)[0].payload == 2


def test_a_delayed_message_ends_the_wait_when_it_is_due(queue: Any) -> None:
    queue.enqueue("a", 1, delay=0.3)
    began = time.monotonic()
    assert len(queue.dequeue(wait=30)) == 1
    assert 0.25 < time.monotonic() - began < 10


def test_an_expiring_lease_ends_the_wait(queue: Any) -> None:
    queue.enqueue("a", 1)
    queue.dequeue(lease_s=0.3)
    assert queue.dequeue(wait=30)[0].attempt == 2


def test_a_message_from_an_older_transaction_ends_the_wait(waiting: Waiting, connect: Connect) -> None:
    """It looked for sleepers before there was one, so it does not notify."""
    producer, watcher = connect(), connect()
    producer.execute("begin")
    producer.execute("select message_create('a', 'x')")
    future = waiting()
    while watcher.execute("select 1 from sleeper").fetchone() is None:
        time.sleep(0.01)
    began = time.monotonic()
    producer.execute("commit")
    assert len(future.result(20)) == 1
    assert time.monotonic() - began < 8


def test_a_wait_that_outlasts_its_registration_is_still_woken(
    queue: Any, waiting: Waiting, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lonnymq.client.sync.sleeper.REGISTERED_FOR_MS", 200)
    future = waiting()
    watcher, seen = connect(), set[int]()
    while len(seen) < 4:
        seen |= {until for (until,) in watcher.execute("select until from sleeper")}
        time.sleep(0.01)
    began = time.monotonic()
    queue.enqueue("a", 1)
    assert len(future.result(20)) == 1
    assert time.monotonic() - began < 8


def test_a_wait_survives_the_loss_of_its_connection(
    queue: Any, waiting: Waiting, until_asleep: Callable[..., None], connect: Connect
) -> None:
    future = waiting()
    until_asleep()
    # Wait until they have ended: a call that was interrupted would rightly not be repeated.
    terminated = connect().execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database()"
        " and pid <> pg_backend_pid() and application_name = 'lonnymq'"
    )
    assert terminated.rowcount >= 1
    queue.enqueue("a", 1)
    assert len(future.result(20)) == 1


def test_waiting_dequeues_of_one_client_are_independent(
    queue: Any, waiting: Waiting, until_asleep: Callable[..., None]
) -> None:
    futures = [waiting() for _ in range(4)]
    until_asleep(4)
    ids = [queue.enqueue("a", n).id for n in range(4)]
    assert sorted(future.result(20)[0].id for future in futures) == ids


def wait_in_vain(queue: Any, connect: Connect) -> None:
    """Dequeue with a timeout until the client has registered a sleeper."""
    for _ in range(20):
        queue.dequeue(wait=1)
        if connect().execute("select from sleeper").fetchone() is not None:
            return
    raise AssertionError("the client never registered a sleeper")


def test_the_next_wait_reuses_the_connection(queue: Any, connect: Connect) -> None:
    def sleepers() -> list[int]:
        return [sleeper._connection.info.backend_pid for sleeper in queue._receiver._idle_sleepers]

    wait_in_vain(queue, connect)
    before = sleepers()
    for _ in range(5):
        queue.dequeue(wait=0.02)
    assert sleepers() == before


def test_a_closed_client_leaves_no_sleeper(dsn: str, connect: Connect) -> None:
    with Queue(dsn) as queue:
        wait_in_vain(queue, connect)
        assert connect().execute("select count(*) from sleeper").fetchone() == (1,)
    assert connect().execute("select count(*) from sleeper").fetchone() == (0,)


def test_a_client_closed_while_it_waits_leaves_nothing_behind(
    queue: Any, waiting: Waiting, until_asleep: Callable[..., None], connect: Connect
) -> None:
    futures = [waiting() for _ in range(2)]
    until_asleep(2)
    queue.close()
    connect().execute("select message_create(c, 'x') from unnest(array['a', 'b']) c")
    for future in futures:
        with pytest.raises(LonnyError, match="this queue is closed"):
            future.result(20)
    # A closed client must lease nothing, because nobody could acknowledge it.
    assert connect().execute("select count(*) from lease").fetchone() == (0,)
    assert connect().execute("select count(*) from sleeper").fetchone() == (0,)
    wait_until_sessions_end(connect)


def test_waits_that_cannot_listen_keep_no_connections(dsn: str, connect: Connect) -> None:
    connect().execute("alter function queue_event rename to queue_event_elsewhere")
    with Queue(dsn, settings=ClientSettings(pool_min_size=0)) as queue:
        for _ in range(3):
            with pytest.raises(SchemaMissing):
                queue.dequeue(wait=10)
        # One connection stays in the pool, because it has just been used.
        wait_until_sessions_end(connect, remaining=1)
    connect().execute("alter function queue_event_elsewhere rename to queue_event")


def wait_until_sessions_end(connect: Connect, remaining: int = 0) -> None:
    """Wait, because a session ends a moment after its connection is closed."""
    count = (
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and application_name = 'lonnymq'"
    )
    deadline = time.monotonic() + 10
    while (left := connect().execute(count).fetchone()) != (remaining,):
        assert time.monotonic() < deadline, f"{left} sessions are left"
        time.sleep(0.05)


def test_polling_works_without_notifications(dsn: str, connect: Connect) -> None:
    with Queue(dsn, settings=ClientSettings(listen=False, poll_s=0.05)) as queue:
        timer = threading.Timer(0.2, lambda: queue.enqueue("a", 1))
        timer.start()
        assert len(queue.dequeue(wait=30)) == 1
        timer.join()
    assert connect().execute("select count(*) from sleeper").fetchone() == (0,)


def test_a_caller_that_need_not_wait_causes_no_notifications(
    queue: Any, waiting: Waiting, until_asleep: Callable[..., None], connect: Connect
) -> None:
    listener = connect()
    row = listener.execute("select queue_event()").fetchone()
    assert row is not None
    listener.execute(sql.SQL("listen {}").format(sql.Identifier(row[0])))
    sleeping = waiting()
    until_asleep()
    queue.enqueue("a", 0)
    assert len(sleeping.result(timeout=20)) == 1
    assert len(list(listener.notifies(timeout=5, stop_after=1))) == 1

    def work_for(seconds: float) -> None:
        """Enqueue and work one message after another, without ever having to wait for one."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            queue.enqueue("a", 1)
            queue.dequeue(wait=30)[0].complete()

    work_for(0.6)
    list(listener.notifies(timeout=0.1))
    work_for(0.3)
    assert list(listener.notifies(timeout=0.1)) == []

    sleeping = waiting()
    until_asleep()
    queue.enqueue("a", 2)
    assert len(sleeping.result(timeout=20)) == 1


def test_a_notification_of_a_message_that_was_received_already_delays_nothing(
    queue: Any, waiting: Waiting, until_asleep: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waking up in vain makes a sleeper pause, but only if another one was faster."""
    wakeups: list[bool] = []
    wake = WakeupBackoff.wake

    def recorded_wake(self: WakeupBackoff, was_notified: bool) -> float:
        wakeups.append(was_notified)
        return wake(self, was_notified)

    sleeping = waiting()
    until_asleep()
    queue.enqueue("a", 0)
    assert len(sleeping.result(timeout=20)) == 1
    # The notification of this message arrives while nobody waits.
    queue.enqueue("a", 1)
    assert len(queue.dequeue(wait=30)) == 1
    monkeypatch.setattr(WakeupBackoff, "wake", recorded_wake)
    assert len(queue.dequeue(wait=0.2)) == 0
    assert True not in wakeups
