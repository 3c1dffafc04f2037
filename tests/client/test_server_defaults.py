"""Defaults of a server, a database or a role that would change the behaviour of calls."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import conninfo, sql

from lonnymq import NewMessage, Queue, ReadOnlyTransaction, WrongIsolationLevel
from tests.client.conftest import OpenConnection, OpenQueue

DEFAULTS = {
    "default_transaction_isolation": "serializable",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "on",
    "statement_timeout": "1ms",
    "lock_timeout": "1ms",
    "idle_in_transaction_session_timeout": "1ms",
    "idle_session_timeout": "1ms",
    "array_nulls": "off",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "bytea_output": "escape",
    "datestyle": "SQL, DMY",
    "intervalstyle": "sql_standard",
    "extra_float_digits": "-15",
    "timezone": "Asia/Kathmandu",
    "client_encoding": "LATIN1",
    "search_path": "nowhere",
    "row_security": "off",
    "plan_cache_mode": "force_custom_plan",
    "xmloption": "document",
    "quote_all_identifiers": "on",
}
# With these, a borrowed connection cannot be used, or not for long.
UNFIT = {
    "default_transaction_isolation",
    "default_transaction_read_only",
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
}


SetDefault = Callable[[str, str], None]


@pytest.fixture
def set_default(dsn: str) -> Iterator[SetDefault]:
    """Sets a default of the test's database until the end of the test."""
    database = sql.Identifier(str(conninfo.conninfo_to_dict(dsn)["dbname"]))
    # This session starts before the defaults are set, so they do not apply to it.
    with psycopg.connect(dsn, autocommit=True) as admin:

        def set_default(name: str, value: str) -> None:
            statement = sql.SQL("alter database {} set {} = {}")
            admin.execute(statement.format(database, sql.Identifier(name), sql.Literal(value)))

        yield set_default
        admin.execute(sql.SQL("alter database {} reset all").format(database))


def use_every_call(queue: Any, connection: Any = None) -> None:
    """Use every kind of call, with and without each optional value."""
    on = {} if connection is None else {"connection": connection}
    made = queue.enqueue_many(
        [
            NewMessage(channel="a", payload="ä\\x'", key="NULL"),
            NewMessage(channel="a", payload=b"\x00\\\xff", max_attempts=3),
            NewMessage(channel="b", payload=3, delay=0.0),
            NewMessage(channel="b", payload=None),
        ],
        **on,
    )
    assert [one.outcome for one in made] == ["created"] * 4
    assert queue.enqueue("a", 1, key="NULL", **on).outcome == "duplicate"
    leased = {message.id: message for message in queue.dequeue(10, **on)}
    first, second, third, fourth = (leased[one.id] for one in made)
    assert (first.key, second.key, third.key) == ("NULL", None, None)
    assert (first.payload, second.content, fourth.payload) == ("ä\\x'", b"\x00\\\xff", None)
    assert (first.max_attempts, second.max_attempts) == (None, 3)
    assert queue.defer(
        [first, second], delays=[0.0, None], states=[None, {"n": 1}], errors=[None, "NULL"], **on
    ) == ["deferred", "deferred"]
    assert queue.bury([third], errors=[None], **on) == ["buried"]
    assert queue.complete([fourth], **on) == ["completed"]
    again = {message.id: message for message in queue.dequeue(10, **on)}
    assert (again[first.id].state, again[second.id].state) == (None, {"n": 1})
    assert queue.complete(list(again.values()), **on) == ["completed"] * 2
    queue.channel("a").set(max_concurrency=1, is_paused=None, **on)
    assert queue.dead("b").list(**on)[0].error is None
    assert queue.cancel([queue.enqueue("c", 1, delay=60, **on).id], **on) == ["cancelled"]
    loaded = queue.copy_in([NewMessage(channel="d", payload=n) for n in range(3)], **on)
    assert loaded.created == 3
    assert queue.status(**on).waiting == 3


def test_our_own_connections_ignore_the_databases_defaults(
    set_default: SetDefault, open_queue: OpenQueue
) -> None:
    for name, value in DEFAULTS.items():
        set_default(name, value)
    queue = open_queue()
    use_every_call(queue)
    assert len(queue.dequeue(wait=0.2)) == 1


def test_borrowed_connections_work_with_other_defaults(
    set_default: SetDefault, queue: Any, open_connection: OpenConnection
) -> None:
    for name in DEFAULTS.keys() - UNFIT:
        set_default(name, DEFAULTS[name])
    use_every_call(queue, open_connection())


def test_settings_in_the_dsn_take_precedence_over_ours(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = conninfo.make_conninfo(dsn, options="-c statement_timeout=7s")
    monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=9s -c lock_timeout=8s")
    for target, expected in ((asked, ("7s", "0")), (dsn, ("9s", "8s"))):
        with Queue(target) as queue, queue.caller.source.connection() as connection:
            found = connection.execute(
                "select current_setting('statement_timeout'), current_setting('lock_timeout'),"
                " current_setting('array_nulls')"
            ).fetchone()
        assert found == (*expected, "on")


def test_our_own_transactions_ignore_the_databases_timeout(
    dsn: str, set_default: SetDefault, open_connection: OpenConnection
) -> None:
    if open_connection().info.server_version < 170_000:
        pytest.skip("transaction_timeout is new in PostgreSQL 17")
    set_default("transaction_timeout", "500ms")
    with Queue(dsn) as queue, queue.caller.source.connection() as connection:
        connection.execute("select pg_sleep(1)")
    asked = conninfo.make_conninfo(dsn, options="-c transaction_timeout=7s")
    with Queue(asked) as queue, queue.caller.source.connection() as connection:
        assert connection.execute("show transaction_timeout").fetchone() == ("7s",)


@pytest.mark.parametrize(
    "hints",
    [
        "garbage",
        "1,2",
        "()",
        '(1,1,1,1,1,1,1,"(0,,)","(0,,)",1)',
        '(9,9,9,9,9,9,9,"(9223372036854775807,9,9)","(9,9,9)",0)',
        f"({'9' * 30},0,0,0,,,,,,1)",
        '(0,0,-9223372036854775808,9999999999999999,,,,"(0,,)","(0,,)",)',
    ],
)
def test_a_default_for_session_hints_does_not_stop_dequeues(
    dsn: str, set_default: SetDefault, open_queue: OpenQueue, hints: str
) -> None:
    with psycopg.connect(dsn) as connection:
        (oid,) = connection.execute("select 'lonnymq.turn'::regclass::oid").fetchone() or ("",)
    set_default(f"lonnymq.hints_3_{oid}", hints)
    use_every_call(open_queue())


def test_an_unusable_borrowed_connection_says_why(
    set_default: SetDefault, queue: Any, open_connection: OpenConnection
) -> None:
    queue.enqueue("a", 1)
    set_default("default_transaction_isolation", "repeatable read")
    with pytest.raises(WrongIsolationLevel, match="must run in a READ COMMITTED transaction"):
        queue.dequeue(connection=open_connection())
    set_default("default_transaction_read_only", "on")
    with pytest.raises(ReadOnlyTransaction, match="read-only"):
        queue.enqueue("a", 1, connection=open_connection())
