"""Actions with their records, in one transaction, by both clients."""

import asyncio
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import lonnymq
from lonnymq import ConnectionLost, InvalidArgument, NotPermitted, PageCursor
from tests.conftest import Connect


def test_an_action_and_its_record_are_one(dsn: str) -> None:
    with lonnymq.Queue(dsn) as queue:
        with queue.audit.action("alice", "channel_pause", "acme", {"reason": "incident 7"}) as action:
            queue.channel("acme").pause(connection=action.connection)
            action.outcomes.append("set")
            # Nobody sees either before the commit.
            assert queue.audit.page().items == []
            assert queue.channel("acme").status() is None
        (record,) = queue.audit.page().items
        assert (record.actor, record.verb, record.subject) == ("alice", "channel_pause", "acme")
        assert (record.arguments, record.outcomes) == ({"reason": "incident 7"}, {"set": 1})
        assert record.acted_at.tzinfo is not None
        assert queue.channel("acme").status().policy.is_paused  # type: ignore[union-attr]


def test_an_action_that_raises_leaves_no_record(dsn: str) -> None:
    with lonnymq.Queue(dsn) as queue:

        def fail() -> None:
            with queue.audit.action("alice", "channel_pause", "acme") as action:
                queue.channel("acme").pause(connection=action.connection)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert queue.channel("acme").status() is None
        assert queue.audit.page().items == []
        # The connection is usable again.
        assert queue.pulse().channels == 0


def test_the_async_client_counts_outcomes(dsn: str) -> None:
    async def act() -> dict[str, int]:
        async with lonnymq.AsyncQueue(dsn) as queue:
            ids = [(await queue.enqueue("a", n)).id for n in range(3)]
            async with queue.audit.action("bob", "message_cancel") as action:
                wanted = [id_ for id_ in ids if id_ is not None] + [10**18]
                action.outcomes += await queue.cancel(wanted, connection=action.connection)
                action.arguments["ids"] = [str(id_) for id_ in wanted]
            (record,) = (await queue.audit.page()).items
            assert record.arguments["ids"][-1] == str(10**18)
            return dict(record.outcomes)

    assert asyncio.run(act()) == {"cancelled": 3, "unknown": 1}


def test_whoever_may_not_record_an_action_cannot_do_it(dsn: str, connect: Connect) -> None:
    owner = connect()
    owner.execute("create role lonnymq_audit_producer")
    try:
        owner.execute("select queue_grant('lonnymq_audit_producer', 'producer')")
        with lonnymq.Queue(dsn) as queue:
            id_ = queue.enqueue("a", 1).id
            assert id_ is not None
        with lonnymq.Queue(make_conninfo(dsn, options="-c role=lonnymq_audit_producer")) as producer:
            with pytest.raises(NotPermitted), producer.audit.action("eve", "message_cancel") as action:
                action.outcomes += producer.cancel([id_], connection=action.connection)
        with lonnymq.Queue(dsn) as queue:
            assert queue.show(id_) is not None
    finally:
        owner.execute("drop owned by lonnymq_audit_producer")
        owner.execute("drop role lonnymq_audit_producer")


def test_a_connection_that_is_lost_before_the_commit_leaves_neither(dsn: str, connect: Connect) -> None:
    killer = connect()
    with lonnymq.Queue(dsn) as queue:

        def act() -> None:
            with queue.audit.action("alice", "channel_pause", "acme") as action:
                queue.channel("acme").pause(connection=action.connection)
                killer.execute("select pg_terminate_backend(%s, 5000)", (action.connection.info.backend_pid,))

        with pytest.raises(ConnectionLost):
            act()
        assert queue.channel("acme").status() is None
        assert queue.audit.page().items == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("", "v"), "actor"),
        (("a" * 256, "v"), "actor"),
        (("a", ""), "verb"),
        (("a", "v", "s" * 256), "subject"),
        (("a", "v", "s", {"x": "y" * 9000}), "arguments"),
        (("a", "v", "s", {"x": "\ud800"}), "arguments"),
    ],
)
def test_wrong_arguments_are_refused_before_the_action(
    dsn: str, arguments: tuple[Any, ...], named: str
) -> None:
    with lonnymq.Queue(dsn) as queue:
        is_done = False
        with pytest.raises(InvalidArgument, match=named), queue.audit.action(*arguments):
            is_done = True
        assert not is_done


def test_pages_continue_with_their_cursor(queue: Any, open_connection: Any) -> None:
    connection = open_connection(autocommit=True)
    ids = [queue.audit.record("a", "v", f"c{n}", connection=connection) for n in range(5)]
    first = queue.audit.page(limit=2)
    assert [one.id for one in first.items] == [ids[4], ids[3]]
    second = queue.audit.page(limit=2, before=PageCursor.parse(str(first.next)))
    assert [one.subject for one in second.items] == ["c2", "c1"]
    third = queue.audit.page(limit=2, before=second.next)
    assert ([one.subject for one in third.items], third.next) == (["c0"], None)
    assert [one.subject for one in queue.audit.page(actor="a", subject="c3").items] == ["c3"]


def test_texts_that_postgresql_cannot_store_are_stored_readably(dsn: str) -> None:
    with lonnymq.Queue(dsn) as queue, psycopg.connect(dsn, autocommit=True) as connection:
        texts = {"nul": "a\0b", "words": r"\u0000 cannot be converted", "path": "c:\\u0000"}
        queue.audit.record("a", "v", arguments=texts, connection=connection)
        (record,) = queue.audit.page().items
        assert record.arguments == {**texts, "nul": "a\ufffdb"}
