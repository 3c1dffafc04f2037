"""What can go wrong around a private PostgreSQL."""


class EmbeddedError(Exception):
    """Any refusal or failure of the embedded server."""


class BinariesNotFound(EmbeddedError):
    """There is no PostgreSQL to run, or none that the server's user may run."""


class AccountNotFound(EmbeddedError):
    """Started as root, and no unprivileged user exists to run PostgreSQL as."""


class DataDirRefused(EmbeddedError):
    """The data directory cannot be used; nothing in it was touched."""


class AlreadyRunning(EmbeddedError):
    """Another server owns this data directory; `pid` and `dsn` say which."""

    def __init__(self, message: str, *, pid: int, dsn: str) -> None:
        super().__init__(message)
        self.pid = pid
        self.dsn = dsn


class ServerNotStarted(EmbeddedError):
    """PostgreSQL ended, or was not ready in time; the message carries the tail of its log."""
