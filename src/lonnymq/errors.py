"""The error tree; errors of the database become ours by SQLSTATE, never by their text."""

from collections.abc import Sequence
from typing import Any

from lonnymq.texts import cut, shown


class LonnyError(Exception):
    """Whatever this library has to say."""

    sqlstate: str | None = None


class InvalidArgument(LonnyError, ValueError):
    """A wrong argument: the message names it, its value, and what is right. Nothing was changed."""

    sqlstate = "LQ001"


class WrongIsolationLevel(LonnyError):
    """The caller's transaction is not READ COMMITTED, and this call can only answer truly there."""

    sqlstate = "LQ002"


class ReadOnlyTransaction(LonnyError):
    """The transaction, or the whole server (a standby), only reads. Nothing was changed."""

    sqlstate = "25006"


class Busy(LonnyError):
    """Another transaction kept this locked for longer than the client was willing to ask again."""

    sqlstate = "LQ003"


class ChannelCollision(LonnyError):
    """Two channel names share an id; one of them needs another name."""

    sqlstate = "LQ004"


class PublicationIncomplete(LonnyError):
    """Staged rows of a bulk load are missing, as after a crash of the server: stage them again."""

    sqlstate = "LQ005"


class HistoryUnknown(LonnyError):
    """A reader's position is not of this history: the database was restored, failed over or made again."""

    sqlstate = "LQ006"


class HistoryDropped(LonnyError):
    """Rows of history that a reader had still to read were dropped."""

    sqlstate = "LQ007"


class StreamRestarted(LonnyError):
    """A stream sends batches again that came before its last one: its checkpoint was lost or replaced."""

    sqlstate = "LQ008"


class TransactionAborted(LonnyError):
    """An earlier statement of the caller's transaction failed: roll it back first. Nothing was changed."""

    sqlstate = "25P02"


class SchemaError(LonnyError):
    """The queue's schema is not what this client needs."""


class SchemaMissing(SchemaError):
    """There is no queue of that name in this database: run `install()`."""


class SchemaTooOld(SchemaError):
    """The queue was installed by an older version: run `migrate()`."""


class SchemaTooNew(SchemaError):
    """A newer version has changed the queue in a way this client does not understand: upgrade the client."""


class SchemaOccupied(SchemaError):
    """The schema is no queue and not empty either."""


class SchemaUnsafe(SchemaError):
    """The schema is another role's, others may create in it, or it holds what is theirs: nothing was run."""


class ServerTooOld(SchemaError):
    """The queue needs PostgreSQL 14 or newer."""


class NotPermitted(LonnyError):
    """This role was not granted that part of the queue (see `grant()`)."""

    sqlstate = "42501"


class SessionNotKept(LonnyError):
    """Another session than the one that prepared a statement had to execute it, as behind PgBouncer.

    See `ClientSettings`. The call that raises this has changed nothing.
    """


class ConnectionLost(LonnyError):
    """The connection broke; `may_have_happened` says whether the call may have taken effect all the same."""

    def __init__(self, message: str, may_have_happened: bool = True) -> None:
        super().__init__(message)
        self.may_have_happened = may_have_happened


class LoginRefused(ConnectionLost):
    """The server does not let this user into this database, and waiting does not help: check the DSN."""

    def __init__(self, message: str, may_have_happened: bool = False) -> None:
        super().__init__(message, may_have_happened)


class ChannelFull(LonnyError):
    """Messages were dropped because their channel has reached its `max_size`; see `raise_if_dropped`.

    `channels` has the names of the full channels, `created` the outcome of each message of the call.
    """

    def __init__(self, message: str, channels: Sequence[str] = (), created: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.channels = tuple(channels)
        self.created = tuple(created)


class DecodeError(LonnyError, ValueError):
    """The content is not what the codec expects; `message.content` has the bytes."""


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

# lock_not_available: a lock on a whole table, as DDL takes it, or the caller's own lock_timeout.
BY_SQLSTATE["55P03"] = Busy

# What is missing: a function, a table, a column, the schema.
SQLSTATES_OF_MISSING_SCHEMA = frozenset({"42883", "42P01", "42703", "3F000"})

# A prepared statement that is there already, that is not there, or that is another one.
SQLSTATES_OF_ANOTHER_SESSION = frozenset({"42P05", "26000", "08P01"})


# What no waiting can cure.
HOPELESS = (SchemaError, NotPermitted, SessionNotKept, LoginRefused, InvalidArgument)


def invalid(argument: str, value: Any, expected: str) -> InvalidArgument:
    """Return the error for a wrong argument, in the words that the database uses too."""
    return InvalidArgument(f"{cut(argument, 300)} must be {cut(expected, 500)}, got {shown(value)}")


def invalid_kind(argument: str, value: object, expected: str) -> InvalidArgument:
    """Return the error for a value of a wrong type; shows only the type, the value may hold a password."""
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return InvalidArgument(f"{argument} must be {expected}, got a value of type {module}{kind.__qualname__}")


def install_advice(extra: str) -> str:
    """Return how to install what an optional part needs; no package index has it yet."""
    return f'install lonnymq with its extra "{extra}", in a checkout: pip install ".[{extra}]"'


def is_hopeless(error: BaseException) -> bool:
    """Whether waiting cannot cure this: the queue or its address must be changed first."""
    return isinstance(error, HOPELESS)
