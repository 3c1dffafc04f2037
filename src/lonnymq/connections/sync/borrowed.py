"""What callers may lend to a Queue. By hand, like its asyncio twin: other libraries lend to that one."""

import importlib
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, TypeAlias, cast
from zoneinfo import ZoneInfo

from psycopg import Connection, Cursor

from lonnymq.calls.statement import Rows, Style
from lonnymq.client.lending import (
    DjangoConnection,
    Origin,
    SQLAlchemyConnection,
    SQLAlchemySession,
    origin,
    refusal,
)
from lonnymq.client.sync.alchemy import Alchemy
from lonnymq.client.sync.foreign import Foreign
from lonnymq.errors import InvalidArgument

LentConnection: TypeAlias = (
    Connection[Any] | Cursor[Any] | SQLAlchemyConnection | SQLAlchemySession | DjangoConnection
)
Borrowed: TypeAlias = Connection[Any] | Foreign

EXPECTED = (
    "a psycopg Connection or Cursor, a SQLAlchemy Connection or Session, or Django's connection"
    " (one of asyncio is for AsyncQueue)"
)


def borrowed(connection: Any) -> Borrowed:
    """Return what calls can be executed on; refuse what is no connection of this client's kinds."""
    if isinstance(connection, Connection):
        return connection
    if isinstance(connection, Cursor):
        # A cursor of our own on the same connection: what the caller has yet to fetch stays.
        return connection.connection
    match origin(connection):
        case Origin.ALCHEMY:
            return Alchemy(connection, is_session=False)
        case Origin.ALCHEMY_SESSION:
            return Alchemy(connection, is_session=True)
        case Origin.DJANGO:
            return Django(connection)
        case _:
            raise refusal(connection, EXPECTED)


def native(connection: Any, schema: str) -> Borrowed:
    """Return the connection of the driver below, if it has one that can be borrowed."""
    lent = borrowed(connection)
    driver = lent.native(schema) if isinstance(lent, Foreign) else None
    return lent if driver is None else borrowed(driver)


class Django(Foreign):
    """A connection of Django, over psycopg or psycopg2; opened, logged and checked as for any other query."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def opened(self) -> Style:
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
        self.opened()
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
