"""A clock in the database that tests can move: time passes normally, and skips ahead when told to."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from psycopg import sql

from lonnymq.calls import argument
from lonnymq.calls.statement import Call, Rows, call, function, in_utc, scalar
from lonnymq.errors import LonnyError, SchemaMissing, invalid
from lonnymq.schema import Step, Steps, files

if TYPE_CHECKING:
    from lonnymq.client.sync import Queue

NOW = function("clock_timestamp")
ADVANCE = function("clock_advance", p_by="interval")
DUE = function("clock_due")


class Clock:
    """The clock of a queue that was installed with `Clock.install(queue)`, as the pytest fixtures do."""

    def __init__(self, queue: "Queue") -> None:
        self._queue = queue

    @classmethod
    def install(cls, queue: "Queue") -> "Clock":
        """Install a queue for tests with a clock that can be moved; return the clock."""
        queue.install()
        queue.caller.run(_installation(queue.schema))
        return cls(queue)

    def now(self) -> datetime:
        """Return the queue's current time."""
        return self._perform(now())

    def advance(
        self,
        by: timedelta | float | None = None,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> datetime:
        """Advance the time by a timedelta, by seconds, or by unit; return the new time."""
        given = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if by is not None:
            given += timedelta(seconds=argument.seconds("by", by))
        return self._perform(advance(given))

    def move_to(self, instant: datetime) -> datetime:
        """Advance the time to an instant, such as the start of an hour; return the new time."""
        argument.epoch_ms("instant", instant)
        return self.advance(remaining(self.now(), instant))

    def _perform(self, call: Call[datetime]) -> datetime:
        try:
            return self._queue.caller.perform(call)
        except SchemaMissing as error:
            raise LonnyError(
                f"the queue in schema {self._queue.schema!r} has no clock that can be moved:"
                f" install it with Clock.install(queue) ({error})"
            ) from error


def now() -> Call[datetime]:
    return call(NOW, decode=_instant)


def advance(by: timedelta) -> Call[datetime]:
    if by < timedelta(0):
        raise invalid("by", by, "not negative, because time cannot go backwards")
    # In hours, because in some time zones a day of the server may have 23 or 25 of them.
    hours = by.days * 24
    return call(
        ADVANCE, f"{hours} hours {by.seconds} seconds {by.microseconds} microseconds", decode=_instant
    )


def due() -> Call[datetime | None]:
    return call(DUE, decode=_instant)


def remaining(present: datetime, instant: datetime) -> timedelta:
    if instant < present:
        raise invalid(
            "instant", instant.isoformat(), f"at or after the clock's current time {present.isoformat()}"
        )
    return instant - present


def _instant(rows: Rows) -> Any:
    return scalar([in_utc(rows[0])])


def _installation(schema: str) -> Steps[None]:
    """Put the schema before pg_catalog in the search_path, so that functions and views use its clock."""
    found = yield Step("select 1 from pg_tables where schemaname = %s and tablename = 'clock'", (schema,))
    if found:
        return
    quoted = sql.Identifier(schema).as_string(None)
    yield Step(
        f"set local search_path to {quoted}, pg_catalog, pg_temp;\nset local client_min_messages = warning;"
    )
    for file in (files.read("testing/clock.sql"), *files.functions_and_views()):
        yield Step(file.text, origin=file.path)
