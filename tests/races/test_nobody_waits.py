"""Invariant 7: no call waits for another call's transaction, and a tenant's other messages go on."""

import itertools
import random
import threading
from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest

from tests.conftest import Connect
from tests.races.sessions import (
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
FREE = {"set", "unchanged", "deleted", "not_empty", "busy", "unknown"}


class Hands:
    """A session with something leased, as every worker has."""

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


def call(verb: str) -> Callable[[Hands], None]:
    def end_one(hands: Hands) -> None:
        assert end(hands.session, verb, [hands.take()])[0] not in ("busy", "lease_lost")

    return end_one


def run(query: str) -> Callable[[Hands], None]:
    return lambda hands: assert_answer(value(hands.session, query))


def assert_answer(answer: object) -> None:
    assert not isinstance(answer, str) or answer in FREE


CALLS: dict[str, Callable[[Hands], None]] = {
    "create": run(f"select (message_create('{CHANNEL}', 'x')).message_id"),
    "create_many": lambda hands: assert_answer(create(hands.session, CHANNEL, 3)),
    "publish": lambda hands: publish(hands.session),
    "dequeue": lambda hands: hands.leased.extend(dequeue(hands.session)),
    "complete": call("complete"),
    "defer": call("defer"),
    "bury": call("bury"),
    "give_back": call("give_back"),
    "heartbeat": call("heartbeat"),
    "cancel": lambda hands: cancel(hands),
    "redrive": run(f"select dead_redrive_channel('{CHANNEL}')"),
    "purge": run(f"select dead_purge_channel('{CHANNEL}')"),
    "channel_set": run(f"""select channel_set('{CHANNEL}', '{{"weight": 2}}')"""),
    "channel_delete": run(f"select channel_delete('{CHANNEL}')"),
    "explain": run(f"select (channel_explain('{CHANNEL}')).waiting"),
    "status": run("select (queue_status()).leased"),
    "check": run("select count(*) from queue_check()"),
    "repair": run("select count(*) from queue_check(true)"),
    "register": run("select sleeper_register('worker', 1000) is null"),
    "clear": run("select sleeper_clear('worker') is null"),
    "cron_set": run("select cron_set('c', gen_random_uuid()::text, 'a', 'x')"),
    "cron_set_new": run("select cron_set(gen_random_uuid()::text, '* * * * *', 'a', 'x')"),
    "cron_due": run("select count(*) from cron_due()"),
    "cron_tick": lambda hands: cron_tick(hands.session),
    "cron_pause": run("select cron_pause('c')"),
    "cron_resume": run("select cron_resume('c')"),
    "cron_list": run("select count(*) from cron_list()"),
    "cron_delete": run("select cron_delete('c')"),
    "history_prepare": run("select history_prepare(3)"),
    "stage_prune": run("select stage_prune()"),
}
# A new partition makes others wait for the one who makes it, which is said in its header.
MAY_BE_LEFT_OPEN = [name for name in CALLS if name not in ("history_prepare",)]


APPENDERS = [
    *("create", "create_many", "publish", "redrive", "cancel"),
    *("complete", "defer", "bury", "give_back", "heartbeat"),
]


def cancel(hands: Hands) -> None:
    (one,) = create(hands.session, CHANNEL)
    hands.session.execute("select message_cancel(array[%s::bigint])", [one])


@pytest.mark.parametrize("history", ["off", "metadata"])
def test_no_call_waits_for_an_open_transaction(connect: Connect, history: str) -> None:
    """Each call is left open in turn while all the others run on the same channel."""
    setup = connect()
    setup.execute("select queue_set(jsonb_build_object('history', %s::text))", [history])
    hands, others = Hands(connect()), Hands(connect())
    waits: list[str] = []
    for left_open in MAY_BE_LEFT_OPEN:
        for hand in (hands, others):
            hand.replenish()
        hands.session.execute("begin")
        CALLS[left_open](hands)
        for name, run_call in CALLS.items():
            try:
                run_call(others)
            except psycopg.errors.LockNotAvailable as error:
                waits.append(f"{name} waits for {left_open}: {error.diag.context}")
        hands.session.execute("commit")
    assert waits == []


def test_workers_get_the_channels_other_messages_meanwhile(connect: Connect) -> None:
    hands, worker = Hands(connect()), connect()
    worker.execute("set lock_timeout = '50ms'")
    for left_open in APPENDERS:
        hands.replenish()
        hands.session.execute("begin")
        CALLS[left_open](hands)
        ids = set(create(worker, CHANNEL, 3))
        worked = work_until(worker, lambda worked, ids=ids: ids <= {one.id for one in worked}, limit=5)  # type: ignore[misc]
        hands.session.execute("rollback")
        assert ids <= {one.id for one in worked}, left_open


def test_a_dequeue_left_open_hides_only_the_channels_it_took_from(connect: Connect) -> None:
    session, holder, worker = connect(), connect(), connect()
    create_in(session, [f"channel {n}" for n in range(30)] * 3)
    drain(session)
    create_in(session, [f"channel {n}" for n in range(30)] * 3)
    holder.execute("begin")
    held = {one.channel for one in dequeue(holder, 3)}
    served = {one.channel for one in drain_others(worker)}
    holder.execute("rollback")
    assert len(held) == 3
    assert len(served) >= 30 - 3 - 8


def drain_others(session: Session) -> list[Leased]:
    worked: list[Leased] = []
    for _ in range(60):
        worked += dequeue(session, 5)
    return worked


def test_transactions_over_many_channels_in_random_orders_never_deadlock(connect: Connect) -> None:
    sessions = [connect() for _ in range(8)]
    channels = [f"channel {n}" for n in range(20)]
    for session in sessions:
        session.execute("set lock_timeout = '200ms'")
    create_in(sessions[0], channels * 20)
    numbers = itertools.count()
    errors: list[BaseException] = []

    def use(session: Session) -> None:
        chance = random.Random(next(numbers))
        leased: list[Leased] = []
        try:
            for _ in range(25):
                session.execute("begin")
                for channel in chance.sample(channels, 6):
                    act(session, channel, chance, leased)
                session.execute(chance.choice(["commit", "commit", "rollback"]))
                leased = [one for one in leased if chance.random() < 0.8]
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=use, args=[session]) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert deadlocks(sessions[0]) == 0
    sessions[0].execute("update lease set unlock_at = 0")
    drain(sessions[0])


def act(session: Session, channel: str, chance: random.Random, leased: list[Leased]) -> None:
    verb = chance.choice(
        ["create", "set", "cancel", "dequeue", "dequeue", "delete", "end", "end", "end", "end"]
    )
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
        chance.shuffle(some)
        end(session, chance.choice(["complete", "defer", "bury", "give_back", "heartbeat"]), some)
