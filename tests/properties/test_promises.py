"""Any sequence of calls, from several sessions, some left open or rolled back, keeps the queue's promises.

LONNYMQ_PROPERTY_EXAMPLES tries that many sequences, new ones each time.
"""

import os
import time
from collections.abc import Callable

import psycopg
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from lonnymq.model.acknowledge import ACTIONS
from tests.properties.promises import DEAD, LEASED, WAITING, Message, Promises
from tests.races.sessions import Answer, Leased, Session, ask, check, end, value

CHANNELS = st.sampled_from(["a", "b", "c"])
COUNTS = st.sampled_from([1, 2, 3, 5])
FEW = st.sampled_from([0, 0, 0, 4])
PICKS = st.integers(0, 1000)
LIMITS = st.sampled_from([1, 2, 5, 10])
CAPS = st.sampled_from([None, 1, 2, 3, 5])
INTERVALS_MS = st.sampled_from([None, None, None, 40, 3_600_000])
NEVER = 3_600_000
EXAMPLES = os.environ.get("LONNYMQ_PROPERTY_EXAMPLES")
ENDINGS = {action.name: action.done.value for action in ACTIONS}
TABLES = "message, lease, wake, turn, channel, dead, sleeper, history_overflow"


class Queue(RuleBasedStateMachine):
    """Two sessions that commit at once, and two whose transactions may stay open."""

    dsn: str

    def __init__(self) -> None:
        super().__init__()
        self.sessions = [connected(self.dsn) for _ in range(2)]
        self.idle = [connected(self.dsn) for _ in range(2)]
        # What is to be promised when an open transaction commits, and undone when it is rolled back.
        self.open: list[tuple[Session, Callable[[], None], Callable[[], None]]] = []
        self.held: set[int] = set()
        self.has_open_turns = 0
        self.promised = Promises()
        # Rules draw a number and take what it points to: what the server answered must not shape the draws.
        self.seen: list[Leased] = []
        self.made: list[int] = []
        self.sessions[0].execute(f"truncate {TABLES}")

    def teardown(self) -> None:
        for session in [*self.sessions, *self.idle, *(one[0] for one in self.open)]:
            session.close()

    # Most sequences should meet messages, caps and limits: begin with some.

    @initialize(
        caps=st.tuples(CAPS, CAPS, CAPS),
        interval_ms=INTERVALS_MS,
        counts=st.tuples(COUNTS, FEW, FEW),
    )
    def begin_with_some(
        self, caps: tuple[int | None, ...], interval_ms: int | None, counts: tuple[int, ...]
    ) -> None:
        made: list[Message] = []
        for channel, cap, count in zip("abc", caps, counts, strict=True):
            self.set_policy(channel, cap, interval_ms if channel == "c" else None)
            if count:
                made += self.insert(self.sessions[0], channel, count, "now")
        self.promised.create(made)
        self.made += [one.id for one in made]

    # It enters.

    @rule(
        channel=CHANNELS,
        count=COUNTS,
        when=st.sampled_from(["now", "now", "urgent", "later"]),
        max_attempts=st.sampled_from([None, None, 1, 2, 4]),
    )
    def create(self, channel: str, count: int, when: str, max_attempts: int | None) -> None:
        made = self.insert(self.sessions[0], channel, count, when, max_attempts)
        self.promised.create(made)
        self.made += [one.id for one in made]

    @rule(channel=CHANNELS, count=COUNTS, when=st.sampled_from(["now", "urgent"]))
    def create_and_leave_open(self, channel: str, count: int, when: str) -> None:
        if not self.idle:
            return
        session = self.begin()
        made = self.insert(session, channel, count, when)
        self.leave_open(session, lambda: self.promised.create(made))

    @rule(channel=CHANNELS, key=st.sampled_from(["k", "l"]))
    def create_with_key(self, channel: str, key: str) -> None:
        session = self.sessions[0]
        row = session.execute(
            "select outcome, message_id from message_create(%s, 'x', p_key => %s)",
            [channel, f"{len(self.open)}{key}"],
        ).fetchone()
        assert row is not None
        if row[0] == "created":
            at = value(session, "select dequeue_at from message where id = %s", row[1])
            self.promised.create([Message(row[1], channel, at)])
        else:
            assert row[0] == "duplicate"
            assert self.promised.messages[row[1]].state in (WAITING, LEASED)

    # It is leased.

    @rule(limit=LIMITS, number=st.integers(0, 1), is_shared=st.booleans())
    def dequeue(self, limit: int, number: int, is_shared: bool) -> None:
        self.ask_until_sure(self.sessions[number], limit, is_shared)

    @rule(channel=CHANNELS, count=COUNTS, limit=LIMITS, max_attempts=st.sampled_from([None, 1, 2]))
    def create_and_dequeue(self, channel: str, count: int, limit: int, max_attempts: int | None) -> None:
        """What happens most, so that it happens most here too."""
        self.promised.create(self.insert(self.sessions[1], channel, count, "now", max_attempts))
        self.ask_until_sure(self.sessions[0], limit, is_shared=True)

    @rule(verb=st.sampled_from(list(ENDINGS)), limit=LIMITS)
    def end_all_and_dequeue(self, verb: str, limit: int) -> None:
        leased = [one for one in self.promised.leases.values() if one.id not in self.held]
        for one, said in zip(leased, end(self.sessions[1], verb, leased), strict=True):
            self.settle(one, verb, said)
        self.ask_until_sure(self.sessions[0], limit)

    @rule(limit=st.sampled_from([1, 3]))
    def dequeue_and_leave_open(self, limit: int) -> None:
        if not self.idle:
            return
        session = self.begin()
        leased = ask(session, limit, lease_ms=NEVER).leased
        self.promised.release(leased, now_ms(session))
        self.seen += leased
        self.hold(leased)
        self.has_open_turns += 1

        def commit() -> None:
            self.held -= {one.id for one in leased}
            self.has_open_turns -= 1

        def roll_back() -> None:
            commit()
            self.promised.unrelease(leased)

        self.leave_open(session, commit, roll_back)

    # Its attempt ends.

    @rule(pick=PICKS, verb=st.sampled_from(list(ENDINGS)), number=st.integers(0, 1))
    def end(self, pick: int, verb: str, number: int) -> None:
        leased = self.picked(pick)
        if leased is None:
            return
        (said,) = end(self.sessions[number], verb, [leased])
        if leased.id in self.held:
            assert said in ("busy", "lease_lost", "cancelled")
            return
        if self.promised.answer(leased, "ours") == "ours":
            self.settle(leased, verb, said)
        else:
            assert said == self.promised.answer(leased, ENDINGS[verb])
        self.promised.orphans = {id_: one for id_, one in self.promised.orphans.items() if one != leased}

    @rule(pick=PICKS, verb=st.sampled_from(["complete", "defer", "give_back"]))
    def end_and_leave_open(self, pick: int, verb: str) -> None:
        leased = self.picked(pick)
        if leased is None or not self.idle or leased.id in self.held:
            return
        if self.promised.leases.get(leased.id) != leased:
            return
        session = self.begin()
        (said,) = end(session, verb, [leased])
        self.hold([leased])
        at = value(session, "select max(dequeue_at) from message where id = %s", leased.id)

        def commit() -> None:
            self.held -= {leased.id}
            self.settle(leased, verb, said, at)

        self.leave_open(session, commit, lambda: self.held.discard(leased.id))

    @rule(pick=PICKS, is_alone=st.booleans())
    def heartbeat(self, pick: int, is_alone: bool) -> None:
        leased = self.picked(pick)
        if leased is None:
            return
        said = value(
            self.sessions[0],
            "select outcome from message_heartbeat(array[%s::bigint], array[%s::bigint], %s, %s)",
            *(leased.id, leased.token, NEVER, is_alone),
        )
        if leased.id not in self.held:
            assert said == self.promised.answer(leased, "extended")
        if said == "extended" and is_alone:
            self.promised.shared.discard(leased.token)

    @rule(limit=st.sampled_from([1, 10]), times=st.sampled_from([1, 1, 2, 3]))
    def expire(self, limit: int, times: int) -> None:
        """All leases are over; a session that remembers nothing looks at them first, and dies in turn."""
        if self.open:
            return
        for _ in range(times):
            self.sessions[0].execute("update lease set unlock_at = 0")
            with connected(self.dsn) as fresh:
                answer = ask(fresh, limit, lease_ms=NEVER, is_shared=True)
                self.promised.lose_all(ids(fresh, "select message_id from dead"))
                self.release(fresh, answer, is_shared=True)
        self.ask_until_sure(self.sessions[0], limit)

    @rule(pick=PICKS)
    def cancel(self, pick: int) -> None:
        if self.made:
            self.cancel_one(self.made[pick % len(self.made)])

    def cancel_one(self, id_: int) -> None:
        said = value(self.sessions[1], "select outcome from message_cancel(array[%s::bigint])", id_)
        message = self.promised.messages.get(id_)
        if message is None or message.state == DEAD:
            assert said == "unknown" or id_ in self.held
        elif said == "cancelled":
            self.promised.messages.pop(id_)
            if id_ in self.promised.leases:
                self.promised.orphans[id_] = self.promised.leases.pop(id_)
        else:
            assert said == "busy"
            assert id_ in self.held

    @rule(pick=PICKS)
    def cancel_what_is_leased(self, pick: int) -> None:
        if leased := self.picked(pick):
            self.cancel_one(leased.id)

    # Operators steer.

    @rule(channel=CHANNELS, cap=CAPS, interval_ms=INTERVALS_MS)
    def set_policy(self, channel: str, cap: int | None, interval_ms: int | None) -> None:
        said = value(
            self.sessions[0],
            "select channel_set(%s, jsonb_build_object("
            "'max_concurrency', %s::integer, 'release_interval_ms', %s::integer))",
            channel,
            cap,
            interval_ms,
        )
        if said == "set":
            self.promised.policies[channel] = self.promised.policy(channel).changed(cap, interval_ms)
        assert said == "set" or self.open

    @rule(channel=CHANNELS, is_paused=st.booleans())
    def pause(self, channel: str, is_paused: bool) -> None:
        said = value(self.sessions[0], f"select channel_{'pause' if is_paused else 'resume'}(%s)", channel)
        if said == "set":
            self.promised.policy(channel).is_paused = is_paused
        assert said == "set" or self.open

    @rule(channel=CHANNELS, count=COUNTS, limit=LIMITS)
    def pause_create_and_dequeue(self, channel: str, count: int, limit: int) -> None:
        self.pause(channel, True)
        self.promised.create(self.insert(self.sessions[1], channel, count, "now"))
        self.ask_until_sure(self.sessions[0], limit)
        self.pause(channel, False)
        self.ask_until_sure(self.sessions[1], limit)

    @rule(channel=CHANNELS)
    def delete_channel(self, channel: str) -> None:
        said = value(self.sessions[1], "select channel_delete(%s)", channel)
        is_bare = not self.promised.of(channel, WAITING) and not self.promised.leased_of(channel)
        if said == "deleted":
            assert is_bare
            self.promised.policies.pop(channel, None)
        elif said == "not_empty":
            assert not is_bare or self.open
        else:
            assert said == "unknown" or self.open

    @rule(channel=CHANNELS, is_purged=st.booleans())
    def redrive_or_purge(self, channel: str, is_purged: bool) -> None:
        session = self.sessions[0]
        dead = {one.id for one in self.promised.of(channel, DEAD)}
        if is_purged:
            assert value(session, "select dead_purge_channel(%s)", channel) == len(dead)
            self.promised.messages = {i: one for i, one in self.promised.messages.items() if i not in dead}
            return
        session.execute("select dead_redrive_channel(%s)", [channel])
        for id_, at in session.execute("select id, dequeue_at from message where id = any(%s)", [list(dead)]):
            self.promised.messages[id_] = Message(id_, channel, at, self.promised.messages[id_].max_attempts)

    @rule()
    def repair(self) -> None:
        self.sessions[0].execute("select count(*) from queue_check(true)")

    # Open transactions end.

    @rule(is_committed=st.booleans())
    def finish(self, is_committed: bool) -> None:
        if not self.open:
            return
        session, commit, roll_back = self.open.pop(0)
        session.execute("commit" if is_committed else "rollback")
        (commit if is_committed else roll_back)()
        self.idle.append(session)

    @invariant()
    def holds(self) -> None:
        """Every committed message is exactly one of waiting, leased, buried, or gone."""
        session = self.sessions[1]
        assert check(session) == []
        promised = self.promised.messages.values()
        assert ids(session, "select id from message") == {one.id for one in promised if one.state != DEAD}
        assert ids(session, "select message_id from dead") == {
            one.id for one in promised if one.state == DEAD
        }
        if not self.open:
            assert ids(session, "select message_id from lease") == {
                *self.promised.leases,
                *self.promised.orphans,
            }

    # How the rules are carried out.

    def insert(
        self, session: Session, channel: str, count: int, when: str, max_attempts: int | None = None
    ) -> list[Message]:
        at = {"now": None, "urgent": -count, "later": now_ms(session) + NEVER}[when]
        rows = session.execute(
            "select message_id from message_create_many(%s::text[], %s::bytea[],"
            " p_dequeue_ats => %s::bigint[], p_max_attempts => %s::integer[])",
            [[channel] * count, [b"x"] * count, [at] * count, [max_attempts] * count],
        ).fetchall()
        found = session.execute(
            "select id, dequeue_at from message where id = any(%s)", [[row[0] for row in rows]]
        )
        return [Message(id_, channel, dequeue_at, max_attempts) for id_, dequeue_at in found]

    def picked(self, pick: int) -> Leased | None:
        return self.seen[pick % len(self.seen)] if self.seen else None

    def release(self, session: Session, answer: Answer, is_shared: bool) -> None:
        self.promised.release(answer.leased, now_ms(session))
        self.seen += answer.leased
        if is_shared:
            self.promised.shared |= {one.token for one in answer.leased}

    def ask_until_sure(self, session: Session, limit: int, is_shared: bool = False) -> None:
        """Asks again while it is told to at once; what can be released must then have been."""
        until = time.monotonic() + 10
        while True:
            answer = ask(session, limit, lease_ms=NEVER, is_shared=is_shared)
            self.release(session, answer, is_shared)
            is_told = answer.outcome == "empty" and (answer.wait_ms or 0) > 2000
            if answer.leased or is_told or self.has_open_turns or time.monotonic() > until:
                break
            time.sleep(min((answer.wait_ms or 1) / 1000, 0.3))
        if not answer.leased and not self.has_open_turns:
            assert self.promised.must_give(now_ms(session) - 5, now_ms(session) * 1000 - 50_000) == set()

    def settle(self, leased: Leased, verb: str, said: str, at: int | None = None) -> None:
        del self.promised.leases[leased.id]
        message = self.promised.messages[leased.id]
        is_buried = (verb, said) == ("defer", "buried")
        assert is_buried or said == ENDINGS[verb]
        if verb == "complete":
            del self.promised.messages[leased.id]
        elif verb == "bury":
            message.state = DEAD
        else:
            message.state = WAITING
            if verb == "defer":
                message.spend(is_buried)
            if verb == "defer" and not is_buried:
                found = value(self.sessions[0], "select dequeue_at from message where id = %s", leased.id)
                message.dequeue_at = at or found

    def begin(self) -> Session:
        session = self.idle.pop()
        session.execute("begin")
        return session

    def leave_open(
        self, session: Session, commit: Callable[[], None], roll_back: Callable[[], None] = lambda: None
    ) -> None:
        self.open.append((session, commit, roll_back))

    def hold(self, leased: list[Leased]) -> None:
        self.held |= {one.id for one in leased}


def test_any_sequence_of_calls_keeps_the_promises(dsn: str) -> None:
    Queue.dsn = dsn
    run_state_machine_as_test(
        Queue,
        settings=settings(
            max_examples=int(EXAMPLES or 50),
            stateful_step_count=40,
            deadline=None,
            derandomize=EXAMPLES is None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        ),
    )
    with connected(dsn) as session:
        session.execute(f"truncate {TABLES}")


def connected(dsn: str) -> Session:
    # The check after each step would be compiled each time.
    options = "-c search_path=lonnymq -c lock_timeout=2s -c jit=off"
    return psycopg.connect(dsn, autocommit=True, options=options)


def now_ms(session: Session) -> int:
    now: int = value(session, "select to_epoch(clock_timestamp())")
    return now


def ids(session: Session, query: str) -> set[int]:
    return {row[0] for row in session.execute(query).fetchall()}
