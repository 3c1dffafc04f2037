"""Transactions, dead rows, workers, channels, history, invariants. Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from lonnymq import HistoryMode, HistoryPartition, Problem, QueueStatus
from lonnymq.cli import words
from lonnymq.cli.doctor.finding import MOST_NAMED, Finding, Level
from lonnymq.cli.quoting import shell, sql_name, sql_text
from lonnymq.schema.examine import Examination, Holder, TableFacts

OLD_TRANSACTION_S = 5 * 60
VERY_OLD_TRANSACTION_S = 60 * 60
DEAD_ROWS = 100_000
DEAD_SHARE = 5
VACUUM_ROUNDS = timedelta(minutes=10)
MANY_WAKES = 100_000


def holders(facts: Examination) -> Iterator[Finding]:
    old = [one for one in facts.holders if one.age_s is None or one.age_s >= OLD_TRANSACTION_S]
    for one in old[:MOST_NAMED]:
        yield _holder(one)
    if len(old) > MOST_NAMED:
        yield Finding(Level.WARNING, "transactions", f"and {len(old) - MOST_NAMED} more of these")
    if not facts.server.sees_all_sessions:
        yield Finding(
            Level.NOTE,
            "transactions",
            "this role does not see other roles' transactions",
            f"grant pg_read_all_stats to {sql_name(facts.server.role)}, or run the doctor as superuser",
        )
    elif not old:
        yield Finding(Level.OK, "transactions", f"none has been open for {words.span(OLD_TRANSACTION_S)}")


def _holder(one: Holder) -> Finding:
    if one.age_s is None:
        return Finding(
            Level.WARNING,
            "transactions",
            f"replication slot {one.name!r} is read by nobody: it keeps old rows and WAL",
            f"if its reader is gone for good: select pg_drop_replication_slot({sql_text(one.name)})",
        )
    level = Level.PROBLEM if one.age_s >= VERY_OLD_TRANSACTION_S else Level.WARNING
    age = words.span(one.age_s)
    if one.kind == "transaction":
        who = f"{one.owner}, {one.application or 'no application name'}, {one.state}"
        return Finding(
            level,
            "transactions",
            f"one is open for {age}: pid {one.name} ({who}): {words.one_line(one.detail, 80)}",
            f"vacuum cannot clean up behind it; if forgotten: select pg_terminate_backend({one.name})",
        )
    return Finding(
        level,
        "transactions",
        f"prepared transaction {one.name!r} of {one.owner} is open for {age}",
        f"commit prepared {sql_text(one.name)} or rollback prepared {sql_text(one.name)}",
    )


def tables(facts: Examination) -> Iterator[Finding]:
    bloated = [one for one in facts.tables if _is_bloated(one, facts.server.clock)]
    for one in bloated:
        when = f"last vacuumed {words.instant(one.vacuumed_at)}" if one.vacuumed_at else "never vacuumed"
        yield Finding(
            Level.WARNING,
            "dead rows",
            f"table {one.name}: {one.dead_rows:,} dead of {one.dead_rows + one.live_rows:,}, {when}",
            "end old transactions, then autovacuum catches up; at once: vacuum (verbose) that table",
        )
    if facts.tables and not bloated:
        total = words.size(sum(one.bytes for one in facts.tables))
        yield Finding(Level.OK, "dead rows", f"few; all tables take {total}")


def _is_bloated(table: TableFacts, now: datetime) -> bool:
    """Tell trouble from what is usual between two rounds of autovacuum, or after a bulk load."""
    is_due = table.vacuumed_at is None or now - table.vacuumed_at > VACUUM_ROUNDS
    has_many = table.dead_rows > max(DEAD_ROWS, DEAD_SHARE * table.live_rows)
    return has_many and is_due and table.name != "stage"


def workers(status: QueueStatus, facts: Examination) -> Iterator[Finding]:
    is_overdue = any(one.reason == "ready" for one in facts.channels)
    if status.leased == 0 and status.sleepers == 0 and is_overdue:
        yield Finding(
            Level.PROBLEM,
            "workers",
            "messages are due and no worker asks for them",
            "start one: lonnymq work module:app; if one runs: does it use this database and schema?",
        )
    elif status.expired:
        yield Finding(
            Level.WARNING,
            "workers",
            f"{status.expired:,} of {words.counted(status.leased, 'lease')} expired, and no worker took over",
            "a worker died, and no other asks: start one",
        )
    else:
        leased, asleep = words.counted(status.leased, "message"), words.counted(status.sleepers, "worker")
        yield Finding(Level.OK, "workers", f"{leased} leased, {asleep} asleep")
    if status.unfolded_wakes > MANY_WAKES:
        yield Finding(
            Level.WARNING,
            "workers",
            f"{status.unfolded_wakes:,} wakes are not read yet",
            "workers cannot keep up, or none runs: `lonnymq top` shows which",
        )
    if status.dead:
        yield Finding(
            Level.NOTE,
            "dead letters",
            words.counted(status.dead, "dead letter"),
            "lonnymq dead list; then dead redrive or dead purge",
        )


def history(status: QueueStatus, partitions: list[HistoryPartition] | None) -> Iterator[Finding]:
    if status.history is HistoryMode.OFF and not status.history_overflow:
        return
    ahead = [one for one in partitions or () if not one.is_over]
    if status.history_overflow or (partitions is not None and len(ahead) < 2):
        yield Finding(
            Level.WARNING,
            "history",
            f"{words.counted(len(ahead), 'partition')} from today on,"
            f" {words.counted(status.history_overflow, 'row')} in overflow",
            "lonnymq history prepare, once a day",
        )
    elif partitions is not None:
        yield Finding(Level.OK, "history", f"{status.history}, {words.counted(len(partitions), 'partition')}")
    if any(one.is_detaching or not one.is_attached for one in partitions or ()):
        yield Finding(
            Level.WARNING, "history", "a prune was cut off", "lonnymq history prune again: it goes on"
        )


def channels(facts: Examination) -> Iterator[Finding]:
    for one in facts.channels[:MOST_NAMED]:
        overdue = words.span(one.overdue_s)
        detail = f"{one.channel!r} is {one.reason}: {one.waiting:,} waiting, none released for {overdue}"
        name = shell(one.channel)
        if one.reason == "paused":
            advice = f"if that is forgotten: lonnymq channel resume {name}"
            yield Finding(Level.NOTE, "channels", detail, advice)
        else:
            yield Finding(Level.WARNING, "channels", detail, f"lonnymq channel explain {name}")
    more = len(facts.channels) - MOST_NAMED
    if more > 0:
        yield Finding(
            Level.WARNING, "channels", f"and {more} more of these", "lonnymq channels --order messages"
        )
    may_ask = facts.trust is not None and facts.trust.may_be_called
    if may_ask and "channel_status" in facts.privileges.views and not facts.channels:
        yield Finding(Level.OK, "channels", "none is stuck")


def invariants(problems: list[Problem]) -> Iterator[Finding]:
    for one in problems[:MOST_NAMED]:
        whose = f" (channel {one.channel!r})" if one.channel is not None else ""
        yield Finding(Level.PROBLEM, "check", f"{one.problem}{whose}: {one.detail}", "lonnymq repair")
    if len(problems) > MOST_NAMED:
        yield Finding(
            Level.PROBLEM, "check", f"and {len(problems) - MOST_NAMED} more", "lonnymq check lists all"
        )
    if not problems:
        yield Finding(Level.OK, "check", "turns, leases, wakes and messages agree")
