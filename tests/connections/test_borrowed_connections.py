"""What holds for every borrowed connection, whatever library it belongs to."""

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
from tests.client.conftest import Driven
from tests.conftest import Connect
from tests.connections.libraries import OpenLoan

ODD_SCHEMA = 'odd %s; "$1'


def test_a_message_is_there_if_and_only_if_the_caller_commits(
    borrowing_queue: Any, borrow: OpenLoan, queue: Queue
) -> None:
    loan = borrow()
    # First of all statements: it has to begin the transaction.
    borrowing_queue.enqueue("acme", "rolled back", connection=loan.connection)
    loan.execute("create table orders (id bigint)")
    assert queue.status().waiting == 0
    loan.rollback()
    assert queue.status().waiting == 0

    loan.execute("create table orders (id bigint)")
    borrowing_queue.enqueue("acme", "committed", connection=loan.connection)
    assert queue.status().waiting == 0
    loan.commit()
    assert [message.payload for message in queue.dequeue(10)] == ["committed"]
    assert loan.execute("select count(*) from orders") == [(0,)]


def test_the_effect_and_the_acknowledgement_are_one_commit(
    borrowing_queue: Any, borrow: OpenLoan, queue: Queue
) -> None:
    loan = borrow()
    queue.enqueue("acme", 1)
    [message] = borrowing_queue.dequeue()
    assert message.complete(connection=loan.connection) == "completed"
    loan.rollback()
    assert queue.status().leased == 1
    loan.execute("create table shipped (id bigint)")
    assert message.complete(connection=loan.connection) == "completed"
    loan.commit()
    assert queue.status().leased == 0
    assert message.complete(connection=loan.connection) == "lease_lost"


def test_every_call_can_be_made_on_it(borrowing_queue: Any, borrow: OpenLoan, queue: Queue) -> None:
    loan = borrow()
    on = {"connection": loan.connection}
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
    loan.rollback()
    assert queue.status().channels == 0


def test_an_installation_and_a_load_join_the_transaction(
    library: str, borrow: OpenLoan, dsn: str, runner: Any
) -> None:
    loan = borrow()
    on = {"connection": loan.connection}
    with Queue(dsn, schema=ODD_SCHEMA) as other:
        odd: Any = other
        if "async" in library:
            odd = Driven(AsyncQueue(dsn, schema=ODD_SCHEMA), runner)
        assert odd.install(**on).state == "current"
        loan.rollback()
        assert other.schema_status().state == "missing"
        assert odd.install(**on).state == "current"
        loan.commit()
        assert odd.schema_status(**on).state == other.schema_status().state == "current"
        assert odd.enqueue("a", 1, **on).outcome == "created"
        assert odd.status(**on).waiting == 1
        loan.rollback()
        if "psycopg2" not in library:
            load = [NewMessage(channel="c", payload=number) for number in range(3)]
            assert odd.copy_in(load, **on).created == 3
            loan.rollback()
            assert loan.execute('select count(*) from "odd %s; ""$1".stage') == [(0,)]
            assert odd.copy_in(load, **on).created == 3
            loan.commit()
            assert [message.payload for message in other.dequeue(5)] == [0, 1, 2]
        odd.close()


def test_without_a_transaction_each_call_commits_by_itself(
    borrowing_queue: Any, borrow: OpenLoan, queue: Queue
) -> None:
    loan = borrow(is_autocommit=True)
    borrowing_queue.enqueue("a", 1, connection=loan.connection)
    assert queue.status().waiting == 1
    assert borrowing_queue.dequeue(connection=loan.connection)[0].complete() == "completed"


def test_errors_of_the_database_are_ours_whatever_the_driver(borrowing_queue: Any, borrow: OpenLoan) -> None:
    loan = borrow()
    loan.execute("set transaction isolation level repeatable read")
    with pytest.raises(WrongIsolationLevel, match="READ COMMITTED"):
        borrowing_queue.dequeue(connection=loan.connection)
    with pytest.raises(TransactionAborted, match="aborted"):
        borrowing_queue.enqueue("a", 1, connection=loan.connection)
    for call in (borrowing_queue.install, lambda **on: borrowing_queue.copy_in([], **on)):
        with pytest.raises(TransactionAborted):
            call(connection=loan.connection)
    loan.rollback()
    loan.execute("alter schema lonnymq rename to elsewhere")
    with pytest.raises(SchemaMissing, match=r"no queue in schema 'lonnymq'.*run install\(\)"):
        borrowing_queue.enqueue("a", 1, connection=loan.connection)
    loan.rollback()
    assert borrowing_queue.enqueue("a", 1, connection=loan.connection).outcome == "created"
    loan.rollback()


@pytest.mark.parametrize("is_autocommit", [False, True], ids=["transaction", "autocommit"])
def test_a_lost_connection_is_told_as_such(
    borrowing_queue: Any, borrow: OpenLoan, connect: Connect, is_autocommit: bool
) -> None:
    loan = borrow(is_autocommit=is_autocommit)
    # Now and then a client looks which version is installed; what is lost then was not sent.
    borrowing_queue.status()
    [(pid,)] = loan.execute("select pg_backend_pid()")
    assert connect().execute("select pg_terminate_backend(%s, 10000)", (pid,)).fetchone() == (True,)
    with pytest.raises(ConnectionLost, match="the connection was lost") as caught:
        borrowing_queue.enqueue("a", 1, connection=loan.connection)
    assert caught.value.may_have_happened is is_autocommit
    # And it stays lost: nothing is sent on another one.
    if not is_autocommit:
        with pytest.raises((ConnectionLost, TransactionAborted)):
            borrowing_queue.enqueue("a", 1, connection=loan.connection)
