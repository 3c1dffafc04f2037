"""Borrowed connections and sessions of SQLAlchemy, over psycopg, psycopg2 or asyncpg."""

from contextlib import AbstractAsyncContextManager
from typing import Any, Self, cast

from lonnymq.calls.statement import Rows, Style
from lonnymq.connections.aio.adapter import AsyncAdapter
from lonnymq.connections.borrowed import SQLALCHEMY_STYLES
from lonnymq.errors import InvalidArgument


class AsyncSQLAlchemy(AsyncAdapter):
    """Executes with `exec_driver_sql`, which begins the transaction as any other statement would."""

    def __init__(self, connection: Any, session: Any = None) -> None:
        self._connection = connection
        self._session = session

    @classmethod
    def of_session(cls, session: Any) -> Self:
        """Return the adapter for a session; its connection is requested when it is needed."""
        return cls(None, session)

    async def open(self) -> Style:
        if self._session is not None:
            self._connection = await self._session.connection()
        dialect = self._connection.dialect
        if dialect.name != "postgresql" or dialect.driver not in SQLALCHEMY_STYLES:
            raise InvalidArgument(
                "connection must be one to PostgreSQL over psycopg, psycopg2 or asyncpg,"
                f" but this one of SQLAlchemy is {dialect.name}+{dialect.driver}"
            )
        return SQLALCHEMY_STYLES[dialect.driver]

    def commits(self) -> bool:
        connection = self._sync_connection()
        if connection.closed or connection.invalidated:
            return False
        return bool(connection.connection.dbapi_connection.autocommit)

    def is_lost(self) -> bool:
        return self._connection is not None and bool(self._connection.closed or self._connection.invalidated)

    async def fetch(self, text: str, values: tuple[Any, ...]) -> Rows:
        # Otherwise the driver would look for placeholders where there are none.
        options = {} if values else {"no_parameters": True}
        result = await self._connection.exec_driver_sql(text, values, options)
        return [tuple(map(_plain, row)) for row in result.fetchall()] if result.returns_rows else []

    def savepoint(self) -> AbstractAsyncContextManager[object]:
        return cast("AbstractAsyncContextManager[object]", self._connection.begin_nested())

    async def driver(self) -> object | None:
        await self.open()
        # SQLAlchemy begins the transaction with the first statement.
        await self.fetch("select 1", ())
        driver: object = self._sync_connection().connection.driver_connection
        return None if self._connection.dialect.driver == "psycopg2" else driver

    def _sync_connection(self) -> Any:
        return getattr(self._connection, "sync_connection", self._connection)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value
