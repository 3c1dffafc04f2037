"""Any sequence of calls by several sessions, some uncommitted or rolled back, keeps the queue's promises.

LONNYMQ_PROPERTY_EXAMPLES sets the number of sequences, which are then different in each run.
"""

import json
import os
import time
from collections.abc import Callable

import psycopg
import pytest
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
OWN_CAPS = st.sampled_from([None, None, "none", 1, 2, 3, 5])
INTERVALS_MS = st.sampled_from([None, None, None, 40, 3_600_000])
NEVER = 3_600_000
EXAMPLES = os.environ.get("LONNYMQ_PROPERTY_EXAMPLES")
ENDINGS = {action.name: action.done.value for action in ACTIONS}
TABLES = "message, lease, wake, turn, channel, dead, sleeper, history_overflow, policy_change"


class QueueMachine(RuleBasedStateMachine):
    """Two sessions in autocommit mode, and two whose transactions may stay open."""

    dsn: str

    def __init__(self) -> None:
        super().__init__()
        self.sessions = [connect(self.dsn) for _ in range(2)]
        self.idle = [connect(self.dsn) for _ in range(2)]
        # Open transactions, with what to do in the model when they commit or are rolled back.
        self.open: list[tuple[Session, Callable[[], None], Callable[[], None]]] = []
        self.held: set[int] = set()
        self.has_open_turns = 0
        self.model = Promises()
        # Rules draw an index into these lists, so that replies of the server do not influence the draws.
        self.seen: list[Leased] = []
        self.created_ids: list[int] = []
        self.sessions[0].execute(f"truncate {TABLES}")
        self.set_default(None)

    def teardown(self) -> None:
        for session in [*self.sessions, *self.idle, *(one[0] for one in self.open)]:
            session.close()

    # Begin with some messages, caps and limits, so that most sequences use them.

    @initialize(
        default_cap=CAPS,
        caps=st.tuples(OWN_CAPS, OWN_CAPS, OWN_CAPS),
        interval_ms=INTERVALS_MS,
        counts=st.tuples(COUNTS, FEW, FEW),
    )
    def begin_with_messages(
        self,
        default_cap: int | None,
        caps: tuple[int | str | None, ...],
        interval_ms: int | None,
        counts: tuple[int, ...],
    ) -> None:
        self.set_default(default_cap)
        created: list[Message] = []
        for channel, cap, count in zip("abc", caps, counts, strict=True):
            self.set_policy(channel, cap, interval_ms if channel == "c" else None)
            if count:
                created += self.insert(self.sessions[0], channel, count, "now")
        self.model.create(created)
        self.created_ids += [one.id for one in created]

    # Create messages.

    @rule(
        channel=CHANNELS,
        count=COUNTS,
        when=st.sampled_from(["now", "now", "urgent", "later"]),
        max_attempts=st.sampled_from([None, None, 1, 2, 4]),
    )
    def create(self, channel: str, count: int, when: str, max_attempts: int | None) -> None:
        created = self.insert(self.sessions[0], channel, count, when, max_attempts)
        self.model.create(created)
        self.created_ids += [one.id for one in created]

    @rule(channel=CHANNELS, count=COUNTS, when=st.sampled_from(["now", "urgent"]))
    def create_and_leave_open(self, channel: str, count: int, when: str) -> None:
        if not self.idle:
            return
        session = self.begin()
        created = self.insert(session, channel, count, when)
        self.leave_open(session, lambda: self.model.create(created))

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
            self.model.create([Message(row[1], channel, at)])
        else:
            assert row[0] == "duplicate"
            assert self.model.messages[row[1]].state in (WAITING, LEASED)

    # Lease them.

    @rule(limit=LIMITS, number=st.integers(0, 1), is_shared=st.booleans())
    def dequeue(self, limit: int, number: int, is_shared: bool) -> None:
        self.dequeue_until_certain(self.sessions[number], limit, is_shared)

    @rule(channel=CHANNELS, count=COUNTS, limit=LIMITS, max_attempts=st.sampled_from([None, 1, 2]))
    def create_and_dequeue(self, channel: str, count: int, limit: int, max_attempts: int | None) -> None:
        """The most common sequence, which should also be common here."""
        self.model.create(self.insert(self.sessions[1], channel, count, "now", max_attempts))
        self.dequeue_until_certain(self.sessions[0], limit, is_shared=True)

    @rule(verb=st.sampled_from(list(ENDINGS)), limit=LIMITS)
    def end_all_and_dequeue(self, verb: str, limit: int) -> None:
        leased = [one for one in self.model.leases.values() if one.id not in self.held]
        for one, outcome in zip(leased, end(self.sessions[1], verb, leased), strict=True):
            self.settle(one, verb, outcome)
        self.dequeue_until_certain(self.sessions[0], limit)

    @rule(limit=st.sampled_from([1, 3]))
    def dequeue_and_leave_open(self, limit: int) -> None:
        if not self.idle:
            return
        session = self.begin()
        leased = ask(session, limit, lease_ms=NEVER).leased
        self.model.release(leased, now_ms(session))
        self.seen += leased
        self.hold(leased)
        self.has_open_turns += 1

        def commit() -> None:
            self.held -= {one.id for one in leased}
            self.has_open_turns -= 1

        def roll_back() -> None:
            commit()
            self.model.revert_release(leased)

        self.leave_open(session, commit, roll_back)

    # End attempts.

    @rule(pick=PICKS, verb=st.sampled_from(list(ENDINGS)), number=st.integers(0, 1))
    def end(self, pick: int, verb: str, number: int) -> None:
        leased = self.pick_lease(pick)
        if leased is None:
            return
        (outcome,) = end(self.sessions[number], verb, [leased])
        if leased.id in self.held:
            assert outcome in ("busy", "lease_lost", "cancelled")
            return
        if self.model.expected_outcome(leased, "ours") == "ours":
            self.settle(leased, verb, outcome)
        else:
            assert outcome == self.model.expected_outcome(leased, ENDINGS[verb])
        self.model.orphans = {id_: one for id_, one in self.model.orphans.items() if one != leased}

    @rule(pick=PICKS, verb=st.sampled_from(["complete", "defer", "give_back"]))
    def end_and_leave_open(self, pick: int, verb: str) -> None:
        leased = self.pick_lease(pick)
        if leased is None or not self.idle or leased.id in self.held:
            return
        if self.model.leases.get(leased.id) != leased:
            return
        session = self.begin()
        (outcome,) = end(session, verb, [leased])
        self.hold([leased])
        at = value(session, "select max(dequeue_at) from message where id = %s", leased.id)

        def commit() -> None:
            self.held -= {leased.id}
            self.settle(leased, verb, outcome, at)

        self.leave_open(session, commit, lambda: self.held.discard(leased.id))

    @rule(pick=PICKS, is_alone=st.booleans())
    def heartbeat(self, pick: int, is_alone: bool) -> None:
        leased = self.pick_lease(pick)
        if leased is None:
            return
        outcome = value(
            self.sessions[0],
            "select outcome from message_heartbeat(array[%s::bigint], array[%s::bigint], %s, %s)",
            *(leased.id, leased.token, NEVER, is_alone),
        )
        if leased.id not in self.held:
            assert outcome == self.model.expected_outcome(leased, "extended")
        if outcome == "extended" and is_alone:
            self.model.shared.discard(leased.token)

    @rule(limit=st.sampled_from([1, 10]), times=st.sampled_from([1, 1, 2, 3]))
    def expire(self, limit: int, times: int) -> None:
        """Expire all leases; a new session without hints dequeues first, and then loses its leases too."""
        if self.open:
            return
        for _ in range(times):
            self.sessions[0].execute("update lease set unlock_at = 0")
            with connect(self.dsn) as fresh:
                answer = ask(fresh, limit, lease_ms=NEVER, is_shared=True)
                self.model.lose_all(ids(fresh, "select message_id from dead"))
                self.release(fresh, answer, is_shared=True)
        self.dequeue_until_certain(self.sessions[0], limit)

    @rule(pick=PICKS)
    def cancel(self, pick: int) -> None:
        if self.created_ids:
            self.cancel_one(self.created_ids[pick % len(self.created_ids)])

    def cancel_one(self, id_: int) -> None:
        outcome = value(self.sessions[1], "select outcome from message_cancel(array[%s::bigint])", id_)
        message = self.model.messages.get(id_)
        if message is None or message.state == DEAD:
            assert outcome == "unknown" or id_ in self.held
        elif outcome == "cancelled":
            self.model.messages.pop(id_)
            if id_ in self.model.leases:
                self.model.orphans[id_] = self.model.leases.pop(id_)
        else:
            assert outcome == "busy"
            assert id_ in self.held

    @rule(pick=PICKS)
    def cancel_leased_message(self, pick: int) -> None:
        if leased := self.pick_lease(pick):
            self.cancel_one(leased.id)

    # Operate.

    @rule(cap=CAPS)
    def set_default(self, cap: int | None) -> None:
        policy = json.dumps({"default_policy": {"max_concurrency": cap}})
        self.sessions[0].execute("select queue_set(%s)", [policy])
        self.model.default_cap = cap

    @rule(channel=CHANNELS, cap=OWN_CAPS, interval_ms=INTERVALS_MS)
    def set_policy(self, channel: str, cap: int | str | None, interval_ms: int | None) -> None:
        outcome = value(
            self.sessions[0],
            "select channel_set(%s, %s)",
            channel,
            json.dumps({"max_concurrency": cap, "release_interval_ms": interval_ms}),
        )
        if outcome == "set":
            self.model.limits_by_channel[channel] = self.model.limits(channel).with_changes(cap, interval_ms)
        assert outcome == "set" or self.open

    @rule(channel=CHANNELS, is_paused=st.booleans())
    def pause(self, channel: str, is_paused: bool) -> None:
        outcome = value(self.sessions[0], f"select channel_{'pause' if is_paused else 'resume'}(%s)", channel)
        if outcome == "set":
            self.model.limits(channel).is_paused = is_paused
        assert outcome == "set" or self.open

    @rule(channel=CHANNELS, count=COUNTS, limit=LIMITS)
    def pause_create_and_dequeue(self, channel: str, count: int, limit: int) -> None:
        self.pause(channel, True)
        self.model.create(self.insert(self.sessions[1], channel, count, "now"))
        self.dequeue_until_certain(self.sessions[0], limit)
        self.pause(channel, False)
        self.dequeue_until_certain(self.sessions[1], limit)

    @rule(channel=CHANNELS)
    def delete_channel(self, channel: str) -> None:
        outcome = value(self.sessions[1], "select channel_delete(%s)", channel)
        is_empty = not self.model.messages_of(channel, WAITING) and not self.model.lease_count(channel)
        if outcome == "deleted":
            assert is_empty
            self.model.limits_by_channel.pop(channel, None)
        elif outcome == "not_empty":
            assert not is_empty or self.open
        else:
            assert outcome == "unknown" or self.open

    @rule(channel=CHANNELS, is_purged=st.booleans())
    def redrive_or_purge(self, channel: str, is_purged: bool) -> None:
        session = self.sessions[0]
        dead = {one.id for one in self.model.messages_of(channel, DEAD)}
        if is_purged:
            assert value(session, "select dead_purge_channel(%s)", channel) == len(dead)
            self.model.messages = {i: one for i, one in self.model.messages.items() if i not in dead}
            return
        session.execute("select dead_redrive_channel(%s)", [channel])
        for id_, at in session.execute("select id, dequeue_at from message where id = any(%s)", [list(dead)]):
            self.model.messages[id_] = Message(id_, channel, at, self.model.messages[id_].max_attempts)

    @rule()
    def repair(self) -> None:
        self.sessions[0].execute("select count(*) from queue_check(true)")

    # End open transactions.

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
        """Check that every committed message is exactly one of waiting, leased, buried or gone."""
        session = self.sessions[1]
        assert check(session) == []
        messages = self.model.messages.values()
        assert ids(session, "select id from message") == {one.id for one in messages if one.state != DEAD}
        assert ids(session, "select message_id from dead") == {
            one.id for one in messages if one.state == DEAD
        }
        if not self.open:
            assert ids(session, "select message_id from lease") == {
                *self.model.leases,
                *self.model.orphans,
            }

    # Helpers of the rules.

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

    def pick_lease(self, pick: int) -> Leased | None:
        return self.seen[pick % len(self.seen)] if self.seen else None

    def release(self, session: Session, answer: Answer, is_shared: bool) -> None:
        self.model.release(answer.leased, now_ms(session))
        self.seen += answer.leased
        if is_shared:
            self.model.shared |= {one.token for one in answer.leased}

    def dequeue_until_certain(self, session: Session, limit: int, is_shared: bool = False) -> None:
        """Dequeue again while the reply says so; then every message that could be released must have been."""
        until = time.monotonic() + 10
        while True:
            answer = ask(session, limit, lease_ms=NEVER, is_shared=is_shared)
            self.release(session, answer, is_shared)
            is_final = answer.outcome == "empty" and (answer.wait_ms or 0) > 2000
            if answer.leased or is_final or self.has_open_turns or time.monotonic() > until:
                break
            time.sleep(min((answer.wait_ms or 1) / 1000, 0.3))
        if not answer.leased and not self.has_open_turns:
            assert self.model.channels_ready(now_ms(session) - 5, now_ms(session) * 1000 - 50_000) == set()

    def settle(self, leased: Leased, verb: str, outcome: str, at: int | None = None) -> None:
        del self.model.leases[leased.id]
        message = self.model.messages[leased.id]
        is_buried = (verb, outcome) == ("defer", "buried")
        assert is_buried or outcome == ENDINGS[verb]
        if verb == "complete":
            del self.model.messages[leased.id]
        elif verb == "bury":
            message.state = DEAD
        else:
            message.state = WAITING
            if verb == "defer":
                message.spend(is_buried)
            elif verb == "advance":
                message.renew()
            if verb in ("defer", "advance") and not is_buried:
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


@pytest.mark.parametrize("examples", [20, pytest.param(200, marks=pytest.mark.heavy)])
def test_any_sequence_of_calls_keeps_the_queues_promises(dsn: str, examples: int) -> None:
    QueueMachine.dsn = dsn
    run_state_machine_as_test(
        QueueMachine,
        settings=settings(
            max_examples=int(EXAMPLES or examples),
            stateful_step_count=40,
            deadline=None,
            derandomize=EXAMPLES is None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        ),
    )
    with connect(dsn) as session:
        session.execute(f"truncate {TABLES}")


def connect(dsn: str) -> Session:
    # Without JIT, because the check after each step would be compiled each time.
    options = "-c search_path=lonnymq -c lock_timeout=2s -c jit=off"
    return psycopg.connect(dsn, autocommit=True, options=options)


def now_ms(session: Session) -> int:
    now: int = value(session, "select to_epoch(clock_timestamp())")
    return now


def ids(session: Session, query: str) -> set[int]:
    return {row[0] for row in session.execute(query).fetchall()}
