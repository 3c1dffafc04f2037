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
    # And one that expired ten days ago, in the table for eight days from now; in the afternoon, for nine.
    ahead = queue.ask("select floor(extract(epoch from clock_timestamp()) / 86400 + 0.5)::bigint + 8")
    queue.run("insert into result values (%s::bigint %% 10, 1, 'completed', null, 0, 0)", ahead)
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


@pytest.mark.parametrize("shape", ["[0:1]={%s,%s}", "{{%s,%s}}", "[5:6]={%s,%s}", "[0:0][7:8]={{%s,%s}}"])
def test_details_belong_to_their_messages_whatever_the_shape_of_the_arrays(
    queue: Session, shape: str
) -> None:
    def end(verb: str, details: str) -> list[int]:
        ids = [create(queue), create(queue)]
        tokens = {lease.message_id: lease.token for lease in queue.dequeue(2)}
        arrays = [shape % tuple(given) for given in (ids, [tokens[id_] for id_ in ids], ("one", "two"))]
        queue.run(
            f"select message_{verb}(%s::text::bigint[], %s::text::bigint[],"
            f" {details} => %s::text::{kinds[details]})",
            *arrays,
        )
        return ids

    kinds = {"p_results": "bytea[]", "p_states": "bytea[]", "p_errors": "text[]"}
    ended = [*end("complete", "p_results"), *end("bury", "p_errors")]
    deferred = end("defer", "p_states")
    kept = "select array_agg(coalesce(convert_from(content, 'UTF8'), error)) from message_status_of(%s)"
    assert queue.ask(kept, ended) == ["one", "two", "one", "two"]
    states = "select array_agg(convert_from(state, 'UTF8') order by id) from message where id = any(%s)"
    assert queue.ask(states, deferred) == ["one", "two"]


def test_one_call_keeps_only_the_results_of_attempts_that_it_ended(queue: Session, session: Open) -> None:
    ids = [create(queue) for _ in range(5)]
    tokens = {lease.message_id: lease.token for lease in queue.dequeue(5)}
    mine, lost, cancelled, busy, unwanted = ids
    queue.run("update lease set token = token + 1 where message_id = %s", lost)
    queue.run("select message_cancel(array[%s::bigint])", cancelled)
    queue.run(f"""update message set headers = '{{"x": "{KEEP}"}}' where id = %s""", unwanted)
    other = session()
    other.run("begin")
    other.run("select from lease where message_id = %s for update", busy)

    def complete() -> Any:
        return queue.ask(
            "select array_agg(outcome) from message_complete(%s, %s, array['0','1','2','3','4']::bytea[])",
            ids,
            [tokens[id_] for id_ in ids],
        )

    assert complete() == ["completed", "lease_lost", "cancelled", "busy", "completed"]
    other.run("rollback")
    statuses = "select array_agg(status) from message_status_of(%s)"
    assert queue.ask(statuses, ids) == ["completed", "leased", "cancelled", "leased", "unknown"]
    assert complete() == ["lease_lost", "lease_lost", "lease_lost", "completed", "lease_lost"]
    assert queue.ask("select array_agg(message_id order by message_id) from result") == [
        mine,
        cancelled,
        busy,
    ]


def test_results_are_not_locked_while_partitions_of_the_history_are_created(
    queue: Session, session: Open
) -> None:
    queue.run("update setting set history = 'metadata'")
    day = queue.ask("select to_char((clock_timestamp() at time zone 'UTC')::date + 5, 'YYYYMMDD')")
    queue.run(f"drop table history_{day}")
    today = queue.ask("select floor(extract(epoch from clock_timestamp()) / 86400)::bigint")
    queue.run("insert into result values ((%s::bigint - 1) %% 10, 1, 'completed', null, 0, 0)", today)
    queue.run("begin")
    queue.run("select history_prepare_if_due()")
    reader = session()
    reader.run("set lock_timeout = '1s'")
    assert status(reader, 1) == "unknown"
    queue.run("commit")
    queue.run("select history_prepare_if_due()")
    assert queue.ask("select count(*) from result") == 0
