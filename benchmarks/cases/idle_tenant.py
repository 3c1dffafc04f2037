"""How many messages of busy tenants are handed out before the single message of a tenant that was idle."""

import statistics

from benchmarks.contenders import LonnyMQ
from benchmarks.contenders.contender import Session
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import channel_names

TITLE = "messages of others before an idle tenant's single message, 1,000 busy tenants, batch 100: {}"
NAME = "idle-tenant"
BUSY, BATCH, VISITS = 1_000, 100, 50
IDLE = "idle"
# Replies between two visits, so that the idle tenant returns at different places of the rotation.
PAUSES = (1, 7, 3)


def run(harness: Harness) -> list[Row]:
    contender = LonnyMQ()
    busy = channel_names(BUSY)
    with harness.install(contender) as dsn:
        contender.fill(dsn, busy, harness.effort.backlog)
        session = contender.session(dsn)
        session.create(IDLE)
        serve_everybody(session, {IDLE, *busy})
        ahead = [visit(session, PAUSES[number % len(PAUSES)]) for number in range(VISITS)]
        session.close()
    return [
        Row(NAME, TITLE.format(what), None, "messages", value, at_most=200, note=f"of {VISITS} messages")
        for what, value in (("median", statistics.median(ahead)), ("worst", max(ahead)))
    ]


def serve_everybody(session: Session, channels: set[str]) -> None:
    """Dequeue until none of these channels is new."""
    while channels and (leases := session.dequeue(BATCH)):
        session.complete(leases)
        channels = channels - {lease[2] for lease in leases}


def visit(session: Session, pause: int) -> int:
    """Let the tenant be idle for some replies; then create its message, and count what comes before it."""
    for _ in range(pause):
        session.complete(session.dequeue(BATCH))
    session.create(IDLE)
    ahead = 0
    while leases := session.dequeue(BATCH):
        session.complete(leases)
        channels = [lease[2] for lease in leases]
        if IDLE in channels:
            return ahead + channels.index(IDLE)
        ahead += len(channels)
    raise AssertionError("the queue was empty before the idle tenant's message was handed out")


CASE = Case(NAME, TITLE.format("median and worst"), run)
