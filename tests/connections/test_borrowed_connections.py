"""What holds for borrowed connections of every library."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lonnymq import (
    AsyncQueue,
    ConnectionLost,
    NewMessage,
    Queue,
    Reason,
    SchemaMissing,
    TransactionAborted,
    WrongIsolationLevel,
)
from tests.client.conftest import BlockingProxy
from tests.conftest import Connect
from tests.connections.libraries import OpenBorrowed

ODD_SCHEMA = 'odd %s; "$1'


def test_a_message_exists_if_and_only_if_the_caller_commits(
    borrowing_queue: Any, borrow: OpenBorrowed, queue: Queue
) -> None:
    borrowed = borrow()
    # This is the first statement, so it has to begin the transaction.
    borrowing_queue.enqueue("acme", "rolled back", connection=borrowed.connection)
    borrowed.execute("create table orders (id bigint)")
    assert queue.status().waiting == 0
    borrowed.rollback()
    assert queue.status().waiting == 0

    borrowed.execute("create table orders (id bigint)")
    borrowing_queue.enqueue("acme", "committed", connection=borrowed.connection)
    assert queue.status().waiting == 0
    borrowed.commit()
    assert [message.payload for message in queue.dequeue(10)] == ["committed"]
    assert borrowed.execute("select count(*) from orders") == [(0,)]


def test_the_work_and_its_acknowledgement_commit_together(
    borrowing_queue: Any, borrow: OpenBorrowed, queue: Queue
) -> None:
    borrowed = borrow()
    queue.enqueue("acme", 1)
    [message] = borrowing_queue.dequeue()
    assert message.complete(connection=borrowed.connection) == "completed"
    borrowed.rollback()
    assert queue.status().leased == 1
    borrowed.execute("create table shipped (id bigint)")
    assert message.complete(connection=borrowed.connection) == "completed"
    borrowed.commit()
    assert queue.status().leased == 0
    assert message.complete(connection=borrowed.connection) == "lease_lost"


def test_every_call_works_on_a_borrowed_connection(
    borrowing_queue: Any, borrow: OpenBorrowed, queue: Queue
) -> None:
    borrowed = borrow()
    on = {"connection": borrowed.connection}
    assert borrowing_queue.enqueue("a", {"n": 1}, key="100 %", delay=0, **on).outcome == "created"
    many = [
        NewMessage(channel="a", payload=b"\0\xff%s", key="ключ"),
        NewMessage(channel="b", payload="$1", max_attempts=3),
        NewMessage(channel="b", payload=0, at=datetime(2001, 1, 1, tzinfo=UTC)),
    ]
    assert [created.outcome for created in borrowing_queue.enqueue_many(many, **on)] == ["created"] * 3
    messages = list(borrowing_queue.dequeue(10, worker="me", **on))
    assert {message.content for message in messages} == {b'{"n":1}', b"\0\xff%s", b'"$1"', b"0"}
    one, two, three, four = messages
    assert one.heartbeat(lease_s=60, **on) == "extended"
    assert one.defer(delay=0, state={"tried": 1}, error="100 %s", **on) == "deferred"
    assert two.bury(error="no\0", **on) == "buried"
    assert borrowing_queue.complete([three, four], **on) == ["completed", "completed"]
    [again] = borrowing_queue.dequeue(**on)
    assert (again.id, again.attempt, again.state) == (one.id, 2, {"tried": 1})
    assert again.give_back(**on) == "given_back"

    [dead] = borrowing_queue.dead().list(**on)
    assert (dead.id, dead.error) == (two.id, "no\\x00")
    assert borrowing_queue.dead().redrive([dead.id], **on) == ["redriven"]
    assert borrowing_queue.cancel([dead.id], **on) == ["cancelled"]
    channel = borrowing_queue.channel(one.channel)
    channel.set(max_concurrency=5, is_paused=True, **on)
    status = channel.status(**on)
    assert (status.policy.max_concurrency, status.reason) == (5, Reason.PAUSED)
    assert abs(status.created_at - datetime.now(UTC)).total_seconds() < 60
    assert status in borrowing_queue.channels(**on)
    assert channel.explain(**on).reason is Reason.PAUSED
    assert borrowing_queue.set(max_content_bytes=1000, **on).max_content_bytes == 1000
    assert borrowing_queue.status(**on).dead == 0
    assert borrowing_queue.check(**on) == []
    borrowing_queue.grant("pg_monitor", "reader", **on)
    borrowing_queue.revoke("pg_monitor", **on)
    borrowed.rollback()
    assert queue.status().channels == 0


def test_an_install_and_a_load_join_the_callers_transaction(
    library: str, borrow: OpenBorrowed, dsn: str, runner: Any
) -> None:
    borrowed = borrow()
    on = {"connection": borrowed.connection}
    with Queue(dsn, schema=ODD_SCHEMA) as other:
        odd: Any = other
        if "async" in library:
            odd = BlockingProxy(AsyncQueue(dsn, schema=ODD_SCHEMA), runner)
        assert odd.install(**on).state == "current"
        borrowed.rollback()
        assert other.schema_status().state == "missing"
        assert odd.install(**on).state == "current"
        borrowed.commit()
        assert odd.schema_status(**on).state == other.schema_status().state == "current"
        assert odd.enqueue("a", 1, **on).outcome == "created"
        assert odd.status(**on).waiting == 1
        borrowed.rollback()
        if "psycopg2" not in library:
            load = [NewMessage(channel="c", payload=number) for number in range(3)]
            assert odd.copy_in(load, **on).created == 3
            borrowed.rollback()
            assert borrowed.execute('select count(*) from "odd %s; ""$1".stage') == [(0,)]
            assert odd.copy_in(load, **on).created == 3
            borrowed.commit()
            assert [message.payload for message in other.dequeue(5)] == [0, 1, 2]
        odd.close()


def test_without_a_transaction_each_call_commits_by_itself(
    borrowing_queue: Any, borrow: OpenBorrowed, queue: Queue
) -> None:
    borrowed = borrow(is_autocommit=True)
    borrowing_queue.enqueue("a", 1, connection=borrowed.connection)
    assert queue.status().waiting == 1
    assert borrowing_queue.dequeue(connection=borrowed.connection)[0].complete() == "completed"


def test_database_errors_are_translated_for_every_driver(borrowing_queue: Any, borrow: OpenBorrowed) -> None:
    borrowed = borrow()
    borrowed.execute("set transaction isolation level repeatable read")
    with pytest.raises(WrongIsolationLevel, match="READ COMMITTED"):
        borrowing_queue.dequeue(connection=borrowed.connection)
    with pytest.raises(TransactionAborted, match="aborted"):
        borrowing_queue.enqueue("a", 1, connection=borrowed.connection)
    for call in (borrowing_queue.install, lambda **on: borrowing_queue.copy_in([], **on)):
        with pytest.raises(TransactionAborted):
            call(connection=borrowed.connection)
    borrowed.rollback()
    borrowed.execute("alter schema lonnymq rename to elsewhere")
    with pytest.raises(SchemaMissing, match=r"no queue in schema 'lonnymq'.*run install\(\)"):
        borrowing_queue.enqueue("a", 1, connection=borrowed.connection)
    borrowed.rollback()
    assert borrowing_queue.enqueue("a", 1, connection=borrowed.connection).outcome == "created"
    borrowed.rollback()


@pytest.mark.parametrize("is_autocommit", [False, True], ids=["transaction", "autocommit"])
def test_a_lost_connection_is_reported_as_such(
    borrowing_queue: Any, borrow: OpenBorrowed, connect: Connect, is_autocommit: bool
) -> None:
    borrowed = borrow(is_autocommit=is_autocommit)
    # A client sometimes checks the installed version first; a call that is lost then was not sent.
    borrowing_queue.status()
    [(pid,)] = borrowed.execute("select pg_backend_pid()")
    assert connect().execute("select pg_terminate_backend(%s, 10000)", (pid,)).fetchone() == (True,)
    with pytest.raises(ConnectionLost, match="the connection was lost") as caught:
        borrowing_queue.enqueue("a", 1, connection=borrowed.connection)
    assert caught.value.may_have_happened is is_autocommit
    # The connection stays lost, and nothing is sent on another one.
    if not is_autocommit:
        with pytest.raises((ConnectionLost, TransactionAborted)):
            borrowing_queue.enqueue("a", 1, connection=borrowed.connection)
