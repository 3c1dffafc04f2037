"""A3: the queue works in a schema of any name."""

import psycopg
import pytest

from tests import schema
from tests.conftest import Connect
from tests.sql.session import Session

NAMES = ['weird "; drop schema x; --', "Groß it's 50% a.b back\\slash", "select", "x" * 63]


@pytest.mark.parametrize("name", NAMES)
def test_a_queue_lives_in_a_schema_of_any_name(connect: Connect, name: str) -> None:
    connection = connect(options="")
    connection.execute("create schema x")
    schema.install(connection, name)
    connection.execute("select set_config('search_path', quote_ident(%s), false)", (name,))
    queue = Session(connection)
    assert queue.ask("select current_schema()") == name
    queue.run('select queue_set(\'{"history": "full"}\')')
    queue.set("a", max_concurrency=2, release_interval_ms=1)
    queue.fill("a", 3, keys=["k", None, None])
    first = queue.lease()
    assert queue.heartbeat([first]) == ["extended"]
    assert queue.defer([first], state=b"s") == ["deferred"]
    assert queue.bury([queue.lease()], "x") == ["buried"]
    assert queue.ask("select dead_redrive_channel('a')") == 1
    assert queue.ask("select outcome from message_cancel_key('a', 'k')") == "cancelled"
    while leased := queue.dequeue():
        assert queue.complete(leased) == ["completed"]
    assert queue.ask("select history_prepare(20)") == 6
    assert queue.ask("select count(*) from history") == 5
    for view in (
        "channel_status",
        "message_json",
        "lease_status",
        "dead_letter",
        "table_size",
        "history_partition",
    ):
        queue.rows(f"select * from {view}")
    assert queue.problems(repair=True) == []
    assert queue.ask("select channel_delete('a')") == "deleted"
    queue.run("select queue_grant(current_user, 'operator')")
    assert queue.ask("select count(*) from pg_namespace where nspname = 'x'") == 1


def test_two_queues_in_one_database_are_independent(connect: Connect) -> None:
    connection = connect(options="")
    schema.install(connection, "other")
    here = Session(connect())
    there = Session(connect(options="-c search_path=other"))
    here.set("a", max_concurrency=1)
    here.fill("a", 2)
    there.fill("a", 3)
    assert len(here.take(5)) == 1
    assert len(there.take(5)) == 3
    assert here.ask("select id from channel") != there.ask("select id from channel")


def test_a_session_can_alternate_between_two_queues(connect: Connect) -> None:
    """The hints that a session keeps for one queue must not be used for the other."""
    connection = connect(options="")
    schema.install(connection, "other")
    for n in range(20):
        for name in ("lonnymq", "other"):
            connection.execute(f"select {name}.message_create('c{n}', 'x')".encode())
        for name in ("lonnymq", "other"):
            row = connection.execute(
                f"select outcome, channel from {name}.message_dequeue()".encode()
            ).fetchone()
            assert row == ("leased", f"c{n}")


def test_functions_work_without_the_schema_in_search_path(connect: Connect) -> None:
    connection = connect(options="-c search_path=pg_catalog")
    assert connection.execute("select outcome from lonnymq.message_create('a', 'x')").fetchone() == (
        "created",
    )
    row = connection.execute("select message_id, token from lonnymq.message_dequeue()").fetchone()
    assert row is not None
    answer = connection.execute(
        "select outcome from lonnymq.message_complete(%s, %s)", ([row[0]], [row[1]])
    ).fetchone()
    assert answer == ("completed",)


def test_the_callers_settings_do_not_affect_the_queue(connect: Connect) -> None:
    connection = connect(
        options="-c search_path=lonnymq -c datestyle=German -c intervalstyle=iso_8601 -c bytea_output=escape"
        " -c standard_conforming_strings=off -c escape_string_warning=off -c timezone=Asia/Tokyo"
        " -c extra_float_digits=-15 -c enable_indexscan=off -c enable_tidscan=off -c enable_nestloop=off"
    )
    queue = Session(connection)
    queue.run('select queue_set(\'{"history": "full"}\')')
    created = queue.fill("a", 20, dequeue_ats=list(range(20)))
    drained = queue.drain(limit=3)
    assert [one.message_id for one in drained] == created
    assert queue.ask("select count(*) from history") == 20


@pytest.mark.parametrize(
    "level", [level for level in psycopg.IsolationLevel if level.name != "READ_UNCOMMITTED"]
)
def test_creating_works_at_every_isolation_level(connect: Connect, level: psycopg.IsolationLevel) -> None:
    connection = connect(autocommit=False)
    connection.isolation_level = level
    queue = Session(connection)
    queue.create("a")
    queue.create_many(["a", "b"], keys=["k", "k"])
    assert queue.try_create("a", key="k")[0] == "duplicate"
    connection.commit()
    assert len(Session(connect()).drain()) == 3


def test_read_uncommitted_works_like_read_committed(connect: Connect) -> None:
    """PostgreSQL treats them as the same level."""
    connection = connect(autocommit=False)
    connection.isolation_level = psycopg.IsolationLevel.READ_UNCOMMITTED
    queue = Session(connection)
    queue.create("a")
    leased = queue.lease()
    assert queue.complete([leased]) == ["completed"]
    connection.commit()
