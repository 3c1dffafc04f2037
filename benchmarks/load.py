"""The loads that cases consist of: what one worker or producer process does."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice

from benchmarks import parallel
from benchmarks.contenders.contender import Contender, Session
from benchmarks.parallel import StartBarrier

WARM_UP_CALLS = 20
# Without a message for this long, the queue is empty rather than locked by others.
EMPTY_AFTER_S = 0.5
# How often a cycle retries a dequeue that finds its messages locked or taken by others.
DEQUEUE_TRIES = 50


@dataclass(frozen=True)
class Tally:
    """What one process did between the common start and its last message."""

    messages: int
    began_at: float
    ended_at: float
    empty_calls: int = 0


def rate(tallies: Sequence[Tally]) -> float:
    """Messages per second of all processes together."""
    messages = sum(tally.messages for tally in tallies)
    if messages == 0:
        return 0.0
    ended_at = max(tally.ended_at for tally in tallies)
    return messages / (ended_at - min(tally.began_at for tally in tallies))


def measure_drain(contender: Contender, dsn: str, workers: int, batch: int, window_s: float) -> float:
    """Return the rate at which this many workers dequeue and complete waiting messages."""
    return rate(parallel.run([partial(drain, contender, dsn, batch, window_s)] * workers))


def drain(contender: Contender, dsn: str, batch: int, window_s: float, start: StartBarrier) -> Tally:
    session = contender.session(dsn)
    for _ in range(WARM_UP_CALLS):
        leases = session.dequeue(batch)
        if leases:
            session.complete(leases)
    start()
    began_at = ended_at = time.monotonic()
    messages = empty_calls = 0
    while (now := time.monotonic()) < began_at + window_s and now < ended_at + EMPTY_AFTER_S:
        leases = session.dequeue(batch)
        if leases:
            session.complete(leases)
            messages += len(leases)
            ended_at = time.monotonic()
        else:
            empty_calls += 1
            time.sleep(random.random() * 0.0005)
    session.close()
    return Tally(messages, began_at, ended_at, empty_calls)


def measure_cycles(
    contender: Contender,
    dsn: str,
    channels: Sequence[str],
    batch: int,
    window_s: float,
    before: int = 0,
    workers: int = 1,
) -> float:
    """Return the rate at which connections create, dequeue and complete, after `before` messages each."""
    job = partial(cycle_messages, contender, dsn, list(channels), batch, window_s, before)
    return rate(parallel.run([job] * workers))


def cycle_messages(
    contender: Contender,
    dsn: str,
    channels: list[str],
    batch: int,
    window_s: float,
    before: int,
    start: StartBarrier,
) -> Tally:
    session = contender.session(dsn)
    names = cycle(channels)
    for _ in range(WARM_UP_CALLS):
        _one_cycle(session, list(islice(names, batch)), batch)
    start()
    done = 0
    while done < before:
        done += _one_cycle(session, list(islice(names, batch)), batch)
    began_at = ended_at = time.monotonic()
    messages = 0
    while ended_at < began_at + window_s:
        messages += _one_cycle(session, list(islice(names, batch)), batch)
        ended_at = time.monotonic()
    session.close()
    return Tally(messages, began_at, ended_at)


def _one_cycle(session: Session, channels: list[str], batch: int) -> int:
    if batch == 1:
        session.create(channels[0])
    else:
        session.create_many(channels)
    for _ in range(DEQUEUE_TRIES):
        leases = session.dequeue(batch)
        if leases:
            session.complete(leases)
            return len(leases)
        time.sleep(random.random() * 0.0005)
    return 0


def measure_creates(contender: Contender, dsn: str, producers: int, channel: str, window_s: float) -> float:
    """Return the rate at which this many producers create messages one by one."""
    return rate(parallel.run([partial(create, contender, dsn, channel, window_s)] * producers))


def create(contender: Contender, dsn: str, channel: str, window_s: float, start: StartBarrier) -> Tally:
    session = contender.session(dsn)
    for _ in range(WARM_UP_CALLS):
        session.create(channel)
    start()
    began_at = ended_at = time.monotonic()
    messages = 0
    while ended_at < began_at + window_s:
        session.create(channel)
        messages += 1
        ended_at = time.monotonic()
    session.close()
    return Tally(messages, began_at, ended_at)


def channel_names(count: int) -> list[str]:
    return [f"tenant-{number}" for number in range(count)]
