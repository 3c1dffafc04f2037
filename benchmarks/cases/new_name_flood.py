"""How long tenants with messages wait between two turns while new channel names arrive with every dequeue."""

from collections.abc import Callable
from functools import partial
from typing import Any

import psycopg

from benchmarks.contenders import LonnyMQ
from benchmarks.contenders.contender import LEASE_MS, PAYLOAD
from benchmarks.harness import Case, Harness, Row
from benchmarks.load import channel_names

TITLE = "messages between two turns of a tenant, 100 tenants, 20 new names per dequeue of 20, {}"
NAME = "new-name-flood"
TENANTS, NEW, BATCH = 100, 20, 20
# The times of the new channels' messages: null is now; 0 is before all others, a priority.
TIMES: dict[str, int | None] = {"without priority": None, "with priority": 0}

Connection = psycopg.Connection[Any]

CREATE = "select count(*) from lonnymq.message_create_many(%s, %s, p_dequeue_ats => %s::bigint[])"
WORK = """
    with leased as materialized (
      select message_id, token, channel from lonnymq.message_dequeue(%s, %s, null, false)
      where outcome = 'leased'
    )
    select array(select channel from leased), (
      select count(*) from lonnymq.message_complete(
        array(select message_id from leased), array(select token from leased))
    )"""


def run(harness: Harness) -> list[Row]:
    return [measure(harness, kind, at) for kind, at in TIMES.items()]


def measure(harness: Harness, kind: str, at: int | None) -> Row:
    contender = LonnyMQ()
    tenants = channel_names(TENANTS)
    with harness.install(contender) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        contender.fill(dsn, tenants, harness.effort.backlog)
        work(connection, 60)  # now no tenant is new
        # Without a flood: how many messages one rotation is.
        rotation = longest_wait(work(connection, 60), tenants)
        waited = longest_wait(work(connection, 400, partial(flood, connection, at)), tenants)
    title = TITLE.format(kind)
    return Row(NAME, title, "one rotation", "messages", waited, rotation, at_most=2.0)


def work(connection: Connection, calls: int, before: Callable[[int], None] = lambda call: None) -> list[str]:
    """Return the channels of all messages, in the order in which they were handed out."""
    served: list[str] = []
    for call in range(calls):
        before(call)
        row = connection.execute(WORK, (BATCH, LEASE_MS)).fetchone()
        assert row is not None
        served += row[0]
    return served


def flood(connection: Connection, at: int | None, call: int) -> None:
    names = [f"new-{call}-{number}" for number in range(NEW)]
    connection.execute(CREATE, (names, [PAYLOAD] * NEW, [at] * NEW))


def longest_wait(served: list[str], tenants: list[str]) -> float:
    """Return the most messages from one of a tenant to its next one, or from the first or to the last."""
    last_at = dict.fromkeys(tenants, 0)
    longest = 0
    for at, channel in enumerate(served):
        if channel in last_at:
            longest = max(longest, at - last_at[channel])
            last_at[channel] = at
    return max(longest, *(len(served) - at for at in last_at.values()))


CASE = Case(NAME, TITLE.format("with and without priority"), run)
