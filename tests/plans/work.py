"""A round of every hot call."""

import uuid

from tests.plans.plan import Plans, Scans, explained, scans
from tests.sql.conftest import Open
from tests.sql.session import Session

ROUND = 60  # messages of a round


def work(queue: Session, other: Session) -> None:
    """Create, lease, and end in every way; twice, so that cached plans are used too. The other cancels."""
    for _ in range(2):
        turn = uuid.uuid4().hex[:8]
        # One channel alone is another path through dequeue.
        queue.fill("a", ROUND)
        queue.complete(queue.dequeue(ROUND))
        queue.create(f"new {turn}")
        queue.create("a", key=f"key {turn}", dequeue_at=-1)
        assert queue.try_create("a", key=f"key {turn}")[0] == "duplicate"
        queue.create_many([f"c{n % 20}" for n in range(ROUND)])
        queue.create_many(["a", "b"], keys=[f"k{turn}", f"k{turn}"])
        taken = queue.dequeue(1) + queue.dequeue(ROUND)
        assert taken
        queue.heartbeat(taken)
        queue.run(
            "select message_read(%s, %s)", [one.message_id for one in taken], [one.token for one in taken]
        )
        parts = [taken[n::6] for n in range(6)]
        queue.complete(parts[0])
        queue.defer(parts[1])
        queue.bury(parts[2])
        queue.run("select count(*) from dead_redrive(%s)", [one.message_id for one in parts[2]])
        queue.run("select count(*) from message_show(%s)", [one.message_id for one in taken])
        queue.give_back(parts[3])
        queue.heartbeat(parts[4], 1)
        other.cancel(*(one.message_id for one in parts[5]))
        queue.complete(parts[5])
        queue.complete(queue.dequeue_once(5)[:5])


def observed(session: Open, queue: Session | None = None) -> tuple[Plans, Scans]:
    """Work, in a new session if none is given, and return what PostgreSQL did."""
    queue, other = queue or session(), session()
    before = scans(queue)
    with explained(queue) as plans:
        work(queue, other)
    return plans, scans(queue) - before


def assert_as_intended(
    session: Open, queue: Session | None = None, most_removed: int = 300, most_entries: int = 30_000
) -> None:
    plans, done = observed(session, queue)
    faults = plans.faults(most_removed)
    assert not faults, "\n" + "\n".join(faults)
    assert done.sequential == {}
    assert max(done.entries.values()) < most_entries, done.entries
