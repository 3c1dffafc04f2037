"""Groups: the last message that ends releases another one, and no member waits for another."""

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.conftest import Open
from tests.sql.session import Session, ids_of

WEEK_MS = 604_800_000


def group(queue: Session, channels: list[str], **options: Any) -> tuple[int, list[int]]:
    """Create a group whose callback is in channel "done"; return the ids of the callback and the members."""
    names = "".join(f", p_{name} => %s" for name in options)
    contents = [f"member {n}".encode() for n in range(len(channels))]
    outcome, callback, members = queue.rows(
        f"select * from group_create(%s, %s::bytea[], 'done', 'callback'{names})",
        *(channels, contents, *options.values()),
    )[0]
    assert outcome == "created"
    return callback, members


def check(queue: Session, *callbacks: int) -> list[str]:
    return [one for _, one in queue.rows("select * from group_check(%s)", list(callbacks))]


def is_due(queue: Session, callback: int) -> bool:
    status = queue.ask("select status from message_status_of(%s)", [callback])
    assert status in ("waiting", "scheduled")
    return bool(status == "waiting")


def test_the_callback_is_due_when_the_last_member_has_ended(queue: Session) -> None:
    callback, members = group(queue, ["a", "b", "a"])
    assert not is_due(queue, callback)
    taken = queue.take(10)
    assert sorted(ids_of(taken)) == members
    assert {one.headers["lonnymq-group"] for one in taken if one.headers} == {str(callback)}
    for left, one in zip((2, 1), taken, strict=False):
        assert queue.complete([one]) == ["completed"]
        assert check(queue, callback) == ["waiting"], left
    queue.complete(taken[2:])
    assert not is_due(queue, callback)
    assert check(queue, callback) == ["released"]
    assert check(queue, callback, callback + 1) == ["released", "unknown"]
    leased = queue.lease()
    assert (leased.message_id, leased.channel, leased.content) == (callback, "done", b"callback")


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_members_that_end_at_once_the_later_check_releases(session: Open, first: int) -> None:
    """Each check runs after its own commit, and neither completion waits for the other."""
    one, other = session(autocommit=False), session(autocommit=False)
    queue = session()
    callback, _ = group(queue, ["a", "b"])
    taken = queue.take(2)
    for each in (one, other):
        each.run("set lock_timeout = '50ms'")
        each.connection.commit()
    assert one.complete(taken[:1]) == other.complete(taken[1:]) == ["completed"]
    sessions = [one, other] if first == 0 else [other, one]
    sessions[0].connection.commit()
    assert check(queue, callback) == ["waiting"]
    sessions[1].connection.commit()
    assert check(queue, callback) == ["released"]


def test_a_check_does_not_wait_for_another_one(session: Open) -> None:
    """It is told to ask again: the other one may have begun before the last member had ended."""
    slow, queue = session(autocommit=False), session()
    queue.run("set lock_timeout = '50ms'")
    callback, _ = group(queue, ["a", "b"])
    queue.run("update message_group set check_at = 0")
    first, second = queue.take(2)
    queue.complete([first])
    assert check(slow, callback) == ["waiting"]
    assert queue.complete([second]) == ["completed"]
    assert check(queue, callback) == ["busy"]
    queue.run("select group_sweep()")
    assert not is_due(queue, callback)
    slow.connection.commit()
    assert check(queue, callback) == ["released"]


def test_neither_members_nor_producers_wait_for_a_check(session: Open) -> None:
    slow, queue = session(autocommit=False), session()
    queue.run("set lock_timeout = '50ms'")
    callback, _ = group(queue, ["a", "a", "a", "a"])
    completed, buried, deferred, advanced = queue.take(4)
    assert check(slow, callback) == ["waiting"]
    queue.complete([completed])
    queue.end("message_bury", [buried])
    queue.defer([deferred])
    queue.end("message_advance", [advanced])
    assert queue.cancel(deferred.message_id) == ["cancelled"]
    queue.create("a")
    queue.create("done")
    group(queue, ["a"])
    slow.connection.commit()


def test_a_callback_that_is_locked_is_released_later(session: Open) -> None:
    other, queue = session(autocommit=False), session()
    queue.run("set lock_timeout = '50ms'")
    callback, _ = group(queue, ["a"])
    queue.complete(queue.take(1))
    other.run("select from message where id = %s for update", callback)
    assert check(queue, callback) == ["busy"]
    other.connection.rollback()
    assert check(queue, callback) == ["released"]


def test_a_sweep_finds_groups_that_nobody_has_checked(queue: Session) -> None:
    """The last member was cancelled, or whoever ended it died before the check."""
    completed, (first,) = group(queue, ["a"])
    cancelled, (second,) = group(queue, ["b"])
    waiting, _ = group(queue, ["c"], delays_ms=[3_600_000])
    for one in queue.take(2):
        if one.message_id == first:
            queue.complete([one])
    assert queue.cancel(second) == ["cancelled"]
    queue.run("select group_sweep()")
    assert not is_due(queue, completed)
    queue.run("update message_group set check_at = 0")
    assert queue.ask("select group_sweep(2)") == 0
    assert 4000 < queue.ask("select group_sweep(2)") < 6000
    assert [is_due(queue, one) for one in (completed, cancelled, waiting)] == [True, True, False]
    waits = "select check_at - created_at between 5000 and 60000 from message_group"
    assert queue.rows(waits) == [(True,)] * 3


def test_a_group_is_forgotten_when_its_callback_has_ended(queue: Session) -> None:
    completed, _ = group(queue, ["a"])
    buried, _ = group(queue, ["a"])
    cancelled, _ = group(queue, ["a"])
    queue.complete(queue.take(3))
    assert check(queue, completed, buried) == ["released"] * 2
    for one in queue.take(2):
        queue.end("message_complete" if one.message_id == completed else "message_bury", [one])
    assert queue.cancel(cancelled) == ["cancelled"]
    queue.run("update message_group set check_at = 0")
    queue.run("select group_sweep()")
    # A dead letter may be redriven.
    assert queue.rows("select callback_id from message_group") == [(buried,)]
    queue.run("update message_group set check_at = 0, deadline_at = deadline_at - %s", 2 * WEEK_MS)
    queue.run("select group_sweep()")
    assert queue.ask("select count(*) from message_group") == 0
    assert queue.ask("select group_sweep()") > 20_000


def test_the_callback_runs_at_the_deadline_at_the_latest(queue: Session) -> None:
    callback, members = group(queue, ["a"], delays_ms=[3_600_000], deadline_ms=1)
    leased = queue.lease()
    assert leased.message_id == callback
    assert queue.rows("select message_id, status from group_results(%s, %s)", callback, leased.token) == [
        (members[0], "scheduled")
    ]
    assert check(queue, callback) == ["released"]
    # A retry of the callback is not hastened.
    queue.defer([leased], delay_ms=60_000)
    queue.run("update message_group set check_at = 0")
    queue.run("select group_sweep()")
    assert check(queue, callback) == ["released"]
    assert not is_due(queue, callback)


def test_the_holder_of_the_callback_reads_what_has_become_of_the_members(queue: Session) -> None:
    callback, members = group(queue, ["a", "b", "c", "d"], headers=[None, Jsonb({"n": "1"}), None, None])
    by_id = {one.message_id: one for one in queue.take(4)}
    taken = [by_id[one] for one in members]
    assert taken[1].headers == {
        "n": "1",
        "lonnymq-group": str(callback),
        "lonnymq-keep-result-ms": str(WEEK_MS),
    }
    ids, tokens = ids_of(taken[:2]), [one.token for one in taken[:2]]
    queue.run("select message_complete(%s, %s, %s::bytea[])", ids, tokens, [b"5", None])
    queue.end("message_bury", taken[2:3], ["no disk"], types=["text[]"])
    queue.cancel(members[3])
    check(queue, callback)
    leased = queue.lease()
    results = "select message_id, status, error, content from group_results(%s, %s)"
    assert queue.rows(results, callback, leased.token) == [
        (members[0], "completed", None, b"5"),
        (members[1], "completed", None, None),
        (members[2], "buried", "no disk", None),
        (members[3], "cancelled", None, None),
    ]
    assert queue.rows(results, callback, leased.token + 1) == []
    assert queue.rows(results, members[0], taken[0].token) == []
    with pytest.raises(psycopg.Error, match="results must be at most 0 bytes together, got 1 bytes"):
        queue.run(f"{results[:-1]}, 0)", callback, leased.token)


def test_nothing_is_created_if_one_message_does_not_fit(queue: Session) -> None:
    queue.set("full", max_size=1)
    create = "select * from group_create(%s, array['x', 'y', 'z']::bytea[], %s, 'x')"
    assert queue.rows(create, ["a", "full", "full"], "done") == [("dropped", None, None)]
    queue.create("full")
    assert queue.rows(create, ["a", "a", "a"], "full") == [("dropped", None, None)]
    assert queue.ask("select count(*) from message") == 1
    assert queue.ask("select count(*) from message_group") == 0


def test_the_key_of_a_callback_stands_for_the_group(queue: Session) -> None:
    callback, _ = group(queue, ["a"], callback_key="k")
    create = "select outcome, message_id from group_create('{a}', '{x}', 'done', 'x', p_callback_key => 'k')"
    assert queue.rows(create) == [("duplicate", callback)]
    assert queue.ask("select count(*) from message") == 2


def test_a_group_exists_if_its_transaction_commits(session: Open) -> None:
    producer, queue = session(autocommit=False), session()
    group(producer, ["a"])
    producer.connection.rollback()
    assert queue.ask("select count(*) from message_group") == queue.ask("select count(*) from message") == 0


def test_options_of_members_and_callback_are_those_of_messages(queue: Session) -> None:
    group(
        queue,
        ["a", "a"],
        dequeue_ats=[-5, None],
        delays_ms=[None, 60_000],
        max_attempts=[1, None],
        callback_max_attempts=3,
        callback_headers=Jsonb({"region": "eu"}),
    )
    rows = queue.rows("select dequeue_at < 0, dequeue_at > created_at, max_attempts from message order by id")
    assert rows == [(False, True, 3), (True, False, 1), (False, True, None)]
    assert queue.ask("select headers from message order by id limit 1") == {"region": "eu"}


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("group_create('{}', '{}', 'd', 'x')", "channels"),
        ("group_create(null, '{}', 'd', 'x')", "channels"),
        ("group_create(array_fill('a'::text, array[1001]), '{}', 'd', 'x')", "channels"),
        ("group_create('{a}', '{x,y}', 'd', 'x')", "contents"),
        ("group_create('{a}', '{x}', '', 'x')", "channel"),
        ("group_create('{a}', '{x}', 'd', null)", "content"),
        ("group_create('{a}', '{x}', 'd', 'x', p_deadline_ms => 0)", "deadline_ms"),
        ("group_create('{a}', '{x}', 'd', 'x', p_deadline_ms => null)", "deadline_ms"),
        ("group_create('{a}', '{x}', 'd', 'x', p_deadline_ms => 604800001)", "deadline_ms"),
        ("group_create('{a}', '{x}', 'd', 'x', p_headers => '{}'::jsonb[])", "headers"),
        ("group_create('{a}', '{x}', 'd', 'x', p_headers => array['[]']::jsonb[])", "headers"),
        ("group_check(null)", "ids"),
        ("group_check(array_fill(1::bigint, array[10001]))", "ids"),
        ("group_sweep(0)", "limit"),
        ("group_sweep(null)", "limit"),
    ],
)
def test_wrong_arguments_of_groups_are_named(queue: Session, call: str, name: str) -> None:
    with pytest.raises(psycopg.Error, match=name) as raised:
        queue.run(f"select {call}")
    assert raised.value.sqlstate == "LQ001"
    assert queue.ask("select count(*) from message") == 0


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_checks_outside_read_committed_raise(queue: Session, isolation: str) -> None:
    for call in ("group_check('{1}')", "group_sweep()"):
        queue.run(f"begin isolation level {isolation}")
        with pytest.raises(psycopg.Error) as raised:
            queue.run(f"select {call}")
        assert raised.value.sqlstate == "LQ002"
        queue.run("rollback")


def test_members_that_a_claim_completes_release_the_callback(queue: Session) -> None:
    callback, members = group(queue, ["a", "b", "a"])
    plain = queue.ask("select message_id from message_create('a', '')")
    claim = queue.ask("select claim from claim_take(null, 'spark', false, 10, 30000)")
    assert queue.rows("select * from claim_complete(%s)", claim) == [("done", 0)]
    assert queue.ask("select status from message_status_of(%s)", [plain]) == "unknown"
    assert check(queue, callback) == ["released"]
    leased = queue.lease()
    results = queue.rows(
        "select message_id, status, content from group_results(%s, %s)", leased.message_id, leased.token
    )
    assert results == [(member, "completed", None) for member in members]
