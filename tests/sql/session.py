"""A database session that calls the queue in plain SQL, as a program in any language could."""

import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from lonnymq.calls.acknowledge import DETAILS
from lonnymq.model.acknowledge import BURY, COMPLETE, DEFER, GIVE_BACK, Action

# A dequeue that replies "empty" before it has made a full scan says to ask again soon. So often is enough.
SHORT_WAIT_MS = 1_000
MIN_SHORT_WAITS = 3
MIN_SHORT_WAITS_S = 0.5


class Reply(NamedTuple):
    """One row of message_dequeue."""

    outcome: str
    wait_ms: int | None
    message_id: int
    channel: str
    token: int
    attempt: int
    max_attempts: int | None
    suspicion: int
    dequeue_at: int
    created_at: int
    leased_at: int
    unlock_at: int
    key: str | None
    unread_bytes: int | None
    content: bytes | None
    state: bytes | None
    headers: dict[str, str] | None


class Session:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def run(self, statement: str, *values: Any) -> psycopg.Cursor[Any]:
        return self.connection.execute(statement.encode(), values or None)

    def rows(self, statement: str, *values: Any) -> list[Any]:
        return self.run(statement, *values).fetchall()

    def ask(self, statement: str, *values: Any) -> Any:
        """Return the first column of the first row, or None."""
        row = self.run(statement, *values).fetchone()
        return row[0] if row else None

    # Create messages.

    def try_create(self, channel: str = "a", content: bytes = b"x", **options: Any) -> tuple[str, int | None]:
        names = "".join(f", p_{name} => %s" for name in options)
        statement = f"select outcome, message_id from message_create(%s, %s{names})"
        outcome, message_id = self.rows(statement, channel, content, *options.values())[0]
        return outcome, message_id

    def create(self, channel: str = "a", content: bytes = b"x", **options: Any) -> int:
        outcome, message_id = self.try_create(channel, content, **options)
        assert outcome == "created", outcome
        assert message_id is not None
        return message_id

    def create_many(
        self, channels: Sequence[str], contents: Sequence[bytes] | None = None, **options: Any
    ) -> list[tuple[str, int | None]]:
        """Return (outcome, id) in the order given."""
        names = "".join(f", p_{name} => %s" for name in options)
        statement = f"select ordinal, outcome, message_id from message_create_many(%s, %s::bytea[]{names})"
        rows = self.rows(
            statement, list(channels), list(contents or [b"x"] * len(channels)), *options.values()
        )
        assert [row[0] for row in rows] == list(range(1, len(channels) + 1))
        return [(outcome, message_id) for _, outcome, message_id in rows]

    def fill(self, channel: str, count: int, **options: Any) -> list[int]:
        """Create `count` messages in one call and return their ids."""
        replies = self.create_many([channel] * count, **options)
        assert {outcome for outcome, _ in replies} <= {"created"}
        return [message_id for _, message_id in replies if message_id is not None]

    def set(self, channel: str, **policy: Any) -> None:
        assert self.ask("select channel_set(%s, %s)", channel, Jsonb(policy)) == "set"

    # Lease them.

    def dequeue_once(
        self, limit: int = 1, lease_ms: int = 30_000, worker: str | None = None, is_shared: bool = False
    ) -> list[Reply]:
        """Call message_dequeue once and return its reply."""
        with self.connection.cursor(row_factory=class_row(Reply)) as cursor:
            cursor.execute(
                "select * from message_dequeue(%s, %s, %s, p_is_shared => %s)",
                (limit, lease_ms, worker, is_shared),
            )
            return cursor.fetchall()

    def dequeue(
        self, limit: int = 1, lease_ms: int = 30_000, worker: str | None = None, is_shared: bool = False
    ) -> list[Reply]:
        """Call message_dequeue as a worker does, again after a short wait_ms; return what was leased."""
        started, waits = time.monotonic(), 0
        while True:
            replies = self.dequeue_once(limit, lease_ms, worker, is_shared)
            if replies[0].outcome == "leased":
                return replies
            wait_ms = replies[0].wait_ms
            assert wait_ms is not None
            if wait_ms > SHORT_WAIT_MS or (
                waits >= MIN_SHORT_WAITS and time.monotonic() - started > MIN_SHORT_WAITS_S
            ):
                return []
            time.sleep(wait_ms / 1_000)
            waits += 1

    def take(self, count: int, lease_ms: int = 30_000) -> list[Reply]:
        """Dequeue until `count` messages are leased or there are no more."""
        taken: list[Reply] = []
        while len(taken) < count:
            replies = self.dequeue(count - len(taken), lease_ms)
            if not replies:
                break
            taken += replies
        return taken

    def lease(self, lease_ms: int = 30_000) -> Reply:
        """Dequeue exactly one message."""
        (reply,) = self.dequeue(1, lease_ms)
        return reply

    def drain(self, limit: int = 100) -> list[Reply]:
        """Dequeue and complete until there are no more messages; return all in the order of their release."""
        drained: list[Reply] = []
        while replies := self.dequeue(limit):
            assert set(self.complete(replies)) == {"completed"}
            drained += replies
        return drained

    # End attempts.

    def end(self, function: str, leases: Iterable[Reply], *more: Any, types: Sequence[str] = ()) -> list[str]:
        """Call an acknowledging function and return the outcomes in the order given."""
        given = list(leases)
        ids, tokens = [one.message_id for one in given], [one.token for one in given]
        places = "".join(f", %s::{kind}" for kind in types) or "".join(", %s" for _ in more)
        statement = f"select message_id, outcome from {function}(%s::bigint[], %s::bigint[]{places})"
        rows = self.rows(statement, ids, tokens, *more)
        assert [row[0] for row in rows] == ids
        return [outcome for _, outcome in rows]

    def acknowledge(self, action: Action[Any], leases: Iterable[Reply], **details: Any) -> list[str]:
        """End attempts, all with the same details."""
        given = list(leases)
        types = [DETAILS[name].type.replace("?", "") for name in action.details]
        more = [[details.get(name)] * len(given) for name in action.details]
        return self.end(f"message_{action.name}", given, *more, types=types)

    def complete(self, leases: Iterable[Reply]) -> list[str]:
        return self.acknowledge(COMPLETE, leases)

    def give_back(self, leases: Iterable[Reply]) -> list[str]:
        return self.acknowledge(GIVE_BACK, leases)

    def defer(
        self,
        leases: Iterable[Reply],
        delay_ms: int | None = None,
        state: bytes | None = None,
        error: str | None = None,
    ) -> list[str]:
        return self.acknowledge(DEFER, leases, delay_ms=delay_ms, state=state, error=error)

    def bury(self, leases: Iterable[Reply], error: str | None = None) -> list[str]:
        return self.acknowledge(BURY, leases, error=error)

    def heartbeat(self, leases: Iterable[Reply], lease_ms: int = 30_000, is_alone: bool = False) -> list[str]:
        return self.end("message_heartbeat", leases, lease_ms, is_alone)

    def cancel(self, *ids: int) -> list[str]:
        rows = self.rows("select outcome from message_cancel(%s::bigint[])", list(ids))
        return [outcome for (outcome,) in rows]

    # The database's clock.

    def epoch_ms(self) -> int:
        now: int = self.ask("select to_epoch(clock_timestamp())")
        return now

    def wait_until_us(self, instant_us: int) -> None:
        """Wait until an instant by the database's clock, in microseconds since 1970."""
        self.run(
            "select pg_sleep(greatest(0, (%s - extract(epoch from clock_timestamp()) * 1000000) / 1000000))",
            instant_us,
        )

    def expire(self, leases: Iterable[Reply]) -> object:
        """Make these leases expire now, without waiting."""
        return self.run(
            "update lease set unlock_at = (extract(epoch from clock_timestamp()) * 1000000)::bigint - 1000"
            " where message_id = any(%s)",
            [one.message_id for one in leases],
        )

    def problems(self, repair: bool = False) -> list[str]:
        return sorted(row[0] for row in self.rows("select problem from queue_check(%s)", repair))


def ids_of(replies: Iterable[Reply]) -> list[int]:
    return [one.message_id for one in replies]
