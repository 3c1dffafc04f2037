"""The settings of a client: how it connects, retries and waits."""

from dataclasses import dataclass
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from lonnymq.calls import argument
from lonnymq.connections.session_settings import startup_options
from lonnymq.errors import InvalidArgument

# A dead peer is detected within half a minute, even by an idle worker. The DSN's own values take precedence.
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
    """Settings of a client. Behind PgBouncer in transaction mode: `prepare_threshold=None, listen=False`."""

    # The number of idle connections that stay open, and the most connections that are open at a time.
    pool_min_size: int = 1
    pool_max_size: int = 10
    # The number of executions before a statement is prepared; None: never.
    prepare_threshold: int | None = 5
    # How long to try to connect, including the first time, and to repeat calls that are safe to repeat.
    retry_for_s: float = 30.0
    # How long to repeat a call while its outcome is "busy".
    busy_for_s: float = 1.0
    # How long the server executes a statement before it cancels it; 0: no limit.
    statement_timeout_s: float = 0.0
    # Whether a waiting dequeue is woken by NOTIFY; if not, or while LISTEN fails, it polls.
    listen: bool = True
    poll_s: float = 0.5

    def __post_init__(self) -> None:
        argument.whole("pool_min_size", self.pool_min_size, 0, 10_000)
        argument.whole("pool_max_size", self.pool_max_size, max(1, self.pool_min_size), 10_000)
        argument.optional_whole("prepare_threshold", self.prepare_threshold, 0, argument.MAX_INTEGER)
        argument.seconds("retry_for_s", self.retry_for_s)
        argument.seconds("busy_for_s", self.busy_for_s)
        argument.seconds_between("statement_timeout_s", self.statement_timeout_s, 0, 86_400)
        argument.seconds_between("poll_s", self.poll_s, 0.001, 3600)

    @property
    def keeps_session(self) -> bool:
        """Whether each connection has a session of its own, so that settings made on it last."""
        return self.listen and self.prepare_threshold is not None

    @property
    def session_settings(self) -> dict[str, str]:
        """The settings of each session that are this client's choice."""
        return {"statement_timeout": str(round(self.statement_timeout_s * 1000))}


def connection_options(dsn: str, settings: ClientSettings) -> dict[str, Any]:
    """Return what to pass to psycopg's connect() along with the DSN."""
    try:
        given = conninfo_to_dict(dsn)
    except ProgrammingError:
        # Show neither the value nor libpq's message: they may contain a password.
        hint = " (SQLAlchemy's +driver is not part of it)" if "+" in dsn.partition("://")[0] else ""
        raise InvalidArgument(
            'dsn must be a libpq connection string ("host=... dbname=...") or a URL that starts with '
            f"postgresql://{hint}. The value is not shown because it may contain a password"
        ) from None
    if "@" in str(given.get("host") or ""):
        # This is most likely part of a password, which would be shown as a host that cannot be found.
        raise InvalidArgument(
            "dsn must name a host without @; if the @ is part of the password, write it as %40."
            " The value is not shown because it may contain a password"
        )
    timeout = given.get("connect_timeout")
    if timeout is not None and not str(timeout).strip().isdecimal():
        raise InvalidArgument(f"connect_timeout in dsn must be a whole number of seconds, got {timeout!r}")
    defaults = {name: value for name, value in CONNECTION_DEFAULTS.items() if name not in given}
    if (options := startup_options(given, settings.session_settings)) is not None:
        defaults["options"] = options
    return {**defaults, "autocommit": True, "prepare_threshold": settings.prepare_threshold}
