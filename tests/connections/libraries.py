"""One interface to the connections of all libraries: execute, commit, rollback, close; begin is implicit."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Protocol

import asyncpg
import psycopg
import sqlalchemy
from psycopg import conninfo
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tests.connections.django_connections import django_connection_of

Rows = list[tuple[Any, ...]]


class Borrowed(Protocol):
    """A connection of the caller; `connection` is what is passed to the queue."""

    connection: Any

    def execute(self, statement: str) -> Rows: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


class PsycopgBorrowed:
    def __init__(self, dsn: str, *, is_cursor: bool = False, is_autocommit: bool = False) -> None:
        self._connection = psycopg.connect(dsn, autocommit=is_autocommit)
        self.connection: Any = self._connection.cursor() if is_cursor else self._connection
        self.commit, self.rollback = self._connection.commit, self._connection.rollback
        self.close = self._connection.close

    def execute(self, statement: str) -> Rows:
        cursor = self._connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


class AlchemyBorrowed:
    def __init__(
        self, dsn: str, driver: str, *, is_session: bool = False, is_autocommit: bool = False
    ) -> None:
        self.engine = sqlalchemy.create_engine(alchemy_url(dsn, driver), **_isolation(is_autocommit))
        self.connection: Any = Session(self.engine) if is_session else self.engine.connect()

    def execute(self, statement: str) -> Rows:
        result = self.connection.execute(sqlalchemy.text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def close(self) -> None:
        self.connection.close()
        self.engine.dispose()


class DjangoBorrowed:
    def __init__(self, dsn: str, *, is_autocommit: bool = False) -> None:
        self.connection: Any = django_connection(dsn)
        self.connection.set_autocommit(is_autocommit)
        self.commit, self.rollback = self.connection.commit, self.connection.rollback
        self.close = self.connection.close

    def execute(self, statement: str) -> Rows:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []


class AsyncBorrowed:
    """A connection of an asyncio library; each call is run to completion."""

    connection: Any

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._stack = AsyncExitStack()

    def _run(self, awaitable: Awaitable[Any]) -> Any:
        async def awaited() -> Any:
            return await awaitable

        return self._runner.run(awaited())

    def close(self) -> None:
        self._run(self._stack.aclose())


class AsyncPsycopgBorrowed(AsyncBorrowed):
    def __init__(
        self, dsn: str, runner: asyncio.Runner, *, is_cursor: bool = False, is_autocommit: bool = False
    ) -> None:
        super().__init__(runner)
        self._connection = self._run(psycopg.AsyncConnection.connect(dsn, autocommit=is_autocommit))
        self._stack.push_async_callback(self._connection.close)
        self.connection = self._connection.cursor() if is_cursor else self._connection

    def execute(self, statement: str) -> Rows:
        cursor = self._run(self._connection.execute(statement.encode()))
        rows: Rows = self._run(cursor.fetchall()) if cursor.description else []
        return rows

    def commit(self) -> None:
        self._run(self._connection.commit())

    def rollback(self) -> None:
        self._run(self._connection.rollback())


class AsyncAlchemyBorrowed(AsyncBorrowed):
    def __init__(
        self,
        dsn: str,
        runner: asyncio.Runner,
        *,
        driver: str = "psycopg_async",
        is_session: bool = False,
        is_autocommit: bool = False,
    ) -> None:
        super().__init__(runner)
        engine = create_async_engine(alchemy_url(dsn, driver), **_isolation(is_autocommit))
        self._stack.push_async_callback(engine.dispose)
        self.connection = self._run(self._opened(engine, is_session))

    async def _opened(self, engine: AsyncEngine, is_session: bool) -> AsyncConnection | AsyncSession:
        return await self._stack.enter_async_context(AsyncSession(engine) if is_session else engine.connect())

    def execute(self, statement: str) -> Rows:
        result = self._run(self.connection.execute(sqlalchemy.text(statement)))
        return [tuple(row) for row in result] if result.returns_rows else []

    def commit(self) -> None:
        self._run(self.connection.commit())

    def rollback(self) -> None:
        self._run(self.connection.rollback())


class AsyncpgBorrowed(AsyncBorrowed):
    def __init__(
        self, dsn: str, runner: asyncio.Runner, *, is_pool: bool = False, is_autocommit: bool = False
    ) -> None:
        super().__init__(runner)
        self._is_autocommit = is_autocommit
        self._transaction: Any = None
        self.connection = self._run(self._opened(asyncpg_options(dsn), is_pool))
        self._begin()

    async def _opened(self, options: dict[str, Any], is_pool: bool) -> Any:
        if is_pool:
            pool = await self._stack.enter_async_context(asyncpg.create_pool(min_size=1, **options))
            return await self._stack.enter_async_context(pool.acquire())
        connection = await asyncpg.connect(**options)
        self._stack.push_async_callback(connection.close)
        return connection

    def _begin(self) -> None:
        if not self._is_autocommit:
            self._transaction = self.connection.transaction()
            self._run(self._transaction.start())

    def execute(self, statement: str) -> Rows:
        return [tuple(record.values()) for record in self._run(self.connection.fetch(statement))]

    def commit(self) -> None:
        self._run(self._transaction.commit())
        self._begin()

    def rollback(self) -> None:
        self._run(self._transaction.rollback())
        self._begin()


OpenBorrowed = Callable[..., Borrowed]
# The kinds of connections, and how each is opened: with a DSN, and for asyncio with a runner.
BLOCKING: dict[str, Callable[..., Borrowed]] = {
    "psycopg": PsycopgBorrowed,
    "psycopg cursor": lambda dsn, **options: PsycopgBorrowed(dsn, is_cursor=True, **options),
    "sqlalchemy connection": lambda dsn, **options: AlchemyBorrowed(dsn, "psycopg", **options),
    "sqlalchemy session": lambda dsn, **options: AlchemyBorrowed(dsn, "psycopg", is_session=True, **options),
    "sqlalchemy session psycopg2": lambda dsn, **options: AlchemyBorrowed(
        dsn, "psycopg2", is_session=True, **options
    ),
    "django": DjangoBorrowed,
}
ASYNCIO: dict[str, Callable[..., Borrowed]] = {
    "async psycopg": AsyncPsycopgBorrowed,
    "async psycopg cursor": lambda *where, **options: AsyncPsycopgBorrowed(*where, is_cursor=True, **options),
    "async sqlalchemy connection": AsyncAlchemyBorrowed,
    "async sqlalchemy session": lambda *where, **options: AsyncAlchemyBorrowed(
        *where, is_session=True, **options
    ),
    "async sqlalchemy connection asyncpg": lambda *where, **options: AsyncAlchemyBorrowed(
        *where, driver="asyncpg", **options
    ),
    "async sqlalchemy session asyncpg": lambda *where, **options: AsyncAlchemyBorrowed(
        *where, driver="asyncpg", is_session=True, **options
    ),
    "asyncpg": AsyncpgBorrowed,
    "asyncpg pool": lambda *where, **options: AsyncpgBorrowed(*where, is_pool=True, **options),
}


def alchemy_url(dsn: str, driver: str) -> sqlalchemy.URL:
    options = conninfo.conninfo_to_dict(dsn)
    where = {name: str(value) for name, value in options.items() if name in ("host", "port")}
    return sqlalchemy.URL.create(
        f"postgresql+{driver}",
        username=str(options["user"]),
        password=None if options.get("password") is None else str(options["password"]),
        database=str(options["dbname"]),
        query=where,
    )


def asyncpg_options(dsn: str) -> dict[str, Any]:
    options = conninfo.conninfo_to_dict(dsn)
    known = ("host", "port", "user", "password")
    return {"database": options["dbname"], **{name: options[name] for name in options if name in known}}


def django_connection(dsn: str, **settings: Any) -> Any:
    return django_connection_of(dict(conninfo.conninfo_to_dict(dsn)), **settings)


def _isolation(is_autocommit: bool) -> dict[str, Any]:
    return {"isolation_level": "AUTOCOMMIT"} if is_autocommit else {}
