"""Rule 5: a worker that sleeps as documented is notified of every message that becomes due."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import Connect
from tests.races.hints import pretend_expensive_scan
from tests.races.sessions import Leased, Session, ask, complete, create, dequeue, drain, end, value
from tests.races.sleeper import Sleeper

pytestmark = pytest.mark.race

ROUNDS = 150


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read", "serializable"])
def test_no_wake_up_is_lost_around_a_registration(connect: Connect, isolation: str) -> None:
    sleeper, producer = Sleeper(connect(), "sleeper"), connect()
    rng = random.Random(isolation)
    pauses = [[rng.choice([0, 0, rng.random() * 0.004]) for _ in range(3)] for _ in range(ROUNDS)]

    def produce(before: float, inside: float, late: float) -> None:
        time.sleep(before)
        producer.execute(f"begin isolation level {isolation}")
        value(producer, "select count(*) from setting")
        time.sleep(inside)
        create(producer, "a")
        time.sleep(late)
        producer.execute("commit")

    for before, inside, late in pauses:
        with in_background(lambda times=(before, inside, late): produce(*times)):  # type: ignore[misc]
            answer = sleeper.fall_asleep()
            if answer is None:
                assert sleeper.sleep(max_s=10), "the sleeper was not notified"
                answer = ask(sleeper.session, 10)
        assert len(answer.leased) == 1
        complete(sleeper.session, answer.leased)
        sleeper.wake_up()


def test_two_sleepers_process_all_messages_of_many_producers(connect: Connect) -> None:
    sleepers = [Sleeper(connect(), f"sleeper {n}") for n in range(2)]
    producers = [connect() for _ in range(4)]
    worked: list[int] = []
    is_over = threading.Event()

    def work(sleeper: Sleeper) -> None:
        while not is_over.is_set():
            answer = sleeper.fall_asleep()
            while answer is None and not is_over.is_set():
                if sleeper.sleep(max_s=5):
                    answer = ask(sleeper.session, 10)
            if answer is not None and answer.leased:
                complete(sleeper.session, answer.leased)
                worked.extend(one.id for one in answer.leased)

    def produce(session: Session, seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(100):
            time.sleep(rng.choice([0, rng.random() * 0.01]))
            session.execute("begin")
            create(session, f"channel {rng.randrange(5)}")
            time.sleep(rng.choice([0, rng.random() * 0.005]))
            session.execute("commit")

    workers = [threading.Thread(target=work, args=[sleeper]) for sleeper in sleepers]
    makers = [threading.Thread(target=produce, args=[session, n]) for n, session in enumerate(producers)]
    for thread in workers + makers:
        thread.start()
    for thread in makers:
        thread.join()
    until = time.monotonic() + 20
    while len(worked) < 400 and time.monotonic() < until:
        time.sleep(0.01)
    in_time = len(worked)
    is_over.set()
    create_for_each(connect(), sleepers)
    for thread in workers:
        thread.join()
    assert in_time == 400


UNPARKING_CALLS: dict[str, Callable[[Session, list[Leased]], object]] = {
    "complete": lambda session, leased: end(session, "complete", leased),
    "bury": lambda session, leased: end(session, "bury", leased),
    "defer": lambda session, leased: end(session, "defer", leased),
    "give back": lambda session, leased: end(session, "give_back", leased),
    "a higher cap": lambda session, leased: set_cap(session, 2),
    "a cancelled message": lambda session, leased: end_cancelled(session, leased),
}


def test_every_call_that_unparks_a_capped_channel_notifies(connect: Connect) -> None:
    sleeper, worker = Sleeper(connect(), "sleeper"), connect()
    for name, unpark in UNPARKING_CALLS.items():
        set_cap(worker, 1)
        create(worker, "a", 2)
        leased = dequeue(worker)
        assert sleeper.fall_asleep() is None
        unpark(worker, leased)
        assert sleeper.sleep(max_s=10), name
        assert ask(sleeper.session).leased, name
        sleeper.wake_up()
        worker.execute("update lease set unlock_at = 0")
        drain(worker)


def test_a_cap_that_is_set_after_the_leases_does_not_hide_their_end(connect: Connect) -> None:
    sleeper, worker = Sleeper(connect(), "sleeper"), connect()
    create(worker, "a", 2)
    leased = dequeue(worker)
    worker.execute("""select channel_set('a', '{"max_concurrency": 1}')""")
    answer = ask(sleeper.session)
    assert answer.outcome == "empty"
    complete(worker, leased)
    until = time.monotonic() + 10
    while not answer.leased and time.monotonic() < until:
        sleeper.sleep(max_s=(answer.wait_ms or 0) / 1000)
        answer = ask(sleeper.session)
    assert answer.leased


def test_a_worker_is_told_to_sleep_no_longer_than_the_earliest_lease(connect: Connect) -> None:
    session = connect()
    create(session, "a")
    dequeue(session, lease_ms=20_000)
    answer = ask(session)
    assert answer.outcome == "empty"
    assert answer.wait_ms is not None
    assert answer.wait_ms <= 20_000


def test_a_worker_that_found_a_locked_channel_is_told_busy(connect: Connect) -> None:
    holder, session, worker = connect(), connect(), connect()
    create(session, "locked")
    holder.execute("begin")
    assert dequeue(holder)
    now = value(session, "select to_epoch(now())")
    create(session, "later", at=now + 3_600_000)
    create(session, "locked")
    answers = [ask(worker) for _ in range(3)]
    holder.execute("rollback")
    assert [answer.outcome for answer in answers] == ["busy"] * 3


def set_cap(session: Session, cap: int) -> None:
    session.execute("select channel_set('a', jsonb_build_object('max_concurrency', %s::integer))", [cap])


def end_cancelled(session: Session, leased: list[Leased]) -> None:
    """Cancel the message, then have its worker acknowledge it."""
    session.execute("select message_cancel(array(select message_id from lease))")
    assert end(session, "complete", leased) == ["cancelled"]


def create_for_each(session: Session, sleepers: list[Sleeper]) -> None:
    for _ in sleepers:
        create(session, "the end")
        time.sleep(0.05)


@contextmanager
def in_background(target: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=target)
    thread.start()
    yield
    thread.join()


def test_after_an_expensive_scan_no_scheduled_message_is_overslept(
    connect: Connect,
) -> None:
    session = connect()
    create(session, "a")
    assert dequeue(session)
    create(session, "scheduled", at=value(session, "select to_epoch(clock_timestamp())") + 400)
    pretend_expensive_scan(session, 1)
    answer = ask(session)
    assert answer.outcome == "busy" or (answer.wait_ms or 0) <= 500


def test_after_an_expensive_scan_a_worker_is_told_to_ask_again_soon(
    connect: Connect,
) -> None:
    """There is no notification for a channel that another call had locked during that scan and then left."""
    worker, other = connect(), connect()
    create(worker, "a")
    create(worker, "a")
    other.execute("begin")
    assert len(dequeue(other, 1)) == 1
    assert ask(worker).outcome == "busy"
    other.execute("commit")
    pretend_expensive_scan(worker, 0.5)
    answer = ask(worker)
    assert answer.outcome == "leased" or (answer.wait_ms or 0) <= 1_000
    time.sleep((answer.wait_ms or 0) / 1_000)
    assert len(answer.leased or dequeue(worker)) == 1
