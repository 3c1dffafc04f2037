"""What the hints of a session do not show reaches it soon, also while it always has something else to do."""

import time

import pytest

from tests.conftest import Connect
from tests.races.sessions import Session, complete, create, create_in, dequeue

pytestmark = pytest.mark.race

LEASE_MS = 100


def busy(connect: Connect, channels: int) -> Session:
    """A session that has worked some messages, of many more."""
    session = connect()
    create_in(session, [f"busy {n}" for n in range(channels)] * (20_000 // channels))
    for _ in range(50):
        complete(session, dequeue(session))
    return session


def worked_until(session: Session, message_id: int) -> float:
    """For how long the session had other messages to work first."""
    began = time.monotonic()
    while True:
        leased = dequeue(session)
        assert leased
        complete(session, leased)
        elapsed_s = time.monotonic() - began
        if message_id in {one.id for one in leased} or elapsed_s > 8:
            return elapsed_s


@pytest.mark.parametrize("channels", [1, 30])
def test_a_busy_session_gets_an_expired_message_soon(connect: Connect, channels: int) -> None:
    worker, lost = busy(connect, channels), connect()
    (message_id,) = create(lost, "lost")
    while message_id not in {one.id for one in dequeue(lost, lease_ms=LEASE_MS)}:
        pass
    assert worked_until(worker, message_id) < 3


@pytest.mark.parametrize("channels", [1, 30])
def test_a_busy_session_gets_a_message_soon_whose_dequeue_was_rolled_back(
    connect: Connect, channels: int
) -> None:
    worker, other = busy(connect, channels), connect()
    (message_id,) = create(other, "rolled back")
    other.execute("begin")
    while message_id not in {one.id for one in dequeue(other)}:
        pass
    for _ in range(50):
        complete(worker, dequeue(worker))
    other.execute("rollback")
    assert worked_until(worker, message_id) < 3
