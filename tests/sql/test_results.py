"""What is kept of messages that have ended."""

from typing import Any

import pytest

from tests.sql.conftest import Open
from tests.sql.session import Session

KEEP = "lonnymq-keep-result-ms"
DAY_MS = 86_400_000


def create(queue: Session, keep: str = "3600000", **more: Any) -> int:
    return queue.create("a", headers=f'{{"{KEEP}": "{keep}"}}', **more)


def status(queue: Session, id_: int) -> str:
    found: str = queue.ask("select status from message_status_of(array[%s::bigint])", id_)
    return found


def test_every_way_to_end_is_told_from_a_message_that_never_existed(queue: Session) -> None:
    kept, by_key = create(queue), create(queue, key="k")
    queue.run("select message_cancel(array[%s::bigint])", kept)
    queue.run("select message_cancel_key('a', 'k')")
    assert (status(queue, kept), status(queue, by_key)) == ("cancelled", "cancelled")
    last = create(queue, max_attempts=1)
    assert queue.dequeue()
    assert status(queue, last) == "leased"
    queue.run("update lease set unlock_at = 0")
    assert queue.dequeue() == []
    assert status(queue, last) == "buried"
    assert status(queue, 2**60) == "unknown"


@pytest.mark.parametrize("keep", ["", "x", "-1", "1e3", "99999999999999999999", "1.5", " 1"])
def test_an_invalid_time_to_keep_keeps_nothing(queue: Session, keep: str) -> None:
    id_ = create(queue, keep)
    [lease] = queue.dequeue()
    answer = queue.ask(
        "select outcome from message_complete(array[%s::bigint], array[%s::bigint], array['7'::bytea])",
        id_,
        lease.token,
    )
    assert answer == "completed"
    assert queue.ask("select count(*) from result") == 0


def test_a_result_is_kept_for_at_most_seven_days(queue: Session) -> None:
    id_ = create(queue, "9999999999")
    queue.run("select message_cancel(array[%s::bigint])", id_)
    assert queue.ask("select expires_at - ended_at from result") == 7 * DAY_MS


def test_results_are_refused_whole(queue: Session) -> None:
    id_ = create(queue)
    [lease] = queue.dequeue()
    complete = "select outcome from message_complete(array[%s::bigint], array[%s::bigint], %s::bytea[])"
    for results in (["a", "b"], [], ["x" * (2**20 + 1)]):
        with pytest.raises(Exception, match="results"):
            queue.ask(complete, id_, lease.token, [one.encode() for one in results])
    assert status(queue, id_) == "leased"
    assert queue.ask(complete, id_, lease.token, [b"7"]) == "completed"
    assert status(queue, id_) == "completed"


def test_expired_results_are_invisible_and_removed_without_deleting_rows(queue: Session) -> None:
    today = queue.ask("select floor(extract(epoch from clock_timestamp()) / 86400)::bigint")
    # One result per day of the ring: yesterday's has expired, those of the next seven days have not.
    queue.run(
        "insert into result select d %% 10, 1000 + d - %s, 'completed', null, 0, (d + 1) * %s - 1"
        " from generate_series(%s::bigint - 1, %s::bigint + 7) d",
        today,
        DAY_MS,
        today,
        today,
    )
    # And one that expired ten days ago, in the table for eight days from now.
    queue.run(
        "insert into result values ((%s::bigint + 8) %% 10, 1, 'completed', null, 0, 0)",
        today,
    )
    assert status(queue, 999) == "unknown"
    assert status(queue, 1) == "unknown"
    queue.run("select result_prune()")
    assert queue.ask("select array_agg(message_id order by message_id) from result") == list(
        range(1000, 1008)
    )
    assert status(queue, 1007) == "completed"


def test_pruning_waits_for_nobody(queue: Session, session: Open) -> None:
    other = session()
    today = queue.ask("select floor(extract(epoch from clock_timestamp()) / 86400)::bigint")
    queue.run("insert into result values ((%s::bigint - 1) %% 10, 1, 'completed', null, 0, 0)", today)
    other.run("begin")
    other.ask("select count(*) from result")
    queue.run("set lock_timeout = '5s'")
    queue.run("select result_prune()")
    assert queue.ask("select count(*) from result") == 1
    other.run("rollback")
    queue.run("select result_prune()")
    assert queue.ask("select count(*) from result") == 0
