"""Pools of psycopg_pool that a caller passes in; recognised by their type, so that the package is optional.

psycopg_pool is never imported: a caller that has a pool has imported it already.
"""

from collections.abc import Awaitable
from typing import Any, Protocol, TypeGuard

from psycopg import AsyncConnection, Connection, OperationalError


class CallersPool(Protocol):
    """A `psycopg_pool.ConnectionPool`."""

    def getconn(self, timeout: float | None = None) -> Connection[Any]: ...
    def putconn(self, conn: Connection[Any], /) -> None: ...


class AsyncCallersPool(Protocol):
    """A `psycopg_pool.AsyncConnectionPool`."""

    @property
    def conninfo(self) -> Any: ...
    @property
    def kwargs(self) -> Any: ...
    @property
    def connection_class(self) -> Any: ...
    def getconn(self, timeout: float | None = None) -> Awaitable[AsyncConnection[Any]]: ...
    def putconn(self, conn: AsyncConnection[Any], /) -> Awaitable[None]: ...


def is_callers_pool(target: object) -> TypeGuard[CallersPool]:
    """Whether this is a blocking pool of psycopg_pool."""
    return _is_of_psycopg_pool(type(target), "ConnectionPool")


def is_async_callers_pool(target: object) -> TypeGuard[AsyncCallersPool]:
    """Whether this is an asyncio pool of psycopg_pool."""
    return _is_of_psycopg_pool(type(target), "AsyncConnectionPool")


def is_pool_timeout(error: OperationalError) -> bool:
    """Whether the error says that a pool had no free connection in time."""
    return _is_of_psycopg_pool(type(error), "PoolTimeout")


def _is_of_psycopg_pool(kind: type[object], name: str) -> bool:
    """Whether a type is, or inherits from, the public class of psycopg_pool of that name."""
    return any(
        base.__qualname__ == name and base.__module__.partition(".")[0] == "psycopg_pool"
        for base in kind.__mro__
    )
