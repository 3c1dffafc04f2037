"""Move a tenant to another server under load: no message is lost, duplicated or reordered."""

import dataclasses
import threading
import time
from datetime import UTC, datetime, timedelta

import lonnymq
from lonnymq import ChannelDeleteOutcome, CreateOutcome, NewMessage, Queue

MESSAGES = 400
TENANT = "acme"
# After the route has changed, no producer may still use the old one. Here a lock ensures that. With producers
# on several machines, move() would wait for as long as they cache routes.
routing_lock = threading.Lock()


def move(channel: str, old: Queue, new: Queue, routes: dict[str, Queue]) -> None:
    """Move a channel to another queue; return when nothing of it is left in the old one."""
    status = old.channel(channel).status()
    policy = status.policy if status else lonnymq.ChannelPolicy()
    # New messages wait there until the old queue is empty, so order, cap and rate limit hold during the move.
    new.channel(channel).set_policy(dataclasses.replace(policy, is_paused=True))
    with routing_lock:
        routes[channel] = new
    # delete() succeeds only if no message is waiting or leased, which proves that nothing is left.
    while old.channel(channel).delete() in (ChannelDeleteOutcome.NOT_EMPTY, ChannelDeleteOutcome.BUSY):
        if not move_scheduled(channel, old, new):
            time.sleep(0.02)
    new.channel(channel).resume()


def move_scheduled(channel: str, old: Queue, new: Queue) -> int:
    """Move messages that are not due within a minute: copy them first, then cancel the originals."""
    soon = int((datetime.now(UTC) + timedelta(minutes=1)).timestamp() * 1000)
    later = [m for m in old.peek(channel, limit=500, preview_bytes=None) if m.dequeue_at > soon]
    answers = new.enqueue_many(
        NewMessage(
            channel=channel,
            payload=m.content,
            at=datetime.fromtimestamp(m.dequeue_at / 1000, UTC),
            # If this program dies between the two steps, the key makes a second copy a duplicate.
            key=m.key or f"moved {m.id}",
            max_attempts=m.max_attempts,
        )
        for m in later
    )
    copied = (CreateOutcome.CREATED, CreateOutcome.DUPLICATE)
    old.cancel([m.id for m, answer in zip(later, answers, strict=True) if answer.outcome in copied])
    return len(later)


def produce(routes: dict[str, Queue], half_way: threading.Event) -> None:
    for number in range(MESSAGES):
        with routing_lock:
            routes[TENANT].enqueue(TENANT, number)
        if number == MESSAGES // 2:
            half_way.set()


def run_worker(queue: Queue, handled: list[tuple[str, int]], is_over: threading.Event) -> None:
    """Run one worker per server, which need not know of the move."""
    while not is_over.is_set():
        for message in queue.dequeue(limit=10, wait=0.2):
            handled.append((queue.schema, message.payload))
            message.complete()


def main() -> None:
    # Two schemas stand for two servers, which would have two DSNs.
    with (
        lonnymq.embedded() as server,
        Queue(server.dsn, schema="first") as first,
        Queue(server.dsn, schema="second") as second,
    ):
        first.install()
        second.install()
        routes = {TENANT: first}
        first.channel(TENANT).set(max_concurrency=1)
        first.enqueue(TENANT, "next year", delay=timedelta(days=365))

        handled: list[tuple[str, int]] = []
        half_way, is_over = threading.Event(), threading.Event()
        threads = [
            threading.Thread(target=produce, args=(routes, half_way)),
            *(
                threading.Thread(target=run_worker, args=(queue, handled, is_over))
                for queue in (first, second)
            ),
        ]
        for thread in threads:
            thread.start()
        half_way.wait(60)
        move(TENANT, first, second, routes)
        threads[0].join()
        deadline = time.monotonic() + 60
        while len(handled) < MESSAGES and time.monotonic() < deadline:
            time.sleep(0.02)
        is_over.set()
        for thread in threads:
            thread.join()

        in_old = sum(schema == "first" for schema, _ in handled)
        print(f"{in_old} messages were handled before the move, {len(handled) - in_old} after it")
        assert [number for _, number in handled] == list(range(MESSAGES))
        assert first.channel(TENANT).status() is None
        moved = second.channel(TENANT).status()
        assert moved is not None
        assert moved.policy.max_concurrency == 1
        [scheduled] = second.peek(TENANT)
        due = datetime.fromtimestamp(scheduled.dequeue_at / 1000, UTC)
        print(f"one scheduled message waits until {due:%Y-%m-%d}")


if __name__ == "__main__":
    main()
