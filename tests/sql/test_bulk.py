"""A17: stage by COPY, then publish once, in one transaction."""

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.sql.conftest import Open
from tests.sql.session import Session, ids_of

# The fields of a message, and their columns in the stage.
ARRAYS = {
    "content": "contents",
    "dequeue_at": "dequeue_ats",
    "delay_ms": "delays_ms",
    "key": "keys",
    "max_attempts": "max_attempts",
    "headers": "headers",
}


def stage(
    queue: Session, publication: str, rows: Sequence[dict[str, Any]], part: uuid.UUID | None = None
) -> uuid.UUID:
    """Copy messages into one part of a publication, in this order, one row each."""
    part = part or uuid.uuid4()
    copying = f"copy stage (publication, part, ordinal, channel, {', '.join(ARRAYS.values())}) from stdin"
    with queue.connection.cursor().copy(copying.encode()) as copy:
        for ordinal, row in enumerate(rows):
            message = {"content": b"x", **row}
            arrays = [[message[name]] if name in message else None for name in ARRAYS]
            copy.write_row((publication, part, ordinal, row.get("channel", "a"), *arrays))
    return part


def publish(queue: Session, publication: str, parts: dict[uuid.UUID, int]) -> tuple[str, int, int]:
    found: tuple[str, int, int] = queue.rows(
        "select * from message_publish(%s, %s, %s)", publication, list(parts), list(parts.values())
    )[0]
    return found


def test_nothing_staged_is_visible_until_it_is_published(queue: Session) -> None:
    part = stage(queue, "p", [{}] * 3)
    assert queue.dequeue() == []
    assert publish(queue, "p", {part: 3}) == ("published", 3, 0)
    assert len(queue.drain()) == 3
    assert queue.ask("select count(*) from stage") == 0


def test_publishing_again_changes_nothing_and_returns_the_same_counts(queue: Session) -> None:
    part = stage(queue, "p", [{"key": "k"}, {"key": "k"}, {}])
    assert publish(queue, "p", {part: 3}) == ("published", 2, 1)
    assert publish(queue, "p", {part: 3}) == ("already_published", 2, 1)
    assert len(queue.drain()) == 2


def test_a_publication_without_messages_can_be_published(queue: Session) -> None:
    assert publish(queue, "p", {uuid.uuid4(): 0}) == ("published", 0, 0)
    assert publish(queue, "p", {uuid.uuid4(): 0}) == ("already_published", 0, 0)


def test_a_publication_without_parts_is_refused(queue: Session) -> None:
    for call in ("message_publish('p', '{}', '{}')", "stream_publish('s', 0, '{}', '{}')"):
        with pytest.raises(psycopg.Error, match="parts must be at least one part, got none") as raised:
            queue.run(f"select {call}")
        assert raised.value.sqlstate == "LQ001"
    assert queue.ask("select count(*) from publication") == queue.ask("select count(*) from stream") == 0


def test_an_incomplete_part_is_an_error_and_creates_nothing(queue: Session) -> None:
    whole, short = stage(queue, "p", [{}] * 3), stage(queue, "p", [{}] * 2)
    with pytest.raises(psycopg.Error) as raised:
        publish(queue, "p", {whole: 3, short: 5})
    assert raised.value.sqlstate == "LQ005"
    assert str(short) in str(raised.value)
    assert queue.ask("select count(*) from message") == 0
    assert publish(queue, "p", {whole: 3, short: 2}) == ("published", 5, 0)


def test_a_part_that_was_never_staged_is_an_error(queue: Session) -> None:
    with pytest.raises(psycopg.Error) as raised:
        publish(queue, "p", {uuid.uuid4(): 1})
    assert raised.value.sqlstate == "LQ005"


def test_a_part_that_is_not_listed_is_not_published(queue: Session) -> None:
    """As when a task fails halfway and is repeated with another part."""
    stage(queue, "p", [{"content": b"failed"}])
    good = stage(queue, "p", [{"content": b"good"}])
    assert publish(queue, "p", {good: 1}) == ("published", 1, 0)
    assert [one.content for one in queue.drain()] == [b"good"]
    assert queue.ask("select count(*) from stage") == 0


BAD_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"channel": ""}, "channel"),
    ({"channel": "a\nb"}, "channel"),
    ({"channel": "a" * 256}, "channel"),
    ({"dequeue_at": 9_000_000_000_000_001}, "dequeue_at"),
    ({"delay_ms": -1}, "delay_ms"),
    ({"delay_ms": 2**63 - 1}, "delay_ms"),
    ({"delay_ms": -(2**63)}, "delay_ms"),
    ({"delay_ms": 1, "dequeue_at": 1}, "delay_ms"),
    ({"key": ""}, "key"),
    ({"key": "k" * 256}, "key"),
    ({"max_attempts": 0}, "max_attempts"),
]


def test_one_invalid_row_creates_nothing(queue: Session) -> None:
    for number, (row, argument) in enumerate(BAD_ROWS):
        part = stage(queue, f"p{number}", [{}, row, {}])
        with pytest.raises(psycopg.Error) as raised:
            publish(queue, f"p{number}", {part: 3})
        assert raised.value.sqlstate == "LQ001"
        assert argument in str(raised.value)
    assert queue.ask("select count(*) from message") == 0
    assert queue.ask("select count(*) from publication") == 0


def test_a_content_above_max_content_bytes_creates_nothing(queue: Session) -> None:
    queue.run("select queue_set('{\"max_content_bytes\": 10}')")
    part = stage(queue, "p", [{"content": b"x" * 11}])
    with pytest.raises(psycopg.Error) as raised:
        publish(queue, "p", {part: 1})
    assert raised.value.sqlstate == "LQ001"
    assert "content" in str(raised.value)


def test_a_part_that_is_listed_twice_is_an_error(queue: Session) -> None:
    part = stage(queue, "p", [{}])
    with pytest.raises(psycopg.Error) as raised:
        queue.run("select message_publish('p', %s, %s)", [part, part], [1, 1])
    assert raised.value.sqlstate == "LQ001"
    assert "parts" in str(raised.value)
    assert queue.ask("select count(*) from message") == 0


def test_messages_are_created_in_the_order_of_parts_and_ordinals(queue: Session) -> None:
    second = stage(queue, "p", [{"content": b"3"}, {"content": b"4"}])
    first = stage(queue, "p", [{"content": b"1"}, {"content": b"2"}])
    publish(queue, "p", {first: 2, second: 2})
    assert [one.content for one in queue.drain(limit=3)] == [b"1", b"2", b"3", b"4"]


def test_keys_do_not_change_the_order(queue: Session) -> None:
    keys = ["z", None, "m", "a", None, "k"]
    part = stage(queue, "p", [{"content": b"%d" % n, "key": key} for n, key in enumerate(keys)])
    publish(queue, "p", {part: 6})
    assert [one.content for one in queue.drain()] == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_the_order_does_not_depend_on_the_query_plan(queue: Session) -> None:
    """With many channels and few rows, a join that reads the channels first would lose the order."""
    queue.run("select channel_set('c' || n, '{}') from generate_series(1, 3000) n")
    while queue.ask("select count(*) from wake"):
        queue.dequeue_once()
    queue.run("analyze channel; analyze stage")
    rows = [{"channel": f"c{n % 5 + 1}", "content": b"%d" % n} for n in range(50)]
    part = stage(queue, "p", rows)
    publish(queue, "p", {part: 50})
    by_channel: dict[str, list[int]] = {}
    for one in queue.drain():
        by_channel.setdefault(one.channel, []).append(int(one.content or b""))
    assert len(by_channel) == 5
    for contents in by_channel.values():
        assert contents == sorted(contents)


@pytest.mark.parametrize("ordinals", [(-7, -1, 0, 70_000), (5, 2**40, 2**62, 2**63 - 1)])
def test_ordinals_may_be_any_numbers(queue: Session, ordinals: tuple[int, ...]) -> None:
    parts = {uuid.uuid4(): 3 * len(ordinals), uuid.uuid4(): 3 * len(ordinals)}
    for number, part in enumerate(reversed(parts)):
        for ordinal in reversed(ordinals):
            queue.rows(
                "insert into stage (publication, part, ordinal, channel, contents)"
                " select 'p', %s, %s, c, array[convert_to(%s, 'utf8')] from unnest(array['a', 'b', 'c']) c"
                " returning ordinal",
                part,
                ordinal,
                f"{1 - number} {ordinals.index(ordinal)}",
            )
    assert publish(queue, "p", parts) == ("published", 6 * len(ordinals), 0)
    for channel in "abc":
        found = queue.rows(
            "select convert_from(content, 'utf8') from message_status where channel = %s order by message_id",
            channel,
        )
        assert [content for (content,) in found] == sorted(content for (content,) in found)


def test_staged_messages_keep_their_times_and_limits(queue: Session) -> None:
    rows: list[dict[str, Any]] = [
        {"content": b"later", "delay_ms": 3_600_000},
        {"content": b"now", "max_attempts": 7},
        {"content": b"first", "dequeue_at": -5},
    ]
    part = stage(queue, "p", rows)
    publish(queue, "p", {part: 3})
    drained = queue.drain(limit=1)
    assert [(one.content, one.max_attempts) for one in drained] == [(b"first", None), (b"now", 7)]
    assert queue.ask("select count(*) from message") == 1


def test_live_keys_are_counted_as_duplicates(queue: Session) -> None:
    live = queue.create("a", key="k1")
    part = stage(queue, "p", [{"key": "k1"}, {"key": "k2"}, {"key": "k2"}, {"key": "k2", "channel": "b"}, {}])
    assert publish(queue, "p", {part: 5}) == ("published", 3, 2)
    drained = queue.drain()
    assert live in ids_of(drained)
    assert sorted((one.channel, one.key or "") for one in drained) == [
        ("a", ""),
        ("a", "k1"),
        ("a", "k2"),
        ("b", "k2"),
    ]


def test_messages_created_meanwhile_are_not_counted_as_duplicates(session: Open) -> None:
    """The counts are right although another session creates a message in the same millisecond."""
    queue, other = session(), session()
    queue.create("a", key="k")
    part = stage(queue, "p", [{"key": "k"}, {"key": "n"}])
    with queue.connection.transaction():
        now = queue.ask("select floor(extract(epoch from now()) * 1000)::bigint")
        created = other.create("a")
        # As if it had started in that millisecond and got its id during the publication.
        other.run("update message set id = %s, created_at = %s where id = %s", created + 50, now, created)
        assert publish(queue, "p", {part: 2}) == ("published", 1, 1)
    assert len(queue.drain()) == 3


def test_a_create_and_a_bulk_load_may_both_be_the_first_in_a_channel(queue: Session) -> None:
    created = queue.create("a")
    part = stage(queue, "p", [{}, {"channel": "b"}])
    publish(queue, "p", {part: 2})
    queue.create("b")
    assert created in ids_of(queue.dequeue(10))
    queue.drain()
    assert queue.ask("select count(*) from turn") == 2


def test_a_bulk_load_takes_turns_with_others_at_once(queue: Session) -> None:
    part = stage(queue, "p", [{"channel": "big"}] * 3_000 + [{"channel": f"s{n % 5}"} for n in range(25)])
    publish(queue, "p", {part: 3_025})
    single = queue.create("late")
    seen = queue.take(60)
    assert single in ids_of(seen)
    assert len([one for one in seen if one.channel.startswith("s")]) == 25


def test_a_bulk_load_does_not_go_ahead_of_an_urgent_message(queue: Session) -> None:
    part = stage(queue, "p", [{"channel": f"bulk{n}"} for n in range(1_000)])
    publish(queue, "p", {part: 1_000})
    urgent = queue.create("other", dequeue_at=-1)
    assert urgent in ids_of(queue.dequeue(1))


def test_publishing_while_workers_work_loses_nothing(session: Open) -> None:
    queue, worker = session(), session()
    for n in range(10):
        worker.fill("a", 20)
        part = stage(queue, f"p{n}", [{"channel": "a"}, {"channel": "b"}] * 10)
        taken = worker.dequeue(15)
        assert publish(queue, f"p{n}", {part: 20})[0] == "published"
        worker.complete(taken)
    total = 10 * 40 - 10 * 15
    assert len(worker.drain()) == total
    assert queue.ask("select count(*) from message") == 0


def test_an_uncommitted_publication_blocks_no_other_call(session: Open) -> None:
    queue, other = session(autocommit=False), session()
    part = stage(queue, "p", [{}] * 5)
    publish(queue, "p", {part: 5})
    other.run("set lock_timeout = '50ms'")
    mine = other.create("a")
    assert ids_of(other.drain()) == [mine]
    queue.connection.commit()
    assert len(other.drain()) == 5


def test_a_publication_that_was_rolled_back_can_be_published_again(queue: Session) -> None:
    part = stage(queue, "p", [{}] * 2)
    with queue.connection.transaction(force_rollback=True):
        assert publish(queue, "p", {part: 2}) == ("published", 2, 0)
    assert publish(queue, "p", {part: 2}) == ("published", 2, 0)
    assert len(queue.drain()) == 2


def test_prune_deletes_old_rows_and_leftovers_of_published_loads(queue: Session) -> None:
    part = stage(queue, "done", [{}])
    publish(queue, "done", {part: 1})
    stage(queue, "done", [{}] * 2)
    stage(queue, "old", [{}] * 3)
    stage(queue, "young", [{}] * 4)
    queue.run("update stage set staged_at = now() - interval '2 days' where publication = 'old'")
    assert queue.ask("select stage_prune()") == 5
    assert queue.rows("select publication, count(*) from stage group by 1") == [("young", 4)]


def test_many_new_channels_of_a_bulk_load_are_all_served_soon(queue: Session) -> None:
    part = stage(queue, "p", [{"channel": f"c{n % 1000}", "content": b"x"} for n in range(10_000)])
    publish(queue, "p", {part: 10_000})
    served: set[str | None] = set()
    for _ in range(20):
        served |= {one.channel for one in queue.dequeue(500)}
    assert len(served) == 1000


def stage_row(
    queue: Session, part: uuid.UUID, ordinal: int, channel: str, **arrays: list[Any] | None
) -> None:
    names = ["publication", "part", "ordinal", "channel", *arrays]
    with queue.connection.cursor().copy(f"copy stage ({', '.join(names)}) from stdin".encode()) as copy:
        copy.write_row(("p", part, ordinal, channel, *arrays.values()))


def test_each_message_of_a_row_has_its_own_time_key_and_limit(queue: Session) -> None:
    part = uuid.uuid4()
    live = queue.create("a", b"live", key="k")
    stage_row(
        queue,
        part,
        1,
        "a",
        contents=[b"0", b"1", b"2", b"3"],
        dequeue_ats=[None, None, -5, None],
        delays_ms=[None, 3_600_000, None, None],
        keys=["k", None, "l", None],
        max_attempts=[3, None, None, 7],
    )
    stage_row(queue, part, 0, "a", contents=[b"before"])
    assert publish(queue, "p", {part: 5}) == ("published", 4, 1)
    drained = queue.drain(limit=1)
    assert [(one.content, one.key, one.max_attempts) for one in drained] == [
        (b"2", "l", None),
        (b"live", "k", None),
        (b"before", None, None),
        (b"3", None, 7),
    ]
    assert live in ids_of(drained)
    assert queue.rows("select convert_from(content, 'utf8') from message_status") == [("1",)]


def test_rows_of_many_channels_keep_the_order_within_each_channel(queue: Session) -> None:
    """The rows are in random order, and each ordinal has rows of several channels in two parts."""
    parts = {uuid.uuid4(): 40, uuid.uuid4(): 40}
    rows = [(place, ordinal, f"c{n}") for place in range(2) for ordinal in range(5) for n in range(4)]
    for place, ordinal, channel in sorted(rows, key=lambda row: hash(row)):
        first = 10 * place + 2 * ordinal
        contents = [b"%d" % (first + number) for number in range(2)]
        stage_row(queue, list(parts)[place], ordinal, channel, contents=contents)
    assert publish(queue, "p", parts) == ("published", 80, 0)
    by_channel: dict[str | None, list[int]] = {}
    for one in queue.drain(limit=7):
        by_channel.setdefault(one.channel, []).append(int(one.content or b""))
    assert by_channel == {f"c{n}": list(range(20)) for n in range(4)}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"contents": [b"x", None]}, "stage_contents_are_a_list_without_null"),
        ({"contents": []}, "stage_contents_are_a_list_without_null"),
        ({"contents": [[b"x"], [b"y"]]}, "stage_contents_are_a_list_without_null"),
        ({"contents": [b"x", b"y"], "keys": ["k"]}, "stage_arrays_are_as_long_as_contents"),
        ({"contents": [b"x"], "dequeue_ats": [1, 2]}, "stage_arrays_are_as_long_as_contents"),
        ({"contents": [b"x"], "delays_ms": []}, "stage_arrays_are_as_long_as_contents"),
        ({"contents": [b"x"], "max_attempts": [1, None]}, "stage_arrays_are_as_long_as_contents"),
        ({"contents": None}, "contents"),
    ],
)
def test_a_row_with_inconsistent_arrays_is_not_staged(
    queue: Session, arrays: dict[str, Any], message: str
) -> None:
    with pytest.raises(psycopg.IntegrityError, match=message):
        stage_row(queue, uuid.uuid4(), 0, "a", **arrays)


def test_max_content_bytes_applies_to_each_message_of_a_row(queue: Session) -> None:
    queue.run("select queue_set('{\"max_content_bytes\": 10}')")
    part = uuid.uuid4()
    stage_row(queue, part, 0, "a", contents=[b"x" * 10] * 500)
    with queue.connection.transaction(force_rollback=True):
        stage_row(queue, part, 1, "a", contents=[b"", b"x" * 11])
        with (
            pytest.raises(psycopg.Error, match="content must be at most 10 bytes, got 11"),
            queue.connection.transaction(),
        ):
            publish(queue, "p", {part: 502})
    assert publish(queue, "p", {part: 500}) == ("published", 500, 0)
    assert {one.content for one in queue.drain()} == {b"x" * 10}


def test_discarding_returns_the_number_of_messages(queue: Session) -> None:
    part = uuid.uuid4()
    stage_row(queue, part, 0, "a", contents=[b"x"] * 3)
    stage_row(queue, part, 0, "b", contents=[b"y"] * 2000)
    assert queue.ask("select stage_discard('p', %s)", [part]) == 2003
    assert queue.ask("select stage_discard('p', %s)", [part]) == 0
    assert queue.ask("select count(*) from stage") == 0


def test_a_part_discarded_during_the_publication_fails_it(session: Open) -> None:
    """The publication waits for a key after it has read its rows, which are deleted when it continues."""
    queue, holder, other = session(), session(autocommit=False), session()
    part = stage(queue, "p", [{"key": "k"}, {}, {}])
    holder.create("a", key="k")
    with ThreadPoolExecutor(1) as pool:
        publishing = pool.submit(publish, queue, "p", {part: 3})
        while not other.ask("select count(*) from pg_stat_activity where wait_event = 'transactionid'"):
            pass
        assert other.ask("select stage_discard('p', %s)", [part]) == 3
        holder.connection.commit()
        with pytest.raises(psycopg.Error, match="was changed while it was being published: 0 of 3") as raised:
            publishing.result()
    assert raised.value.sqlstate == "LQ005"
    assert queue.ask("select count(*) from message") == 1
    assert queue.ask("select count(*) from publication") == 0


def test_compressed_content_is_measured_uncompressed(queue: Session) -> None:
    queue.run("select queue_set('{\"max_content_bytes\": 100000}')")
    queue.run("create temporary table compressed as select array[repeat('x', 200000)::bytea] as contents")
    part = uuid.uuid4()
    queue.run(
        "insert into stage (publication, part, ordinal, channel, contents)"
        " select 'p', %s, 0, 'a', contents from compressed",
        part,
    )
    assert queue.ask("select pg_column_size(contents) from stage") < 100_000
    with pytest.raises(psycopg.Error, match="content must be at most 100000 bytes, got 200000"):
        publish(queue, "p", {part: 1})


def test_two_channels_with_the_same_id_are_counted_separately(queue: Session) -> None:
    """Ids are hashes of names; here all names have the same hash."""
    queue.run(
        "create or replace function channel_id(p_salt bytea, p_channel text) returns bigint"
        " language sql stable as 'select 7::bigint'"
    )
    queue.create("a", key="live")
    queue.drain()
    queue.create("a", key="live")
    rows = [
        {"channel": "a", "key": "live"},
        *({"channel": name, "key": f"{name} {n}"} for name in "ab" for n in range(2)),
    ]
    part = stage(queue, "p", rows)
    assert publish(queue, "p", {part: 5}) == ("published", 4, 1)
    assert queue.rows("select channel_name, waiting from wake where lane = 1 order by 1") == [
        ("a", 2),
        ("b", 2),
    ]


def test_many_parts_keep_their_order(queue: Session) -> None:
    parts = {uuid.uuid4(): 1 for _ in range(50)}
    for number, part in enumerate(parts):
        stage(queue, "p", [{"content": b"%d" % number}], part)
    publish(queue, "p", parts)
    assert [int(one.content or b"") for one in queue.drain()] == list(range(50))


def test_one_reply_begins_a_new_channel_of_each_lane(queue: Session) -> None:
    part = stage(queue, "p", [{"channel": "bulk"}] * 1000)
    assert publish(queue, "p", {part: 1000}) == ("published", 1000, 0)
    queue.create("acme")
    assert sorted(message.channel for message in queue.dequeue(limit=2)) == ["acme", "bulk"]
