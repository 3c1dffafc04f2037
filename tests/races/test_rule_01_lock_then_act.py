"""Rule 1: a turn is locked in one statement and acted upon in the next, so no wake is deleted in vain."""

import threading
import uuid
from collections.abc import Iterator

import pytest
from psycopg import sql

from tests.conftest import Connect
from tests.races.sessions import Leased, Session, complete, create, dequeue, drain, value, wait_for

pytestmark = pytest.mark.race

BARRIER = 4711


def test_a_turn_that_moved_between_snapshot_and_lock_forgets_no_message(
    connect: Connect, stopping: Session
) -> None:
    barrier, first, watcher = connect(), connect(), connect()
    create(watcher, "a", 2)
    with StoppedDequeue(stopping, barrier) as stopped:
        # Its snapshot is taken; now the turn moves on, and a message comes that only a later snapshot shows.
        taken = dequeue(first)
        create(watcher, "a")
    worked = taken + stopped.leased
    assert set(complete(watcher, worked)) == {"completed"}
    assert len(worked) + len(drain(watcher)) == 3


def test_a_capped_channel_gets_its_place_back(connect: Connect, stopping: Session) -> None:
    barrier, first, watcher = connect(), connect(), connect()
    watcher.execute("""select channel_set('a', '{"max_concurrency": 1}')""")
    create(watcher, "a", 4)
    worked: list[Leased] = []
    for _ in range(2):
        with StoppedDequeue(stopping, barrier) as stopped:
            taken = dequeue(first)
            complete(first, taken)
        assert value(watcher, "select count(*) from lease") == len(stopped.leased) <= 1
        complete(watcher, stopped.leased)
        worked += taken + stopped.leased
    assert len(worked) + len(drain(watcher)) == 4


class StoppedDequeue(threading.Thread):
    """A dequeue that stands between reading a turn and locking it, for as long as the block lasts."""

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


@pytest.fixture
def stopping(connect: Connect) -> Iterator[Session]:
    """A session whose dequeues stop at the barrier: row security runs code of ours when a turn is read."""
    owner = connect()
    role = sql.Identifier(f"lonnymq_test_{uuid.uuid4().hex[:8]}")
    create(owner, "a")
    drain(owner)
    owner.execute(PREPARE.format(role=role))
    session = connect()
    session.execute("set barrier.stops = on")
    yield session
    owner.execute(sql.SQL("reassign owned by {role} to current_user; drop owned by {role}").format(role=role))
    owner.execute(sql.SQL("drop role {role}").format(role=role))


# As security definer of a plain role, dequeue is subject to row security.
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
    alter table turn enable row level security;
    create policy stop on turn using (barrier());
    alter function message_dequeue owner to {role};
""")
