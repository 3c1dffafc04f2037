"""A head pointer and counters on the channel's row, one message per call (designs/channel_row.sql)."""

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from benchmarks.contenders.contender import DESIGNS, LEASE_MS, PAYLOAD, Lease, Wire, run_script


@dataclass(frozen=True)
class ChannelRow:
    name: str = "channel-row"
    # Whether dequeue uses a second connection, with synchronous_commit off.
    has_fast_connection: bool = True

    def install(self, dsn: str) -> None:
        run_script(dsn, (DESIGNS / "channel_row.sql").read_text())

    def fill(self, dsn: str, channels: Sequence[str], messages: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(
                """insert into channel_row.message (channel, dequeue_at, content)
                select (%s::text[])[1 + i %% %s], floor(extract(epoch from now()) * 1000), %s
                from generate_series(0, %s) i""",
                (list(channels), len(channels), PAYLOAD, messages - 1),
            )
            connection.execute("select channel_row.channel_recount()")
            connection.execute("vacuum analyze channel_row.message, channel_row.channel")

    def session(self, dsn: str) -> "ChannelRowSession":
        return ChannelRowSession(dsn, self.has_fast_connection)


class ChannelRowSession:
    def __init__(self, dsn: str, has_fast_connection: bool) -> None:
        self.durable = Wire(dsn, enable_seqscan="off", jit="off")
        self.fast = self.durable
        if has_fast_connection:
            self.fast = Wire(dsn, enable_seqscan="off", jit="off", synchronous_commit="off")

    def create(self, channel: str) -> None:
        self.durable.rows("select channel_row.message_create(%s, %b)", (channel, PAYLOAD))

    def create_many(self, channels: Sequence[str]) -> None:
        for channel in channels:
            self.create(channel)

    def dequeue(self, limit: int) -> list[Lease]:
        return self.fast.rows(
            "select message_id, channel, content from channel_row.message_dequeue(%s)", (LEASE_MS,)
        )

    def complete(self, leases: list[Lease]) -> None:
        for lease in leases:
            assert self.durable.rows("select channel_row.message_complete(%s)", (lease[0],))[0][0]

    def backend_pids(self) -> set[int]:
        return {self.durable.pid, self.fast.pid}

    def close(self) -> None:
        self.durable.close()
        self.fast.close()
