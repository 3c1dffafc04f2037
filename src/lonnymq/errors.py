"""The error classes. Errors of the database are mapped to them by SQLSTATE, never by their text."""

from collections.abc import Sequence
from typing import Any

from lonnymq.texts import short_repr, truncate


class LonnyError(Exception):
    """The base class of all errors that this library raises."""

    sqlstate: str | None = None


class InvalidArgument(LonnyError, ValueError):
    """An invalid argument: the message says which, its value, and what is allowed. Nothing was changed."""

    sqlstate = "LQ001"


class WrongIsolationLevel(LonnyError):
    """The caller's transaction is not READ COMMITTED, which this call needs. Nothing was changed."""

    sqlstate = "LQ002"


class ReadOnlyTransaction(LonnyError):
    """The transaction is read-only, or the server is (a standby). Nothing was changed."""

    sqlstate = "25006"


class Busy(LonnyError):
    """Another transaction held a lock for longer than the client retried."""

    sqlstate = "LQ003"


class ChannelCollision(LonnyError):
    """Two channel names have the same id: rename one of the channels."""

    sqlstate = "LQ004"


class PublicationIncomplete(LonnyError):
    """Staged rows of a bulk load are missing, for example after a crash of the server: stage them again."""

    sqlstate = "LQ005"


class HistoryUnknown(LonnyError):
    """A reader's position is from another history: the database was restored, failed over or recreated."""

    sqlstate = "LQ006"


class HistoryDropped(LonnyError):
    """Rows of history that a reader had not read yet were dropped."""

    sqlstate = "LQ007"


class StreamRestarted(LonnyError):
    """A stream sends a batch from before its last one: its checkpoint was lost or replaced."""

    sqlstate = "LQ008"


class WrongClient(LonnyError):
    """Blocking code called an async method, or async code a blocking one. Nothing was changed."""


class TransactionAborted(LonnyError):
    """An earlier statement of the caller's transaction failed: roll it back first. Nothing was changed."""

    sqlstate = "25P02"


class SchemaError(LonnyError):
    """This client cannot use the queue's schema."""


class SchemaMissing(SchemaError):
    """There is no queue with that name in this database: run `install()`."""


class SchemaTooOld(SchemaError):
    """An older version installed the queue: run `migrate()`."""


class SchemaTooNew(SchemaError):
    """The queue was migrated to a version that this client cannot use: upgrade the client."""


class SchemaOccupied(SchemaError):
    """The schema is not a queue, and it is not empty."""


class SchemaUnsafe(SchemaError):
    """Other roles could run code in this schema with the privileges of its owner. Nothing was changed."""


class ServerTooOld(SchemaError):
    """The queue needs PostgreSQL 14 or newer."""


class NotPermitted(LonnyError):
    """This role has no privilege for this call (see `grant()`)."""

    sqlstate = "42501"


class SessionNotKept(LonnyError):
    """A statement was executed in another session than the one that prepared it, as behind PgBouncer.

    See `ClientSettings`. Nothing was changed.
    """


class ConnectionLost(LonnyError):
    """The connection was lost; `may_have_happened` says whether the call may still have taken effect."""

    def __init__(self, message: str, may_have_happened: bool = True) -> None:
        super().__init__(message)
        self.may_have_happened = may_have_happened


class LoginRefused(ConnectionLost):
    """The server refuses this user or database, and waiting does not help: check the DSN."""

    def __init__(self, message: str, may_have_happened: bool = False) -> None:
        super().__init__(message, may_have_happened)


class ChannelFull(LonnyError):
    """Messages were dropped because their channels have reached `max_size`; see `raise_if_dropped`.

    `channels` are the names of the full channels, `created` is the outcome of each message of the call.
    """

    def __init__(self, message: str, channels: Sequence[str] = (), created: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.channels = tuple(channels)
        self.created = tuple(created)


class ResultError(LonnyError):
    """There is no result of this message; the kinds of this error say why."""


class NotFinished(ResultError, TimeoutError):
    """The message had not ended when the time to wait for it was over."""


class MessageBuried(ResultError):
    """The message failed and is a dead letter; `error` is its last error."""

    def __init__(self, message: str, error: str | None = None) -> None:
        super().__init__(message)
        self.error = error


class MessageCancelled(ResultError):
    """The message was cancelled."""


class ResultUnknown(ResultError):
    """The message never existed, or it has ended and its result was not kept or has expired."""


class DecodeError(LonnyError, ValueError):
    """The codec cannot decode the content or the state; `content` and `state_content` have the bytes."""


BY_SQLSTATE: dict[str, type[LonnyError]] = {
    kind.sqlstate: kind
    for kind in (
        InvalidArgument,
        WrongIsolationLevel,
        ReadOnlyTransaction,
        Busy,
        ChannelCollision,
        PublicationIncomplete,
        HistoryUnknown,
        HistoryDropped,
        StreamRestarted,
        TransactionAborted,
        NotPermitted,
    )
    if kind.sqlstate
}

# lock_not_available: DDL holds a lock on a table, or the caller's own lock_timeout has passed.
BY_SQLSTATE["55P03"] = Busy

# A missing function, table, column or schema.
SQLSTATES_OF_MISSING_SCHEMA = frozenset({"42883", "42P01", "42703", "3F000"})

# A prepared statement that already exists, does not exist, or is a different one.
SQLSTATES_OF_ANOTHER_SESSION = frozenset({"42P05", "26000", "08P01"})


# Errors that a retry cannot fix.
PERMANENT = (SchemaError, NotPermitted, SessionNotKept, LoginRefused, InvalidArgument)


def invalid(argument: str, value: Any, expected: str) -> InvalidArgument:
    """Return the error for an invalid argument, worded as in the database."""
    return InvalidArgument(
        f"{truncate(argument, 300)} must be {truncate(expected, 500)}, got {short_repr(value)}"
    )


def invalid_kind(argument: str, value: object, expected: str) -> InvalidArgument:
    """Return the error for a value of a wrong type, which it does not show: it may contain a password."""
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return InvalidArgument(f"{argument} must be {expected}, got a value of type {module}{kind.__qualname__}")


def install_advice(extra: str) -> str:
    """Return how to install an extra; from a checkout, because the package is not on PyPI yet."""
    return f'install lonnymq with the extra "{extra}"; in a checkout: pip install ".[{extra}]"'


def is_permanent(error: BaseException) -> bool:
    """Whether a retry cannot help, because the program, the queue or the DSN must be changed first."""
    return isinstance(error, PERMANENT)
