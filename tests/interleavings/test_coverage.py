"""Every call that changes what other calls use is examined, or says here why not."""

import re

from lonnymq.schema import files
from tests.conftest import Connect
from tests.interleavings.instrument import FUNCTION, Instrument
from tests.interleavings.operations import Operation, Signal
from tests.interleavings.scenarios import ALL_OPERATIONS, SCENARIOS
from tests.interleavings.statements import without_strings
from tests.interleavings.states import Facts

# By call, the reason: who else uses the rows that it changes, or which other call stands for it.
NOT_EXAMINED = {
    "audit_record": "inserts, and deletes old records that are not locked; no other call uses them",
    "channel_pause": "calls channel_set",
    "channel_resume": "calls channel_set",
    "cron_resume": "the same as cron_pause",
    "group_check": "changes groups, which no other call waits for, and calls message_run_now",
    "group_create": "calls message_create_many and message_create",
    "group_sweep": "the same as group_check",
    "history_done": "a position that only its reader uses",
    "history_follow": "a position that only its reader uses",
    "history_forget": "a position that only its reader uses",
    "history_rebase": "is called while nobody else uses the queue",
    "history_release": "waits for writers into a day that is over, and readers' positions",
    "queue_grant": "changes privileges",
    "queue_revoke": "changes privileges",
    "queue_seal": "changes privileges, during a migration",
    "sleeper_clear": "a worker deletes its own registration, when it is awake",
    "stage_discard": "a load has one producer",
    "stage_prune": "deletes loads of other days, skipping locked ones",
    "worker_drain": "a mark that a process reads with its next report",
    "worker_leave": "a row of the caller's own",
    "worker_register": "a row of the caller's own session",
    "worker_report": "a row of the caller's own",
}
# What a call needs to know of the state, and a reply with which every program goes on.
FACTS = Facts("event", [(1, 1)] * 2, [1], [1], [1], "claim", "2026-01-01", 1, "tenant", {1: "uuid"})
REPLY = {"outcome": "leased", "message_id": "1", "token": "1", "newest": "1", "oldest": "1", "wait_ms": "0"}


def calls_of(operation: Operation) -> list[str]:
    program = operation.start(FACTS, 0)
    found = []
    step = next(program)
    while True:
        if not isinstance(step, Signal):
            found.append(step.sql)
        try:
            step = program.send([] if isinstance(step, Signal) else [dict(REPLY)])
        except StopIteration:
            return found


def called(text: str) -> set[str]:
    return set(re.findall(r"\b(\w+) \(", without_strings(text)))


def changing_functions() -> tuple[set[str], set[str]]:
    """Return the functions that change a shared table, also by a call, and those that others call."""
    instrument = Instrument()
    bodies = {
        one["name"]: one["body"]
        for file in files.functions_and_views()
        if (one := FUNCTION.search(file.text))
    }
    callees = {name: called(body) & bodies.keys() - {name} for name, body in bodies.items()}
    shared = set(files.created("table"))
    changing = {name for name, body in bodies.items() if instrument.tables(body)[1] & shared}
    while more := {name for name, names in callees.items() if names & changing} - changing:
        changing |= more
    return changing, set().union(*callees.values())


def test_every_call_that_changes_shared_tables_is_examined(connect: Connect) -> None:
    rows = connect().execute("select unnest(k.names) from kind_rights() k where k.privilege = 'EXECUTE'")
    granted = {name for (name,) in rows}
    changing, called_by_others = changing_functions()
    # Some are for the owner of the queue only.
    calls = {name for name in changing if name in granted or name not in called_by_others}
    examined = {name for one in ALL_OPERATIONS.values() for sql in calls_of(one) for name in called(sql)}
    assert len(calls & examined) > 30
    assert sorted(calls - examined) == sorted(NOT_EXAMINED)


def test_every_operation_is_part_of_a_scenario() -> None:
    used = {one.name for found in SCENARIOS.values() for one in found.operations}
    # Broken on purpose, for a mutant.
    assert set(ALL_OPERATIONS) - used == {"sleep-at-once"}
