"""The connections that a Queue can borrow. Written by hand, like aio/borrowed.py: the libraries differ."""

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, TypeAlias, cast
from zoneinfo import ZoneInfo

from psycopg import Connection, Cursor

from lonnymq.calls.statement import Rows, Style
from lonnymq.connections.borrowed import (
    DjangoConnection,
    SQLAlchemyConnection,
    SQLAlchemySession,
    adapt,
)
from lonnymq.connections.sync.adapter import Adapter
from lonnymq.connections.sync.sqlalchemy import SQLAlchemy
from lonnymq.errors import InvalidArgument

BorrowedConnection: TypeAlias = (
    Connection[Any] | Cursor[Any] | SQLAlchemyConnection | SQLAlchemySession | DjangoConnection
)
# What a call can be executed on: a connection of psycopg, or an adapter for another library's.
AnyConnection: TypeAlias = Connection[Any] | Adapter

EXPECTED = (
    "a psycopg Connection or Cursor, a SQLAlchemy Connection or Session, or Django's connection"
    " (an asyncio connection is for AsyncQueue)"
)


def borrow(connection: Any) -> AnyConnection:
    """Return what calls can be executed on; refuse an unsupported connection."""
    if isinstance(connection, Connection):
        return connection
    if isinstance(connection, Cursor):
        # Calls use a cursor of their own, so that the caller can still fetch its rows.
        return connection.connection
    return adapt(connection, ADAPTERS, EXPECTED)


def borrow_driver(connection: Any, schema: str) -> AnyConnection:
    """Return the driver's own connection for COPY and scripts if it can be borrowed, else the adapter."""
    borrowed = borrow(connection)
    driver = borrowed.native(schema) if isinstance(borrowed, Adapter) else None
    return borrowed if driver is None else borrow(driver)


class Django(Adapter):
    """A connection of Django, over psycopg or psycopg2; Django opens, logs and checks it as for any query."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def open(self) -> Style:
        if self._connection.vendor != "postgresql":
            raise InvalidArgument(
                f"connection must be one to PostgreSQL, but Django's {self._connection.alias!r} is"
                f" {self._connection.vendor}"
            )
        self._connection.ensure_connection()
        return Style.FORMAT

    def commits(self) -> bool:
        return bool(self._connection.get_autocommit())

    def is_lost(self) -> bool:
        driver = self._connection.connection
        return bool(self._connection.closed_in_transaction or (driver is not None and driver.closed))

    def fetch(self, text: str, values: tuple[Any, ...]) -> Rows:
        with self._connection.cursor() as cursor:
            cursor.execute(text, values or None)
            rows = cursor.fetchall() if cursor.description else []
        return [tuple(map(self._plain, row)) for row in rows]

    def savepoint(self) -> AbstractContextManager[object]:
        atomic = importlib.import_module("django.db.transaction").atomic
        return cast("AbstractContextManager[object]", atomic(using=self._connection.alias))

    def driver(self) -> object | None:
        self.open()
        # Inside atomic(), the driver begins the transaction with the first statement.
        self.fetch("select 1", ())
        driver: object = self._connection.connection
        return driver if isinstance(driver, Connection) else None

    def _plain(self, value: Any) -> Any:
        if isinstance(value, memoryview):
            return bytes(value)
        if isinstance(value, datetime) and value.tzinfo is None:
            # Without USE_TZ, Django removes the time zone of the values.
            return value.replace(tzinfo=ZoneInfo(self._connection.timezone_name))
        return value


ADAPTERS: dict[str, Callable[[Any], Adapter]] = {
    "sqlalchemy.engine.base.Connection": SQLAlchemy,
    "sqlalchemy.orm.session.Session": SQLAlchemy.of_session,
    "sqlalchemy.orm.scoping.scoped_session": SQLAlchemy.of_session,
    "django.db.backends.base.base.BaseDatabaseWrapper": Django,
    "django.utils.connection.ConnectionProxy": Django,
}
