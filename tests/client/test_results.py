"""What has become of a message, and its result."""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import lonnymq
from lonnymq import MessageStatus, NewMessage
from lonnymq.calls.result import KEEP_HEADER
from lonnymq.client.sync import result_waiter
from tests.worker.workers import eventually

HOUR = timedelta(hours=1)


def lease(queue: lonnymq.Queue) -> lonnymq.Message:
    [message] = queue.dequeue()
    return message


def test_the_status_follows_a_message_through_its_life(queue: lonnymq.Queue) -> None:
    created = queue.enqueue("a", 1, delay=60, keep_result=HOUR)
    assert created.id
    assert queue.status_of(created.id).status is MessageStatus.SCHEDULED
    queue.cancel([created.id])
    assert queue.status_of(created.id).status is MessageStatus.CANCELLED

    created = queue.enqueue("a", 1, keep_result=HOUR)
    assert created.id
    assert queue.status_of(created.id).status is MessageStatus.WAITING
    [message] = queue.dequeue(worker="w")
    report = queue.status_of(created.id)
    assert (report.status, report.attempt, report.worker) == (MessageStatus.LEASED, 1, "w")
    message.complete(result={"frames": 7})
    report = queue.status_of(created.id)
    assert report.status is MessageStatus.COMPLETED
    assert report.at is not None
    assert queue.result(created.id) == {"frames": 7}

    created = queue.enqueue("a", 1)
    assert created.id
    lease(queue).bury(error="no such video")
    report = queue.status_of(created.id)
    assert (report.status, report.error) == (MessageStatus.BURIED, "no such video")
    queue.dead("a").redrive_all()
    assert queue.status_of(created.id).status is MessageStatus.WAITING
    assert queue.status_of(2**62).status is MessageStatus.UNKNOWN


def test_nothing_is_kept_for_those_that_do_not_ask(queue: lonnymq.Queue, dsn: str) -> None:
    created = queue.enqueue("a", 1)
    assert created.id
    lease(queue).complete(result=7)
    assert queue.status_of(created.id).status is MessageStatus.UNKNOWN
    with pytest.raises(lonnymq.ResultUnknown, match="keep_result"):
        queue.result(created.id)
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select count(*) from lonnymq.result").fetchone() == (0,)


def test_a_result_may_be_anything_that_the_codec_encodes(queue: lonnymq.Queue) -> None:
    results: list[Any] = [None, 0, "", [], {"a": [1]}, "ü" * 1000]
    for result in results:
        created = queue.enqueue("a", 1, keep_result=HOUR)
        lease(queue).complete(result=result)
        assert queue.result(created.id or 0) == result
    queue.enqueue("a", 1, keep_result=HOUR)
    message = lease(queue)
    with pytest.raises(lonnymq.InvalidArgument, match="the codec can encode"):
        message.complete(result={1, 2})
    with pytest.raises(lonnymq.InvalidArgument, match="at most 1048576 bytes"):
        message.complete(result="x" * 2**20)
    message.complete()


def test_many_messages_have_a_result_each(queue: lonnymq.Queue) -> None:
    made = queue.enqueue_many(
        NewMessage(channel="a", payload=n, keep_result=HOUR if n % 2 else None) for n in range(10)
    )
    messages = queue.dequeue(limit=10)
    queue.complete(messages, results=[message.payload * 10 for message in messages])
    for n, created in enumerate(made):
        status = queue.status_of(created.id or 0).status
        assert status is (MessageStatus.COMPLETED if n % 2 else MessageStatus.UNKNOWN)
        if n % 2:
            assert queue.result(created.id or 0) == n * 10


def test_a_lost_lease_leaves_no_result(queue: lonnymq.Queue, dsn: str) -> None:
    created = queue.enqueue("a", 1, keep_result=HOUR)
    message = lease(queue)
    with psycopg.connect(dsn) as connection:
        connection.execute("update lonnymq.lease set token = token + 1")
    assert message.complete(result="mine") is lonnymq.CompleteOutcome.LEASE_LOST
    assert queue.status_of(created.id or 0).status is MessageStatus.LEASED


def test_a_result_and_its_message_end_in_the_same_transaction(
    queue: lonnymq.Queue, open_connection: Callable[..., Any]
) -> None:
    created = queue.enqueue("a", 1, keep_result=HOUR)
    message = lease(queue)
    connection = open_connection()
    message.complete(result=7, connection=connection)
    assert queue.status_of(created.id or 0).status is MessageStatus.LEASED
    connection.rollback()
    assert queue.status_of(created.id or 0).status is MessageStatus.LEASED
    message.complete(result=8, connection=connection)
    connection.commit()
    assert queue.result(created.id or 0) == 8


@pytest.mark.parametrize("listen", [True, False])
def test_waiting_ends_with_the_message(queue: lonnymq.Queue, dsn: str, listen: bool) -> None:
    ends: list[tuple[Callable[[lonnymq.Message], Any], Any]] = [
        (lambda message: message.complete(result=7), 7),
        (lambda message: message.bury(error="broken"), lonnymq.MessageBuried),
        (lambda message: queue.cancel([message.id]), lonnymq.MessageCancelled),
        (lambda message: message.complete(), None),
    ]
    with lonnymq.Queue(dsn, settings=lonnymq.ClientSettings(listen=listen)) as client:
        for end, expected in ends:
            created = client.enqueue("a", 1, keep_result=HOUR)
            found: list[Any] = []

            def wait(id_: int = created.id or 0, found: list[Any] = found) -> None:
                try:
                    found.append(client.result(id_, wait=60))
                except lonnymq.ResultError as error:
                    found.append(type(error))

            waiting = [threading.Thread(target=wait) for _ in range(3)]
            for thread in waiting:
                thread.start()
            message = lease(queue)
            time.sleep(0.1)
            end(message)
            for thread in waiting:
                thread.join(60)
            assert found == [expected] * 3


@pytest.mark.parametrize("first", [0, 29])
def test_all_calls_that_wait_are_woken_by_the_one_that_listens(
    dsn: str, queue: lonnymq.Queue, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Without polling, also after the message of the call that listens has ended."""
    monkeypatch.setattr(result_waiter, "MAX_PAUSE_S", 1000.0)
    monkeypatch.setattr(result_waiter, "LOOK_AT_ONCE", 7)
    with lonnymq.Queue(dsn) as client:
        ids = [client.enqueue("a", n, keep_result=HOUR).id or 0 for n in range(30)]
        found: list[int] = []
        waiting = [
            threading.Thread(target=lambda id_=id_: found.append(client.result(id_, wait=500))) for id_ in ids
        ]
        for thread in waiting:
            thread.start()
        eventually(lambda: len(client._result_waiter._waiting) == 30)
        messages = {message.payload: message for message in queue.dequeue(limit=30)}
        for done, n in enumerate([first, *(n for n in range(30) if n != first)], start=1):
            messages[n].complete(result=n)
            if n % 5 == 0:
                eventually(lambda done=done: len(found) == done, f"{done} results")  # type: ignore[misc]
        for thread in waiting:
            thread.join(60)
        assert sorted(found) == list(range(30))
        assert client._result_waiter._waiting == []


def test_waiting_ends_in_time(queue: lonnymq.Queue) -> None:
    created = queue.enqueue("a", 1, keep_result=HOUR)
    for wait in (None, 0, 0.05):
        with pytest.raises(lonnymq.NotFinished, match="waiting"):
            queue.result(created.id or 0, wait=wait)
    with pytest.raises(TimeoutError):
        queue.result(created.id or 0)


def test_bad_durations_and_results_are_refused(queue: lonnymq.Queue) -> None:
    for keep in (0, -1, timedelta(days=8), "1h", float("nan"), True):
        with pytest.raises(lonnymq.InvalidArgument, match="keep_result"):
            queue.enqueue("a", 1, keep_result=keep)  # type: ignore[arg-type]
    with pytest.raises(lonnymq.InvalidArgument, match="message_id"):
        queue.status_of("7")  # type: ignore[arg-type]
    with pytest.raises(lonnymq.InvalidArgument, match="wait"):
        queue.result(7, wait=-1)
    queue.enqueue("a", 1, headers={"trace": "x"}, keep_result=HOUR)
    assert lease(queue).headers == {"trace": "x", KEEP_HEADER: "3600000"}


class ListsOnly:
    """Encodes nothing but lists, and an empty one as no byte at all, as Protocol Buffers may."""

    def encode(self, payload: Any) -> bytes:
        if not isinstance(payload, list):
            raise AttributeError("SerializeToString")
        return bytes(payload)

    def decode(self, content: bytes) -> Any:
        return list(content)


def test_a_codec_need_not_encode_none_and_may_encode_to_nothing(dsn: str, queue: lonnymq.Queue) -> None:
    with lonnymq.Queue(dsn, codec=ListsOnly()) as client:
        for given, expected in ((None, None), ([], []), ([7], [7]), (b"\x07", [7]), (b"", [])):
            created = client.enqueue("a", [1], keep_result=HOUR)
            [message] = client.dequeue()
            message.complete(result=given)
            assert client.result(created.id or 0) == expected


def test_cancelled_waits_leave_the_others_waiting_and_the_right_to_listen(
    dsn: str, queue: lonnymq.Queue
) -> None:
    async def main() -> None:
        async with lonnymq.AsyncQueue(dsn) as client:
            ids = [(await client.enqueue("a", n, keep_result=HOUR)).id or 0 for n in range(50)]
            waiting = [asyncio.create_task(client.result(id_, wait=60)) for id_ in ids]
            await asyncio.sleep(0.05)
            for task in waiting[::2]:
                task.cancel()
            for delay_s in (0.0, 0.001, 0.005, 0.02):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(client.result(ids[0], wait=60), delay_s)
            for _ in range(5):
                messages = await client.dequeue(limit=10)
                await client.complete(messages, results=[message.payload for message in messages])
            assert await asyncio.gather(*waiting[1::2]) == list(range(1, 50, 2))
            assert client._result_waiter._right_to_listen == [True]
            assert client._result_waiter._waiting == []

    asyncio.run(main())


def test_waiting_survives_a_lock_that_is_held_for_too_long(dsn: str, queue: lonnymq.Queue) -> None:
    created = queue.enqueue("a", 1, keep_result=HOUR)
    found: list[Any] = []
    impatient = make_conninfo(dsn, options="-c lock_timeout=50ms")
    with lonnymq.Queue(impatient) as client, psycopg.connect(dsn) as locker:
        right = client._result_waiter._right_to_listen
        waiting = threading.Thread(target=lambda: found.append(client.result(created.id or 0, wait=60)))
        waiting.start()
        eventually(lambda: not right)
        time.sleep(0.1)
        locker.execute("lock table lonnymq.result in access exclusive mode")
        eventually(lambda: right or not waiting.is_alive())
        locker.rollback()
        lease(queue).complete(result=7)
        waiting.join(60)
    assert found == [7]
