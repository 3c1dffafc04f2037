"""A run of all hot calls."""

import uuid

from lonnymq.model.acknowledge import ACTIONS, BURY
from tests.plans.plan import Plans, Scans, collect_plans, scans
from tests.sql.conftest import Open
from tests.sql.session import Session

RUN = 60  # messages of a run


def run_hot_calls(queue: Session, other: Session) -> None:
    """Create, lease and end messages in every way, twice, to use cached plans too; `other` cancels."""
    for _ in range(2):
        suffix = uuid.uuid4().hex[:8]
        # A single channel takes another path through dequeue.
        queue.fill("a", RUN)
        queue.complete(queue.dequeue(RUN))
        queue.create(f"new {suffix}")
        queue.create("a", key=f"key {suffix}", dequeue_at=-1)
        assert queue.try_create("a", key=f"key {suffix}")[0] == "duplicate"
        queue.create_many([f"c{n % 20}" for n in range(RUN)])
        queue.create_many(["a", "b"], keys=[f"k{suffix}", f"k{suffix}"])
        taken = queue.dequeue(1) + queue.dequeue(RUN)
        assert taken
        queue.heartbeat(taken)
        queue.run(
            "select message_read(%s, %s)", [one.message_id for one in taken], [one.token for one in taken]
        )
        lost, cancelled, *ended = (taken[n :: len(ACTIONS) + 2] for n in range(len(ACTIONS) + 2))
        for action, some in zip(ACTIONS, ended, strict=True):
            queue.acknowledge(action, some)
            if action is BURY:
                queue.run("select count(*) from dead_redrive(%s)", [one.message_id for one in some])
        queue.run("select count(*) from message_show(%s)", [one.message_id for one in taken])
        queue.heartbeat(lost, 1)
        other.cancel(*(one.message_id for one in cancelled))
        queue.complete(cancelled)
        queue.complete(queue.dequeue_once(5)[:5])


def observe(session: Open, queue: Session | None = None) -> tuple[Plans, Scans]:
    """Run all hot calls, in a new session if none is given; return the plans and scans."""
    queue, other = queue or session(), session()
    before = scans(queue)
    with collect_plans(queue) as plans:
        run_hot_calls(queue, other)
    return plans, scans(queue) - before


def assert_as_intended(
    session: Open, queue: Session | None = None, max_removed: int = 300, max_entries: int = 30_000
) -> None:
    plans, done = observe(session, queue)
    violations = plans.violations(max_removed)
    assert not violations, "\n" + "\n".join(violations)
    assert done.sequential == {}
    assert max(done.entries.values()) < max_entries, done.entries
