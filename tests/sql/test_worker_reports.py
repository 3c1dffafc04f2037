"""What processes report about themselves is shown, bounded, and forgotten."""

import hashlib
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from tests.sql.conftest import Login, Open
from tests.sql.session import Session

SECRET = "a secret of 32 characters or more"
FINGERPRINT = hashlib.sha256(SECRET.encode()).hexdigest()[:16]
PARAMETERS = (
    "p_worker => %s, p_secret => %s, p_host => %s, p_pid => %s, p_version => %s, p_tasks => %s::text[],"
    " p_slots => %s, p_uptime_ms => %s, p_has_session => %s, p_busy => %s, p_held => %s,"
    " p_message_ids => %s::bigint[], p_channels => %s::text[], p_leased_ats => %s::bigint[],"
    " p_is_draining => %s"
)
REPORT = f"select wait_ms, is_asked_to_drain from worker_report({PARAMETERS})"
FIELDS = {
    "host": "web",
    "pid": 7,
    "version": "1.2.3",
    "tasks": ["resize", "send"],
    "slots": 4,
    "uptime_ms": 60_000,
    "has_session": False,
    "busy": 2,
    "held": 3,
    "message_ids": [11, 12],
    "channels": ["a", "b"],
    "leased_ats": [1_000_000, 2_000_000],
    "is_draining": False,
}
# Reports from the past: the clock of the test's rows goes back, and the server's continues.
LONG_AGO = "update worker_process set seen_at = seen_at - {} * 1000000::bigint where name = any(%s)"


def name_of(process: str) -> str:
    return f"{process}:{FINGERPRINT}"


def report(session: Session, process: str = "web:7", **changes: Any) -> bool:
    """Report, and return whether the process was asked to drain."""
    values = {**FIELDS, **changes}
    ((wait_ms, is_asked),) = session.rows(REPORT, name_of(process), SECRET, *values.values())
    assert 4_000 <= wait_ms <= 6_000
    return bool(is_asked)


def states(session: Session) -> dict[str, str]:
    rows = session.rows("select worker, state from worker_status")
    return {worker.removesuffix(f":{FINGERPRINT}"): state for worker, state in rows}


def age(session: Session, processes: Sequence[str], seconds: int) -> None:
    session.run(LONG_AGO.format(seconds), [name_of(one) for one in processes])


def test_the_last_report_of_a_process_is_shown(queue: Session) -> None:
    report(queue)
    report(queue, busy=4, held=9, message_ids=[], channels=[], leased_ats=[], is_draining=True)
    report(queue, "web:8", tasks=[], has_session=True)
    shown = queue.rows(
        "select worker, state, host, pid, version, tasks, slots, busy, held, message_ids, channels,"
        " array_length(leased_ats, 1), round(extract(epoch from now() - started_at)) between 60 and 90,"
        " seen_at > now() - interval '30 seconds', drain_at from worker_status order by worker"
    )
    web = ("web", 7, "1.2.3")
    assert shown == [
        (name_of("web:7"), "draining", *web, ["resize", "send"], 4, 4, 9, [], [], None, True, True, None),
        # It said that a session stands for it, and there is none.
        (name_of("web:8"), "gone", *web, [], 4, 2, 3, [11, 12], ["a", "b"], 2, True, True, None),
    ]


def test_a_process_that_does_not_report_is_gone_then_hidden_then_deleted(queue: Session) -> None:
    for process in ("a", "b", "c", "future"):
        report(queue, f"{process}:1")
    age(queue, ["a:1"], 16)
    age(queue, ["b:1", "c:1"], 3_601)
    # The clock stepped back since then.
    age(queue, ["future:1"], -7_200)
    assert states(queue) == {"a:1": "gone"}
    report(queue, "b:1")
    assert states(queue) == {"a:1": "gone", "b:1": "working"}
    assert queue.ask("select count(*) from worker_process") == 4
    report(queue, "d:1")
    assert queue.ask("select count(*) from worker_process") == 3
    assert states(queue) == {"a:1": "gone", "b:1": "working", "d:1": "working"}


def test_processes_are_asked_to_drain_by_name_or_by_the_beginning_of_it(queue: Session) -> None:
    for process in ("web:7", "web:70", "web-2:7", "w'\"%_\\\u202e:1"):
        assert not report(queue, process)
    drain = "select worker, outcome from worker_drain(%s)"
    assert queue.rows(drain, "web:7") == [(name_of("web:7"), "draining")]
    assert queue.rows(drain, "web:7") == [(name_of("web:7"), "draining")]
    assert queue.rows(drain, name_of("w'\"%_\\\u202e:1")) == [(name_of("w'\"%_\\\u202e:1"), "draining")]
    for nobody in ("we", "web:", "%", "web:7:", "w'\"%_\\"[:-1]):
        assert queue.rows(drain, nobody) == []
    assert report(queue, "web:7")
    assert not report(queue, "web:70")
    assert {row[0] for row in queue.rows(drain, "web")} == {name_of("web:7"), name_of("web:70")}
    assert [report(queue, one) for one in ("web:7", "web:70", "web-2:7")] == [True, True, False]
    assert states(queue)["web:70"] == "draining"
    assert len(queue.rows(drain, None)) == 4
    assert report(queue, "web-2:7")


def test_no_report_waits_for_whoever_drains_and_the_other_way_round(queue: Session, session: Open) -> None:
    report(queue, "web:7")
    report(queue, "web:8")
    holder = session(autocommit=False)
    for one in (queue, holder):
        one.run("set lock_timeout = '1s'")
    holder.run("select worker_drain('web:7')")
    # It is dropped, and the process will not know before the other transaction has ended.
    assert not report(queue, "web:7")
    drained = queue.rows("select worker, outcome from worker_drain('web')")
    assert drained == [(name_of("web:7"), "busy"), (name_of("web:8"), "draining")]
    queue.run("select worker_leave(%s, %s)", name_of("web:7"), SECRET)
    holder.connection.commit()
    assert report(queue, "web:7")
    queue.run("select worker_leave(%s, %s)", name_of("web:7"), SECRET)
    assert states(queue) == {"web:8": "draining"}


def test_reports_stay_in_their_page(queue: Session) -> None:
    for process in range(20):
        report(queue, f"web:{process}")
    sizes = "select pg_relation_size('worker_process'), pg_relation_size('worker_process_pkey')"
    before = queue.rows(sizes)
    for number in range(100):
        for process in range(20):
            report(queue, f"web:{process}", busy=number)
    assert queue.rows(sizes) == before


@pytest.mark.parametrize("is_alive", [True, False])
def test_ten_thousand_processes_are_enough_for_a_role_that_reports_without_limit(
    queue: Session, login: Login, is_alive: bool
) -> None:
    flooder = login("worker")
    flooder.run("set search_path = lonnymq")
    values = ["name", SECRET, *FIELDS.values()]
    flood = f"select worker_report({PARAMETERS}) from generate_series(%s::int, %s::int) n".replace(
        "p_worker => %s", f"p_worker => 'n' || n || ':{FINGERPRINT}'", 1
    )
    flooder.run(flood, *values[1:], 1, 100)
    # The rest at once: each of these reports counts the rows.
    queue.run(
        "insert into worker_process select (jsonb_populate_record(p, jsonb_build_object('name', 'x' || n))).*"
        " from worker_process p, generate_series(101, 10000) n where p.name like 'n1:%'"
    )
    if not is_alive:
        queue.run("update worker_process set seen_at = seen_at - 20000000 where name like 'x%'")
    flooder.run(flood, *values[1:], 200, 210)
    count = queue.ask("select count(*) from worker_process")
    # Those that are gone make room, a thousand at a time, and those that report stay.
    assert count == (10_000 if is_alive else 9_011)
    assert queue.ask("select count(*) from worker_process where name like 'n_:%' or name like 'n__:%'") == 99
    assert len(states(queue)) == count
    # A process that reported before is not affected.
    assert not report(queue, "n5", busy=3)
    assert queue.ask("select busy from worker_process where name like 'n5:%'") == 3


def test_nobody_reports_for_another_process(queue: Session, login: Login) -> None:
    report(queue)
    attacker = login("worker")
    attacker.run("set search_path = lonnymq")
    for name, secret in ((name_of("web:7"), "0" * 32), (f"web:7:{'0' * 16}", SECRET)):
        with pytest.raises(psycopg.Error) as refused:
            attacker.rows(REPORT, name, secret, *FIELDS.values())
        assert refused.value.sqlstate == "LQ001"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        attacker.run("select worker_drain(null)")
    assert states(queue) == {"web:7": "working"}


def test_a_session_cannot_register_without_limit(queue: Session, session: Open) -> None:
    flooder = session()
    pid = flooder.connection.info.backend_pid

    def register(number: int) -> str:
        secret = f"{SECRET} {number}"
        name = f"w:{hashlib.sha256(secret.encode()).hexdigest()[:16]}"
        answer: str = flooder.ask("select worker_register(%s, %s, %s)", name, secret, pid)
        flooder.run("select pg_advisory_unlock_all()")
        return answer

    assert [register(number) for number in range(15)] == ["registered"] * 10 + ["busy"] * 5
    assert queue.ask("select count(*) from worker") == 10
    # A worker that is known may return.
    assert register(3) == "registered"
    for _ in range(3):
        queue.run("update worker set look_at = look_at - 20000000, gone_since = gone_since - 20000000")
        queue.run("select worker_watch()")
    assert queue.ask("select count(*) from worker") == 0
    assert register(16) == "registered"
