"""A tenant moves to another server while everybody works on: nothing is lost, twice, or out of order."""

import dataclasses
import threading
import time
from datetime import UTC, datetime, timedelta

import lonnymq
from lonnymq import ChannelDeleteOutcome, CreateOutcome, NewMessage, Queue

MESSAGES = 400
TENANT = "acme"
# After a change of place nobody may still be about to use the old one. Here a lock sees to that; a fleet
# waits as long as its producers may remember a place.
placing = threading.Lock()


def move(channel: str, old: Queue, new: Queue, places: dict[str, Queue]) -> None:
    """Place the channel elsewhere; returns when nothing of it is left behind."""
    status = old.channel(channel).status()
    policy = status.policy if status else lonnymq.ChannelPolicy()
    # It collects there and waits, so that order, cap and rate hold across the move.
    new.channel(channel).set_policy(dataclasses.replace(policy, is_paused=True))
    with placing:
        places[channel] = new
    # A channel is deleted only if it has no message, waiting or leased: that is the proof.
    while old.channel(channel).delete() in (ChannelDeleteOutcome.NOT_EMPTY, ChannelDeleteOutcome.BUSY):
        if not carry_scheduled(channel, old, new):
            time.sleep(0.02)
    new.channel(channel).resume()


def carry_scheduled(channel: str, old: Queue, new: Queue) -> int:
    """Take along what no worker will lease within the next minute; copied first, cancelled after."""
    soon = int((datetime.now(UTC) + timedelta(minutes=1)).timestamp() * 1000)
    later = [m for m in old.peek(channel, limit=500, preview_bytes=None) if m.dequeue_at > soon]
    answers = new.enqueue_many(
        NewMessage(
            channel=channel,
            payload=m.content,
            at=datetime.fromtimestamp(m.dequeue_at / 1000, UTC),
            # If this program dies between the two steps and is run again, the second copy is a duplicate.
            key=m.key or f"moved {m.id}",
            max_attempts=m.max_attempts,
        )
        for m in later
    )
    there = (CreateOutcome.CREATED, CreateOutcome.DUPLICATE)
    old.cancel([m.id for m, answer in zip(later, answers, strict=True) if answer.outcome in there])
    return len(later)


def produce(places: dict[str, Queue], half_way: threading.Event) -> None:
    for number in range(MESSAGES):
        with placing:
            places[TENANT].enqueue(TENANT, number)
        if number == MESSAGES // 2:
            half_way.set()


def work(queue: Queue, worked: list[tuple[str, int]], is_over: threading.Event) -> None:
    """One worker per server, as before; it need not know of any move."""
    while not is_over.is_set():
        for message in queue.dequeue(limit=10, wait=0.2):
            worked.append((queue.schema, message.payload))
            message.complete()


def main() -> None:
    # Two schemas here; two servers would be two addresses.
    with (
        lonnymq.embedded() as server,
        Queue(server.dsn, schema="first") as first,
        Queue(server.dsn, schema="second") as second,
    ):
        first.install()
        second.install()
        places = {TENANT: first}
        first.channel(TENANT).set(max_concurrency=1)
        first.enqueue(TENANT, "next year", delay=timedelta(days=365))

        worked: list[tuple[str, int]] = []
        half_way, is_over = threading.Event(), threading.Event()
        threads = [
            threading.Thread(target=produce, args=(places, half_way)),
            *(threading.Thread(target=work, args=(queue, worked, is_over)) for queue in (first, second)),
        ]
        for thread in threads:
            thread.start()
        half_way.wait(60)
        move(TENANT, first, second, places)
        threads[0].join()
        deadline = time.monotonic() + 60
        while len(worked) < MESSAGES and time.monotonic() < deadline:
            time.sleep(0.02)
        is_over.set()
        for thread in threads:
            thread.join()

        here = sum(schema == "first" for schema, _ in worked)
        print(f"{here} messages were worked where they were, {len(worked) - here} after the move")
        assert [number for _, number in worked] == list(range(MESSAGES))
        assert first.channel(TENANT).status() is None
        moved = second.channel(TENANT).status()
        assert moved is not None
        assert moved.policy.max_concurrency == 1
        [scheduled] = second.peek(TENANT)
        print(f"and one waits until {datetime.fromtimestamp(scheduled.dequeue_at / 1000, UTC):%Y-%m-%d}")


if __name__ == "__main__":
    main()
