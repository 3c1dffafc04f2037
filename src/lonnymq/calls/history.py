"""Partitions of history, created ahead and dropped when they are old; and readers of history."""

from collections.abc import Mapping

from lonnymq.calls.statement import Call, Rows, Statement, call, function, in_utc
from lonnymq.model import HistoryBlocker, HistoryPartition, HistoryReader

PREPARE = function("history_prepare", p_days="integer", p_limit="bigint")
PREPARE_IF_DUE = function("history_prepare_if_due", "wait_ms, created")
RELEASE = function("history_release", p_partition="text")
LAG = function("history_lag", "reader, lag_s", p_limit="integer")
READERS = function(
    "history_readers", "reader, done_xid, done_id, followed_at, behind, horizon", p_count_to="integer"
)
BLOCKER = function("history_blocker", "xid, pid, gid, database, role, application, since")
REBASE = function("history_rebase")
FORGET = function("history_forget", p_reader="text")
# From the catalog and not from the view, because an interrupted prune may have left a partition detached.
PARTITIONS = Statement(
    "history_partition",
    "select c.relname::text, d.until_ms, d.until_ms <= extract(epoch from clock_timestamp()) * 1000,"
    " i.inhrelid is not null, coalesce(i.inhdetachpending, false)"
    " from pg_class h join pg_class c on c.relnamespace = h.relnamespace"
    " cross join lateral (select"
    " (extract(epoch from to_date(right(c.relname, 8), 'YYYYMMDD')) * 1000)::bigint + 86400000 as until_ms) d"
    " left join pg_inherits i on i.inhrelid = c.oid and i.inhparent = h.oid"
    " where h.oid = '{literal}.history'::regclass and c.relkind = 'r' and c.relname ~ '^history_[0-9]{{8}}$'"
    " order by coalesce(i.inhdetachpending, false) desc, c.relname",
)


def prepare(days: int) -> Call[int]:
    return call(PREPARE, days, None, decode=lambda rows: int(rows[0][0]))


def prepare_if_due() -> Call[tuple[int, int]]:
    """Prepare if necessary; return in how many milliseconds to ask again, and how many were created."""
    return call(PREPARE_IF_DUE, decode=lambda rows: (rows[0][0], rows[0][1]))


def partitions() -> Call[list[HistoryPartition]]:
    return call(PARTITIONS, decode=_partitions)


def release(partition: str) -> Call[str | None]:
    return call(RELEASE, partition, decode=lambda rows: rows[0][0])


def readers(count_to: int) -> Call[list[HistoryReader]]:
    return call(READERS, count_to, decode=lambda rows: [HistoryReader(*row) for row in map(in_utc, rows)])


def lag(limit: int) -> Call[Mapping[str, float]]:
    """Return how many seconds ago the oldest attempt ended that each reader is not done with; 0: none."""
    return call(LAG, limit, decode=dict)


def blocker() -> Call[HistoryBlocker | None]:
    return call(BLOCKER, decode=lambda rows: HistoryBlocker(*in_utc(rows[0])) if rows else None)


def rebase() -> Call[int]:
    return call(REBASE, decode=lambda rows: int(rows[0][0]))


def forget(reader: str) -> Call[bool]:
    return call(FORGET, reader, decode=lambda rows: bool(rows[0][0]))


def detach(partition: str) -> Statement:
    """Detach a partition. Not in a transaction; if it is interrupted, the partition remains detaching."""
    return _alter(partition, "concurrently")


def finalize(partition: str) -> Statement:
    return _alter(partition, "finalize")


def drop(partition: str) -> Statement:
    return Statement("drop", f'drop table if exists {{schema}}."{partition}"')


def _alter(partition: str, how: str) -> Statement:
    # The name is safe: history_ and eight digits.
    return Statement(
        "detach", f'alter table {{schema}}.history detach partition {{schema}}."{partition}" {how}'
    )


def _partitions(rows: Rows) -> list[HistoryPartition]:
    return [HistoryPartition(*row) for row in rows]
