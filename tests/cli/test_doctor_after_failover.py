"""doctor --after-failover: what a failover, a restore or a logical copy leaves behind is found."""

from dataclasses import replace
from typing import Any

import pytest

from lonnymq import CreateOutcome, NewMessage, Queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.diagnostics import FailoverFact
from lonnymq.doctor.failover_findings import after_failover
from lonnymq.doctor.finding import Level
from tests.cli.conftest import Run
from tests.cli.test_doctor import HEALTHY
from tests.conftest import Connect

FUTURE = "(extract(epoch from now()) * 1000000)::bigint + 3600000000"


def test_a_healthy_queue_is_reported_as_such(lonnymq: Run, queue: Queue) -> None:
    queue.enqueue("acme", 1)
    shown = lonnymq("doctor", "--after-failover")
    assert "sequences, leases, crons, clock, history and replication look right" in shown.out
    assert "bulk loads that were not published are gone" in shown.out
    assert "failover" not in lonnymq("doctor").out


def test_sequences_that_were_not_copied_are_found_and_advanced(
    lonnymq: Run, queue: Queue, connect: Connect
) -> None:
    queue.set(history="metadata")
    queue.enqueue_many([NewMessage(channel="acme", payload=n) for n in range(5)])
    for message in queue.dequeue(2):
        message.complete()
    owner = connect()
    with queue.audit.action("alice", "channel_pause", "acme"):
        pass
    for table in ("message", "wake", "audit"):
        owner.execute("select setval(pg_get_serial_sequence(%s, 'id'), 1, false)", (table,))
    owner.execute("select setval('history_id_seq', 1, false)")
    shown = lonnymq("doctor", "--after-failover")
    assert shown.code == CommandExit.NO
    for name in ("message", "wake", "history", "audit"):
        assert f"the sequence of {name} is at its start, behind id" in shown.out
    assert 'select "lonnymq".ids_advance()' in shown.out
    [(first,)] = owner.execute("select ids_advance(10000)").fetchall()
    assert first > 10005
    with queue.audit.action("alice", "channel_resume", "acme"):
        pass
    assert "the sequence of" not in lonnymq("doctor", "--after-failover").out
    created = queue.enqueue("acme", "new")
    assert (created.outcome, created.id) == (CreateOutcome.CREATED, first)
    # The wake of the new message is read, so it is found after the others.
    payloads = [message.payload for _ in range(4) for message in queue.dequeue(10, wait=1.0)]
    assert payloads == [2, 3, 4, "new"]


BREAKS: dict[str, tuple[str, str, Level]] = {
    "lease": (
        "insert into lease select 77, 1, 1, 1, false, true, -1, 1, 4102444800000000, 'gone:1'",
        "1 lease of 1 worker without a session",
        Level.NOTE,
    ),
    "cron": (
        "select cron_set('report', '* * * * *', 'a', 'x');"
        " update cron set next_at = now() - interval '2 hours', mark_at = now() - interval '3 hours'",
        "cron 'report' is overdue by 2h",
        Level.WARNING,
    ),
    "clock": (f"update turn set last_at = {FUTURE}", "the clock is ", Level.WARNING),
    "history": (
        "insert into history (xid, message_id, channel_id, outcome, attempt, created_at, dequeue_at,"
        " ended_at) values (99999999999, 1, 1, 'completed', 1, 1, 1, to_epoch(now()))",
        "history has rows of transaction 99999999999, but this server has only reached",
        Level.PROBLEM,
    ),
    "salt": (
        "update setting set salt = '\\x00'",
        "1 channel (such as 'acme') came from a queue with another salt",
        Level.PROBLEM,
    ),
    "publication": (
        "insert into stage (publication, part, ordinal, channel, contents)"
        " values ('p', gen_random_uuid(), 1, 'a', array['x'::bytea])",
        "1 staged row of bulk loads",
        Level.NOTE,
    ),
}


@pytest.mark.parametrize("kind", BREAKS)
def test_what_is_left_behind_is_found(queue: Queue, connect: Connect, kind: str) -> None:
    statement, expected, level = BREAKS[kind]
    queue.enqueue("acme", 1)
    [message] = queue.dequeue()
    message.complete()
    owner = connect()
    saved = owner.execute("select salt from setting").fetchone()
    owner.execute(statement.encode())
    try:
        found = list(after_failover(queue.examine(after_failover=True)))
    finally:
        owner.execute("update setting set salt = %s", saved)
        owner.execute("truncate lease, stage; update turn set last_at = 1")
        owner.execute("delete from history where xid = 99999999999")
    matching = [one for one in found if expected in one.detail]
    assert [one.level for one in matching] == [level], found
    assert all(one.advice for one in found if one.level is not Level.OK)


@pytest.mark.parametrize(
    ("fact", "level", "detail", "advice"),
    [
        (FailoverFact("timeline", "", 3, ""), Level.NOTE, "timeline 3", "message.uid"),
        (
            FailoverFact("standby", "s1", 0, ""),
            Level.PROBLEM,
            "'s1', but no such standby",
            "alter system reset",
        ),
        (FailoverFact("subscription", "copy", 0, ""), Level.PROBLEM, "'copy'", 'drop subscription "copy"'),
        (
            FailoverFact("slot", "old", 5 << 20, "physical"),
            Level.WARNING,
            "5.2 MB",
            "pg_drop_replication_slot('old')",
        ),
        (FailoverFact("collation", "2.31", 0, "2.36"), Level.PROBLEM, "version 2.31", "reindex"),
    ],
)
def test_facts_about_the_server_become_findings(
    fact: FailoverFact, level: Level, detail: str, advice: str
) -> None:
    found, *_ = after_failover(replace(HEALTHY, failover=(fact,)))
    assert found.level is level
    assert detail in found.detail
    assert advice in found.advice


def test_a_role_that_may_not_read_the_tables_is_told() -> None:
    [found] = after_failover(HEALTHY)
    assert "this role may not read the queue's tables" in found.detail


def test_long_lists_are_cut() -> None:
    facts: Any = tuple(FailoverFact("cron", f"c{n}", 90, "latest") for n in range(50))
    assert len(list(after_failover(replace(HEALTHY, failover=facts)))) < 10
