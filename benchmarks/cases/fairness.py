"""How long ten tenants with 10 messages each wait behind a tenant with 10,000 messages."""

import time
from functools import partial

from benchmarks import parallel
from benchmarks.contenders import Bare, LonnyMQ
from benchmarks.contenders.contender import Contender, Session
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import Tally, rate
from benchmarks.parallel import StartBarrier

TITLE = "messages handled until all ten small tenants are done, batch {}"
RATE_TITLE = "drain of all tenants, batch 100, one connection"
NAME = "fairness"
BATCHES = (1, 10, 50, 100, 500)
BIG, SMALL = 10_000, 10
SMALL_CHANNELS = [f"small-{number}" for number in range(10)]


def run(harness: Harness) -> list[Row]:
    rows = [count_handled(harness, batch) for batch in BATCHES]
    contenders: list[Contender] = [LonnyMQ(), Bare()]
    rates = harness.measure_in_turns(
        NAME, {contender.name: partial(measure, harness, contender) for contender in contenders}
    )
    return [
        *rows,
        Row(NAME, RATE_TITLE, "bare", "messages/s", rates["lonnymq"], rates["bare"], at_least=0.6),
    ]


def count_handled(harness: Harness, batch: int) -> Row:
    contender = LonnyMQ()
    with harness.install(contender) as dsn:
        session = contender.session(dsn)
        enqueue(session)
        handled = handled_until_done(session, batch)
        session.close()
    note = f"batch {batch}; 110 is ideal"
    return Row(NAME, TITLE.format(batch), None, "messages", handled, at_most=115, note=note)


def enqueue(session: Session) -> None:
    for _ in range(0, BIG, 1_000):
        session.create_many(["big"] * 1_000)
    for channel in SMALL_CHANNELS:
        session.create_many([channel] * SMALL)


def handled_until_done(session: Session, batch: int) -> int:
    handled = 0
    waiting = SMALL * len(SMALL_CHANNELS)
    while leases := session.dequeue(batch):
        for lease in leases:
            handled += 1
            waiting -= lease[2] != "big"
            if waiting == 0:
                return handled
        session.complete(leases)
    raise AssertionError(f"the queue was empty while {waiting} messages were still waiting")


def measure(harness: Harness, contender: Contender) -> float:
    with harness.install(contender) as dsn:
        return rate(parallel.run([partial(repeat, contender, dsn, harness.effort.window_s)]))


def repeat(contender: Contender, dsn: str, window_s: float, start: StartBarrier) -> Tally:
    """Enqueue and drain all messages repeatedly; only draining is timed."""
    session = contender.session(dsn)
    enqueue(session)
    drain_all(session)
    start()
    took_s, messages = 0.0, 0
    while took_s < window_s:
        enqueue(session)
        began_at = time.monotonic()
        messages += drain_all(session)
        took_s += time.monotonic() - began_at
    session.close()
    return Tally(messages, 0.0, took_s)


def drain_all(session: Session) -> int:
    messages, total = 0, BIG + SMALL * len(SMALL_CHANNELS)
    while messages < total:
        leases = session.dequeue(100)
        session.complete(leases)
        messages += len(leases)
    return messages


CASE = Case(NAME, TITLE.format("1 to 500"), run)
