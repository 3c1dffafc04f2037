"""A queue that pg_dump copied to another server works there, after what the doctor recommends."""

import subprocess
from collections.abc import Iterator

import psycopg
import pytest

from lonnymq import Queue
from lonnymq.embedded import EmbeddedServer, binaries, embedded


@pytest.fixture
def old() -> Iterator[EmbeddedServer]:
    with embedded(fsync=False) as server:
        yield server


@pytest.fixture
def new() -> Iterator[EmbeddedServer]:
    with embedded(fsync=False) as server:
        yield server


def copy(old: EmbeddedServer, new: EmbeddedServer) -> None:
    """Dump one database and restore it into another, which is empty."""
    programs = binaries.find("auto")
    dump = subprocess.run([programs.program("pg_dump"), old.dsn], check=True, capture_output=True)
    command = [programs.program("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", new.dsn]
    subprocess.run(command, input=dump.stdout, check=True, capture_output=True)


def test_a_queue_works_after_a_dump_is_restored_on_another_server(
    old: EmbeddedServer, new: EmbeddedServer
) -> None:
    with Queue(old.dsn) as queue, psycopg.connect(old.dsn, autocommit=True) as connection:
        queue.install()
        queue.set(history="metadata")
        queue.channel("acme").set(max_concurrency=1)
        # The old server is further ahead than the new one will be.
        burn = "do $$ begin for n in 1..3000 loop perform pg_current_xact_id(); commit; end loop; end $$"
        connection.execute(burn)
        created = [queue.enqueue("acme", n).id for n in range(4)]
        [message] = queue.dequeue()
        message.complete()
        [leased] = queue.dequeue(lease_s=2)
        copy(old, new)
    with Queue(new.dsn) as queue:
        assert queue.schema_status().state == "current"
        facts = {one.kind for one in queue.examine(after_failover=True).failover or ()}
        assert "history" in facts
        assert "sequence" not in facts
        queue.history.rebase()
        facts = {one.kind for one in queue.examine(after_failover=True).failover or ()}
        assert "history" not in facts
        created.append(queue.enqueue("acme", 4).id)
        assert len(set(created)) == 5
        # The lease in the dump ends, and the completed message does not return.
        payloads: list[tuple[int, bool]] = []
        while len(payloads) < 4:
            for message in queue.dequeue(5, wait=5.0):
                payloads.append((message.payload, message.id == leased.id))
                message.complete()
        assert sorted(payloads) == [(1, True), (2, False), (3, False), (4, False)]
        assert queue.check() == []
