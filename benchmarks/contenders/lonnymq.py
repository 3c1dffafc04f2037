"""LonnyMQ, called through its SQL functions, as any driver could."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg
from psycopg.types.json import Jsonb

from benchmarks.contenders.contender import LEASE_MS, PAYLOAD, Lease, Wire, array
from benchmarks.contenders.install_lonnymq import install_schema

FILL_BATCH = 1_000_000


@dataclass(frozen=True)
class LonnyMQ:
    name: str = "lonnymq"
    # The policy of every channel that is filled or prepared.
    policy: dict[str, int] = field(default_factory=dict)
    history: str = "off"

    def install(self, dsn: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            install_schema(connection, "lonnymq")
            connection.execute("select lonnymq.history_prepare(1)")
            connection.execute("select lonnymq.queue_set(%s)", (Jsonb({"history": self.history}),))

    def prepare(self, dsn: str, channels: Sequence[str]) -> None:
        """Set the policy of the channels."""
        with psycopg.connect(dsn, autocommit=True) as connection:
            for channel in channels:
                connection.execute("select lonnymq.channel_set(%s, %s)", (channel, Jsonb(self.policy)))

    def fill(self, dsn: str, channels: Sequence[str], messages: int) -> None:
        if self.policy:
            self.prepare(dsn, channels)
        with psycopg.connect(dsn, autocommit=True) as connection:
            for done in range(0, messages, FILL_BATCH):
                publish(connection, channels, min(FILL_BATCH, messages - done))
            connection.execute("vacuum analyze lonnymq.message, lonnymq.wake, lonnymq.stage")

    def session(self, dsn: str) -> "LonnyMQSession":
        return LonnyMQSession(dsn)


class LonnyMQSession:
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
        """Fetch only unexpected outcomes, because the DELETE of other designs returns only a count."""
        unexpected = self.wire.rows(
            """select message_id, outcome from lonnymq.message_complete(%s::bigint[], %s::bigint[])
            where outcome <> 'completed'""",
            (array([lease[0] for lease in leases]), array([lease[1] for lease in leases])),
        )
        assert not unexpected, unexpected[:3]

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
