"""Findings about transactions, dead rows, wakes, dead letters, history, channels and invariants."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from lonnymq import formatting
from lonnymq.diagnostics import Examination, TableFacts, VacuumBlocker
from lonnymq.doctor.finding import MAX_LISTED, Finding, Level
from lonnymq.model import HistoryMode, HistoryPartition, Problem, QueuePulse
from lonnymq.quoting import shell_argument, sql_identifier, sql_literal

OLD_TRANSACTION_S = 5 * 60
VERY_OLD_TRANSACTION_S = 60 * 60
DEAD_ROWS = 100_000
DEAD_SHARE = 5
VACUUM_INTERVAL = timedelta(minutes=10)
MANY_WAKES = 100_000


def transactions(facts: Examination) -> Iterator[Finding]:
    old = [one for one in facts.vacuum_blockers if one.age_s is None or one.age_s >= OLD_TRANSACTION_S]
    for one in old[:MAX_LISTED]:
        yield _transaction(one)
    if len(old) > MAX_LISTED:
        yield Finding(Level.WARNING, "transactions", f"and {len(old) - MAX_LISTED} more")
    if not facts.server.sees_all_sessions:
        yield Finding(
            Level.NOTE,
            "transactions",
            "this role cannot see other roles' transactions",
            f"grant pg_read_all_stats to {sql_identifier(facts.server.role)}, or run this as a superuser",
        )
    elif not old:
        yield Finding(
            Level.OK,
            "transactions",
            f"none has been open for more than {formatting.duration(OLD_TRANSACTION_S)}",
        )


def _transaction(one: VacuumBlocker) -> Finding:
    if one.age_s is None:
        return Finding(
            Level.WARNING,
            "transactions",
            f"replication slot {one.name!r} has no active reader, and retains old rows and WAL",
            f"if its reader is gone for good: select pg_drop_replication_slot({sql_literal(one.name)})",
        )
    level = Level.PROBLEM if one.age_s >= VERY_OLD_TRANSACTION_S else Level.WARNING
    age = formatting.duration(one.age_s)
    if one.kind == "transaction":
        session = f"{one.owner}, {one.application or 'no application name'}, {one.state}"
        return Finding(
            level,
            "transactions",
            f"one has been open for {age}: pid {one.name} ({session}): {formatting.one_line(one.detail, 80)}",
            "vacuum cannot remove rows that it may still see; if it was forgotten:"
            f" select pg_terminate_backend({one.name})",
        )
    return Finding(
        level,
        "transactions",
        f"prepared transaction {one.name!r} of {one.owner} has been open for {age}",
        f"commit prepared {sql_literal(one.name)} or rollback prepared {sql_literal(one.name)}",
    )


def tables(facts: Examination) -> Iterator[Finding]:
    bloated = [one for one in facts.tables if _is_bloated(one, facts.server.clock)]
    for one in bloated:
        vacuumed = (
            f"last vacuumed {formatting.timestamp(one.vacuumed_at)}" if one.vacuumed_at else "never vacuumed"
        )
        yield Finding(
            Level.WARNING,
            "dead rows",
            f"table {one.name}: {one.dead_rows:,} dead of {one.dead_rows + one.live_rows:,} rows, {vacuumed}",
            "end old transactions, then autovacuum catches up; or vacuum the table yourself",
        )
    if facts.tables and not bloated:
        total = formatting.byte_size(sum(one.bytes for one in facts.tables))
        yield Finding(Level.OK, "dead rows", f"few; the tables take {total} in total")


def _is_bloated(table: TableFacts, now: datetime) -> bool:
    """Ignore dead rows that are usual between two runs of autovacuum, or after a bulk load."""
    is_due = table.vacuumed_at is None or now - table.vacuumed_at > VACUUM_INTERVAL
    has_many = table.dead_rows > max(DEAD_ROWS, DEAD_SHARE * table.live_rows)
    return has_many and is_due and table.name != "stage"


def backlog(pulse: QueuePulse) -> Iterator[Finding]:
    if pulse.unfolded_wakes > MANY_WAKES:
        yield Finding(
            Level.WARNING,
            "workers",
            f"{pulse.unfolded_wakes:,} wakes have not been read yet",
            "either workers cannot keep up or none is running: see lonnymq top",
        )
    if pulse.dead:
        yield Finding(
            Level.NOTE,
            "dead letters",
            formatting.quantity(pulse.dead, "dead letter"),
            "lonnymq dead list; then lonnymq dead redrive or lonnymq dead purge",
        )


def history(pulse: QueuePulse, partitions: list[HistoryPartition] | None) -> Iterator[Finding]:
    if pulse.history is HistoryMode.OFF and not pulse.history_overflow:
        return
    ahead = [one for one in partitions or () if not one.is_over]
    if pulse.history_overflow or (partitions is not None and len(ahead) < 2):
        yield Finding(
            Level.WARNING,
            "history",
            f"{formatting.quantity(len(ahead), 'partition')} from today on,"
            f" {formatting.quantity(pulse.history_overflow, 'row')} in overflow",
            "a running worker prepares them; without one, run once a day: lonnymq history prepare",
        )
    elif partitions is not None:
        yield Finding(
            Level.OK, "history", f"{pulse.history}, {formatting.quantity(len(partitions), 'partition')}"
        )
    if any(one.is_detaching or not one.is_attached for one in partitions or ()):
        yield Finding(
            Level.WARNING,
            "history",
            "a prune was interrupted",
            "to complete it, run again: lonnymq history prune",
        )


def channels(facts: Examination) -> Iterator[Finding]:
    for one in facts.channels[:MAX_LISTED]:
        overdue = formatting.duration(one.overdue_s)
        detail = f"{one.channel!r} is {one.reason}: {one.waiting:,} waiting, none released for {overdue}"
        name = shell_argument(one.channel)
        if one.reason == "paused":
            advice = f"if this is not intended: lonnymq channel resume {name}"
            yield Finding(Level.NOTE, "channels", detail, advice)
        else:
            yield Finding(Level.WARNING, "channels", detail, f"lonnymq channel explain {name}")
    more = len(facts.channels) - MAX_LISTED
    if more > 0:
        yield Finding(Level.WARNING, "channels", f"and {more} more", "lonnymq channels --order messages")
    may_ask = facts.trust is not None and facts.trust.may_be_called
    if may_ask and "channel_status" in facts.privileges.views and not facts.channels:
        yield Finding(Level.OK, "channels", "none is stuck")


def invariants(problems: list[Problem]) -> Iterator[Finding]:
    for one in problems[:MAX_LISTED]:
        whose = f" (channel {one.channel!r})" if one.channel is not None else ""
        yield Finding(Level.PROBLEM, "check", f"{one.problem}{whose}: {one.detail}", "lonnymq repair")
    if len(problems) > MAX_LISTED:
        yield Finding(
            Level.PROBLEM, "check", f"and {len(problems) - MAX_LISTED} more", "to list all: lonnymq check"
        )
    if not problems:
        yield Finding(Level.OK, "check", "turns, leases, wakes and messages agree")
