"""What roles without privileges can try: advisory locks, LISTEN and NOTIFY."""

import psycopg
import pytest

from tests.sql.conftest import DENIED, Login
from tests.sql.session import Session

OID = "(select c.oid from pg_class c where c.relname = '{0}' and c.relnamespace = 'lonnymq'::regnamespace)"


CALLS_THAT_CREATE_ROWS = (
    "select cron_set('nightly', '* * * * *', 'a', 'x')",
    "select channel_set('a', '{\"weight\": 2}')",
    "select message_create('b', 'x')",
    "select message_dequeue()",
    "select channel_delete('a')",
    "select queue_check(true)",
)


def test_no_call_takes_an_advisory_lock(queue: Session) -> None:
    """Any role can take an advisory lock, and pg_locks shows the keys of those that others hold."""
    queue.run("begin")
    for call in CALLS_THAT_CREATE_ROWS:
        queue.run(call)
    taken = "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
    assert queue.ask(taken) == 0
    queue.run("rollback")


@pytest.mark.parametrize("kind", [None, "producer", "worker", "reader", "operator"])
def test_no_role_can_lock_the_creation_locks(login: Login, kind: str | None) -> None:
    outsider = login(*([kind] if kind else []), search_path=None)
    table = "lonnymq.creation_lock"
    for lock in (f"select from {table} for key share", f"begin; lock table {table}"):
        with pytest.raises(DENIED):
            outsider.run(lock)


def test_an_uncommitted_cron_is_busy_for_others(login: Login) -> None:
    for ends, said in (("commit", "unchanged"), ("rollback", "set")):
        first, second = login("producer"), login("producer")
        first.run("begin")
        assert first.ask(f"select cron_set('{ends}', '* * * * *', 'a', 'x')") == "set"
        assert second.ask(f"select cron_set('{ends}', '* * * * *', 'a', 'x')") == "busy"
        first.run(ends)
        assert second.ask(f"select cron_set('{ends}', '* * * * *', 'a', 'x')") == said


def test_an_outsider_can_neither_wake_workers_nor_listen_for_work(login: Login, queue: Session) -> None:
    outsider, worker = login(search_path=None), login("worker")
    with pytest.raises(DENIED):
        outsider.run("select lonnymq.queue_event()")
    event = worker.ask("select queue_event()")
    assert event != queue.ask(f"select 'lonnymq_' || {OID.format('turn')}")
    worker.run(f"listen {event}")
    for name in (
        "lonnymq",
        *(f"lonnymq_{queue.ask('select ' + OID.format(n))}" for n in ("turn", "sleeper")),
    ):
        outsider.run("select pg_notify(%s, '')", name)
    assert list(worker.connection.notifies(timeout=0.2)) == []
    worker.run("select sleeper_register('w', 60000)")
    queue.create("a")
    assert [one.channel for one in worker.connection.notifies(timeout=5, stop_after=1)] == [event]


def test_no_kind_of_role_can_read_the_salt(login: Login) -> None:
    for kind in ("producer", "worker", "reader", "operator"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            login(kind).run("select salt from setting")
