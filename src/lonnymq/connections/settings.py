"""How a client connects, repeats and waits."""

from dataclasses import dataclass
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from lonnymq.calls import argument
from lonnymq.connections.session import startup_options
from lonnymq.errors import InvalidArgument

# A dead peer is noticed after half a minute, also by a worker that only waits. A DSN's own values win.
CONNECTION_DEFAULTS: dict[str, Any] = {
    "application_name": "lonnymq",
    "client_encoding": "UTF8",
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


@dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """Behind PgBouncer in transaction mode: `prepare_threshold=None` and `listen=False`."""

    # Idle connections that are kept for good, and the most that are open at a time.
    pool_min_size: int = 1
    pool_max_size: int = 10
    # Statements are prepared after so many executions; None: never.
    prepare_threshold: int | None = 5
    # How long to try to connect, also for the first time, and to repeat calls that are safe to repeat.
    retry_for_s: float = 30.0
    # How long to ask again while an answer is "busy".
    busy_for_s: float = 1.0
    # Whether a dequeue that waits is woken by NOTIFY; else, and while that is cut off, it polls.
    listen: bool = True
    poll_s: float = 0.5

    def __post_init__(self) -> None:
        argument.whole("pool_min_size", self.pool_min_size, 0, 10_000)
        argument.whole("pool_max_size", self.pool_max_size, max(1, self.pool_min_size), 10_000)
        argument.optional_whole("prepare_threshold", self.prepare_threshold, 0, argument.MAX_INTEGER)
        argument.seconds("retry_for_s", self.retry_for_s)
        argument.seconds("busy_for_s", self.busy_for_s)
        argument.seconds_between("poll_s", self.poll_s, 0.001, 3600)

    @property
    def keeps_session(self) -> bool:
        """Whether a connection is a session of its own, so that what is set on it stays with us."""
        return self.listen and self.prepare_threshold is not None


def connection_options(dsn: str, settings: ClientSettings) -> dict[str, Any]:
    """Return what to pass to psycopg's connect beside the DSN."""
    try:
        given = conninfo_to_dict(dsn)
    except ProgrammingError:
        # Neither the value nor libpq's words for it: they may hold a password.
        hint = " (SQLAlchemy's +driver is not part of it)" if "+" in dsn.partition("://")[0] else ""
        raise InvalidArgument(
            'dsn must be a libpq connection string ("host=... dbname=...") or a URL that starts with '
            f"postgresql://{hint}. The value is not shown because it may contain a password"
        ) from None
    if "@" in str(given.get("host") or ""):
        # The rest of a password, most likely: it would be shown as the host that cannot be found.
        raise InvalidArgument(
            "dsn must name a host without @; if that is part of the password, write it as %40."
            " The value is not shown because it may contain a password"
        )
    timeout = given.get("connect_timeout")
    if timeout is not None and not str(timeout).strip().isdecimal():
        raise InvalidArgument(f"connect_timeout in dsn must be a whole number of seconds, got {timeout!r}")
    defaults = {name: value for name, value in CONNECTION_DEFAULTS.items() if name not in given}
    if (options := startup_options(given)) is not None:
        defaults["options"] = options
    return {**defaults, "autocommit": True, "prepare_threshold": settings.prepare_threshold}
