"""Settling many turns in one call follows the same rules as settling one; compared with a small model.

One session uses channels with and without caps, and messages that commit late, have a priority, are
scheduled, given back, deferred or cancelled. After each call the model says which messages of a channel were
due, and in which order.
"""

import random
from collections import Counter, defaultdict

import pytest

from tests.conftest import Connect
from tests.races.sessions import Leased, Session, check, create, dequeue, drain, end, value

pytestmark = pytest.mark.race

CAPS = {"capped 0": 2, "capped 1": 5, "capped 2": 5}
NAMES = [*CAPS, *[f"free {n}" for n in range(4)]]
FUTURE = 8_000_000_000_000


class Model:
    """The messages that wait, as the tables say, and those that are leased."""

    def __init__(self, session: Session, other: Session) -> None:
        self.session, self.other = session, other
        self.hidden: list[tuple[str, int]] = []
        self.leased: list[Leased] = []

    def waiting(self) -> dict[str, list[int]]:
        """Return the due messages by channel that are not leased, in the order of their release."""
        found = defaultdict(list)
        for name, id_ in self.session.execute(
            "select c.name, m.id from message m join channel c on c.id = m.channel_id"
            " where m.dequeue_at <= %s and not exists (select from lease l where l.message_id = m.id)"
            " order by m.dequeue_at, m.id",
            [value(self.session, "select to_epoch(clock_timestamp())")],
        ):
            found[name].append(id_)
        return found

    def dequeue(self, limit: int) -> None:
        before = self.waiting()
        cap_left = {name: cap - sum(one.channel == name for one in self.leased) for name, cap in CAPS.items()}
        leased = dequeue(self.session, limit)
        given = Counter(one.channel for one in leased)
        for name in given:
            mine = [one.id for one in leased if one.channel == name]
            assert mine == before[name][: len(mine)], name
        possible = {name: min(len(ids), cap_left.get(name, limit)) for name, ids in before.items()}
        assert all(given[name] <= cap_left.get(name, limit) for name in given)
        assert len(leased) == min(limit, sum(possible.values()))
        # No channel gets two more than another that could have had one more.
        for name, most in possible.items():
            if given[name] < most:
                assert max(given.values()) <= given[name] + 1, (given, possible)
        self.leased += leased

    def end(self, verb: str, count: int, rng: random.Random) -> None:
        rng.shuffle(self.leased)
        ended, self.leased = self.leased[:count], self.leased[count:]
        if ended:
            assert len(set(end(self.session, verb, ended))) == 1


@pytest.mark.parametrize("seed", range(4))
def test_each_dequeue_leases_due_messages_in_order_fairly_within_caps(connect: Connect, seed: int) -> None:
    rng = random.Random(seed)
    session, late = connect(), connect()
    model = Model(session, late)
    for name in NAMES:
        policy = f'{{"max_concurrency": {CAPS[name]}}}' if name in CAPS else "{}"
        session.execute("select channel_set(%s, %s)", [name, policy])
    dequeue(session)
    for _ in range(150):
        name, count = rng.choice(NAMES), rng.randrange(1, 6)
        match rng.randrange(10):
            case 0 | 1 | 2:
                create(session, name, count)
            case 3:
                create(session, name, count, at=rng.randrange(-5, 5))
            case 4:
                create(session, name, count, at=FUTURE)
            case 5:
                late.execute("begin")
                create(late, name, count)
                model.dequeue(rng.randrange(1, 8))
                late.execute("commit")
            case 6:
                waiting = model.waiting()[name][:count]
                session.execute("select * from message_cancel(%s)", [waiting])
            case _:
                verb = rng.choice(["complete", "complete", "give_back", "defer"])
                model.end(verb, rng.randrange(1, 8), rng)
        model.dequeue(rng.choice([1, 2, 3, 5, 8, 13, 40]))
        assert check(session) == []
    end(session, "complete", model.leased)
    session.execute(
        "select * from message_cancel(array(select id from message where dequeue_at = %s))", [FUTURE]
    )
    left = sum(map(len, model.waiting().values()))
    assert len(drain(session)) == left
    assert value(session, "select count(*) from message") == 0
