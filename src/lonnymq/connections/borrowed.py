"""Borrowed connections of other libraries: their types, for annotations, and how they are recognised.

A connection is recognised by the name of its type. None of these libraries is imported, because a caller that
has a connection has imported its library already.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from lonnymq.calls.statement import Style
from lonnymq.errors import invalid_kind

Adapter = TypeVar("Adapter")

# SQLAlchemy's names of the supported drivers.
SQLALCHEMY_STYLES = {
    "psycopg": Style.FORMAT,
    "psycopg_async": Style.FORMAT,
    "psycopg2": Style.FORMAT,
    "asyncpg": Style.NUMBERED,
}


class SQLAlchemyConnection(Protocol):
    """A `sqlalchemy.Connection`."""

    def exec_driver_sql(self, statement: str, /) -> Any: ...
    def close(self) -> None: ...


class SQLAlchemySession(Protocol):
    """A `sqlalchemy.orm.Session` or `scoped_session`."""

    def connection(self) -> SQLAlchemyConnection: ...
    def commit(self) -> None: ...


class AsyncSQLAlchemyConnection(Protocol):
    """A `sqlalchemy.ext.asyncio.AsyncConnection`."""

    def exec_driver_sql(self, statement: str, /) -> Any: ...
    def close(self) -> Awaitable[None]: ...


class AsyncSQLAlchemySession(Protocol):
    """A `sqlalchemy.ext.asyncio.AsyncSession` or `async_scoped_session`."""

    def connection(self) -> Awaitable[AsyncSQLAlchemyConnection]: ...
    def commit(self) -> Awaitable[None]: ...


class DjangoConnection(Protocol):
    """`django.db.connection`, or a connection from `django.db.connections`."""

    vendor: str

    def cursor(self) -> AbstractContextManager[Any]: ...


class AsyncpgConnection(Protocol):
    """An `asyncpg.Connection`, or a connection from an asyncpg pool."""

    def fetch(self, query: str, /) -> Awaitable[Any]: ...
    def is_in_transaction(self) -> bool: ...


def adapt(connection: object, adapters: Mapping[str, Callable[[Any], Adapter]], expected: str) -> Adapter:
    """Return the adapter for a connection, by the names of its types; refuse one that is not supported."""
    for name in type_names(type(connection)):
        if name in adapters:
            return adapters[name](connection)
    raise invalid_kind("connection", connection, expected)


def type_names(kind: type[object]) -> list[str]:
    """Return the qualified names of a type and of the types it inherits from."""
    return [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__]
