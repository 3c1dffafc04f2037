"""The errors of the embedded server."""


class EmbeddedError(Exception):
    """The base class of these errors."""


class BinariesNotFound(EmbeddedError):
    """There is no PostgreSQL to run, or none that the server's user can run."""


class AccountNotFound(EmbeddedError):
    """There is no user to run PostgreSQL as: root needs an unprivileged one, and initdb a named one."""


class DataDirRefused(EmbeddedError):
    """The data directory cannot be used; nothing in it was changed."""


class AlreadyRunning(EmbeddedError):
    """Another server is running in this data directory; `pid` and `dsn` say which."""

    def __init__(self, message: str, *, pid: int, dsn: str) -> None:
        super().__init__(message)
        self.pid = pid
        self.dsn = dsn


class ServerNotStarted(EmbeddedError):
    """PostgreSQL ended, or was not ready in time; the message contains the end of its log."""
