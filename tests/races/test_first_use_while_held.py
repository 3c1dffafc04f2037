"""A dequeue of new channels that is left open hides only the channels whose messages it leased."""

import time

import pytest

from tests.conftest import Connect
from tests.races.sessions import Leased, Session, ask, create_in, dequeue

pytestmark = pytest.mark.race


@pytest.mark.parametrize(
    "limit",
    [10, 100, 500],
)
@pytest.mark.parametrize("lane", [0, 1], ids=["creates", "bulk load"])
def test_an_open_dequeue_of_new_channels_leaves_the_others_to_workers(
    connect: Connect, lane: int, limit: int
) -> None:
    producer, holder, worker = connect(), connect(), connect()
    create_in(producer, [f"channel {n}" for n in range(300)])
    producer.execute("update wake set lane = %s", [lane])
    holder.execute("begin")
    held = dequeue(holder, 500)
    assert held
    # A new channel may share a creation_lock with one that is held.
    found = dequeue_for(worker, limit, 300 - len(held) - 20, seconds=2)
    assert len(found) >= 300 - len(held) - 20
    assert not {one.channel for one in found} & {one.channel for one in held}
    holder.execute("rollback")
    assert len(found) + len(dequeue_for(worker, limit, 300 - len(found), seconds=8)) == 300


def dequeue_for(session: Session, limit: int, count: int, *, seconds: float) -> list[Leased]:
    """Lease until there are `count` messages or the time is over."""
    found: list[Leased] = []
    until = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < until:
        answer = ask(session, limit)
        found += answer.leased
        if not answer.leased:
            time.sleep(0.005)
    return found
