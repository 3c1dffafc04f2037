"""A plain turn is settled as the scheduling rules would settle it, whatever happened before.

Two queues get the same calls on a clock that stands still: one as it is, and one that evaluates all rules for
each turn. LONNYMQ_PROPERTY_EXAMPLES tries that many sequences, new ones each time.
"""

import os
import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from lonnymq.schema import files
from tests import schema
from tests.races.sessions import Answer, Leased, Session, ask, create, end, value

EXAMPLES = os.environ.get("LONNYMQ_PROPERTY_EXAMPLES")
# By default, two sequences that find most mistakes in the conditions for a plain turn.
SEEDS = [random.randrange(2**32) for _ in range(int(EXAMPLES))] if EXAMPLES else [3, 9]
STEPS = 80
QUEUES = ("lonnymq", "rules")
START_US = 1_800_000_000_000_000
CHANNELS = ("a", "b", "c")
POLICIES = (
    '{"max_concurrency": 2}',
    '{"max_concurrency": null}',
    '{"max_concurrency": null}',
    '{"release_interval_ms": 20, "release_burst": 2}',
    '{"release_interval_ms": null, "release_burst": null}',
    '{"release_interval_ms": null, "release_burst": null}',
    '{"weight": 3}',
    '{"weight": 1}',
    '{"is_paused": true}',
    '{"is_paused": false}',
    '{"is_paused": false}',
    '{"max_attempts": 2}',
)
INITIAL = ('{"max_concurrency": 3}', '{"is_paused": true}', '{"weight": 3}', '{"release_interval_ms": 20}')
RESET = '{"is_paused": false, "max_concurrency": null, "release_interval_ms": null, "weight": 1}'
SET_POLICY = "select channel_set(%s, %s)"
# Without a rate limit, release_at means nothing: the rules write 0 and the plain path leaves it alone.
TURNS = """
    select t.channel_id, t.version, t.next_at, t.last_at, t.mark_at, t.mark_id, t.late_at, t.late_id,
      t.late_to, t.late_to_id, t.in_flight, t.waiting, t.has_uncapped, t.wake_id, t.taken, t.return_at,
      case when c.release_interval_ms is not null then t.release_at end
    from turn t left join channel c on c.id = t.channel_id order by 1, 2
"""
LEASES = "select message_id, channel_id, attempt, is_capped, leased_at, unlock_at from lease order by 1"
MESSAGES = "select id, channel_id, channel_name, dequeue_at, attempts, suspicion from message order by 1"
WAKES = "select id, lane, channel_id, at, message_id, to_at, to_id, done, waiting from wake order by 1"
# The server may be slow while transactions are open: keep the short limit that dequeue would set.
PATIENT = "-c idle_in_transaction_session_timeout=60s"
TABLES = "message, lease, wake, turn, channel, dead, history_overflow, stage, publication"

CLOCK = """
    create table clock (at bigint);
    insert into clock values ({start});
    create function clock_timestamp() returns timestamptz language sql volatile set search_path from current
    as 'select to_timestamp(at / 1000000) + at % 1000000 * interval ''1 microsecond'' from clock';
    create function now() returns timestamptz language sql stable set search_path from current
    as 'select to_timestamp(at / 1000000) + at % 1000000 * interval ''1 microsecond'' from clock';
"""


@pytest.fixture
def queues(dsn: str) -> Iterator[Callable[[str], Session]]:
    """Sessions on the queue and on its double, which take no turn for plain."""
    opened: list[Session] = []

    def connected(name: str) -> Session:
        session = psycopg.connect(dsn, autocommit=True, options=f"-c search_path={name} -c jit=off {PATIENT}")
        opened.append(session)
        return session

    owner = connected("lonnymq")
    schema.install(owner, "rules")
    for name in QUEUES:
        stop_clock(owner, name)
    owner.execute("update rules.setting set salt = (select salt from lonnymq.setting)")
    yield connected
    for session in opened:
        session.close()


def stop_clock(owner: Session, name: str) -> None:
    with owner.transaction():
        owner.execute("set local client_min_messages = warning")
        owner.execute(
            sql.SQL("set local search_path to {}, pg_catalog, pg_temp").format(sql.Identifier(name))
        )
        owner.execute(CLOCK.format(start=START_US))
        for file in files.functions_and_views():
            text = file.text
            if name == "rules" and file.path.endswith("/turn_allocate.sql"):
                text = text.replace(
                    "  if v_is_plain then\n    v_allocation",
                    "  v_is_plain := false;\n  if v_is_plain then\n    v_allocation",
                )
                assert text != file.text
            owner.execute(text.encode())


class Double:
    """Both queues; each call goes to both, and must have the same effect."""

    def __init__(self, connected: Callable[[str], Session], chance: random.Random) -> None:
        self.connected, self.chance = connected, chance
        self.log: list[str] = []
        self.sessions = [[connected(name) for _ in range(2)] for name in QUEUES]
        self.asides = [[connected(name) for _ in range(2)] for name in QUEUES]
        self.open: set[int] = set()
        self.names = CHANNELS[: chance.choice([1, 1, 2, 3])]
        # What was leased in each queue, with its tokens.
        self.leased: list[tuple[Leased, Leased]] = []
        self.ids: list[int] = []
        self.now_us = START_US
        self.punctual = chance.choice([4, 20])
        # Most queues are calm: with every change of policy a channel has turns that are not plain.
        self.policies = chance.choice([0, 1, 7])
        self.verbs = chance.choice([["complete"], ["complete"] * 3 + ["defer", "bury", "give_back"]])
        for sessions in self.sessions:
            sessions[0].execute(f"truncate {TABLES}")
            sessions[0].execute("alter sequence wake_id_seq restart; alter sequence message_id_seq restart")
            sessions[0].execute("update clock set at = %s", [START_US])

    def begin_with_policies(self) -> None:
        for name in self.names:
            policy = self.chance.choice([*INITIAL, None])
            if policy is not None:
                self.set_one(name, policy)

    def set_one(self, name: str, policy: str, aside: int | None = None) -> None:
        self.same(
            f"set {name} {policy} {aside}", lambda one: value(one, SET_POLICY, name, policy), aside=aside
        )

    def close(self) -> None:
        for sessions in [*self.sessions, *self.asides]:
            for session in sessions:
                session.close()

    def both(
        self, what: str, call: Callable[[Session], Any], *, aside: int | None = None, number: int = 0
    ) -> list[Any]:
        self.log.append(what)
        return [
            call((self.sessions if aside is None else self.asides)[n][number if aside is None else aside])
            for n in range(2)
        ]

    def same(self, what: str, call: Callable[[Session], Any], **options: Any) -> Any:
        first, second = self.both(what, call, **options)
        assert first == second, self.explain(f"{what}: {first} or {second}")
        return first

    def explain(self, text: str) -> str:
        return "\n".join([*self.log, text])

    # What may happen.

    def step(self) -> None:
        self.pass_time()
        aside = self.chance.choice([None, None, None, None, 0, 1])
        if aside is not None and aside not in self.open and self.chance.random() < 0.7:
            aside = None
        chosen = self.chance.choices(
            [
                self.create,
                self.dequeue,
                self.end,
                self.cancel,
                self.set_policy,
                self.delete,
                self.publish,
                self.begin,
                self.finish,
                self.expire,
            ],
            [30, 45, 15, 3, self.policies, 1, 3, 4, 6, 1],
        )[0]
        chosen(aside)
        self.compare()

    def pass_time(self) -> None:
        step_us = self.chance.choices(
            [0, 1, 700, 5_000, 30_000, 150_000, -2_000_000], [10, 20, 20, 20, 20, 10, 1]
        )[0]
        self.now_us += step_us
        self.both(f"clock {step_us:+}", lambda one: one.execute("update clock set at = %s", [self.now_us]))

    def create(self, aside: int | None) -> None:
        name, count = self.chance.choice(self.names), self.chance.choice([1, 1, 1, 2, 5])
        at = self.chance.choice(
            [None] * self.punctual + [-5, self.now_us // 1000 + self.chance.randrange(-50, 100)]
        )
        self.ids += self.same(
            f"create {name} {count} {at} {aside}", lambda one: create(one, name, count, at=at), aside=aside
        )

    def dequeue(self, aside: int | None) -> None:
        limit, lease_ms = self.chance.choice([1, 1, 2, 5, 100]), self.chance.choice([300, 30_000])
        number = self.chance.randrange(2)
        answers: list[Answer] = self.both(
            f"dequeue {limit} {aside} {number}",
            lambda one: ask(one, limit, lease_ms=lease_ms),
            aside=aside,
            number=number,
        )
        told = [
            [(one.id, one.channel, one.attempt, one.leased_at) for one in answer.leased] for answer in answers
        ]
        self.log.append(f"  {told[0]}")
        assert told[0] == told[1], self.explain(f"released {told}")
        assert answers[0][:2] == answers[1][:2], self.explain(str(answers))
        self.leased += zip(answers[0].leased, answers[1].leased, strict=True)

    def end(self, aside: int | None) -> None:
        if not self.leased:
            return
        some = self.chance.sample(self.leased, min(len(self.leased), self.chance.choice([1, 1, 2, 20])))
        verb = self.chance.choice(self.verbs)
        told = [
            end(
                (self.sessions if aside is None else self.asides)[n][0 if aside is None else aside],
                verb,
                [pair[n] for pair in some],
            )
            for n in range(2)
        ]
        self.log.append(f"{verb} {[pair[0].id for pair in some]} {aside}: {told[0]}")
        assert told[0] == told[1], self.explain(str(told))
        self.leased = [pair for pair in self.leased if pair not in some or self.chance.random() < 0.1]

    def cancel(self, aside: int | None) -> None:
        if self.ids:
            some = self.chance.sample(self.ids, min(len(self.ids), self.chance.choice([1, 2, 4])))
            self.same(
                f"cancel {some} {aside}",
                lambda one: one.execute("select * from message_cancel(%s)", [some]).fetchall(),
                aside=aside,
            )

    def set_policy(self, aside: int | None) -> None:
        self.set_one(self.chance.choice(self.names), self.chance.choice(POLICIES), aside)

    def delete(self, aside: int | None) -> None:
        name = self.chance.choice(self.names)
        self.same(
            f"delete {name} {aside}", lambda one: value(one, "select channel_delete(%s)", name), aside=aside
        )

    def publish(self, aside: int | None) -> None:
        name, count, part = (
            self.chance.choice(self.names),
            self.chance.choice([1, 3, 8]),
            uuid.UUID(int=self.chance.getrandbits(128)),
        )

        def load(one: Session) -> Any:
            one.execute(
                "insert into stage (publication, part, ordinal, channel, contents)"
                " values (%s, %s, 0, %s, %s)",
                [str(part), part, name, [b"x"] * count],
            )
            return one.execute(
                "select * from message_publish(%s, %s, %s)", [str(part), [part], [count]]
            ).fetchall()

        self.same(f"publish {name} {count} {aside}", load, aside=aside)

    def begin(self, aside: int | None) -> None:
        number = self.chance.randrange(2)
        if number not in self.open:
            self.both(f"begin {number}", lambda one: one.execute("begin"), aside=number)
            self.open.add(number)

    def finish(self, aside: int | None) -> None:
        if self.open:
            number = self.chance.choice(sorted(self.open))
            how = self.chance.choice(["commit", "commit", "rollback"])
            self.both(f"{how} {number}", lambda one: one.execute(how), aside=number)
            self.open.discard(number)

    def expire(self, aside: int | None) -> None:
        self.now_us += 400_000

    # What must be equal.

    def compare(self) -> None:
        for query in (LEASES, TURNS, MESSAGES, WAKES):
            self.same_state(query)

    def same_state(self, query: str) -> None:
        first, second = (self.sessions[n][0].execute(query).fetchall() for n in range(2))
        assert first == second, self.explain(f"{query}\n{first}\n{second}")

    def check(self) -> None:
        for sessions in self.sessions:
            assert sessions[0].execute("select * from queue_check()").fetchall() == [], self.explain("")

    def drain(self) -> None:
        for number in sorted(self.open):
            self.both(f"commit {number}", lambda one: one.execute("commit"), aside=number)
        for name in self.names:
            self.set_one(name, RESET)
        for _ in range(30):
            if not value(self.sessions[0][0], "select count(*) from message"):
                break
            self.now_us += 40_000_000
            self.both("clock", lambda one: one.execute("update clock set at = %s", [self.now_us]))
            self.dequeue(None)
            self.compare()
            if self.leased:
                told = [
                    end(self.sessions[n][0], "complete", [pair[n] for pair in self.leased]) for n in range(2)
                ]
                assert told[0] == told[1]
                self.leased.clear()
        for sessions in self.sessions:
            assert value(sessions[0], "select count(*) from message") == 0, self.explain("left")


@contextmanager
def doubled(connected: Callable[[str], Session], seed: int) -> Iterator[Double]:
    double = Double(connected, random.Random(seed))
    try:
        yield double
    finally:
        double.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plain_turn_is_settled_as_the_rules_would(queues: Callable[[str], Session], seed: int) -> None:
    run(queues, seed, STEPS)


def run(queues: Callable[[str], Session], seed: int, steps: int) -> None:
    with doubled(queues, seed) as double:
        if seed % 3 == 0:
            double.begin_with_policies()
        for n in range(steps):
            double.step()
            if n % 10 == 9:
                double.check()
        double.drain()
        double.check()
