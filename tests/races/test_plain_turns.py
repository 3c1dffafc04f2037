"""A dequeue stops while it settles a plain turn, and something commits that makes the turn not plain.

Other tests of this kind use caps and late messages, which no plain turn has.
"""

from collections.abc import Callable

import pytest

from tests.conftest import Connect
from tests.races.barrier import StoppedDequeue, session_that_stops_at
from tests.races.sessions import (
    Leased,
    check,
    complete,
    create,
    dequeue,
    drain,
    end,
    value,
)

pytestmark = pytest.mark.race

CAP = 3


class Scene:
    """One channel without a policy: one message is leased, and six more are above its mark."""

    def __init__(self, connect: Connect) -> None:
        self.session = connect()
        create(self.session, "a")
        self.held = dequeue(self.session)
        self.ids = create(self.session, "a", 6)
        self.alive = {one.id for one in self.held} | set(self.ids)

    def set(self, policy: str) -> None:
        assert value(self.session, "select channel_set('a', %s)", policy) == "set"

    def create(self, at: int | None = None) -> None:
        self.alive |= set(create(self.session, "a", 2, at=at))

    def cancel(self, ids: list[int]) -> None:
        self.session.execute("select * from message_cancel(%s)", [ids])
        self.alive -= set(ids)

    def delete(self) -> None:
        assert value(self.session, "select channel_delete('a')") in ("busy", "not_empty")

    def end_held(self, verb: str) -> None:
        assert len(set(end(self.session, verb, self.held))) == 1
        self.alive -= {one.id for one in self.held} if verb == "complete" else set()
        self.held = []

    def finish(self, leased: list[Leased]) -> None:
        told = complete(self.session, leased) if leased else []
        assert set(told) <= {"completed", "cancelled"}
        self.alive -= {one.id for one in leased}


EVENTS: dict[str, Callable[[Scene], None]] = {
    "creates": lambda scene: scene.create(),
    "priorities": lambda scene: scene.create(at=-5),
    "scheduled": lambda scene: scene.create(
        at=value(scene.session, "select to_epoch(clock_timestamp())") + 300
    ),
    "some cancelled": lambda scene: scene.cancel(scene.ids[:2]),
    "all cancelled": lambda scene: scene.cancel(scene.ids),
    "completed": lambda scene: scene.end_held("complete"),
    "deferred": lambda scene: scene.end_held("defer"),
    "given back": lambda scene: scene.end_held("give_back"),
    "a cap": lambda scene: scene.set(f'{{"max_concurrency": {CAP}}}'),
    "a pause": lambda scene: scene.set('{"is_paused": true}'),
    "a rate limit": lambda scene: scene.set('{"release_interval_ms": 60000}'),
    "a weight": lambda scene: scene.set('{"weight": 5}'),
    "a deletion": lambda scene: scene.delete(),
}


class StoppedLargeDequeue(StoppedDequeue):
    """A stopped dequeue that asks for four messages."""

    def run(self) -> None:
        self.leased = dequeue(self.session, 4)


@pytest.mark.parametrize("table", ["wake", "turn", "channel", "message", "lease"])
def test_whatever_commits_while_a_plain_turn_is_settled(connect: Connect, table: str) -> None:
    with session_that_stops_at(connect, table) as session:
        for event, happen in EVENTS.items():
            scene, barrier = Scene(connect), connect()
            with StoppedLargeDequeue(session, barrier) as stopped:
                happen(scene)
            assert check(barrier) == [], event
            assert scene.alive >= {one.id for one in stopped.leased} or "cancelled" in event, event
            follow(scene, event, stopped.leased)
            scene.finish(stopped.leased)
            scene.finish(scene.held)
            scene.set(
                '{"is_paused": false, "max_concurrency": null, "release_interval_ms": null, "weight": 1}'
            )
            assert {one.id for one in drain(scene.session)} == scene.alive, event
            assert check(barrier) == [], event


def follow(scene: Scene, event: str, leased: list[Leased]) -> None:
    """What the next dequeue may lease beside what is leased: it must know of what committed."""
    more = dequeue(scene.session, 10)
    assert not {one.id for one in more} & {one.id for one in leased}
    if event == "a cap":
        assert len(more) <= max(0, CAP - len(leased) - len(scene.held))
    elif event == "a pause":
        assert more == []
    elif event == "a rate limit":
        assert len(more) <= 1
    elif event != "priorities":
        order = [one.id for one in leased]
        assert order == sorted(order), event
    assert check(scene.session) == [], event
    scene.finish(more)
