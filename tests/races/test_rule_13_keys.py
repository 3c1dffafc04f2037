"""Rule 13: a call takes its keys in sorted order, so that two calls cannot deadlock."""

import threading
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from tests.conftest import Connect
from tests.races.sessions import Session, create, deadlocks, dequeue, drain, end, value, wait_for

pytestmark = pytest.mark.race

CHANNELS = [f"channel {n}" for n in range(5)]
KEYS = [f"key {n}" for n in range(5)]
Call = Callable[[Session, list[str], list[str]], object]


def create_many(session: Session, channels: list[str], keys: list[str]) -> None:
    session.execute(
        "select count(*) from message_create_many(%s::text[], %s::bytea[], p_keys => %s::text[])",
        [channels, [b"x"] * len(keys), keys],
    )


def publish(session: Session, channels: list[str], keys: list[str]) -> None:
    part = uuid4()
    stage(session, part, channels, keys)
    session.execute("select message_publish(%s, array[%s], array[%s])", [str(part), part, len(keys)])


def stage(session: Session, part: UUID, channels: list[str], keys: list[str]) -> None:
    columns = "publication, part, ordinal, channel, contents, keys"
    with session.cursor().copy(f"copy stage ({columns}) from stdin") as copy:
        for ordinal, (channel, key) in enumerate(zip(channels, keys, strict=True)):
            copy.write_row([str(part), part, ordinal, channel, [str(ordinal).encode()], [key]])


@pytest.mark.parametrize("call", [create_many, publish])
@pytest.mark.parametrize(
    ("channels", "keys", "held"),
    [(["a"] * 5, KEYS, ("a", KEYS[2])), (CHANNELS, ["k"] * 5, (CHANNELS[2], "k"))],
    ids=["one channel", "many channels"],
)
def test_two_calls_with_the_same_keys_in_opposite_order_do_not_deadlock(
    connect: Connect, call: Call, channels: list[str], keys: list[str], held: tuple[str, str]
) -> None:
    """A third session holds the middle key, so both calls stop halfway."""
    holder, first, second, watcher = connect(), connect(), connect(), connect()
    holder.execute("begin")
    holder.execute("select message_create(%s, 'x', p_key => %s)", held)
    threads = [
        threading.Thread(target=call, args=[first, channels, keys]),
        threading.Thread(target=call, args=[second, channels[::-1], keys[::-1]]),
    ]
    for thread in threads:
        thread.start()
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and pid = any(%s)"
    pids = [first.info.backend_pid, second.info.backend_pid]
    wait_for(lambda: value(watcher, waiting, pids) == 2)
    holder.execute("rollback")
    for thread in threads:
        thread.join()
    assert value(watcher, "select count(*) from message") == 5
    assert deadlocks(watcher) == 0
    assert len(drain(watcher)) == 5


def test_two_redrives_and_a_create_do_not_deadlock(connect: Connect) -> None:
    """Dead letters with the same keys, in both orders of ids, are redriven concurrently."""
    sessions = [connect() for _ in range(3)]
    session = sessions[0]
    for keys in (KEYS, KEYS[::-1]):
        for channel in CHANNELS:
            create_many(session, [channel] * 5, keys)
        end(session, "bury", dequeue(session, 100))
    ids = [row[0] for row in session.execute("select message_id from dead order by 1").fetchall()]
    barrier = threading.Barrier(3, timeout=20)

    def redrive(session: Session, ids: list[int]) -> None:
        barrier.wait()
        session.execute("select count(*) from dead_redrive(%s)", [ids])

    def create_all(session: Session) -> None:
        barrier.wait()
        create_many(session, CHANNELS[::-1] * 5, [key for key in KEYS for _ in CHANNELS])

    threads = [
        threading.Thread(target=redrive, args=[sessions[0], ids[:25]]),
        threading.Thread(target=redrive, args=[sessions[1], ids[25:]]),
        threading.Thread(target=create_all, args=[sessions[2]]),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value(session, "select count(*) from message") == 25
    assert deadlocks(session) == 0
    drain(session)


def test_a_key_is_unique_under_concurrent_creates(connect: Connect) -> None:
    sessions = [connect() for _ in range(8)]
    outcomes: list[str] = []

    def use(session: Session) -> None:
        for _ in range(40):
            row = session.execute(
                "select outcome, message_id from message_create('a', 'x', p_key => 'k')"
            ).fetchone()
            assert row is not None
            assert row[1] is not None
            outcomes.append(row[0])
            end(session, "complete", dequeue(session))

    threads = [threading.Thread(target=use, args=[session]) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 320
    assert set(outcomes) <= {"created", "duplicate"}
    assert deadlocks(sessions[0]) == 0


def test_a_bulk_load_with_keys_keeps_its_order(connect: Connect) -> None:
    session = connect()
    part = uuid4()
    stage(session, part, ["a"] * 500, [str(uuid4()) for _ in range(500)])
    session.execute("select message_publish(%s, array[%s], array[500])", [str(part), part])
    contents = [
        int(row[0])
        for row in session.execute("select content from message order by dequeue_at, id").fetchall()
    ]
    assert contents == list(range(500))


def test_a_bulk_load_keeps_its_order_among_a_hundred_thousand_channels(connect: Connect) -> None:
    session = connect()
    session.execute("insert into channel (id, name) select g, 'n' || g from generate_series(1, 100000) g")
    session.execute("analyze channel")
    part = uuid4()
    stage(session, part, ["a"] * 20_000, [None] * 20_000)  # type: ignore[list-item]
    session.execute("select message_publish(%s, array[%s], array[20000])", [str(part), part])
    contents = [
        int(row[0])
        for row in session.execute("select content from message order by dequeue_at, id").fetchall()
    ]
    assert contents == list(range(20_000))


def test_a_bulk_load_with_live_keys_counts_only_created_messages(connect: Connect) -> None:
    session = connect()
    create_many(session, ["a"] * 5, KEYS)
    create(session, "a", 5)
    publish(session, ["a"] * 5 + ["b"], [*KEYS[:3], "new", "new", "new"])
    assert value(session, "select count(*) from message") == 12
    assert len(drain(session)) == 12


def test_a_redrive_and_a_create_with_the_same_keys_do_not_deadlock(connect: Connect) -> None:
    """The dead letters are in reverse order of their keys; a third session holds the middle one."""
    holder, redriver, creator, watcher = connect(), connect(), connect(), connect()
    for key in KEYS[::-1]:
        create_many(watcher, ["a"], [key])
        end(watcher, "bury", dequeue(watcher))
    ids = [row[0] for row in watcher.execute("select message_id from dead order by 1").fetchall()]
    holder.execute("begin")
    holder.execute("select message_create('a', 'x', p_key => %s)", [KEYS[2]])
    redrive = "select count(*) from dead_redrive(%s)"
    threads = [
        threading.Thread(target=redriver.execute, args=[redrive, [ids]]),
        threading.Thread(target=create_many, args=[creator, ["a"] * 5, KEYS]),
    ]
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and pid = any(%s)"
    for thread in threads:
        thread.start()
    pids = [redriver.info.backend_pid, creator.info.backend_pid]
    wait_for(lambda: value(watcher, waiting, pids) == 2)
    holder.execute("rollback")
    for thread in threads:
        thread.join()
    assert deadlocks(watcher) == 0
    assert value(watcher, "select count(*) from message") == 5
    drain(watcher)
