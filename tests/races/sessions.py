"""Short functions for the calls that these tests make most, in plain SQL on a session."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg

Session = psycopg.Connection[Any]
# Each session is a worker of its own.
SECRET = "(repeat('s', 32) || pg_backend_pid())"
WORKER = f"('w:' || left(encode(sha256(convert_to({SECRET}, 'UTF8')), 'hex'), 16))"
REPORT = (
    f"select (worker_report({WORKER}, {SECRET}, 'host', 1, '1', '{{t}}', 1, 0, false, 0, 0, '{{}}', '{{}}',"
    " '{}', false)).wait_ms"
)
LEAVE = f"select worker_leave({WORKER}, {SECRET}) is null"


class Leased(NamedTuple):
    """A leased message."""

    id: int
    channel: str
    token: int
    attempt: int
    leased_at: int


class Answer(NamedTuple):
    """The reply of message_dequeue: messages, or 'empty' or 'busy' and when to ask again."""

    outcome: str
    wait_ms: int | None
    leased: list[Leased]


def create(session: Session, channel: str, count: int = 1, *, at: int | None = None) -> list[int]:
    return create_in(session, [channel] * count, at=at)


def create_in(session: Session, channels: Sequence[str], *, at: int | None = None) -> list[int]:
    """Create one message per channel name, in one call."""
    rows = session.execute(
        "select message_id from message_create_many(%s::text[], %s::bytea[], p_dequeue_ats => %s::bigint[])",
        [list(channels), [b"x"] * len(channels), None if at is None else [at] * len(channels)],
    )
    return [row[0] for row in rows]


def ask(session: Session, limit: int = 1, *, lease_ms: int = 30_000, is_shared: bool = False) -> Answer:
    rows = session.execute(
        "select outcome, wait_ms, message_id, channel, token, attempt, leased_at"
        " from message_dequeue(%s, %s, p_worker => 'test', p_is_shared => %s)",
        [limit, lease_ms, is_shared],
    ).fetchall()
    leased = [Leased(*row[2:]) for row in rows if row[0] == "leased"]
    return Answer(rows[0][0], rows[0][1], leased)


def dequeue(session: Session, limit: int = 1, *, lease_ms: int = 30_000) -> list[Leased]:
    return ask(session, limit, lease_ms=lease_ms).leased


def end(session: Session, verb: str, leased: Sequence[Leased]) -> list[str]:
    """Call message_<verb> for all of them and return the outcomes."""
    rows = session.execute(
        f"select outcome from message_{verb}(%s::bigint[], %s::bigint[])",
        [[one.id for one in leased], [one.token for one in leased]],
    )
    return [row[0] for row in rows]


def complete(session: Session, leased: Sequence[Leased]) -> list[str]:
    return end(session, "complete", leased)


def drain(session: Session, limit: int = 100, *, within_s: float = 30) -> list[Leased]:
    """Process all due messages, until dequeue says that none is due for a while."""
    worked: list[Leased] = []
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        answer = ask(session, limit)
        if answer.leased:
            assert set(complete(session, answer.leased)) == {"completed"}
            worked += answer.leased
        elif answer.outcome == "empty" and answer.wait_ms is not None:
            if answer.wait_ms > 1000:
                return worked
            time.sleep(answer.wait_ms / 1000)
    raise AssertionError(f"the queue was not empty after {within_s} s and {len(worked)} messages")


def work_until(
    session: Session, is_done: Callable[[list[Leased]], bool], *, limit: int = 1, within_s: float = 10
) -> list[Leased]:
    """Dequeue and complete without pauses until `is_done(worked)`, for at most `within_s`."""
    worked: list[Leased] = []
    until = time.monotonic() + within_s
    while not is_done(worked) and time.monotonic() < until:
        leased = dequeue(session, limit)
        if leased:
            complete(session, leased)
            worked += leased
    return worked


def value(session: Session, query: str, *params: Any) -> Any:
    """Return the only value of the only row."""
    row = session.execute(query, params).fetchone()
    assert row is not None
    return row[0]


def check(session: Session) -> list[tuple[Any, ...]]:
    return session.execute("select * from lonnymq.queue_check()").fetchall()


@contextmanager
def open_transaction(session: Session) -> Iterator[Session]:
    """Keep a transaction open for the block, then commit it."""
    session.execute("begin")
    yield session
    session.execute("commit")


def wait_for(is_true: Callable[[], object], *, within_s: float = 10) -> None:
    until = time.monotonic() + within_s
    while not is_true():
        assert time.monotonic() < until, f"the condition was not true within {within_s} s"
        time.sleep(0.002)


def drop_partitions(session: Session) -> None:
    """Drop all partitions, as if none had been prepared."""
    session.execute(
        "do $$ declare v text; begin for v in select inhrelid::regclass::text from pg_inherits"
        " where inhparent = 'lonnymq.history'::regclass loop execute 'drop table ' || v; end loop; end $$"
    )


def deadlocks(session: Session) -> int:
    """Return the number of deadlocks in this database."""
    if session.info.server_version >= 150000:
        session.execute("select pg_stat_force_next_flush()")
    else:
        # Backends report deadlocks to the statistics collector within half a second.
        time.sleep(1)
    count: int = value(session, "select deadlocks from pg_stat_database where datname = current_database()")
    return count
