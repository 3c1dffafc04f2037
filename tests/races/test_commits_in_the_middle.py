"""A dequeue is stopped in one of its statements while another transaction commits.

The statements that fold, choose and lease have different snapshots. Whatever commits between two of them,
each message is released once, and the counts are right.
"""

from collections.abc import Callable, Sequence

import pytest

from tests.conftest import Connect
from tests.races.barrier import StoppedDequeue, session_that_stops_at
from tests.races.sessions import (
    Leased,
    Session,
    check,
    complete,
    create_in,
    dequeue,
    drain,
    end,
    value,
)

pytestmark = pytest.mark.race


class Scene:
    """Channels with leased, waiting and late messages; a and b have a cap."""

    def __init__(self, connect: Connect, names: str) -> None:
        self.names, self.connect, self.session = list(names), connect, connect()
        for name in set(self.names) & {"a", "b"}:
            self.set(name, '{"max_concurrency": 4}')
        self.late = connect()
        self.late.execute("begin")
        self.alive = set(create_in(self.late, self.names))
        self.ids = create_in(self.session, self.names * 6)
        self.alive |= set(self.ids)
        self.held = dequeue(self.session, 2 * len(self.names))
        end(self.session, "give_back", dequeue(self.session, len(self.names)))

    def set(self, name: str, policy: str) -> None:
        assert value(self.session, "select channel_set(%s, %s)", name, policy) == "set"

    def set_all(self, policy: str) -> None:
        for name in self.names:
            self.set(name, policy)

    def create(self, at: int | None = None) -> None:
        self.alive |= set(create_in(self.session, self.names * 2, at=at))

    def cancel(self) -> None:
        held = {one.id for one in self.held}
        gone = [one for one in self.ids if one not in held][: 2 * len(self.names)]
        self.session.execute("select * from message_cancel(%s)", [gone])
        self.alive -= set(gone)

    def end_held(self, verb: str) -> None:
        assert len(set(end(self.session, verb, self.held))) == 1
        if verb == "complete":
            self.alive -= {one.id for one in self.held}
        self.held = []

    def expire(self) -> None:
        self.session.execute("update lease set unlock_at = 0")
        self.held = []
        other = self.connect()
        self.finish(other, dequeue(other, 100))

    def delete(self) -> None:
        self.session.execute("select channel_delete(n) from unnest(%s::text[]) n", [self.names])

    def finish(self, session: Session, leased: Sequence[Leased]) -> None:
        said = complete(session, leased) if leased else []
        assert set(said) <= {"completed", "cancelled"}
        self.alive -= {one.id for one, outcome in zip(leased, said, strict=True) if outcome == "completed"}


EVENTS: dict[str, Callable[[Scene], None]] = {
    "a late commit": lambda scene: None,
    "creates": lambda scene: scene.create(),
    "priorities": lambda scene: scene.create(at=-5),
    "cancellations": lambda scene: scene.cancel(),
    "completions": lambda scene: scene.end_held("complete"),
    "defers": lambda scene: scene.end_held("defer"),
    "give backs": lambda scene: scene.end_held("give_back"),
    "expired leases": lambda scene: scene.expire(),
    "pauses": lambda scene: scene.set_all('{"is_paused": true}'),
    "lower caps": lambda scene: scene.set_all('{"max_concurrency": 2}'),
    "no caps": lambda scene: scene.set_all('{"max_concurrency": null}'),
    "rates": lambda scene: scene.set_all('{"release_interval_ms": 20}'),
    "deletions": lambda scene: scene.delete(),
}


class StoppedLargeDequeue(StoppedDequeue):
    """A stopped dequeue that asks for more messages than there are."""

    def run(self) -> None:
        self.leased = dequeue(self.session, 100)


@pytest.mark.parametrize(
    "names", [pytest.param("a", marks=pytest.mark.heavy), "abcd"], ids=["one turn", "four turns"]
)
@pytest.mark.parametrize("table", ["wake", "turn", "channel", "message", "lease"])
def test_each_message_is_released_once_whatever_commits_meanwhile(
    connect: Connect, table: str, names: str
) -> None:
    with session_that_stops_at(connect, table) as stopping:
        for event, happen in EVENTS.items():
            scene, barrier = Scene(connect, names), connect()
            if event != "a late commit":
                scene.late.execute("commit")
            with StoppedLargeDequeue(stopping, barrier) as stopped:
                happen(scene)
                if event == "a late commit":
                    scene.late.execute("commit")
            assert check(barrier) == [], event
            assert len({one.id for one in stopped.leased}) == len(stopped.leased), event
            scene.finish(scene.session, stopped.leased)
            scene.finish(scene.session, scene.held)
            scene.set_all('{"is_paused": false, "max_concurrency": null, "release_interval_ms": null}')
            assert check(barrier) == [], event
            assert {one.id for one in drain(scene.session)} == scene.alive, event
            assert check(barrier) == [], event
            assert value(barrier, "select (select count(*) from message) + (select count(*) from lease)") == 0
