"""A scheduled message is made due while dequeues choose and lease it."""

import threading
from collections import Counter

import pytest

from tests.conftest import Connect
from tests.races.sessions import Leased, Session, ask, check, complete, create, value
from tests.races.test_rule_07_cancel import GatedDequeue


@pytest.mark.parametrize("limit", [1, 5])
@pytest.mark.parametrize("policy", ["{}", '{"max_concurrency": 2}', '{"release_interval_ms": 1}'])
def test_a_message_that_is_chosen_meanwhile_is_leased_once(connect: Connect, limit: int, policy: str) -> None:
    """The call changes the message's time after a dequeue has chosen it: as if its clock were earlier."""
    session = connect()
    session.execute("select channel_set('a', %s)", [policy])
    ids = create(session, "a", 3)
    with GatedDequeue(connect, limit) as dequeue:
        # What message_run_now does, if it has read the clock a moment before the message became due.
        session.execute(
            "with moved as (update message set dequeue_at = dequeue_at - 1 where id = %s returning *)"
            " insert into wake (channel_id, at, message_id, to_at, to_id)"
            " select channel_id, dequeue_at, id, dequeue_at, id from moved",
            [ids[0]],
        )
    leased = [one.id for one in dequeue.answer.leased]
    assert check(session) == []
    complete(session, dequeue.answer.leased)
    while len(leased) < 3:
        answer = ask(session, 5)
        leased += [one.id for one in answer.leased]
        complete(session, answer.leased)
    assert Counter(leased) == Counter(ids)
    assert check(session) == []


def complete_all(session: Session, leased: list[Leased]) -> list[int]:
    """Return the ids of those that were completed; the others had been cancelled."""
    done: list[int] = []
    while leased:
        outcomes = list(zip(leased, complete(session, leased), strict=True))
        done += [one.id for one, outcome in outcomes if outcome == "completed"]
        leased = [one for one, outcome in outcomes if outcome == "busy"]
    return done


def test_hastening_at_full_speed_loses_and_repeats_nothing(connect: Connect) -> None:
    """Messages become due while they are hastened, leased, completed and cancelled."""
    session, hastener, canceller = connect(), connect(), connect()
    session.execute("select channel_set('capped', '{\"max_concurrency\": 50}')")
    is_over = threading.Event()
    cancelled: set[int] = set()

    def hasten() -> None:
        while not is_over.is_set():
            hastener.execute(
                "select count(*) from message_run_now("
                "array(select id from message order by random() limit 100))"
            )

    def cancel() -> None:
        while not is_over.is_set():
            rows = canceller.execute(
                "select message_id from message_cancel("
                "array(select id from message order by random() limit 2)) where outcome = 'cancelled'"
            ).fetchall()
            cancelled.update(id_ for (id_,) in rows)

    threads = [threading.Thread(target=hasten), threading.Thread(target=cancel)]
    for thread in threads:
        thread.start()
    completed: Counter[int] = Counter()
    created: set[int] = set()
    try:
        for _ in range(40):
            rows = session.execute(
                "select message_id from message_create_many(array(select case when n % 2 = 0 then 'plain'"
                " else 'capped' end from generate_series(1, 100) n), array_fill('x'::bytea, array[100]),"
                " p_delays_ms => array(select n % 20 from generate_series(1, 100) n))"
            ).fetchall()
            created.update(id_ for (id_,) in rows)
            leased = ask(session, 100).leased
            completed.update(complete_all(session, leased))
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert check(session) == []
    while value(session, "select count(*) from message"):
        completed.update(complete_all(session, ask(session, 100).leased))
    assert max(completed.values()) == 1
    assert set(completed) | cancelled == created
    assert not set(completed) & cancelled
    assert check(session) == []
