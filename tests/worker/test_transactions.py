"""Acknowledgements in the transaction of a handler's effects."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from lonnymq import AsyncMessage, CompleteOutcome, Handler, Message
from lonnymq.model.acknowledge import ACTIONS, Action, Effect
from tests.conftest import Connect
from tests.worker.workers import handler_without_delay, run_worker


@pytest.fixture
def effects(connect: Connect) -> Iterator[Any]:
    """A table of the user; call the fixture's value for its contents."""
    connection = connect()
    connection.execute("create table public.effect (message_id bigint, attempt integer)")

    def effects() -> list[tuple[int, int]]:
        return connection.execute("select * from public.effect order by 1, 2").fetchall()

    yield effects
    connection.execute("drop table public.effect")


INSERT = "insert into public.effect values (%s, %s)"


def test_an_effect_and_its_acknowledgement_commit_together(
    dsn: str, effects: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure before the commit rolls back both; a failure after it, neither."""

    async def on_loop(message: AsyncMessage) -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            await connection.execute(INSERT, [message.id, message.attempt])
            assert await message.complete(connection=connection) is CompleteOutcome.COMPLETED
            if message.payload == "before" and message.attempt == 1:
                raise RuntimeError("before the commit")
        if message.payload == "after":
            raise RuntimeError("after the commit")

    def in_thread(message: Message) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute(INSERT, [message.id, message.attempt])
            message.complete(connection=connection)
            if message.payload == "before" and message.attempt == 1:
                raise RuntimeError("before the commit")
        if message.payload == "after":
            raise RuntimeError("after the commit")

    with caplog.at_level(logging.INFO, "lonnymq.worker"):
        for handler in (on_loop, in_thread):
            result = run_worker(dsn, handler_without_delay(handler), "plain", "before", "after")
            assert result.counts == {"completed": 3, "deferred": 1}
            assert not result.dead_letters
    assert [attempt for _, attempt in effects()] == [1, 2, 1] * 2
    assert "lease_lost" not in caplog.text


def test_a_batch_and_its_effects_commit_together(dsn: str, effects: Any) -> None:
    async def on_loop(messages: list[AsyncMessage]) -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            for message in messages:
                await connection.execute(INSERT, [message.id, message.attempt])
            await messages[0].queue.complete(messages, connection=connection)
            if messages[0].attempt == 1:
                raise RuntimeError("before the commit")

    result = run_worker(dsn, handler_without_delay(on_loop, is_batch=True), *range(30), concurrency=1)
    assert result.counts == {"completed": 30, "deferred": 30}
    assert [attempt for _, attempt in effects()] == [2] * 30


def test_a_long_transaction_with_the_acknowledgement_keeps_its_lease(dsn: str, effects: Any) -> None:
    """Heartbeats find the lease locked and then gone, and must not stop the handler."""

    async def on_loop(message: AsyncMessage) -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            await message.complete(connection=connection)
            await asyncio.sleep(2.0)  # a heartbeat finds the lease locked
            await connection.execute(INSERT, [message.id, message.attempt])
        await asyncio.sleep(1.6)  # another finds it gone

    result = run_worker(dsn, handler_without_delay(on_loop), 1, 2, lease_s=4)
    assert result.counts == {"completed": 2}
    assert len(effects()) == 2


def test_a_message_acknowledged_by_its_handler_is_not_acknowledged_again(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def on_loop(message: AsyncMessage) -> None:
        match message.payload:
            case "complete":
                await message.complete()
            case "defer" if message.attempt == 1:
                await message.defer(delay=0.0)
            case "give back" if not given_back:
                given_back.append(message.id)
                await message.give_back()
            case "bury":
                await message.bury(error="by the handler")
                raise RuntimeError("too late to matter")

    given_back: list[int] = []
    with caplog.at_level(logging.DEBUG, "lonnymq.worker"):
        result = run_worker(dsn, Handler(call=on_loop), "complete", "defer", "give back", "bury")
    assert result.counts == {"completed": 3, "deferred": 1, "buried": 1}
    assert [letter.error for letter in result.dead_letters] == ["by the handler"]
    assert "lease_lost" not in caplog.text


@pytest.mark.parametrize("action", ACTIONS, ids=[action.name for action in ACTIONS])
def test_a_worker_counts_acknowledgements_by_its_handler(dsn: str, action: Action[Any]) -> None:
    async def on_loop(message: AsyncMessage) -> None:
        if not outcomes:
            outcomes.append(await getattr(message, action.name)())

    outcomes: list[str] = []
    result = run_worker(dsn, Handler(call=on_loop), 1)
    assert outcomes == [action.done]
    is_delivered_again = action.effect in (Effect.NEXT, Effect.RETRY, Effect.RETURN)
    # RunResult.counts leaves out messages that were given back: a slow process does that, too.
    expected = {outcome: 1 for outcome in (action.done, "completed") if outcome != "given_back"}
    assert result.counts == (expected if is_delivered_again else {action.done: 1})


def test_the_lease_is_kept_after_a_rolled_back_acknowledgement(dsn: str, effects: Any) -> None:
    """After a rollback the attempt has not ended, so heartbeats continue."""

    async def on_loop(message: AsyncMessage) -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            await message.complete(connection=connection)
            await connection.rollback()
            await asyncio.sleep(4)
            await connection.execute(INSERT, [message.id, message.attempt])
            assert await message.complete(connection=connection) is CompleteOutcome.COMPLETED

    assert run_worker(dsn, handler_without_delay(on_loop), "a", lease_s=3).counts == {"completed": 1}
    assert [attempt for _, attempt in effects()] == [1]


def test_a_lease_locked_by_a_transaction_does_not_delay_others(dsn: str) -> None:
    locked = asyncio.Event()

    async def on_loop(message: AsyncMessage) -> None:
        if message.payload == "locked" and not locked.is_set():
            async with await psycopg.AsyncConnection.connect(dsn) as connection:
                await message.heartbeat(connection=connection)
                locked.set()
                await asyncio.sleep(6)
        elif message.payload == "other":
            await asyncio.sleep(6)

    counts = run_worker(dsn, handler_without_delay(on_loop), "locked", "other", "other", lease_s=4).counts
    # The worker could not extend the locked lease, so it treated it as lost.
    assert counts == {"completed": 3, "lease_lost": 1}
