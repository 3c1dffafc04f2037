"""A tenant with 10,000 messages waiting, then ten with 10 each: how long do the small ones wait?"""

import time
from functools import partial

from benchmarks import fleet
from benchmarks.bench import Bench, Case, Row
from benchmarks.contenders import Bare, Ours
from benchmarks.contenders.contender import Contender, Session
from benchmarks.fleet import Gate
from benchmarks.load import Tally, rate

TITLE = "messages handled until the slowest of ten small tenants is done, batch {}"
RATE_TITLE = "the rate at which all of them are handled, batch 100, one connection"
NAME = "fairness"
BATCHES = (1, 10, 50, 100, 500)
BIG, SMALL = 10_000, 10
SMALL_CHANNELS = [f"small-{number}" for number in range(10)]


def run(bench: Bench) -> list[Row]:
    rows = [counted(bench, batch) for batch in BATCHES]
    contenders: list[Contender] = [Ours(), Bare()]
    rates = bench.interleaved(
        NAME, {contender.name: partial(measure, bench, contender) for contender in contenders}
    )
    return [
        *rows,
        Row(NAME, RATE_TITLE, "bare", "messages/s", rates["lonnymq"], rates["bare"], at_least=0.6),
    ]


def counted(bench: Bench, batch: int) -> Row:
    contender = Ours()
    with bench.installed(contender) as dsn:
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


def measure(bench: Bench, contender: Contender) -> float:
    with bench.installed(contender) as dsn:
        return rate(fleet.run([partial(repeat, contender, dsn, bench.effort.window_s)]))


def repeat(contender: Contender, dsn: str, window_s: float, gate: Gate) -> Tally:
    """Enqueues all and drains all, again and again; only draining counts as time."""
    session = contender.session(dsn)
    enqueue(session)
    drain_all(session)
    gate()
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
