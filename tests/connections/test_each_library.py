"""What is specific to one library, and what is refused."""

import asyncio
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import psycopg2
import pytest
import sqlalchemy
from psycopg_pool import ConnectionPool
from sqlalchemy.ext.asyncio import (
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from lonnymq import AsyncQueue, BorrowedConnection, ConnectionLost, InvalidArgument, Queue, TransactionAborted
from tests.connections.libraries import alchemy_url, asyncpg_options, django_connection


def test_a_borrowed_cursor_keeps_its_unfetched_rows(queue: Queue, dsn: str) -> None:
    with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute("select generate_series(1, 3)")
        assert cursor.fetchone() == (1,)
        queue.enqueue("a", 1, connection=cursor)
        assert cursor.fetchall() == [(2,), (3,)]
    assert queue.status().waiting == 1


@pytest.mark.parametrize("kind", [psycopg.ClientCursor, psycopg.RawCursor])
def test_a_connection_may_have_its_own_cursor_and_row_factories(queue: Queue, dsn: str, kind: Any) -> None:
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row, cursor_factory=kind) as connection:
        queue.enqueue("a", {"n": 1}, connection=connection)
        with connection.cursor("on the server") as cursor:
            assert queue.dequeue(connection=cursor)[0].payload == {"n": 1}


def test_a_scoped_session_can_be_borrowed(queue: Queue, dsn: str) -> None:
    engine = sqlalchemy.create_engine(alchemy_url(dsn, "psycopg"))
    session = scoped_session(sessionmaker(engine))
    queue.enqueue("a", 1, connection=session)
    session.commit()
    session.remove()
    engine.dispose()
    assert queue.status().waiting == 1


def test_a_session_of_a_subclass_can_be_borrowed(queue: Queue, dsn: str) -> None:
    class TheirSession(Session):
        pass

    engine = sqlalchemy.create_engine(alchemy_url(dsn, "psycopg"))
    with TheirSession(engine) as session, session.begin():
        queue.enqueue("a", 1, connection=session)
    engine.dispose()
    assert queue.status().waiting == 1


def test_rolling_back_a_sqlalchemy_savepoint_removes_the_message(queue: Queue, dsn: str) -> None:
    engine = sqlalchemy.create_engine(alchemy_url(dsn, "psycopg"))
    with Session(engine) as session, session.begin():
        queue.enqueue("a", "kept", connection=session)
        with session.begin_nested() as savepoint:
            queue.enqueue("a", "rolled back", connection=session)
            savepoint.rollback()
    engine.dispose()
    assert [message.payload for message in queue.dequeue(10)] == ["kept"]


def test_a_session_whose_statement_failed_is_reported_as_aborted(queue: Queue, dsn: str) -> None:
    engine = sqlalchemy.create_engine(alchemy_url(dsn, "psycopg"))
    with Session(engine) as session:
        transaction = session.begin()
        with pytest.raises(sqlalchemy.exc.ProgrammingError):
            session.execute(sqlalchemy.text("select nonsense"))
        with pytest.raises(TransactionAborted):
            queue.enqueue("a", 1, connection=session)
        transaction.rollback()
        queue.enqueue("a", 1, connection=session)
        session.commit()
    engine.dispose()
    assert queue.status().waiting == 1


def test_sqlalchemys_events_see_our_statements(queue: Queue, dsn: str) -> None:
    engine = sqlalchemy.create_engine(alchemy_url(dsn, "psycopg"))
    seen: list[str] = []

    @sqlalchemy.event.listens_for(engine, "before_cursor_execute")
    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        seen.append(statement)

    # A client sometimes checks the installed version first; do so now.
    queue.status()
    with engine.begin() as connection:
        queue.enqueue("a", 1, connection=connection)
    engine.dispose()
    assert len(seen) == 1
    assert "message_create" in seen[0]


def test_a_closed_sqlalchemy_connection_is_reported_as_lost(queue: Queue, dsn: str) -> None:
    engine = sqlalchemy.create_engine(alchemy_url(dsn, "psycopg"))
    connection = engine.connect()
    connection.close()
    with pytest.raises(ConnectionLost, match="no effect") as caught:
        queue.enqueue("a", 1, connection=connection)
    assert not caught.value.may_have_happened
    engine.dispose()


def test_a_blocking_queue_works_inside_run_sync(queue: Queue, dsn: str) -> None:
    async def main() -> None:
        for driver in ("psycopg_async", "asyncpg"):
            engine = create_async_engine(alchemy_url(dsn, driver))
            async with AsyncSession(engine) as session:
                created = await session.run_sync(lambda inner: queue.enqueue("a", 1, connection=inner))
                assert created.outcome == "created"
                await session.commit()
            await engine.dispose()

    asyncio.run(main())
    assert queue.status().waiting == 2


def test_an_async_scoped_session_can_be_borrowed(dsn: str) -> None:
    async def main() -> None:
        engine = create_async_engine(alchemy_url(dsn, "asyncpg"))
        session = async_scoped_session(async_sessionmaker(engine), scopefunc=asyncio.current_task)
        async with AsyncQueue(dsn) as queue:
            await queue.enqueue("a", 1, connection=session)
            assert (await queue.status()).waiting == 0
            await session.commit()
            await session.remove()
            assert (await queue.status()).waiting == 1
        await engine.dispose()

    asyncio.run(main())


def test_a_released_asyncpg_connection_is_reported_as_lost(dsn: str) -> None:
    async def main() -> None:
        async with asyncpg.create_pool(min_size=1, **asyncpg_options(dsn)) as pool, AsyncQueue(dsn) as queue:
            async with pool.acquire() as connection:
                pass
            with pytest.raises(ConnectionLost, match="no effect"):
                await queue.enqueue("a", 1, connection=connection)
            closed = await asyncpg.connect(**asyncpg_options(dsn))
            await closed.close()
            with pytest.raises(ConnectionLost, match="no effect") as caught:
                await queue.enqueue("a", 1, connection=closed)
            assert not caught.value.may_have_happened

    asyncio.run(main())


def test_a_callers_codec_for_json_does_not_matter(dsn: str) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(**asyncpg_options(dsn))
        await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        async with AsyncQueue(dsn) as queue:
            assert (await queue.set(history="off", connection=connection)).history == "off"
        await connection.close()

    asyncio.run(main())


def test_django_atomic_blocks_decide_what_is_committed(queue: Queue, dsn: str) -> None:
    from django.db import transaction

    connection = django_connection(dsn)
    with transaction.atomic(using=connection.alias):
        queue.enqueue("a", "kept", connection=connection)
        with transaction.atomic(using=connection.alias):
            queue.enqueue("a", "rolled back", connection=connection)
            transaction.set_rollback(True, using=connection.alias)
        assert queue.status().waiting == 0
    queue.enqueue("a", "at once", connection=connection)
    assert [message.payload for message in queue.dequeue(10)] == ["kept", "at once"]

    with transaction.atomic(using=connection.alias):
        transaction.set_rollback(True, using=connection.alias)
        with pytest.raises(TransactionAborted):
            queue.enqueue("a", 1, connection=connection)
    connection.close()


def test_djangos_connection_proxy_can_be_borrowed(queue: Queue, dsn: str) -> None:
    from django.db import connections
    from django.utils.connection import ConnectionProxy

    alias = django_connection(dsn).alias
    proxy = ConnectionProxy(connections, alias)
    queue.enqueue("a", 1, connection=proxy)
    assert queue.status().waiting == 1
    proxy.close()


def test_instants_are_aware_even_without_use_tz(queue: Queue, dsn: str) -> None:
    from django.test.utils import override_settings

    connection = django_connection(dsn)
    with override_settings(USE_TZ=False, TIME_ZONE="Asia/Tokyo"):
        queue.channel("a").set(weight=2)
        status = queue.channel("a").status(connection=connection)
        assert status is not None
        assert status.created_at == queue.channels()[0].created_at
        connection.close()


def test_django_logs_our_statements_as_its_own_queries(queue: Queue, dsn: str) -> None:
    from django.test.utils import CaptureQueriesContext

    connection = django_connection(dsn)
    # A client sometimes checks the installed version first; do so now.
    queue.status()
    with CaptureQueriesContext(connection) as captured:
        queue.enqueue("a", 1, connection=connection)
    assert len(captured) == 1
    connection.close()


def test_a_connection_closed_in_a_django_block_is_reported_as_lost(queue: Queue, dsn: str) -> None:
    from django.db import transaction

    connection = django_connection(dsn)
    with transaction.atomic(using=connection.alias):
        queue.enqueue("a", 1, connection=connection)
        connection.close()
        with pytest.raises(ConnectionLost):
            queue.enqueue("a", 1, connection=connection)
    assert queue.status().waiting == 0


DJANGO_ON_PSYCOPG2 = """
    import sys, lonnymq, psycopg
    options = psycopg.conninfo.conninfo_to_dict(sys.argv[1])
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "psycopg"}
    sys.modules["psycopg"] = None
    from tests.connections.django_connections import django_connection_of
    connection = django_connection_of(options)
    connection.ensure_connection()
    sys.modules.pop("psycopg"); sys.modules.update(kept)
    assert type(connection.connection).__module__.startswith("psycopg2"), type(connection.connection)
    from django.db import transaction
    queue = lonnymq.Queue(sys.argv[1])
    with transaction.atomic(using=connection.alias):
        queue.enqueue("a", b"\\0%s", connection=connection)
        [message] = queue.dequeue(connection=connection)
        assert message.content == b"\\0%s" and type(message.content) is bytes
        queue.set(history="off", connection=connection)
        other = lonnymq.Queue(sys.argv[1], schema="other")
        assert other.install(connection=connection).state == "current"
        assert queue.status().waiting == 0
    assert queue.status().leased == 1
    try:
        queue.dequeue(lease_s=0.001, connection=connection)
        with transaction.atomic(using=connection.alias):
            with connection.cursor() as cursor:
                cursor.execute("set transaction isolation level serializable")
            queue.dequeue(connection=connection)
    except lonnymq.WrongIsolationLevel:
        print("refused")
    connection.close(); queue.close(); other.close()
"""


def test_django_may_use_psycopg2(dsn: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DJANGO_ON_PSYCOPG2), dsn],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert (ended.stdout, ended.returncode) == ("refused\n", 0), ended.stderr


def test_an_unsupported_connection_is_refused_with_its_type(queue: Queue, dsn: str) -> None:
    engine = sqlalchemy.create_engine(alchemy_url(dsn, "psycopg"))
    lite = sqlalchemy.create_engine("sqlite://")
    raw = psycopg2.connect(dsn)
    with ConnectionPool(dsn, min_size=0, max_size=1, open=True) as pool, lite.connect() as on_sqlite:
        wrong: list[tuple[Any, str]] = [
            (object(), "got a value of type object"),
            (dsn, "got a value of type str"),
            (pool, "got a value of type psycopg_pool.pool.ConnectionPool"),
            (engine, "got a value of type sqlalchemy.engine.base.Engine"),
            (sessionmaker(engine), "got a value of type sqlalchemy.orm.session.sessionmaker"),
            (raw, "got a value of type psycopg2.extensions.connection"),
            (on_sqlite, r"one to PostgreSQL over psycopg, psycopg2 or asyncpg.*sqlite\+pysqlite"),
            (
                create_async_engine(alchemy_url(dsn, "asyncpg")).connect(),
                "an asyncio connection is for AsyncQueue",
            ),
        ]
        for connection, message in wrong:
            with pytest.raises(InvalidArgument, match=f"^connection must be .*{message}"):
                queue.enqueue("a", 1, connection=connection)
            with pytest.raises(InvalidArgument, match=f"^connection must be .*{message}"):
                queue.copy_in([], connection=connection)
    raw.close()
    assert queue.status().waiting == 0


def test_a_blocking_connection_is_refused_by_the_async_queue(dsn: str) -> None:
    async def main() -> None:
        engine = sqlalchemy.create_engine(alchemy_url(dsn, "psycopg"))
        async with AsyncQueue(dsn) as queue:
            with psycopg.connect(dsn) as blocking, Session(engine) as session:
                for connection in (blocking, blocking.cursor(), session, django_connection(dsn)):
                    borrowed: Any = connection
                    with pytest.raises(InvalidArgument, match="a blocking connection is for Queue"):
                        await queue.enqueue("a", 1, connection=borrowed)
        engine.dispose()

    asyncio.run(main())


def test_a_django_connection_to_another_database_is_refused(queue: Queue, dsn: str) -> None:
    connection = django_connection(dsn, ENGINE="django.db.backends.sqlite3", NAME=":memory:")
    with pytest.raises(InvalidArgument, match=r"must be one to PostgreSQL, .* is sqlite"):
        queue.enqueue("a", 1, connection=connection)


def test_no_library_is_imported_by_us(dsn: str) -> None:
    code = (
        "import sys, psycopg, lonnymq\n"
        "queue = lonnymq.Queue(sys.argv[1])\n"
        "with psycopg.connect(sys.argv[1]) as connection:\n"
        "    queue.enqueue('a', 1, connection=connection)\n"
        "try:\n"
        "    queue.enqueue('a', 1, connection=object())\n"
        "except lonnymq.InvalidArgument:\n"
        "    pass\n"
        "queue.close()\n"
        "print(sorted({'sqlalchemy', 'django', 'asyncpg', 'psycopg2'} & sys.modules.keys()))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, dsn], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def forward(queue: Queue, connection: BorrowedConnection | None) -> None:
    """For the type checker: a wrapper as callers may write it."""
    queue.enqueue("a", 1, connection=connection)


def test_a_function_that_forwards_a_connection_can_be_typed(queue: Queue, dsn: str) -> None:
    engine = sqlalchemy.create_engine(alchemy_url(dsn, "psycopg"))
    with Session(engine) as session, engine.begin() as connection, psycopg.connect(dsn) as plain:
        forward(queue, session)
        forward(queue, connection)
        forward(queue, plain)
        forward(queue, plain.cursor())
        forward(queue, None)
        session.commit()
    engine.dispose()
    assert queue.status().waiting == 5
