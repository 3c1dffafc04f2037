"""One interface to the connections of all libraries: execute, commit, roll back, close; begin is implied."""

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

from tests.connections.library_of_django import django_connection_of

Rows = list[tuple[Any, ...]]


class Loan(Protocol):
    """A connection on loan: `connection` is what is given to the queue."""

    connection: Any

    def execute(self, statement: str) -> Rows: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


class PsycopgLoan:
    def __init__(self, dsn: str, *, is_cursor: bool = False, is_autocommit: bool = False) -> None:
        self._connection = psycopg.connect(dsn, autocommit=is_autocommit)
        self.connection: Any = self._connection.cursor() if is_cursor else self._connection
        self.commit, self.rollback = self._connection.commit, self._connection.rollback
        self.close = self._connection.close

    def execute(self, statement: str) -> Rows:
        cursor = self._connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


class AlchemyLoan:
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


class DjangoLoan:
    def __init__(self, dsn: str, *, is_autocommit: bool = False) -> None:
        self.connection: Any = django_connection(dsn)
        self.connection.set_autocommit(is_autocommit)
        self.commit, self.rollback = self.connection.commit, self.connection.rollback
        self.close = self.connection.close

    def execute(self, statement: str) -> Rows:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []


class AsyncLoan:
    """The asyncio libraries, each call run to its end."""

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


class AsyncPsycopgLoan(AsyncLoan):
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


class AsyncAlchemyLoan(AsyncLoan):
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


class AsyncpgLoan(AsyncLoan):
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


OpenLoan = Callable[..., Loan]
# The name of a loan, and how it is opened: with a DSN, and for asyncio with a runner.
BLOCKING: dict[str, Callable[..., Loan]] = {
    "psycopg": PsycopgLoan,
    "psycopg cursor": lambda dsn, **options: PsycopgLoan(dsn, is_cursor=True, **options),
    "sqlalchemy connection": lambda dsn, **options: AlchemyLoan(dsn, "psycopg", **options),
    "sqlalchemy session": lambda dsn, **options: AlchemyLoan(dsn, "psycopg", is_session=True, **options),
    "sqlalchemy session psycopg2": lambda dsn, **options: AlchemyLoan(
        dsn, "psycopg2", is_session=True, **options
    ),
    "django": DjangoLoan,
}
ASYNCIO: dict[str, Callable[..., Loan]] = {
    "async psycopg": AsyncPsycopgLoan,
    "async psycopg cursor": lambda *where, **options: AsyncPsycopgLoan(*where, is_cursor=True, **options),
    "async sqlalchemy connection": AsyncAlchemyLoan,
    "async sqlalchemy session": lambda *where, **options: AsyncAlchemyLoan(
        *where, is_session=True, **options
    ),
    "async sqlalchemy connection asyncpg": lambda *where, **options: AsyncAlchemyLoan(
        *where, driver="asyncpg", **options
    ),
    "async sqlalchemy session asyncpg": lambda *where, **options: AsyncAlchemyLoan(
        *where, driver="asyncpg", is_session=True, **options
    ),
    "asyncpg": AsyncpgLoan,
    "asyncpg pool": lambda *where, **options: AsyncpgLoan(*where, is_pool=True, **options),
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
