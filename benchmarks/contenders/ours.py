"""LonnyMQ itself, called as any driver may call it: plain SQL functions."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg
from psycopg.types.json import Jsonb

from benchmarks.contenders.contender import LEASE_MS, PAYLOAD, Lease, Wire, array
from benchmarks.contenders.ours_install import install_schema

FILL_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class Ours:
    name: str = "lonnymq"
    # For channel_set, of every channel that is filled or prepared.
    policy: dict[str, int] = field(default_factory=dict)
    history: str = "off"

    def install(self, dsn: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            install_schema(connection, "lonnymq")
            connection.execute("select lonnymq.history_prepare(1)")
            connection.execute("select lonnymq.queue_set(%s)", (Jsonb({"history": self.history}),))

    def prepare(self, dsn: str, channels: Sequence[str]) -> None:
        """Give the channels their policy."""
        with psycopg.connect(dsn, autocommit=True) as connection:
            for channel in channels:
                connection.execute("select lonnymq.channel_set(%s, %s)", (channel, Jsonb(self.policy)))

    def fill(self, dsn: str, channels: Sequence[str], messages: int) -> None:
        if self.policy:
            self.prepare(dsn, channels)
        with psycopg.connect(dsn, autocommit=True) as connection:
            for done in range(0, messages, FILL_AT_ONCE):
                publish(connection, channels, min(FILL_AT_ONCE, messages - done))
            connection.execute("vacuum analyze lonnymq.message, lonnymq.wake, lonnymq.stage")

    def session(self, dsn: str) -> "OursSession":
        return OursSession(dsn)


class OursSession:
    def __init__(self, dsn: str) -> None:
        self.wire = Wire(dsn)
        self.is_busy = False

    def create(self, channel: str) -> None:
        self.wire.rows("select message_id from lonnymq.message_create(%s, %b)", (channel, PAYLOAD))

    def create_many(self, channels: Sequence[str]) -> None:
        contents = [PAYLOAD] * len(channels)
        self.wire.rows(
            "select message_id from lonnymq.message_create_many(%s::text[], %b::bytea[])",
            (array(channels), contents),
        )

    def dequeue(self, limit: int) -> list[Lease]:
        rows = self.wire.rows(
            """select message_id, token, channel, attempt, content, outcome
            from lonnymq.message_dequeue(%s, %s, null, false)""",
            (limit, LEASE_MS),
        )
        if rows[0][0] is None:
            self.is_busy = rows[0][5] == "busy"
            return []
        return rows

    def complete(self, leases: list[Lease]) -> None:
        """Asks for exceptions only, as DELETE says no more than a count."""
        exceptions = self.wire.rows(
            """select message_id, outcome from lonnymq.message_complete(%s::bigint[], %s::bigint[])
            where outcome <> 'completed'""",
            (array([lease[0] for lease in leases]), array([lease[1] for lease in leases])),
        )
        assert not exceptions, exceptions[:3]

    def backend_pids(self) -> set[int]:
        return {self.wire.pid}

    def close(self) -> None:
        self.wire.close()


def publish(
    connection: psycopg.Connection[tuple[object, ...]], channels: Sequence[str], messages: int
) -> None:
    publication, part = str(uuid.uuid4()), uuid.uuid4()
    connection.execute(
        """insert into lonnymq.stage (publication, part, ordinal, channel, contents)
        select %s, %s, i / 65536, c.channel, array_agg(%s::bytea)
        from unnest(%s::text[]) with ordinality c(channel, number)
        join generate_series(0, %s) i on c.number = 1 + i %% %s
        group by 3, 4""",
        (publication, part, PAYLOAD, list(channels), messages - 1, len(channels)),
    )
    connection.execute(
        "select lonnymq.message_publish(%s, %s, %s::bigint[])", (publication, [part], [messages])
    )
