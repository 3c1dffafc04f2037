"""Stops a dequeue in the middle of a statement, by row security, which calls a function for each row read."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import sql

from tests.conftest import Connect
from tests.races.sessions import Leased, Session, dequeue, value, wait_for

BARRIER = 4711

# Row security applies to dequeue because it is security definer and owned by an ordinary role here.
PREPARE = sql.SQL("""
    create role {role};
    grant all on schema lonnymq to {role};
    grant all on all tables in schema lonnymq to {role};
    grant all on all sequences in schema lonnymq to {role};
    grant all on all functions in schema lonnymq to {role};
    create function barrier() returns boolean language plpgsql as $$
      begin
        if current_setting('barrier.stops', true) = 'on' then
          perform pg_advisory_xact_lock_shared(4711);
        end if;
        return true;
      end
    $$;
    alter table {table} enable row level security;
    create policy stop on {table} using (barrier());
    alter function message_dequeue owner to {role};
""")
CLEAN_UP = sql.SQL("reassign owned by {role} to current_user; drop owned by {role}; drop role {role}")


@contextmanager
def session_that_stops_at(connect: Connect, table: str) -> Iterator[Session]:
    """A session whose dequeues stop when they read a row of that table, while the barrier is closed."""
    owner = connect()
    role = sql.Identifier(f"lonnymq_test_{uuid.uuid4().hex[:8]}")
    owner.execute(PREPARE.format(role=role, table=sql.Identifier(table)))
    session = connect(options="-c search_path=lonnymq -c statement_timeout=60s")
    session.execute("set barrier.stops = on")
    yield session
    owner.execute(CLEAN_UP.format(role=role))


class StoppedDequeue(threading.Thread):
    """A dequeue that is stopped in the middle of its statement for the duration of the block."""

    def __init__(self, session: Session, barrier: Session) -> None:
        super().__init__()
        self.session, self.barrier = session, barrier
        self.leased: list[Leased] = []

    def run(self) -> None:
        self.leased = dequeue(self.session)

    def __enter__(self) -> "StoppedDequeue":
        self.barrier.execute("select pg_advisory_lock(%s)", [BARRIER])
        self.start()
        waiting = "select count(*) from pg_locks where locktype = 'advisory' and objid = %s and not granted"
        wait_for(lambda: value(self.barrier, waiting, BARRIER) == 1)
        return self

    def __exit__(self, *_: object) -> None:
        self.barrier.execute("select pg_advisory_unlock(%s)", [BARRIER])
        self.join()
