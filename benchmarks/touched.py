"""The pages that a dequeue of ours touches: unlike a rate, the same whatever else the machine does."""

import statistics
from typing import Any

import psycopg

from benchmarks.bench import Row
from benchmarks.contenders import Ours
from benchmarks.designs.plan import pages_of

UNIT = "pages"
# Calls before plans are cached, and calls of which the figure is the median.
WARM_UP, CALLS = 10, 20
# Messages that wait meanwhile, if the caller has none.
WAITING = 10_000
DEQUEUE = b"select from lonnymq.message_dequeue(100, 600000, null, false)"
COMPLETE = """
    select count(*) filter (where c.outcome = 'completed')
    from (select array_agg(l.message_id) as ids, array_agg(l.token) as tokens from lonnymq.lease l) held,
      lonnymq.message_complete(held.ids, held.tokens) c"""


def by_dequeue(dsn: str) -> float:
    """Return how many pages a dequeue of 100 messages touches; it takes 3,000 of those that wait."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        return statistics.median([_pages(connection) for _ in range(WARM_UP + CALLS)][WARM_UP:])


def with_waiting(contender: Ours, dsn: str, channels: list[str]) -> float:
    """Return the same, with messages of its own that wait in these channels."""
    session = contender.session(dsn)
    session.create_many(channels * (WAITING // len(channels)))
    session.close()
    return by_dequeue(dsn)


def row(case: str, what: str, against: str, value: float, reference: float) -> Row:
    """Return a figure that has no bound of its own: it explains the rate before it."""
    return Row(case, f"pages touched by a dequeue of 100: {what}", against, UNIT, value, reference)


def _pages(connection: psycopg.Connection[Any]) -> int:
    found = connection.execute(b"explain (analyze, buffers, timing off, format json) " + DEQUEUE).fetchone()
    assert found is not None
    assert connection.execute(COMPLETE).fetchone() == (100,)
    return pages_of(found[0][0]["Plan"])
