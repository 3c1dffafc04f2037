"""Borrowed connections: which library a caller's own connection belongs to, by the name of its type.

None of these libraries is imported here: a caller that has a connection has imported its library already.
"""

from collections.abc import Awaitable
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Protocol

from lonnymq.calls.statement import Style
from lonnymq.errors import InvalidArgument


class Kind(Enum):
    """What a borrowed connection is, if it is not psycopg's own."""

    SQLALCHEMY_CONNECTION = "a SQLAlchemy Connection"
    SQLALCHEMY_SESSION = "a SQLAlchemy Session"
    ASYNC_SQLALCHEMY_CONNECTION = "a SQLAlchemy AsyncConnection"
    ASYNC_SQLALCHEMY_SESSION = "a SQLAlchemy AsyncSession"
    DJANGO = "Django's connection"
    ASYNCPG = "an asyncpg connection"


KINDS = {
    "sqlalchemy.engine.base.Connection": Kind.SQLALCHEMY_CONNECTION,
    "sqlalchemy.orm.session.Session": Kind.SQLALCHEMY_SESSION,
    "sqlalchemy.orm.scoping.scoped_session": Kind.SQLALCHEMY_SESSION,
    "sqlalchemy.ext.asyncio.engine.AsyncConnection": Kind.ASYNC_SQLALCHEMY_CONNECTION,
    "sqlalchemy.ext.asyncio.session.AsyncSession": Kind.ASYNC_SQLALCHEMY_SESSION,
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session": Kind.ASYNC_SQLALCHEMY_SESSION,
    "django.db.backends.base.base.BaseDatabaseWrapper": Kind.DJANGO,
    "django.utils.connection.ConnectionProxy": Kind.DJANGO,
    "asyncpg.connection.Connection": Kind.ASYNCPG,
    "asyncpg.pool.PoolConnectionProxy": Kind.ASYNCPG,
}

# SQLAlchemy's names of the drivers that calls are tested with.
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
    """`django.db.connection`, or one of `django.db.connections`."""

    vendor: str

    def cursor(self) -> AbstractContextManager[Any]: ...


class AsyncpgConnection(Protocol):
    """An `asyncpg.Connection`, or one of an asyncpg pool."""

    def fetch(self, query: str, /) -> Awaitable[Any]: ...
    def is_in_transaction(self) -> bool: ...


def kind_of(connection: object) -> Kind | None:
    """Return what this connection is; None if it is of no supported library."""
    return next((KINDS[name] for name in type_names(type(connection)) if name in KINDS), None)


def type_names(kind: type[object]) -> list[str]:
    """Return a type's full name, and those of the types it inherits from."""
    return [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__]


def refusal(connection: object, expected: str) -> InvalidArgument:
    """Return the error for an unsupported connection; shows its type only, as its text may hold secrets."""
    shown = type_names(type(connection))[0].removeprefix("builtins.")
    return InvalidArgument(f"connection must be {expected}, got a {shown}")
