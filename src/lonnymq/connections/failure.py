"""Translates errors of drivers into ours, by SQLSTATE and by the connection's state.

Only a refused login has to be recognised by its text.
"""

import re
import select
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import BaseConnection
from psycopg.pq import ConnStatus, TransactionStatus

from lonnymq.connections.borrowed import type_names
from lonnymq.errors import (
    BY_SQLSTATE,
    SQLSTATES_OF_ANOTHER_SESSION,
    SQLSTATES_OF_MISSING_SCHEMA,
    ConnectionLost,
    LoginRefused,
    LonnyError,
    SchemaMissing,
    SessionNotKept,
    TransactionAborted,
)
from lonnymq.texts import truncate

# The most characters of a server's message in ours.
MAX_MESSAGE = 2_000

# With these errors a library refuses to use a failed transaction, before it asks PostgreSQL.
ABORTED = {
    "sqlalchemy.exc.PendingRollbackError",
    "django.db.transaction.TransactionManagementError",
}

# When a server refuses a login, libpq passes on its message but not the SQLSTATE. These are the messages of
# PostgreSQL (for 3D000, 28000, 28P01, 42501, 42704, 22023) and of PgBouncer for errors that retrying cannot
# fix. Messages in other languages are not recognised, and the client retries.
REFUSED_LOGIN = re.compile(
    r"""FATAL:\ +(?:
        (?:database|role)\ ".*"\ does\ not\ exist
        |role\ ".*"\ is\ not\ permitted\ to\ log\ in
        |(?:password|Peer|Ident|certificate)\ authentication\ failed
        |no\ pg_hba\.conf\ entry
        |pg_hba\.conf\ rejects
        |permission\ denied\ for\ database
        |no\ such\ (?:database|user)
        |un(?:recognized|supported)\ (?:configuration|startup)\ parameter
        |invalid\ value\ for\ parameter
    )|^connection\ is\ bad:\ invalid""",
    re.VERBOSE | re.IGNORECASE,
)
# How libpq reports the answer of a server.
REFUSAL = re.compile(r"connection to (server .*?) failed: (?:FATAL: +)?(.*)")
# How psycopg lists the addresses that it tried.
ATTEMPT = re.compile(r"^- (?=host)", re.MULTILINE)


def is_outside_transaction(connection: BaseConnection[Any]) -> bool:
    """Whether the next call commits by itself, in autocommit mode."""
    return connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE


def is_before_transaction(connection: BaseConnection[Any]) -> bool:
    """Whether the next statement begins the caller's transaction."""
    return not connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE


def is_idle(connection: BaseConnection[Any]) -> bool:
    """Whether neither a call nor a transaction is in progress."""
    return not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE


def require_usable(connection: BaseConnection[Any]) -> None:
    """Refuse a connection that is closed or whose transaction has failed."""
    if connection.closed:
        raise ConnectionLost("the connection is closed: nothing was sent", may_have_happened=False)
    if connection.info.transaction_status is TransactionStatus.INERROR:
        raise TransactionAborted("the transaction has failed: roll it back first")


def translate(
    error: psycopg.Error, connection: BaseConnection[Any], schema: str, *, commits: bool
) -> LonnyError | psycopg.Error:
    """Return our error for the driver's, or the driver's own if we have none for it."""
    if connection.closed and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return connection_lost(error, commits=commits)
    return _by_sqlstate(error, error.sqlstate, f"database {connection.info.dbname!r}", schema) or error


def translate_other(error: Exception, schema: str, *, is_lost: bool, commits: bool) -> Exception:
    """Return our error for another library's, which may wrap its driver's; else return that one itself."""
    if isinstance(error, LonnyError):
        return error
    if is_lost:
        return connection_lost(error, commits=commits)
    if ABORTED.intersection(type_names(type(error))):
        return TransactionAborted(str(error))
    for inner in _chain(error):
        sqlstate = getattr(inner, "sqlstate", None) or getattr(inner, "pgcode", None)
        if ours := _by_sqlstate(inner, sqlstate, "this database", schema):
            return ours
    return error


def _by_sqlstate(error: BaseException, sqlstate: str | None, database: str, schema: str) -> LonnyError | None:
    if sqlstate in SQLSTATES_OF_MISSING_SCHEMA:
        return SchemaMissing(
            f"{database} has no queue in schema {schema!r}, or another version's: run install() or"
            f" `lonnymq install`, or check that this is the right database ({_primary_message(error)})"
        )
    if sqlstate in SQLSTATES_OF_ANOTHER_SESSION:
        return SessionNotKept(
            f"{_primary_message(error)}: PgBouncer in transaction mode, or a similar pooler, may run each"
            " transaction in another session. Prepared statements and LISTEN do not work there: use"
            " ClientSettings(prepare_threshold=None, listen=False). For a borrowed connection, use the"
            " settings of its own library"
        )
    kind = BY_SQLSTATE.get(sqlstate or "")
    return kind(_primary_message(error)) if kind else None


def connection_lost(error: Exception, *, commits: bool) -> ConnectionLost:
    """Return our error for a connection that was lost during a call."""
    consequence = (
        "the call may or may not have taken effect"
        if commits
        else "its transaction is rolled back, and the call has no effect"
    )
    return ConnectionLost(f"the connection was lost: {consequence} ({error})", may_have_happened=commits)


def unreachable(error: Exception) -> ConnectionLost:
    """Return our error for a connection that could not be made."""
    if is_refused_login(error):
        return LoginRefused(
            f"{_refusal(error)}: nothing was sent. Check the connection string, in LONNYMQ_DSN or as it was"
            " given, and the PG* environment variables",
            may_have_happened=False,
        )
    reason = f"no connection to the database: nothing was sent ({error})"
    return ConnectionLost(reason, may_have_happened=False)


def _refusal(error: Exception) -> str:
    """Return the messages of the servers that refused a login, and their names."""
    answers = [f"{reason} ({server})" for server, reason in REFUSAL.findall(str(error))]
    return "; ".join(dict.fromkeys(answers)) or " ".join(str(error).split())


def is_refused_login(error: Exception) -> bool:
    """Whether all servers refused the login for reasons that retrying cannot fix."""
    pgconn = getattr(error, "pgconn", None)
    if pgconn is not None and pgconn.needs_password:
        return True
    _, *attempts = ATTEMPT.split(str(error))
    return all(REFUSED_LOGIN.search(attempt) for attempt in attempts or [str(error)])


def is_stale(connection: BaseConnection[Any]) -> bool:
    """Whether the server has closed an idle connection; checks the socket without a round trip."""
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


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and those it wraps, innermost first, because that one is the database's own."""
    inner = getattr(error, "orig", None) or error.__cause__
    if isinstance(inner, BaseException):
        yield from _chain(inner)
    yield error


def _primary_message(error: BaseException) -> str:
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return truncate(str(primary or getattr(error, "message", None) or error), MAX_MESSAGE)
