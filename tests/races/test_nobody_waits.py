"""Invariant 7: no call waits for another call's transaction, and the tenant's other messages are released."""

import itertools
import random
import threading
from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest

from lonnymq.model.acknowledge import ACTIONS
from tests.conftest import Connect
from tests.races.sessions import (
    LEAVE,
    REPORT,
    Leased,
    Session,
    create,
    create_in,
    deadlocks,
    dequeue,
    drain,
    end,
    value,
    work_until,
)

pytestmark = pytest.mark.race

CHANNEL = "a"
VERBS = [*(action.name for action in ACTIONS), "heartbeat"]
OUTCOMES = {"set", "unchanged", "deleted", "not_empty", "busy", "unknown"}


class LeaseHolder:
    """A session that holds leases, as a worker does."""

    def __init__(self, session: Session) -> None:
        self.session = session
        session.execute("set lock_timeout = '50ms'")
        self.leased: list[Leased] = []
        self.replenish()

    def replenish(self) -> None:
        create(self.session, CHANNEL, 20)
        while len(self.leased) < 10:
            self.leased += dequeue(self.session, 10)

    def take(self) -> Leased:
        return self.leased.pop()


def publish(session: Session) -> None:
    part = uuid4()
    session.execute(
        "insert into stage (publication, part, ordinal, channel, contents) values (%s, %s, 1, %s, '{x}')",
        [str(part), part, CHANNEL],
    )
    session.execute("select message_publish(%s, array[%s], array[1])", [str(part), part])


def cron_tick(session: Session) -> None:
    session.execute(
        "select t.* from cron c cross join lateral"
        " cron_tick(c.name, c.mark_at, now(), array[now()], now() + interval '1 minute') t"
        " where c.mark_at < now()"
    )


def acknowledge(verb: str) -> Callable[[LeaseHolder], None]:
    def acknowledge_one(holder: LeaseHolder) -> None:
        assert end(holder.session, verb, [holder.take()])[0] not in ("busy", "lease_lost")

    return acknowledge_one


def select(query: str) -> Callable[[LeaseHolder], None]:
    return lambda holder: assert_not_locked(value(holder.session, query))


def assert_not_locked(answer: object) -> None:
    assert not isinstance(answer, str) or answer in OUTCOMES


CALLS: dict[str, Callable[[LeaseHolder], None]] = {
    "create": select(f"select (message_create('{CHANNEL}', 'x')).message_id"),
    "create_many": lambda holder: assert_not_locked(create(holder.session, CHANNEL, 3)),
    "publish": lambda holder: publish(holder.session),
    "dequeue": lambda holder: holder.leased.extend(dequeue(holder.session)),
    **{verb: acknowledge(verb) for verb in VERBS},
    "cancel": lambda holder: cancel(holder),
    "redrive": select(f"select dead_redrive_channel('{CHANNEL}')"),
    "purge": select(f"select dead_purge_channel('{CHANNEL}')"),
    "channel_set": select(f"""select channel_set('{CHANNEL}', '{{"weight": 2}}')"""),
    "channel_delete": select(f"select channel_delete('{CHANNEL}')"),
    "explain": select(f"select (channel_explain('{CHANNEL}')).waiting"),
    "status": select("select (queue_status()).leased"),
    "pulse": select("select (queue_pulse()).leased"),
    "busiest": select("select count(*) from channel_busiest()"),
    "overdue": select("select count(*) from channel_overdue()"),
    "list": select(f"select count(*) from channel_list(array['{CHANNEL}'])"),
    "tables": select("select count(*) from queue_tables()"),
    "history_lag": select("select count(*) from history_lag()"),
    "channel_page": select("select count(*) from channel_page()"),
    "message_page": select("select (message_page()).next_id is null"),
    "dead_page": select("select (dead_page()).next_id is null"),
    "dead_groups": select("select count(*) from dead_groups()"),
    "check": select("select count(*) from queue_check()"),
    "repair": select("select count(*) from queue_check(true)"),
    "register": select("select sleeper_register('worker', 1000) is null"),
    "clear": select("select sleeper_clear('worker') is null"),
    "worker_report": select(REPORT),
    "worker_drain": select("select count(*) from worker_drain(null)"),
    "worker_leave": select(LEAVE),
    "cron_set": select("select cron_set('c', gen_random_uuid()::text, 'a', 'x')"),
    "cron_set_new": select("select cron_set(gen_random_uuid()::text, '* * * * *', 'a', 'x')"),
    "cron_due": select("select count(*) from cron_due()"),
    "cron_tick": lambda holder: cron_tick(holder.session),
    "cron_pause": select("select cron_pause('c')"),
    "cron_resume": select("select cron_resume('c')"),
    "cron_list": select("select count(*) from cron_list()"),
    "cron_overdue": select("select count(*) from cron_overdue()"),
    "cron_delete": select("select cron_delete('c')"),
    "group_create": select(f"select (group_create('{{{CHANNEL}}}', '{{x}}', '{CHANNEL}', 'x')).message_id"),
    "group_check": select("select count(*) from group_check(array(select callback_id from message_group))"),
    "group_sweep": select("select group_sweep()"),
    "run_now": lambda holder: run_now(holder),
    "message_attempts": select("select count(*) from message_attempts(1)"),
    "count": select("select count(*) from queue_count()"),
    "audit_record": select("select audit_record('alice', 'v') > 0"),
    "audit_page": select("select count(*) from audit_page()"),
    "history_prepare": select("select history_prepare(3)"),
    "history_prepare_if_due": select("select (history_prepare_if_due()).wait_ms"),
    "stage_prune": select("select stage_prune()"),
}
# Calls of history_prepare wait for each other, as its header says.
MAY_BE_LEFT_OPEN = [name for name in CALLS if name not in ("history_prepare",)]


APPENDERS = [
    *("create", "create_many", "publish", "redrive", "cancel", "run_now"),
    *VERBS,
]


def cancel(holder: LeaseHolder) -> None:
    (one,) = create(holder.session, CHANNEL)
    holder.session.execute("select message_cancel(array[%s::bigint])", [one])


def run_now(holder: LeaseHolder) -> None:
    holder.session.execute(
        "select message_run_now(array[message_id]) from message_create(%s, 'x', p_delay_ms => 60000)",
        [CHANNEL],
    )


@pytest.mark.parametrize("history", ["off", "metadata"])
def test_no_call_waits_for_an_open_transaction(connect: Connect, history: str) -> None:
    """Each call in turn is left uncommitted while all the others run on the same channel."""
    setup = connect()
    setup.execute("select queue_set(jsonb_build_object('history', %s::text))", [history])
    holder, others = LeaseHolder(connect()), LeaseHolder(connect())
    waits: list[str] = []
    for open_call in MAY_BE_LEFT_OPEN:
        for one in (holder, others):
            one.replenish()
        holder.session.execute("begin")
        CALLS[open_call](holder)
        for name, call in CALLS.items():
            try:
                call(others)
            except psycopg.errors.LockNotAvailable as error:
                waits.append(f"{name} waits for {open_call}: {error.diag.context}")
        holder.session.execute("commit")
    assert waits == []


def test_workers_get_other_messages_of_the_channel_meanwhile(connect: Connect) -> None:
    holder, worker = LeaseHolder(connect()), connect()
    worker.execute("set lock_timeout = '50ms'")
    for open_call in APPENDERS:
        holder.replenish()
        holder.session.execute("begin")
        CALLS[open_call](holder)
        ids = set(create(worker, CHANNEL, 3))
        worked = work_until(worker, lambda worked, ids=ids: ids <= {one.id for one in worked}, limit=5)  # type: ignore[misc]
        holder.session.execute("rollback")
        assert ids <= {one.id for one in worked}, open_call


def test_an_uncommitted_dequeue_hides_only_the_channels_it_locked(connect: Connect) -> None:
    session, holder, worker = connect(), connect(), connect()
    create_in(session, [f"channel {n}" for n in range(30)] * 3)
    drain(session)
    create_in(session, [f"channel {n}" for n in range(30)] * 3)
    holder.execute("begin")
    held = {one.channel for one in dequeue(holder, 3)}
    served = {one.channel for one in dequeue_repeatedly(worker)}
    holder.execute("rollback")
    assert len(held) == 3
    assert len(served) >= 30 - 3 - 8


def dequeue_repeatedly(session: Session) -> list[Leased]:
    worked: list[Leased] = []
    for _ in range(60):
        worked += dequeue(session, 5)
    return worked


def test_transactions_over_channels_in_random_orders_never_deadlock(connect: Connect) -> None:
    sessions = [connect() for _ in range(8)]
    channels = [f"channel {n}" for n in range(20)]
    for session in sessions:
        session.execute("set lock_timeout = '200ms'")
    create_in(sessions[0], channels * 20)
    numbers = itertools.count()
    errors: list[BaseException] = []

    def use_channels(session: Session) -> None:
        rng = random.Random(next(numbers))
        leased: list[Leased] = []
        try:
            for _ in range(25):
                session.execute("begin")
                for channel in rng.sample(channels, 6):
                    call_at_random(session, channel, rng, leased)
                session.execute(rng.choice(["commit", "commit", "rollback"]))
                leased = [one for one in leased if rng.random() < 0.8]
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=use_channels, args=[session]) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert deadlocks(sessions[0]) == 0
    sessions[0].execute("update lease set unlock_at = 0")
    drain(sessions[0])


def call_at_random(session: Session, channel: str, rng: random.Random, leased: list[Leased]) -> None:
    verb = rng.choice(["create", "set", "cancel", "dequeue", "dequeue", "delete", "end", "end", "end", "end"])
    if verb == "create":
        create(session, channel, 2)
    elif verb == "set":
        session.execute("select channel_set(%s, '{\"weight\": 2}')", [channel])
    elif verb == "cancel":
        session.execute(
            "select message_cancel(array(select id from message where channel_id ="
            " (select id from channel where name = %s) order by random() limit 2))",
            [channel],
        )
    elif verb == "delete":
        session.execute("select channel_delete(%s)", [channel])
    elif verb == "dequeue":
        leased += dequeue(session, 5)
    elif leased:
        some = list({one.id: one for one in leased}.values())[:3]
        rng.shuffle(some)
        end(session, rng.choice(VERBS), some)
