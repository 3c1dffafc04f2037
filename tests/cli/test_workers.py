"""workers: the processes that work on the queue, and drains."""

import json

import psycopg

from lonnymq import Queue
from lonnymq.calls import worker as calls
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.model import WorkerReport
from lonnymq.worker.presence import Identity
from tests.cli.conftest import Run

HOSTILE = "\x9b31m [bold]b[/bold] \u202e"


def report(queue: Queue, process: str) -> Identity:
    """Report as a process does that holds one message."""
    identity = Identity.create(process)
    given = WorkerReport(
        host=HOSTILE,
        pid=7,
        version="1.2.3",
        tasks=("resize", HOSTILE),
        slots=4,
        uptime_ms=60_000,
        has_session=False,
        busy=1,
        held=2,
        message_ids=(11,),
        channels=(HOSTILE,),
        leased_us=(0,),
        is_draining=False,
    )
    queue.caller.perform(calls.report(identity.name, identity.secret, given))
    return identity


def test_workers_are_listed_and_drained(lonnymq: Run, queue: Queue, dsn: str) -> None:
    nothing = lonnymq("workers")
    assert (nothing.code, nothing.out) == (0, "no worker has reported in the last hour\n")
    assert lonnymq("workers", "drain", "web").code == CommandExit.NO
    assert lonnymq("workers", "drain", "--all", "--yes").code == CommandExit.NO
    first, second = report(queue, "web:1"), report(queue, f"{HOSTILE}:2")

    table = lonnymq("workers", "--limit", "10")
    assert (table.code, table.err) == (0, "")
    assert not {"\x9b", "\u202e"} & set(table.out)
    (line,) = [line for line in table.out.splitlines() if first.name in line]
    assert line.split()[:6] == [first.name, "working", "1", "4", "2", "11"]
    assert "1.2.3" in line
    (shown,) = [one for one in lonnymq("workers", "--json").json if one["worker"] == second.name]
    assert shown["holds"] == [{"id": 11, "channel": HOSTILE, "leased_at": "1970-01-01T00:00:00Z"}]
    assert (shown["state"], shown["host"], shown["tasks"]) == ("working", HOSTILE, ["resize", HOSTILE])

    watched = lonnymq("workers", "--watch", "--count", "2", "--interval", "0.1")
    assert watched.out.count("2 working, 0 draining, 0 gone; 2 of 8 slots busy") == 2
    assert watched.out.count(f"\n{first.name} ") == 2
    lines = lonnymq("workers", "--watch", "--count", "2", "--interval", "0.1", "--json").out.splitlines()
    assert [len(json.loads(line)) for line in lines] == [2, 2]
    assert lonnymq("workers", "--count", "2").code == CommandExit.USAGE

    for wrong in ([], ["web", "--all"]):
        assert lonnymq("workers", "drain", *wrong).code == CommandExit.USAGE
    assert lonnymq("workers", "drain", "--all", given="no\n").code == CommandExit.NO
    assert {one.state for one in queue.workers()} == {"working"}
    assert lonnymq("workers", "drain", "web", "--json").json == [
        {"worker": first.name, "outcome": "draining"}
    ]
    with psycopg.connect(dsn) as holder:
        holder.execute("select from lonnymq.worker_process where name = %s for update", [second.name])
        busy = lonnymq("workers", "drain", "--all", "--yes")
        assert busy.code == CommandExit.BUSY
        assert not {"\x9b", "\u202e"} & set(busy.out)
    assert lonnymq("workers", "drain", "--all", "--yes").code == 0
    (record, *_) = queue.audit.page().items
    assert (record.verb, record.subject, record.outcomes) == ("worker_drain", None, {"draining": 2})
    assert {one.state for one in queue.workers()} == {"draining"}
