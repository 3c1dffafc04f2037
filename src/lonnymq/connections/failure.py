"""What went wrong, from the driver's error: told by SQLSTATE and by the connection's state.

Only a login that was refused has to be told by its text.
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

# With these a library refuses to go on in a transaction that has failed, before PostgreSQL is asked.
ABORTED = {
    "sqlalchemy.exc.PendingRollbackError",
    "django.db.transaction.TransactionManagementError",
}

# libpq passes on the words of a server that refuses a login, and not the SQLSTATE. These are the words of
# PostgreSQL (for 3D000, 28000, 28P01, 42501, 42704, 22023) and of PgBouncer for what no waiting cures. Of a
# server that speaks another language they are not recognised, and it is waited for.
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
# How libpq tells what a server answered.
REFUSAL = re.compile(r"connection to (server .*?) failed: (?:FATAL: +)?(.*)")
# How psycopg lists the addresses that it has tried.
ATTEMPT = re.compile(r"^- (?=host)", re.MULTILINE)


def is_outside_transaction(connection: BaseConnection[Any]) -> bool:
    """Whether the next call commits by itself."""
    return connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE


def is_before_transaction(connection: BaseConnection[Any]) -> bool:
    """Whether the next statement begins the caller's transaction."""
    return not connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE


def is_idle(connection: BaseConnection[Any]) -> bool:
    """Whether nothing is going on: neither a call nor a transaction."""
    return not connection.closed and connection.info.transaction_status is TransactionStatus.IDLE


def require_usable(connection: BaseConnection[Any]) -> None:
    """Refuse a connection in whose transaction nothing can be done."""
    if connection.closed:
        raise ConnectionLost("the connection is closed: nothing was sent", may_have_happened=False)
    if connection.info.transaction_status is TransactionStatus.INERROR:
        raise TransactionAborted("the transaction has failed: roll it back first")


def translate(
    error: psycopg.Error, connection: BaseConnection[Any], schema: str, *, commits: bool
) -> LonnyError | psycopg.Error:
    """Return our error for the driver's, or the driver's own if it is none of our business."""
    if connection.closed and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return connection_lost(error, commits=commits)
    return _by_sqlstate(error, error.sqlstate, f"database {connection.info.dbname!r}", schema) or error


def translate_other(error: Exception, schema: str, *, is_lost: bool, commits: bool) -> Exception:
    """Return our error for another library's, or that one itself; libraries wrap their driver's errors."""
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
            f" `lonnymq install`, or check that this is the right database ({_primary(error)})"
        )
    if sqlstate in SQLSTATES_OF_ANOTHER_SESSION:
        return SessionNotKept(
            f"{_primary(error)}: PgBouncer in transaction mode, or a similar pooler, gives each transaction"
            " another session. Prepared statements and LISTEN do not work there: use"
            " ClientSettings(prepare_threshold=None, listen=False). A borrowed connection needs the setting"
            " of its own library"
        )
    kind = BY_SQLSTATE.get(sqlstate or "")
    return kind(_primary(error)) if kind else None


def connection_lost(error: Exception, *, commits: bool) -> ConnectionLost:
    """Return our error for a connection that ended during a call."""
    consequence = (
        "the call may or may not have taken effect"
        if commits
        else "the transaction it was in is rolled back, the call has no effect"
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
    """Return why servers refused a login, in their own words, and which they are."""
    answers = [f"{reason} ({server})" for server, reason in REFUSAL.findall(str(error))]
    return "; ".join(dict.fromkeys(answers)) or " ".join(str(error).split())


def is_refused_login(error: Exception) -> bool:
    """Whether all servers that were asked have refused the login in a way that waiting does not change."""
    pgconn = getattr(error, "pgconn", None)
    if pgconn is not None and pgconn.needs_password:
        return True
    _, *attempts = ATTEMPT.split(str(error))
    return all(REFUSED_LOGIN.search(attempt) for attempt in attempts or [str(error)])


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


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what it wraps, innermost first: that one has the database's own words."""
    inner = getattr(error, "orig", None) or error.__cause__
    if isinstance(inner, BaseException):
        yield from _chain(inner)
    yield error


def _primary(error: BaseException) -> str:
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return str(primary or getattr(error, "message", None) or error)
