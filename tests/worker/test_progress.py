"""How far an attempt is, as its handler reports: the next heartbeat takes it along."""

import asyncio
import threading
from typing import Any

import psycopg
import pytest

import lonnymq
from lonnymq import AsyncQueue, InvalidArgument, Message, Progress, Queue
from tests.conftest import Connect
from tests.worker.workers import running_worker, wait_until, wait_until_drained

HOSTILE = "'\"%\u202e\x1b[31m, NULL, {}"


def test_handlers_report_progress_with_heartbeats_and_without_calls(dsn: str) -> None:
    proceed = threading.Event()
    finished = asyncio.Event()

    class Both:
        """A handler in a thread, one on the loop, and one that reports nothing."""

        def route(self, message: lonnymq.AsyncMessage) -> lonnymq.Handler:
            return lonnymq.Handler(call=getattr(self, message.payload))

        def in_thread(self, message: Message) -> None:
            message.progress(0.25, "first")
            lonnymq.current_message().progress(1 / 3, HOSTILE)
            proceed.wait(60)
            message.progress(1)
            finished_in_thread.wait(60)

        async def on_loop(self, message: lonnymq.AsyncMessage) -> None:
            lonnymq.current_async_message().progress(0)
            nan, long = float("nan"), "x" * 201
            refused: list[tuple[Any, str]] = [
                (1.01, ""),
                (nan, ""),
                (True, ""),
                ("1", ""),
                (1, long),
                (1, "\0"),
            ]
            for wrong, note in refused:
                with pytest.raises(InvalidArgument):
                    message.progress(wrong, note)
            await finished.wait()

        async def silent(self, message: lonnymq.AsyncMessage) -> None:
            await finished.wait()

    finished_in_thread = threading.Event()

    async def scenario() -> None:
        async with AsyncQueue(dsn) as queue:
            ids = [(await queue.enqueue("a", name)).id or 0 for name in ("in_thread", "on_loop", "silent")]

            async def shown() -> list[Progress | None]:
                return [(await queue.status_of(id_)).progress for id_ in ids]

            async with running_worker(queue, Both(), lease_s=1.5, prefetch=0):

                async def first_are_shown() -> bool:
                    return await shown() == [Progress(0.3333, HOSTILE), Progress(0.0, ""), None]

                await wait_until(first_are_shown, "the first reports are shown")
                proceed.set()

                async def last_is_shown() -> bool:
                    return (await shown())[0] == Progress(1.0, "")

                await wait_until(last_is_shown, "a later report is shown")
                finished.set()
                finished_in_thread.set()
                await wait_until_drained(queue)
            assert await shown() == [None] * 3

    asyncio.run(scenario())


def test_a_program_reports_progress_with_its_own_heartbeats(queue: Queue, connect: Connect, dsn: str) -> None:
    for n in range(3):
        queue.enqueue("a", n)
    first, second, third = queue.dequeue(3)
    first.progress(0.00004)
    second.progress(0.5, "half")
    assert queue.status_of(second.id).progress is None
    assert queue.heartbeat([third, second, first]) == ["extended"] * 3
    found = [queue.status_of(one.id).progress for one in (first, second, third)]
    assert found == [Progress(0.0), Progress(0.5, "half"), None]
    # What the queue knows is not sent again.
    connect().execute("update lonnymq.lease set progress = -1, progress_note = ''")
    assert second.heartbeat() == "extended"
    assert queue.status_of(second.id).progress is None
    # A lost lease shows nothing, and the next attempt begins without progress.
    second.progress(0.75)
    connect().execute("update lonnymq.lease set unlock_at = 0 where message_id = %s", [second.id])
    again = {one.id: one for one in queue.dequeue(3)}[second.id]
    assert second.heartbeat() == "lease_lost"
    assert queue.status_of(again.id).progress is None
    again.progress(0.8, "again")
    with psycopg.connect(dsn) as connection:
        again.heartbeat(connection=connection)
        rows: Any = connection.execute(
            "select progress, progress_note from lonnymq.lease_status where message_id = %s", [again.id]
        )
        assert rows.fetchall() == [(pytest.approx(0.8), "again")]
        connection.rollback()
