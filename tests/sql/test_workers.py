"""Leases of a worker whose session is gone end early, and nobody else's do."""

import hashlib
import secrets
import time
from collections.abc import Callable

import psycopg
import pytest

from lonnymq.embedded import EmbeddedServer
from tests import schema
from tests.sql.conftest import Login, Open
from tests.sql.session import Reply, Session, ids_of

# No test can take so long that such a lease expires by itself.
LEASE_MS = 3_600_000
# Deadline of whatever must happen by itself.
SOON_S = 60.0


class WorkerProcess:
    """A worker: a name that its leases bear, and a session that stands for it."""

    def __init__(self, session: Session, observer: Session, host: str = "host") -> None:
        self.observer = observer
        self.secret = secrets.token_hex(16)
        self.name = f"{host}:{hashlib.sha256(self.secret.encode()).hexdigest()[:16]}"
        self.session = session

    def register(self, session: Session | None = None) -> str:
        self.session = session or self.session
        answer: str = self.session.ask(
            "select worker_register(%s, %s, %s)",
            self.name,
            self.secret,
            self.session.connection.info.backend_pid,
        )
        return answer

    def die(self) -> None:
        """Lose the session, and wait until the server has noticed."""
        pid = self.session.connection.info.backend_pid
        self.session.connection.close()
        held = "select from pg_locks where locktype = 'advisory' and pid = %s"
        wait_until(lambda: not self.observer.rows(held, pid))


@pytest.fixture
def start(session: Open, queue: Session) -> Callable[..., WorkerProcess]:
    """A factory of registered workers."""

    def start(host: str = "host") -> WorkerProcess:
        worker = WorkerProcess(session(), queue, host)
        assert worker.register() == "registered"
        return worker

    return start


Start = Callable[..., WorkerProcess]


def wait_until(is_true: Callable[[], object]) -> None:
    deadline = time.monotonic() + SOON_S
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def watch(session: Session) -> tuple[int, list[str]]:
    """Watch once; return how many leases were ended, and whose."""
    leases, workers = session.rows("select leases, workers from worker_watch()")[0]
    return leases, workers or []


def watch_until_ended(session: Session, count: int) -> list[str]:
    """Watch until so many leases have been ended; return whose they were."""
    ended, workers = 0, set[str]()
    deadline = time.monotonic() + SOON_S
    while ended < count:
        assert time.monotonic() < deadline
        wait_ms, leases, found = session.rows("select * from worker_watch()")[0]
        ended, workers = ended + leases, workers | set(found or [])
        time.sleep(wait_ms / 1000)
    assert ended == count
    return sorted(workers)


def lease(session: Session, count: int, worker: WorkerProcess | None) -> list[Reply]:
    name = worker.name if worker else None
    replies: list[Reply] = []
    while len(replies) < count:
        replies += session.dequeue(count - len(replies), LEASE_MS, name, is_shared=True)
    return replies


def let_grace_pass(session: Session) -> None:
    """Let the workers that are known to be gone be so for long enough."""
    session.run("update worker set look_at = look_at - 10000000, gone_since = gone_since - 10000000")


def gone(session: Session) -> list[str]:
    return [row[0] for row in session.rows("select name from worker where gone_since is not null")]


def test_messages_of_a_dead_worker_run_again_long_before_their_leases_end(
    queue: Session, start: Start
) -> None:
    ids = queue.fill("a", 3)
    worker = start()
    leased = lease(worker.session, 3, worker)
    worker.die()
    assert watch_until_ended(queue, 3) == [worker.name]
    again = lease(queue, 3, None)
    assert sorted(ids_of(again)) == ids
    assert [(one.attempt, one.suspicion) for one in again] == [(1, 1)] * 3
    assert queue.complete(leased) == ["lease_lost"] * 3
    assert queue.complete(again) == ["completed"] * 3


def test_only_leases_of_workers_whose_session_is_gone_end(queue: Session, start: Start) -> None:
    queue.fill("a", 6)
    dead, alive = start(), start()
    lease(queue, 1, dead)
    kept = lease(queue, 2, alive) + lease(queue, 3, None)
    dead.die()
    assert watch_until_ended(queue, 1) == [dead.name]
    let_grace_pass(queue)
    assert watch(queue) == (0, [])
    assert set(queue.heartbeat(kept)) == {"extended"}


def test_a_worker_that_registers_again_in_time_keeps_its_leases(
    queue: Session, start: Start, session: Open
) -> None:
    queue.fill("a", 1)
    worker = start()
    leased = lease(queue, 1, worker)
    worker.die()
    watch(queue)
    assert gone(queue) == [worker.name]
    assert worker.register(session()) == "registered"
    assert gone(queue) == []
    let_grace_pass(queue)
    assert watch(queue) == (0, [])
    assert queue.complete(leased) == ["completed"]


def test_a_worker_may_register_again_before_its_old_session_is_gone(
    queue: Session, start: Start, session: Open
) -> None:
    queue.fill("a", 1)
    worker = start()
    old = WorkerProcess(worker.session, queue)
    lease(queue, 1, worker)
    assert worker.register(session()) == "registered"
    old.die()
    assert watch(queue) == (0, [])
    assert gone(queue) == []


def test_a_worker_that_returns_late_keeps_leases_that_nobody_took(
    queue: Session, start: Start, session: Open
) -> None:
    queue.fill("a", 2)
    worker = start()
    leased = lease(queue, 2, worker)
    worker.die()
    watch_until_ended(queue, 2)
    assert worker.register(session()) == "registered"
    assert queue.heartbeat(leased[:1], LEASE_MS) == ["extended"]
    assert ids_of(lease(queue, 1, None)) == [leased[1].message_id]
    assert queue.complete(leased) == ["completed", "lease_lost"]


@pytest.mark.parametrize(
    ("change", "grace_us"),
    [
        ("registered_at = 0", 1_000_000),
        ("server_started_at = server_started_at - interval '1 day'", 10_000_000),
        ("server_pids = array[-1]", 10_000_000),
        ("server_pids = server_pids || -1", 1_000_000),
    ],
)
def test_workers_have_longer_to_return_if_the_server_was_restarted(
    queue: Session, start: Start, change: str, grace_us: int
) -> None:
    worker = start()
    queue.run(f"update worker set {change}")
    worker.die()
    watch(queue)
    assert queue.rows("select look_at - gone_since from worker") == [(grace_us,)]


def test_nothing_ends_during_the_grace(queue: Session, start: Start) -> None:
    queue.fill("a", 1)
    worker = start()
    lease(queue, 1, worker)
    worker.die()
    watch(queue)
    queue.run("update worker set look_at = gone_since + 9000000")
    assert watch(queue) == (0, [])
    let_grace_pass(queue)
    assert watch(queue) == (1, [worker.name])


def test_behind_a_pooler_nothing_is_registered(queue: Session, session: Open) -> None:
    worker = WorkerProcess(session(), queue)
    pid = worker.session.connection.info.backend_pid + 1
    register = "select worker_register(%s, %s, %s)"
    assert worker.session.ask(register, worker.name, worker.secret, pid) == "pooled"
    assert worker.session.ask(register, worker.name, worker.secret, None) == "pooled"
    assert worker.session.rows("select from worker") == []
    held = "select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
    assert worker.session.rows(held) == []


def test_a_worker_cannot_be_registered_or_ended_without_its_secret(start: Start, session: Open) -> None:
    victim, attacker = start(), session()
    pid = attacker.connection.info.backend_pid
    for secret in (secrets.token_hex(16), None, "short"):
        with pytest.raises(psycopg.Error) as refused:
            attacker.run("select worker_register(%s, %s, %s)", victim.name, secret, pid)
        assert refused.value.sqlstate == "LQ001"
        with pytest.raises(psycopg.Error) as refused:
            attacker.run("select worker_leave(%s, %s)", victim.name, secret)
        assert refused.value.sqlstate == "LQ001"
    assert attacker.rows("select name, pid from worker") == [
        (victim.name, victim.session.connection.info.backend_pid)
    ]


def test_a_lock_with_the_same_number_does_not_stand_for_a_worker(
    queue: Session, start: Start, session: Open, login: Login
) -> None:
    queue.fill("a", 1)
    worker = start()
    lease(queue, 1, worker)
    number = queue.ask("select lock_id from worker")
    forger = login("worker")
    assert not forger.ask("select pg_try_advisory_lock(%s)", number)
    worker.die()
    assert forger.ask("select pg_try_advisory_lock(%s)", number)
    assert watch_until_ended(queue, 1) == [worker.name]


def test_the_server_looks_for_the_host_of_a_worker_every_few_seconds(
    own_server: Callable[..., EmbeddedServer],
) -> None:
    """A host that disappears closes no connection, and by default a server waits for it for two hours."""
    server = own_server(fsync=False, unix_socket=False)
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        schema.install(connection)
        connection.execute("set search_path = lonnymq")
        session = Session(connection)
        assert WorkerProcess(session, session).register() == "registered"
        idle, interval, count, user_timeout = (
            int(session.ask("select setting from pg_settings where name = %s", f"tcp_{name}"))
            for name in ("keepalives_idle", "keepalives_interval", "keepalives_count", "user_timeout")
        )
        assert 0 < idle + interval * count <= 20
        assert 0 < user_timeout <= 20_000


def test_a_session_stands_for_one_worker(queue: Session, start: Start) -> None:
    worker = start()
    assert worker.register() == "registered"
    second = WorkerProcess(worker.session, queue, "other")
    with pytest.raises(psycopg.Error) as refused:
        second.register()
    assert refused.value.sqlstate == "LQ001"
    assert queue.rows("select name from worker") == [(worker.name,)]
    locks = "select from pg_locks where locktype = 'advisory'"
    assert len(queue.rows(f"{locks} and pid = {worker.session.connection.info.backend_pid}")) == 1


def test_a_worker_that_leaves_is_forgotten_at_once(queue: Session, start: Start) -> None:
    queue.fill("a", 1)
    worker = start()
    lease(queue, 1, worker)
    worker.session.run("select worker_leave(%s, %s)", worker.name, worker.secret)
    assert queue.rows("select from worker") == []
    worker.die()
    assert watch(queue) == (0, [])


def test_thousands_of_leases_end_in_parts_and_nobody_waits(
    queue: Session, start: Start, session: Open
) -> None:
    queue.fill("a", 2_500)
    queue.fill("b", 20)
    worker, busy = start(), session()
    busy.run("set lock_timeout = '50ms'")
    lease(queue, 2_500, worker)
    others = lease(queue, 10, None)
    worker.die()
    watch(queue)
    let_grace_pass(queue)
    watcher = session(autocommit=False)
    parts: list[int] = []
    while not parts or parts[-1]:
        leases, _ = watch(watcher)
        parts.append(leases)
        # The watcher's transaction is still open and has these leases and the worker locked.
        assert busy.complete(others[:1]) == ["completed"]
        others = others[1:]
        assert watch(busy) == (0, [])
        assert worker.register(session()) == "busy"
        assert ids_of(busy.dequeue(1))
        watcher.connection.commit()
        let_grace_pass(queue)
    assert parts == [1000, 1000, 500, 0]
    assert len(lease(queue, 2_500, None)) == 2_500


def test_a_locked_lease_is_found_by_a_later_look(queue: Session, start: Start, session: Open) -> None:
    queue.fill("a", 2)
    worker, holder = start(), session(autocommit=False)
    leased = lease(queue, 2, worker)
    holder.heartbeat(leased[:1], LEASE_MS)
    worker.die()
    watch(queue)
    let_grace_pass(queue)
    assert watch(queue) == (1, [worker.name])
    holder.connection.commit()
    let_grace_pass(queue)
    assert watch(queue) == (1, [worker.name])


def test_a_dequeue_that_commits_after_its_worker_died_is_noticed(
    queue: Session, start: Start, session: Open
) -> None:
    queue.fill("a", 1)
    worker, late = start(), session(autocommit=False)
    lease(late, 1, worker)
    worker.die()
    watch(queue)
    queue.run("update worker set look_at = gone_since")
    assert watch(queue) == (0, [])
    late.connection.commit()
    queue.run("update worker set look_at = gone_since")
    assert watch(queue) == (1, [worker.name])


def test_a_dead_worker_is_forgotten_once_nothing_of_it_is_left(queue: Session, start: Start) -> None:
    queue.fill("a", 1)
    worker = start()
    lease(queue, 1, worker)
    worker.die()
    for ended in (0, 1, 0):
        assert len(queue.rows("select from worker")) == 1
        assert watch(queue)[0] == ended
        let_grace_pass(queue)
    assert queue.rows("select from worker") == []


def test_sleepers_are_notified_of_leases_that_end_early(queue: Session, start: Start, session: Open) -> None:
    queue.fill("a", 1)
    worker, sleeper = start(), session()
    lease(queue, 1, worker)
    sleeper.run(f'listen "{sleeper.ask("select queue_event()")}"')
    sleeper.run("select sleeper_register('s', 60000)")
    worker.die()
    watch_until_ended(queue, 1)
    assert len(list(sleeper.connection.notifies(timeout=SOON_S, stop_after=1))) == 1


@pytest.mark.parametrize(("count", "low_ms", "high_ms"), [(1, 400, 600), (30, 4_800, 7_200)])
def test_all_workers_together_watch_about_five_times_a_second(
    queue: Session, start: Start, session: Open, count: int, low_ms: int, high_ms: int
) -> None:
    start()
    # Their session is the one of the first.
    queue.run(
        "insert into worker"
        " select 'w' || n, w.pid, w.lock_id, w.registered_at, w.server_started_at, w.server_pids"
        " from worker w, generate_series(2, %s) n",
        count,
    )
    waits = {queue.ask("select wait_ms from worker_watch()") for _ in range(50)}
    assert len(waits) > 10
    assert low_ms <= min(waits)
    assert max(waits) <= high_ms


def test_whoever_sees_a_worker_gone_returns_when_its_grace_ends(queue: Session, start: Start) -> None:
    for _ in range(30):
        start()
    worker = start()
    worker.die()
    watch(queue)
    assert queue.ask("select wait_ms from worker_watch()") <= 1_000


def test_a_clock_that_steps_back_delays_no_early_end(queue: Session, start: Start) -> None:
    queue.fill("a", 1)
    worker = start()
    lease(queue, 1, worker)
    worker.die()
    watch(queue)
    queue.run("update worker set look_at = look_at + 3600000000, gone_since = gone_since + 3600000000")
    assert watch(queue) == (1, [worker.name])
    let_grace_pass(queue)
    watch(queue)
    assert queue.rows("select from worker") == []


def test_a_dead_workers_only_attempt_counts_as_usual(queue: Session, start: Start) -> None:
    queue.create("a", max_attempts=1)
    worker = start()
    lease(queue, 1, worker)
    worker.die()
    watch_until_ended(queue, 1)
    assert queue.dequeue() == []
    (error,) = [row[0] for row in queue.rows("select error from dead")]
    assert worker.name in error
