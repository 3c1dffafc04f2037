"""Read from the database what became of every message. History must be "full", to include contents."""

import re
from typing import Any

import psycopg

from tests.chaos.account import Attempt, Evidence, Observation, State

UID = re.compile(r'"uid":"([^"]+)"')
# The uid comes first in a payload, so the rest of a large one need not be read.
HEAD = "encode(substring({content} from 1 for 200), 'escape')"
ENDS = f"""
select {HEAD.format(content="h.content")}, h.outcome, h.channel, h.leased_at, h.ended_at
from (select * from lonnymq.history union all select * from lonnymq.history_overflow) h
order by h.id
"""
LIVE = f"""
select {HEAD.format(content="m.content")}, coalesce(m.channel_name, c.name), l.leased_at / 1000
from lonnymq.message m
left join lonnymq.lease l on l.message_id = m.id
left join lonnymq.channel c on c.id = m.channel_id
"""
DEAD = f"select {HEAD.format(content='d.content')}, coalesce(d.error, '') from lonnymq.dead d"


def gather(dsn: str) -> Evidence:
    """Read everything in one snapshot, then check the queue's invariants."""
    observations: list[Observation] = []
    attempts: list[Attempt] = []
    with connect(dsn) as connection:
        with connection.transaction():
            connection.execute("set transaction isolation level repeatable read")
            for head, outcome, channel, leased_at, ended_at in connection.execute(ENDS):
                uid = _uid(head)
                if leased_at is not None:
                    attempts.append(Attempt(uid, channel or "", leased_at, ended_at))
                if outcome in (State.COMPLETED, State.CANCELLED):
                    observations.append(Observation(uid, State(outcome)))
            for head, channel, leased_at in connection.execute(LIVE):
                uid = _uid(head)
                observations.append(Observation(uid, State.WAITING if leased_at is None else State.LEASED))
                if leased_at is not None:
                    attempts.append(Attempt(uid, channel or "", leased_at, None))
            for head, reason in connection.execute(DEAD):
                observations.append(Observation(_uid(head), State.BURIED, reason))
        problems = connection.execute("select problem, channel, detail from lonnymq.queue_check()").fetchall()
    return Evidence(observations, attempts, [": ".join(map(str, row)) for row in problems])


def connect(dsn: str, **options: Any) -> psycopg.Connection[Any]:
    """Connect for the harness, with settings that override hostile defaults of the database."""
    settings = (
        "-c jit=off -c statement_timeout=60s -c lock_timeout=0"
        " -c default_transaction_isolation=read\\ committed -c search_path=pg_catalog"
        " -c bytea_output=hex -c synchronous_commit=local"
    )
    options = {"autocommit": True, "application_name": "chaos", "connect_timeout": 5, **options}
    return psycopg.connect(dsn, options=settings, prepare_threshold=None, **options)


def _uid(head: str) -> str:
    found = UID.search(head)
    return found[1] if found else f"(no uid: {head[:40]})"
