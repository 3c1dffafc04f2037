"""One table, UPDATE … SKIP LOCKED … RETURNING of a batch, DELETE of the batch (designs/bare.sql)."""

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from benchmarks.contenders.contender import DESIGNS, LEASE_MS, PAYLOAD, Lease, Wire, array, run_script

DEQUEUE = """
    update bare.message set attempts = attempts + 1,
      locked_until = floor(extract(epoch from now()) * 1000)::bigint + %s
    where ctid = any (array(
      select ctid from bare.message
      where locked_until is null and dequeue_at <= floor(extract(epoch from now()) * 1000)::bigint
      order by dequeue_at, id limit {limit} for update skip locked
    ))
    returning id, content"""


@dataclass(frozen=True)
class Bare:
    name: str = "bare"

    def install(self, dsn: str) -> None:
        run_script(dsn, (DESIGNS / "bare.sql").read_text())

    def fill(self, dsn: str, channels: Sequence[str], messages: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(
                "insert into bare.message (content) select %s from generate_series(1, %s)",
                (PAYLOAD, messages),
            )
            connection.execute("vacuum analyze bare.message")

    def session(self, dsn: str) -> "BareSession":
        return BareSession(dsn)


class BareSession:
    def __init__(self, dsn: str) -> None:
        # Statistics of a queue table are always out of date, so its plans have to be pinned.
        self.durable = Wire(dsn, enable_seqscan="off", jit="off")
        self.fast = Wire(dsn, enable_seqscan="off", jit="off", synchronous_commit="off")
        self.dequeues: dict[int, bytes] = {}

    def create(self, channel: str) -> None:
        self.durable.run("insert into bare.message (content) values (%b)", (PAYLOAD,))

    def create_many(self, channels: Sequence[str]) -> None:
        contents = [PAYLOAD] * len(channels)
        self.durable.run("insert into bare.message (content) select unnest(%b::bytea[])", (contents,))

    def dequeue(self, limit: int) -> list[Lease]:
        query = self.dequeues.get(limit)
        if query is None:
            query = self.dequeues[limit] = DEQUEUE.format(limit=limit).encode()
        return self.fast.rows(query, (LEASE_MS,))

    def complete(self, leases: list[Lease]) -> None:
        ids = array([lease[0] for lease in leases])
        deleted = self.durable.run("delete from bare.message where id = any (%s::bigint[])", (ids,))
        assert deleted == len(leases)

    def backend_pids(self) -> set[int]:
        return {self.durable.pid, self.fast.pid}

    def close(self) -> None:
        self.durable.close()
        self.fast.close()
