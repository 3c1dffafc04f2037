"""Rule 1: a turn is locked in one statement and written in the next, so no wake is lost."""

from collections.abc import Iterator

import pytest

from tests.conftest import Connect
from tests.races.barrier import StoppedDequeue, session_that_stops_at
from tests.races.sessions import Leased, Session, complete, create, dequeue, drain, value

pytestmark = pytest.mark.race


def test_a_turn_that_changes_between_snapshot_and_lock_loses_no_message(
    connect: Connect, stopping: Session
) -> None:
    barrier, first, watcher = connect(), connect(), connect()
    create(watcher, "a", 2)
    with StoppedDequeue(stopping, barrier) as stopped:
        # It has its snapshot. Now the turn changes, and a message arrives that only a later snapshot shows.
        taken = dequeue(first)
        create(watcher, "a")
    worked = taken + stopped.leased
    assert set(complete(watcher, worked)) == {"completed"}
    assert len(worked) + len(drain(watcher)) == 3


def test_a_completion_during_a_stopped_dequeue_frees_the_cap(connect: Connect, stopping: Session) -> None:
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


@pytest.fixture
def stopping(connect: Connect) -> Iterator[Session]:
    """A session whose dequeues stop between reading a turn and locking it."""
    session = connect()
    create(session, "a")
    drain(session)
    with session_that_stops_at(connect, "turn") as session:
        yield session
