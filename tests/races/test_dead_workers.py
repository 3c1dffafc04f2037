"""Workers die, lose their sessions and return, while others watch, complete, extend and expire leases."""

import hashlib
import random
import secrets
import threading
import time
from collections import Counter

import psycopg
import pytest

from tests.conftest import Connect
from tests.races.conftest import OPTIONS
from tests.races.sessions import Session, check, complete, create_in, deadlocks, end, value

pytestmark = [pytest.mark.race, pytest.mark.slow]

CHANNELS = [f"c{n}" for n in range(8)]
LEASE_MS = 3_600_000
WITHIN_S = 120.0
# No grace: a worker may lose its leases at any moment, so that every order of events occurs.
END_GRACE = (
    "update worker w set look_at = 0"
    " from (select ctid from worker where look_at > 0 for update skip locked) g where w.ctid = g.ctid"
)


class Fleet:
    """Workers and watchers in threads, and what they completed."""

    def __init__(self, dsn: str, messages: int) -> None:
        self._dsn, self._messages = dsn, messages
        self._lock = threading.Lock()
        self.completed = Counter[int]()
        self.lost = self.ended_early = 0
        self.errors: list[BaseException] = []
        self._deadline = time.monotonic() + WITHIN_S

    @property
    def is_done(self) -> bool:
        return len(self.completed) == self._messages or bool(self.errors) or time.monotonic() > self._deadline

    def run(self, workers: int, watchers: int) -> None:
        threads = [threading.Thread(target=self._guard, args=[self._work, n]) for n in range(workers)]
        threads += [threading.Thread(target=self._guard, args=[self._watch, n]) for n in range(watchers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _connect(self) -> Session:
        return psycopg.connect(self._dsn, autocommit=True, options=OPTIONS)

    def _guard(self, role: object, seed: int) -> None:
        try:
            role(random.Random(seed))  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.errors.append(error)

    def _work(self, rng: random.Random) -> None:
        while not self.is_done:
            secret = secrets.token_hex(16)
            name = f"w:{hashlib.sha256(secret.encode()).hexdigest()[:16]}"
            session = self._connect()
            register(session, name, secret)
            for _ in range(rng.randrange(1, 12)):
                rows = session.execute(
                    "select message_id, token from message_dequeue(%s, %s, %s, p_is_shared => true)"
                    " where outcome = 'leased'",
                    [rng.randrange(1, 10), LEASE_MS, name],
                ).fetchall()
                if rng.random() < 0.15:
                    session.close()
                    session = self._connect()
                    register(session, name, secret)
                leased = [Lease(*row) for row in rows]
                if rng.random() < 0.3:
                    end(session, "heartbeat", leased)  # type: ignore[arg-type]
                if rng.random() < 0.1:
                    # Dies with its leases.
                    break
                self._record(leased, complete(session, leased))  # type: ignore[arg-type]
            session.close()

    def _record(self, leased: "list[Lease]", outcomes: list[str]) -> None:
        with self._lock:
            for lease, outcome in zip(leased, outcomes, strict=True):
                # "busy": somebody is ending this lease; the message is delivered again.
                assert outcome in ("completed", "lease_lost", "busy")
                self.completed[lease.id] += outcome == "completed"
                self.lost += outcome != "completed"
            self.completed = +self.completed

    def _watch(self, rng: random.Random) -> None:
        with self._connect() as session:
            while not self.is_done:
                ended = value(session, "select leases from worker_watch()")
                with self._lock:
                    self.ended_early += ended
                session.execute(END_GRACE)
                time.sleep(rng.random() * 0.01)


class Lease:
    def __init__(self, message_id: int, token: int) -> None:
        self.id, self.token = message_id, token


def register(session: Session, name: str, secret: str) -> None:
    """Register as a worker does, again while the row is locked."""
    while True:
        pid = session.info.backend_pid
        answer = value(session, "select worker_register(%s, %s, %s)", name, secret, pid)
        assert answer in ("registered", "busy")
        if answer == "registered":
            return


@pytest.mark.parametrize("messages", [500, pytest.param(5_000, marks=pytest.mark.heavy)])
def test_every_message_is_completed_once_while_workers_die_and_return(
    dsn: str, connect: Connect, messages: int
) -> None:
    owner = connect()
    owner.execute("""select channel_set('c0', '{"max_concurrency": 3}')""")
    ids = create_in(owner, [CHANNELS[n % len(CHANNELS)] for n in range(messages)])
    before = deadlocks(owner)
    fleet = Fleet(dsn, messages)
    fleet.run(workers=6, watchers=2)
    assert fleet.completed == Counter(ids)
    assert fleet.ended_early > 0
    print(fleet.ended_early, "leases ended early,", fleet.lost, "acknowledgements came too late")
    assert deadlocks(owner) == before
    assert check(owner) == []
