"""A26: any bytes can be stored, and replies stay small."""

import psycopg
import pytest

from tests.sql.session import Reply, Session, ids_of


def read(queue: Session, leases: list[Reply]) -> dict[int, tuple[bytes, bytes | None]]:
    rows = queue.rows(
        "select message_id, content, state from message_read(%s, %s)",
        ids_of(leases),
        [one.token for one in leases],
    )
    return {row[0]: (row[1], row[2]) for row in rows}


BYTES = [
    b"",
    b"\x00",
    b"\x00" * 100,
    bytes(range(256)),
    b"\\x41",
    b"'\"\\",
    "\u00fcn\u00efc\U0001f600".encode(),
    b"\xc3\x28",
]


def test_any_bytes_are_returned_unchanged(queue: Session) -> None:
    for content in BYTES:
        queue.create("a", content)
    queue.create_many(["a"] * len(BYTES), BYTES)
    taken = queue.take(100)
    assert [(one.content, one.unread_bytes) for one in taken] == [(content, None) for content in BYTES] * 2
    for one in taken:
        queue.defer([one], state=one.content)
    again = queue.take(100)
    assert len(again) == 2 * len(BYTES)
    assert all(one.state == one.content for one in again)


def test_a_large_content_is_read_after_the_reply(queue: Session) -> None:
    content = bytes(range(256)) * 4_000
    queue.create("a", content)
    leased = queue.lease()
    assert (leased.content, leased.unread_bytes) == (None, len(content))
    assert read(queue, [leased]) == {leased.message_id: (content, None)}


def test_small_messages_are_in_the_reply(queue: Session) -> None:
    queue.create_many(["a"] * 100, [b"x" * 100] * 100)
    assert all(one.content == b"x" * 100 for one in queue.take(100))


@pytest.mark.parametrize("channels", [1, 2, 10])
def test_the_total_size_of_the_contents_of_a_reply_is_bounded(queue: Session, channels: int) -> None:
    """Also if it takes several rounds to fill a reply, as here, where channel 0 has most of the messages."""
    names = [f"c{n % channels if n < 2 * channels else 0}" for n in range(200)]
    queue.create_many(names, [b"%04d" % n * 250 for n in range(200)])
    replies = queue.dequeue_once(200)
    assert len(replies) == 200
    assert sum(len(one.content or b"") for one in replies) <= 65_536
    left_out = [one for one in replies if one.content is None]
    contents = read(queue, left_out)
    for one in replies:
        content = one.content if one.content is not None else contents[one.message_id][0]
        assert len(content) == 1_000
        assert one.unread_bytes == (1_000 if one.content is None else None)
    everything = {one.content or contents[one.message_id][0] for one in replies}
    assert len(everything) == 200


def test_states_count_towards_the_size_of_a_reply(queue: Session) -> None:
    queue.fill("a", 100)
    queue.defer(queue.take(100), state=b"s" * 2_000)
    replies = queue.take(100)
    assert sum(len(one.state or b"") for one in replies) <= 65_536
    missing = [one for one in replies if one.state is None]
    assert missing
    assert {state for _, state in read(queue, missing).values()} == {b"s" * 2_000}


def test_names_and_keys_count_towards_the_size_of_a_reply(queue: Session) -> None:
    """The longest names and keys of 500 messages would take a megabyte."""
    names = [f"{n:03}" + "😀" * 252 for n in range(300)]
    queue.create_many(names, keys=[f"{n:03}" + "😀" * 252 for n in range(300)])
    replies = queue.dequeue_once(300)
    size = sum(len((one.channel or "").encode()) + len((one.key or "").encode()) for one in replies)
    assert size <= 200_000


def test_message_read_needs_the_token_of_the_lease(queue: Session) -> None:
    queue.create("a")
    leased = queue.lease()
    assert read(queue, [leased._replace(token=leased.token + 1)]) == {}
    queue.expire([leased])
    other = queue.lease()
    assert read(queue, [leased, other]) == {other.message_id: (b"x", None)}
    queue.cancel(other.message_id)
    assert read(queue, [other]) == {}


def test_a_content_above_max_content_bytes_is_refused(queue: Session) -> None:
    queue.run("select queue_set('{\"max_content_bytes\": 10}')")
    queue.create("a", b"x" * 10)
    for create in (
        lambda: queue.create("a", b"x" * 11),
        lambda: queue.create_many(["a", "a"], [b"", b"x" * 11]),
    ):
        with pytest.raises(psycopg.Error) as raised:
            create()
        assert raised.value.sqlstate == "LQ001"
        assert "content" in str(raised.value)
        assert "11 bytes" in str(raised.value)
    assert queue.ask("select count(*) from message") == 1


def test_a_content_of_8_mb_is_delivered(queue: Session) -> None:
    content = b"\x00\xff" * 4_000_000
    queue.create("a", content)
    leased = queue.lease()
    assert read(queue, [leased])[leased.message_id][0] == content


def test_unread_bytes_includes_the_state_and_the_key(queue: Session) -> None:
    queue.create("a", b"x" * 50_000, key="k" * 10)
    queue.defer([queue.lease()], state=b"y" * 70_000)
    assert queue.lease().unread_bytes == 120_010


def test_a_state_is_limited_like_a_content_and_an_error_is_truncated(queue: Session) -> None:
    queue.rows("select queue_set('{\"max_content_bytes\": 1000}')")
    queue.create("a", b"x")
    leased = queue.lease()
    with pytest.raises(
        psycopg.Error, match="states must be at most 1000 bytes each, got 1001 bytes"
    ) as raised:
        queue.defer([leased], state=b"y" * 1001)
    assert raised.value.sqlstate == "LQ001"
    assert queue.defer([leased], state=b"y" * 1000, error="e" * 30_000) == ["deferred"]
    assert queue.rows("select length(error) from message") == [(20_000,)]
    assert queue.bury([queue.lease()], error="f" * 30_000) == ["buried"]
    assert queue.rows("select length(error), length(state) from dead") == [(20_000, 1000)]
