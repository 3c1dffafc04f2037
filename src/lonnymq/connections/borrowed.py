"""Connections that callers already hold: which library they are of, told by their types' names.

None of these libraries is imported here: whoever lends a connection has imported its library already.
"""

from collections.abc import Awaitable
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Protocol

from lonnymq.calls.statement import Style
from lonnymq.errors import InvalidArgument


class Origin(Enum):
    """What a lent connection is, if it is not psycopg's own."""

    ALCHEMY = "a SQLAlchemy Connection"
    ALCHEMY_SESSION = "a SQLAlchemy Session"
    ASYNC_ALCHEMY = "a SQLAlchemy AsyncConnection"
    ASYNC_ALCHEMY_SESSION = "a SQLAlchemy AsyncSession"
    DJANGO = "Django's connection"
    ASYNCPG = "an asyncpg connection"


ORIGINS = {
    "sqlalchemy.engine.base.Connection": Origin.ALCHEMY,
    "sqlalchemy.orm.session.Session": Origin.ALCHEMY_SESSION,
    "sqlalchemy.orm.scoping.scoped_session": Origin.ALCHEMY_SESSION,
    "sqlalchemy.ext.asyncio.engine.AsyncConnection": Origin.ASYNC_ALCHEMY,
    "sqlalchemy.ext.asyncio.session.AsyncSession": Origin.ASYNC_ALCHEMY_SESSION,
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session": Origin.ASYNC_ALCHEMY_SESSION,
    "django.db.backends.base.base.BaseDatabaseWrapper": Origin.DJANGO,
    "django.utils.connection.ConnectionProxy": Origin.DJANGO,
    "asyncpg.connection.Connection": Origin.ASYNCPG,
    "asyncpg.pool.PoolConnectionProxy": Origin.ASYNCPG,
}

# SQLAlchemy's names of the drivers that calls were tried with.
ALCHEMY_STYLES = {
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
    """`django.db.connection`, or one of `django.db.connections`."""

    vendor: str

    def cursor(self) -> AbstractContextManager[Any]: ...


class AsyncpgConnection(Protocol):
    """An `asyncpg.Connection`, or what an asyncpg pool lends."""

    def fetch(self, query: str, /) -> Awaitable[Any]: ...
    def is_in_transaction(self) -> bool: ...


def origin(connection: object) -> Origin | None:
    """Return what this connection is; None if it is nothing that is known here."""
    return next((ORIGINS[name] for name in names(type(connection)) if name in ORIGINS), None)


def names(kind: type[object]) -> list[str]:
    """Return a type's full name, and those of the types it inherits from."""
    return [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__]


def refusal(connection: object, expected: str) -> InvalidArgument:
    """Return the error for what is no connection; shows its kind, since its text may hold secrets."""
    shown = names(type(connection))[0].removeprefix("builtins.")
    return InvalidArgument(f"connection must be {expected}, got a {shown}")
