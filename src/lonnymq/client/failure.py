"""What went wrong, from the driver's error: told by SQLSTATE and by the connection's state, not by text."""

import select
from typing import Any

import psycopg
from psycopg import BaseConnection
from psycopg.pq import ConnStatus, TransactionStatus

from lonnymq.errors import (
    BY_SQLSTATE,
    SQLSTATES_OF_MISSING_SCHEMA,
    ConnectionLost,
    LonnyError,
    SchemaMissing,
)


def is_outside_transaction(connection: BaseConnection[Any]) -> bool:
    """Whether the next call commits by itself."""
    return connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE


def translated(
    error: psycopg.Error, connection: BaseConnection[Any], schema: str, *, commits: bool
) -> LonnyError | psycopg.Error:
    """Return our error for the driver's, or the driver's own if it is none of our business."""
    if connection.closed and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return lost(error, commits=commits)
    if error.sqlstate in SQLSTATES_OF_MISSING_SCHEMA:
        return SchemaMissing(
            f"database {connection.info.dbname!r} has no queue in schema {schema!r}, or another version's: "
            f"run install(), or check that this is the database you meant ({_primary(error)})"
        )
    kind = BY_SQLSTATE.get(error.sqlstate or "")
    return kind(_primary(error)) if kind else error


def lost(error: psycopg.Error, *, commits: bool) -> ConnectionLost:
    consequence = (
        "the call may or may not have taken effect"
        if commits
        else "the transaction it was in is rolled back, the call has no effect"
    )
    return ConnectionLost(f"the connection was lost: {consequence} ({error})", may_have_happened=commits)


def is_stale(connection: BaseConnection[Any]) -> bool:
    """Whether an idle connection has been closed by the other side; asks the socket, not the server."""
    pgconn = connection.pgconn
    for _ in range(10):
        if pgconn.status != ConnStatus.OK:
            return True
        if not _is_readable(pgconn.socket):
            return False
        try:
            pgconn.consume_input()
        except psycopg.OperationalError:
            return True
    return False


def _is_readable(descriptor: int) -> bool:
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([descriptor], [], [], 0)[0])


def _primary(error: psycopg.Error) -> str:
    return error.diag.message_primary or str(error)
