"""Channels are deleted, recreated, loaded in bulk and worked at the same time, and no message is lost."""

import random
import threading
import time
from collections import Counter
from uuid import uuid4

import pytest

from tests.conftest import Connect
from tests.races.barrier import StoppedDequeue, session_that_stops_at
from tests.races.monitor import InvariantMonitor
from tests.races.sessions import Session, check, complete, create, dequeue, drain, value

pytestmark = pytest.mark.race

SECONDS = 2


def run_all(*targets: object) -> None:
    threads = [threading.Thread(target=target) for target in targets]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_deleting_channels_in_use_loses_no_message(connect: Connect) -> None:
    producers, workers, deleters = ([connect() for _ in range(2)] for _ in range(3))
    until = time.time() + SECONDS
    created_ids: list[int] = []
    worked: list[int] = []
    outcomes: Counter[str] = Counter()

    def is_running() -> bool:
        return time.time() < until or (not outcomes["deleted"] and time.time() < until + 30)

    def produce(session: Session) -> None:
        rng = random.Random(id(session))
        while is_running():
            # Only a channel without messages can be deleted.
            if len(created_ids) > len(worked) + 20:
                time.sleep(0.01)
                continue
            session.execute("begin")
            ids = create(session, f"channel {rng.randrange(3)}")
            time.sleep(rng.choice([0, 0, 0.002]))
            session.execute("commit")
            created_ids.extend(ids)

    def work(session: Session) -> None:
        while is_running():
            leased = dequeue(session, 5)
            assert all(one.channel.startswith("channel ") for one in leased)
            complete(session, leased)
            worked.extend(one.id for one in leased)

    def delete(session: Session) -> None:
        rng = random.Random(id(session))
        while is_running():
            outcomes[value(session, "select channel_delete(%s)", f"channel {rng.randrange(3)}")] += 1

    with InvariantMonitor(connect()) as monitor:
        run_all(
            *(lambda s=s: produce(s) for s in producers),
            *(lambda s=s: work(s) for s in workers),
            *(lambda s=s: delete(s) for s in deleters),
        )
    worked += [one.id for one in drain(workers[0])]
    assert outcomes["deleted"] > 0
    assert sorted(created_ids) == sorted(worked)
    assert monitor.problems == []
    assert check(workers[0]) == []


def test_messages_of_bulk_loads_are_processed_once_during_the_loads(connect: Connect) -> None:
    loaders, workers = [connect() for _ in range(2)], [connect() for _ in range(2)]
    until = time.time() + SECONDS
    created_ids: list[int] = []
    worked: list[int] = []

    def load(session: Session) -> None:
        rng = random.Random(id(session))
        while time.time() < until:
            part, count = uuid4(), rng.choice([1, 10, 500])
            columns = "publication, part, ordinal, channel, contents, keys, dequeue_ats"
            with session.cursor().copy(f"copy stage ({columns}) from stdin") as copy:
                for n in range(count):
                    key = f"key {rng.randrange(300)}" if rng.random() < 0.1 else None
                    at = rng.choice([None, None, 0, -3])
                    channel = f"channel {rng.randrange(40)}"
                    copy.write_row([str(part), part, n, channel, [b"x"], [key], [at]])
            session.execute("begin")
            created = value(
                session,
                "select created from message_publish(%s, array[%s], array[%s])",
                str(part),
                part,
                count,
            )
            time.sleep(rng.choice([0, 0.01]))
            session.execute("commit")
            created_ids.append(created)

    def work(session: Session) -> None:
        while time.time() < until:
            leased = dequeue(session, 100)
            complete(session, leased)
            worked.extend(one.id for one in leased)

    with InvariantMonitor(connect()) as monitor:
        run_all(*(lambda s=s: load(s) for s in loaders), *(lambda s=s: work(s) for s in workers))
    worked += [one.id for one in drain(workers[0])]
    assert len(worked) == len(set(worked)) == sum(created_ids)
    assert monitor.problems == []
    assert check(workers[0]) == []


def test_a_bulk_load_does_not_count_messages_of_other_transactions(
    connect: Connect,
) -> None:
    """Both transactions begin in the same millisecond; the other one creates and commits during the load."""
    loader, other, watcher = connect(), connect(), connect()
    create_keyed(loader, "a", "k")
    part = uuid4()
    columns = "publication, part, ordinal, channel, contents, keys"
    with loader.cursor().copy(f"copy stage ({columns}) from stdin") as copy:
        for n in range(30_000):
            copy.write_row([str(part), part, n, "a", [b"x"], ["k" if n == 0 else None]])
    begin_together(loader, other)
    published = threading.Thread(
        target=loader.execute, args=["select message_publish(%s, array[%s], array[30000])", [str(part), part]]
    )
    first = value(watcher, "select last_value from message_id_seq")
    published.start()
    while value(watcher, "select last_value from message_id_seq") <= first + 10:
        pass
    create(other, "a", 100)
    other.execute("commit")
    published.join()
    loader.execute("commit")
    assert check(watcher) == []


def begin_together(*sessions: Session) -> None:
    """Begin transactions again until their now() is in the same millisecond."""
    while True:
        with sessions[0].pipeline(), sessions[1].pipeline():
            for session in sessions:
                session.execute("begin")
        if len({value(session, "select to_epoch(now())") for session in sessions}) == 1:
            return
        for session in sessions:
            session.execute("rollback")


def create_keyed(session: Session, channel: str, key: str) -> None:
    session.execute("select message_create(%s, 'x', p_key => %s)", [channel, key])


@pytest.mark.broken_on_purpose
def test_a_channel_deleted_before_its_turn_is_created_leaves_no_trace(connect: Connect) -> None:
    operator, barrier = connect(), connect()
    operator.execute("select channel_set('a')")
    with session_that_stops_at(connect, "wake") as stopping:
        with StoppedDequeue(stopping, barrier):
            assert value(operator, "select channel_delete('a')") == "deleted"
        assert check(operator) == []
        assert value(operator, "select count(*) from turn") == 0
