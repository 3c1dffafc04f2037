"""Findings about what a failover, a restore or a logical copy leaves behind."""

from collections.abc import Iterator

from lonnymq import formatting
from lonnymq.diagnostics import Examination, FailoverFact
from lonnymq.doctor.finding import MAX_LISTED, Finding, Level
from lonnymq.quoting import sql_identifier, sql_literal

SUBJECT = "failover"


def after_failover(facts: Examination) -> Iterator[Finding]:
    """Yield what the owner has to know or to do before and after clients use this server."""
    if facts.failover is None:
        yield Finding(
            Level.NOTE,
            SUBJECT,
            "not checked: this role may not read the queue's tables, or the server is a standby",
            "run this as the queue's owner, on the server that accepts writes",
        )
        return
    listed: dict[str, int] = {}
    for fact in facts.failover:
        listed[fact.kind] = listed.get(fact.kind, 0) + 1
        if listed[fact.kind] <= MAX_LISTED:
            yield _finding(fact, sql_identifier(facts.schema.schema))
    if listed.keys() <= {"timeline"}:
        yield Finding(
            Level.OK, SUBJECT, "sequences, leases, crons, clock, history and replication look right"
        )
    yield Finding(
        Level.NOTE,
        SUBJECT,
        "bulk loads that were not published are gone, because staged rows are not replicated",
        "run such a load again, with the same name: a load that was published is not repeated",
    )


def _finding(fact: FailoverFact, schema: str) -> Finding:
    advance = f"select {schema}.ids_advance()"
    match fact.kind:
        case "timeline" if fact.number == 1:
            return Finding(Level.OK, SUBJECT, "timeline 1: this server has never been promoted or restored")
        case "timeline":
            return Finding(
                Level.NOTE,
                SUBJECT,
                f"timeline {fact.number}: this server was promoted or restored; ids of messages that were"
                " lost then are issued again, to other messages",
                f"{advance}; programs that store ids use message.uid, which is not issued again",
            )
        case "sequence":
            return Finding(
                Level.PROBLEM,
                SUBJECT,
                f"the sequence of {fact.name} is at {fact.detail or 'its start'}, behind id {fact.number}:"
                " sequences were not copied, so creates fail or messages are never found",
                advance,
            )
        case "lease":
            return Finding(
                Level.NOTE,
                SUBJECT,
                f"{formatting.quantity(fact.number, 'lease')} of"
                f" {formatting.quantity(int(fact.name), 'worker')} without a session",
                "running workers end those of dead workers within seconds; otherwise they end by"
                f" {fact.detail}. Workers behind a pooler, and programs that call dequeue(), never have one",
            )
        case "cron":
            return Finding(
                Level.WARNING,
                SUBJECT,
                f"cron {fact.name!r} is overdue by {formatting.duration(fact.number)}",
                f"a worker of an app ticks it, with catch_up {fact.detail!r} for the ticks that were missed",
            )
        case "clock":
            return Finding(
                Level.WARNING,
                SUBJECT,
                f"the clock is {formatting.duration(fact.number)} behind times that the queue has recorded",
                "synchronize the clock (NTP); scheduled messages and retries wait for their time on it",
            )
        case "history":
            return Finding(
                Level.PROBLEM,
                SUBJECT,
                f"history has rows of transaction {fact.number}, but this server has only reached"
                f" {fact.detail}",
                "lonnymq history rebase; then restart the readers of history from the beginning",
            )
        case "salt":
            return Finding(
                Level.PROBLEM,
                SUBJECT,
                f"{formatting.quantity(fact.number, 'channel')} (such as {fact.name!r}) came from a queue"
                " with another salt, so their messages are not found by name",
                f"copy the table {schema}.setting from there as well, before clients use this queue",
            )
        case "publication":
            return Finding(
                Level.NOTE,
                SUBJECT,
                f"{formatting.quantity(fact.number, 'staged row')} of bulk loads that are not published",
                "loads in progress; if they were given up, running workers delete them after a day",
            )
        case "standby":
            return Finding(
                Level.PROBLEM,
                SUBJECT,
                f"synchronous_standby_names is {fact.name!r}, but no such standby is connected: enqueue,"
                " complete, defer and bury do not return",
                "connect a standby; or alter system reset synchronous_standby_names; select pg_reload_conf()",
            )
        case "subscription":
            return Finding(
                Level.PROBLEM,
                SUBJECT,
                f"subscription {fact.name!r} still copies rows into this database",
                f"after its publisher has stopped: drop subscription {sql_identifier(fact.name)}",
            )
        case "slot":
            return Finding(
                Level.WARNING,
                SUBJECT,
                f"replication slot {fact.name!r} ({fact.detail}) has no reader and retains"
                f" {formatting.byte_size(fact.number)} of WAL",
                f"if its reader is gone for good: select pg_drop_replication_slot({sql_literal(fact.name)})",
            )
        case "collation":
            return Finding(
                Level.PROBLEM,
                SUBJECT,
                f"indexes were built with version {fact.name} of the collation, this machine has"
                f" {fact.detail}: keys and channels may not be found",
                "reindex the database, then alter database ... refresh collation version",
            )
    return Finding(Level.NOTE, SUBJECT, f"{fact.kind} {fact.name}: {fact.number} {fact.detail}")
