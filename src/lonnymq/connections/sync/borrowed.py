"""The connections that a Queue can borrow. By hand, as aio/borrowed.py is: the libraries differ."""

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
# What a call can be executed on: psycopg's own connection, or an adapter of another library's.
AnyConnection: TypeAlias = Connection[Any] | Adapter

EXPECTED = (
    "a psycopg Connection or Cursor, a SQLAlchemy Connection or Session, or Django's connection"
    " (one of asyncio is for AsyncQueue)"
)


def borrow(connection: Any) -> AnyConnection:
    """Return what calls can be executed on; refuse a connection that this client does not support."""
    if isinstance(connection, Connection):
        return connection
    if isinstance(connection, Cursor):
        # A cursor of our own on the same connection: what the caller has yet to fetch stays.
        return connection.connection
    return adapt(connection, ADAPTERS, EXPECTED)


def borrow_driver(connection: Any, schema: str) -> AnyConnection:
    """Return the driver's own connection, if it can be borrowed; COPY and scripts need that one."""
    borrowed = borrow(connection)
    driver = borrowed.native(schema) if isinstance(borrowed, Adapter) else None
    return borrowed if driver is None else borrow(driver)


class Django(Adapter):
    """A connection of Django, over psycopg or psycopg2; opened, logged and checked as for any other query."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def open(self) -> Style:
        if self._connection.vendor != "postgresql":
            raise InvalidArgument(
                f"connection must be one to PostgreSQL, {self._connection.alias!r} of Django is"
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
        # Inside atomic() the driver begins with the first statement it is given.
        self.fetch("select 1", ())
        driver: object = self._connection.connection
        return driver if isinstance(driver, Connection) else None

    def _plain(self, value: Any) -> Any:
        if isinstance(value, memoryview):
            return bytes(value)
        if isinstance(value, datetime) and value.tzinfo is None:
            # Without USE_TZ, Django takes the zone away that PostgreSQL has converted to.
            return value.replace(tzinfo=ZoneInfo(self._connection.timezone_name))
        return value


ADAPTERS: dict[str, Callable[[Any], Adapter]] = {
    "sqlalchemy.engine.base.Connection": SQLAlchemy,
    "sqlalchemy.orm.session.Session": SQLAlchemy.of_session,
    "sqlalchemy.orm.scoping.scoped_session": SQLAlchemy.of_session,
    "django.db.backends.base.base.BaseDatabaseWrapper": Django,
    "django.utils.connection.ConnectionProxy": Django,
}
