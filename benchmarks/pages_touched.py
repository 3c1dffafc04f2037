"""Counts the pages that a dequeue touches; unlike a rate, the count does not depend on the load."""

import statistics
from typing import Any

import psycopg

from benchmarks.contenders import LonnyMQ
from benchmarks.designs.pick_plan import pages_of
from benchmarks.harness import Row

UNIT = "pages"
# Calls until plans are cached, and measured calls; their median is the figure.
WARM_UP_CALLS, MEASURED_CALLS = 10, 20
# Messages to create if the caller has created none.
BACKLOG = 10_000
DEQUEUE = b"select from lonnymq.message_dequeue(100, 600000, null, false)"
COMPLETE = """
    select count(*) filter (where c.outcome = 'completed')
    from (select array_agg(l.message_id) as ids, array_agg(l.token) as tokens from lonnymq.lease l) held,
      lonnymq.message_complete(held.ids, held.tokens) c"""


def per_dequeue(dsn: str) -> float:
    """Return how many pages a dequeue of 100 messages touches; consumes 3,000 waiting messages."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        return statistics.median(
            [_pages(connection) for _ in range(WARM_UP_CALLS + MEASURED_CALLS)][WARM_UP_CALLS:]
        )


def per_dequeue_with_backlog(contender: LonnyMQ, dsn: str, channels: list[str]) -> float:
    """Return the same, after creating messages in these channels."""
    session = contender.session(dsn)
    session.create_many(channels * (BACKLOG // len(channels)))
    session.close()
    return per_dequeue(dsn)


def row(case: str, subject: str, against: str, value: float, reference: float) -> Row:
    """Return a row without a bound: it explains the rate in the row before it."""
    return Row(case, f"pages touched by a dequeue of 100: {subject}", against, UNIT, value, reference)


def _pages(connection: psycopg.Connection[Any]) -> int:
    found = connection.execute(b"explain (analyze, buffers, timing off, format json) " + DEQUEUE).fetchone()
    assert found is not None
    assert connection.execute(COMPLETE).fetchone() == (100,)
    return pages_of(found[0][0]["Plan"])
