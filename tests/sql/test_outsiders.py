"""Roles without any right to the queue, and what needs none: advisory locks, LISTEN, NOTIFY."""

import psycopg
import pytest

from tests.sql.conftest import DENIED, Login
from tests.sql.session import Session

OID = "(select c.oid from pg_class c where c.relname = '{0}' and c.relnamespace = 'lonnymq'::regnamespace)"


def test_an_outsider_cannot_keep_a_cron_busy(login: Login) -> None:
    outsider, producer = login(search_path=None), login("producer")
    seeds = ("0", f"{OID.format('cron')}::bigint", f"{OID.format('turn')}::bigint")
    for seed in seeds:
        for text in ("nightly", "cron nightly", "lonnymq cron nightly"):
            outsider.run(f"select pg_advisory_lock(hashtextextended('{text}', {seed}))")
    assert producer.ask("select cron_set('nightly', '* * * * *', 'a', 'x')") == "set"


def test_all_keys_of_advisory_locks_depend_on_a_secret(queue: Session) -> None:
    taken = "select classid, objid from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
    found = []
    for salt in ("one", "another"):
        queue.run("begin")
        queue.run("update setting set salt = %s", salt.encode())
        queue.run("select cron_set('nightly', '* * * * *', 'a', 'x')")
        queue.run("select channel_set('a', '{\"weight\": 2}')")
        queue.create("b")
        queue.run("select message_dequeue()")
        found.append(set(queue.rows(taken)))
        queue.run("rollback")
    assert len(found[0]) >= 3
    assert not found[0] & found[1]


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


def test_the_secret_is_nobodys(login: Login) -> None:
    for kind in ("producer", "worker", "reader", "operator"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            login(kind).run("select salt from setting")
