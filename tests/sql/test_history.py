"""A23: history records every finished attempt, in a partition per day."""

import pytest

from tests.sql.conftest import Open
from tests.sql.session import Session

DAY_MS = 86_400_000


def set_history_mode(queue: Session, mode: str) -> None:
    queue.run("select queue_set(jsonb_build_object('history', %s::text))", mode)


def outcomes(queue: Session) -> list[tuple[object, ...]]:
    return queue.rows("select message_id, outcome, attempt from history order by id")


def drop_partitions(queue: Session) -> None:
    """Drop all partitions, as if none had been prepared for a long time."""
    for (name,) in queue.rows("select name from history_partition"):
        queue.run(f"drop table {name}")


def test_history_is_off_by_default(queue: Session) -> None:
    queue.create("a")
    queue.complete([queue.lease()])
    assert outcomes(queue) == []


def test_metadata_mode_records_everything_but_the_content(queue: Session) -> None:
    set_history_mode(queue, "metadata")
    created = queue.create("a", b"12345", dequeue_at=7)
    (leased,) = queue.dequeue(1, worker="w1")
    queue.defer([leased], error="no answer", state=b"s")
    (row,) = queue.rows(
        "select message_id, channel, outcome, attempt, created_at, dequeue_at, leased_at, worker, error,"
        " content_bytes, content, state, ended_at >= leased_at, xid > 0 from history"
    )
    assert row == (
        *(created, "a", "deferred", 1, leased.created_at, 7, leased.leased_at // 1_000, "w1", "no answer", 5),
        *(None, None, True, True),
    )


def test_full_mode_records_content_and_state(queue: Session) -> None:
    set_history_mode(queue, "full")
    queue.create("a", b"work")
    queue.defer([queue.lease()], state=b"page 2")
    queue.complete([queue.lease()])
    assert queue.rows("select outcome, content, state from history order by id") == [
        ("deferred", b"work", None),
        ("completed", b"work", b"page 2"),
    ]


def test_every_way_to_end_an_attempt_is_recorded_once(queue: Session) -> None:
    set_history_mode(queue, "metadata")
    created = queue.fill("a", 6, max_attempts=[None, None, None, 1, 1, None])
    taken = {one.message_id: one for one in queue.take(6)}
    queue.complete([taken[created[0]]])
    queue.defer([taken[created[1]]], delay_ms=60_000)
    queue.bury([taken[created[2]]], "e")
    queue.defer([taken[created[3]]], error="last")
    queue.expire([taken[created[4]]])
    queue.give_back([taken[created[5]]])
    queue.cancel(created[5])
    queue.take(1)
    assert sorted(outcomes(queue)) == [
        (created[0], "completed", 1),
        (created[1], "deferred", 1),
        (created[2], "buried", 1),
        (created[3], "buried", 1),
        (created[4], "expired", 1),
        (created[5], "cancelled", 0),
    ]
    assert "expired" in queue.ask("select error from history where outcome = 'expired'")


def test_attempts_that_change_nothing_are_not_recorded(queue: Session) -> None:
    set_history_mode(queue, "metadata")
    queue.create("a")
    leased = queue.lease()
    queue.complete([leased._replace(token=1)])
    queue.heartbeat([leased])
    assert outcomes(queue) == []


def test_a_record_is_committed_together_with_the_end_of_the_attempt(queue: Session) -> None:
    set_history_mode(queue, "metadata")
    queue.create("a")
    leased = queue.lease()
    with queue.connection.transaction(force_rollback=True):
        queue.complete([leased])
    assert outcomes(queue) == []


def test_each_message_of_a_batch_is_recorded(queue: Session) -> None:
    set_history_mode(queue, "metadata")
    queue.create_many(["a", "b"] * 50)
    queue.complete(queue.take(100))
    assert queue.rows("select channel, count(*) from history group by 1 order by 1") == [("a", 50), ("b", 50)]


def test_a_change_of_the_mode_takes_effect_at_once(queue: Session) -> None:
    queue.fill("a", 2)
    taken = queue.take(2)
    set_history_mode(queue, "metadata")
    queue.complete(taken[:1])
    set_history_mode(queue, "off")
    queue.complete(taken[1:])
    assert len(outcomes(queue)) == 1


def test_a_new_queue_has_partitions_for_two_weeks(queue: Session) -> None:
    rows = queue.rows("select day, from_ms, until_ms, is_detaching from history_partition order by day")
    today = queue.ask("select (now() at time zone 'UTC')::date")
    assert len(rows) == 15
    assert rows[0][0] == today
    assert [row[1] for row in rows[1:]] == [row[2] for row in rows[:-1]]
    assert all(row[2] - row[1] == DAY_MS for row in rows)
    assert queue.ask("select to_epoch(%s::timestamp at time zone 'UTC')", today) == rows[0][1]
    # With statistics, PostgreSQL would compute a condition for the names of all relations.
    queue.run("analyze")
    assert queue.ask("select count(*) from history_partition where day = %s", today) == 1


def test_partitions_are_utc_days_whatever_the_time_zone(queue: Session) -> None:
    drop_partitions(queue)
    queue.run("set timezone = 'Pacific/Kiritimati'")
    queue.run("select history_prepare(2)")
    rows = queue.rows("select from_ms from history_partition")
    assert len(rows) == 3
    assert all(row[0] % DAY_MS == 0 for row in rows)
    assert queue.ask("select min(from_ms) <= to_epoch(now()) from history_partition")


def test_preparing_again_creates_only_missing_partitions(queue: Session) -> None:
    assert queue.ask("select history_prepare()") == 0
    assert queue.ask("select history_prepare(16)") == 2
    assert queue.ask("select history_prepare(16)") == 0


def test_a_row_goes_to_the_partition_of_the_attempts_end(queue: Session) -> None:
    set_history_mode(queue, "metadata")
    queue.create("a")
    queue.complete([queue.lease()])
    name = queue.ask("select tableoid::regclass::text from history")
    assert name == queue.ask("select 'history_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')")


def test_without_a_partition_attempts_go_to_the_overflow(queue: Session) -> None:
    set_history_mode(queue, "full")
    drop_partitions(queue)
    queue.fill("a", 3)
    taken = queue.take(3)
    assert queue.complete(taken[:2]) == ["completed"] * 2
    assert queue.ask("select history_overflow from queue_status()") == 2
    assert outcomes(queue) == []
    # Only xid changes, because readers may have passed the transaction that wrote the row.
    before = queue.rows("select to_jsonb(o) - 'xid', xid from history_overflow o order by id")
    assert queue.ask("select history_prepare(1)") == 2
    after = queue.rows("select to_jsonb(h) - 'xid', xid from history h order by id")
    assert [row for row, _ in after] == [row for row, _ in before]
    assert min(xid for _, xid in after) > max(xid for _, xid in before)
    assert queue.ask("select count(*) from history_overflow") == 0
    queue.complete(taken[2:])
    assert len(outcomes(queue)) == 3


def test_overflow_rows_that_commit_later_are_moved_by_the_next_prepare(session: Open) -> None:
    queue, completer = session(), session(autocommit=False)
    set_history_mode(queue, "metadata")
    drop_partitions(queue)
    queue.create("a")
    leased = queue.lease()
    completer.complete([leased])
    queue.run("set lock_timeout = '500ms'")
    assert queue.ask("select history_prepare(1)") == 2
    completer.connection.commit()
    queue.run("select history_prepare(1)")
    assert queue.ask("select count(*) from history_overflow") == 0
    assert len(outcomes(queue)) == 1


def test_overflow_rows_of_an_earlier_day_are_moved(queue: Session) -> None:
    set_history_mode(queue, "metadata")
    drop_partitions(queue)
    queue.create("a")
    queue.complete([queue.lease()])
    queue.run("update history_overflow set ended_at = ended_at - %s", 3 * DAY_MS)
    queue.run("select history_prepare(1)")
    assert queue.ask("select count(*) from history_overflow") == 0
    assert len(outcomes(queue)) == 1


def test_history_prepare_does_not_block_completions(session: Open) -> None:
    """Rule 12: a partition is created as a separate table and then attached."""
    queue, completer = session(), session(autocommit=False)
    set_history_mode(queue, "metadata")
    queue.fill("a", 2)
    taken = queue.take(2)
    completer.complete(taken[:1])
    queue.run("set lock_timeout = '50ms'")
    assert queue.ask("select history_prepare(20)") == 6
    completer.connection.commit()
    with queue.connection.transaction():
        queue.run("select history_prepare(22)")
        completer.run("set lock_timeout = '50ms'")
        assert completer.complete(taken[1:]) == ["completed"]
        completer.connection.commit()
    assert len(outcomes(queue)) == 2


def test_an_old_partition_can_be_detached_and_dropped(queue: Session) -> None:
    set_history_mode(queue, "metadata")
    queue.create("a")
    queue.complete([queue.lease()])
    name = queue.ask("select name from history_partition order by day limit 1")
    queue.run(f"alter table history detach partition {name} concurrently")
    queue.run(f"drop table {name}")
    assert outcomes(queue) == []


def test_attempts_end_without_a_partition_for_today(queue: Session) -> None:
    """Attempts must be able to end after today's partition was dropped."""
    set_history_mode(queue, "metadata")
    name = queue.ask("select name from history_partition order by day limit 1")
    queue.run(f"drop table {name}")
    queue.create("a")
    leased = queue.lease()
    try:
        assert queue.complete([leased]) == ["completed"]
    except Exception as error:  # noqa: BLE001
        pytest.fail(f"the attempt did not end without a partition: {error}")


def test_rows_that_commit_late_sort_by_their_transaction(session: Open) -> None:
    first, second = session(autocommit=False), session()
    set_history_mode(second, "metadata")
    second.fill("a", 2)
    taken = second.take(2)
    first.complete(taken[:1])
    second.complete(taken[1:])
    (early,) = second.rows("select xid, id from history")
    first.connection.commit()
    rows = second.rows("select xid, id from history order by xid, id")
    assert rows[0] < early == rows[1]
