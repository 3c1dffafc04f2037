"""Enqueueing: one message or many, in the caller's transaction, for now or later."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lonnymq import ChannelFull, CreateOutcome, DecodeError, DequeueOutcome, InvalidArgument, NewMessage
from tests.client.conftest import OpenConnection, OpenQueue
from tests.conftest import Connect


@pytest.mark.parametrize(
    "payload",
    [
        {"video": 7},
        [1, "zwei", None, True, 0.5],
        "ünïcödé \u2028 🐘",
        0,
        None,
        {},
        {"nested": {"deep": [[]]}},
    ],
)
def test_a_payload_is_returned_unchanged(queue: Any, payload: Any) -> None:
    queue.enqueue("a", payload)
    assert queue.dequeue()[0].payload == payload


@pytest.mark.parametrize("content", [b"", b"\0\xff", bytes(range(256)), bytearray(b"x"), memoryview(b"y")])
def test_bytes_are_returned_unchanged(queue: Any, content: Any) -> None:
    queue.enqueue("a", content)
    assert queue.dequeue()[0].content == bytes(content)


def test_json_is_stored_compactly_and_readably(queue: Any) -> None:
    queue.enqueue("a", {"name": "Zoë", "n": [1, 2]})
    assert queue.dequeue()[0].content == '{"name":"Zoë","n":[1,2]}'.encode()


def test_content_that_is_not_json_can_be_read_but_not_decoded(queue: Any) -> None:
    queue.enqueue("a", b"\xff\xfe")
    message = queue.dequeue()[0]
    with pytest.raises(DecodeError, match=f"message {message.id}"):
        _ = message.payload
    assert message.content == b"\xff\xfe"


def test_another_codec_can_be_chosen(open_queue: OpenQueue) -> None:
    class Shouting:
        def encode(self, payload: Any) -> bytes:
            return str(payload).upper().encode()

        def decode(self, content: bytes) -> Any:
            return content.decode() + "!"

    queue = open_queue(codec=Shouting())
    queue.enqueue("a", "hello")
    assert queue.dequeue()[0].payload == "HELLO!"


def test_a_message_describes_its_attempt(queue: Any) -> None:
    created = queue.enqueue("acme", 1, key="order-42", max_attempts=5)
    message = queue.dequeue(lease_s=60, worker="w1")[0]
    assert (message.id, message.channel, message.key) == (created.id, "acme", "order-42")
    assert (message.attempt, message.max_attempts, message.state) == (1, 5, None)
    assert message.unlock_at - message.leased_at == timedelta(minutes=1)
    assert abs(datetime.now(UTC) - message.created_at) < timedelta(minutes=1)


def test_messages_of_a_channel_are_leased_in_order(queue: Any) -> None:
    ids = [queue.enqueue("a", n).id for n in range(20)]
    assert [message.id for message in queue.dequeue(20)] == ids


def test_many_messages_are_leased_in_the_order_given(queue: Any) -> None:
    created = queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(100)])
    assert {one.outcome for one in created} == {CreateOutcome.CREATED}
    messages = queue.dequeue(100)
    assert [message.payload for message in messages] == list(range(100))
    assert [message.id for message in messages] == [one.id for one in created]


def test_empty_sequences_are_accepted(queue: Any) -> None:
    assert queue.enqueue_many([]) == []
    assert queue.complete([]) == []


def test_enqueueing_many_messages_returns_an_outcome_for_each(queue: Any) -> None:
    queue.channel("full").set(max_size=1)
    first = queue.enqueue("a", 1, key="k")
    created = queue.enqueue_many(
        [
            NewMessage(channel="a", payload=2, key="k"),
            NewMessage(channel="full", payload=3),
            NewMessage(channel="full", payload=4),
        ]
    )
    assert [one.outcome for one in created] == ["duplicate", "created", "dropped"]
    assert (created[0].id, created[2].id) == (first.id, None)


def test_a_key_is_unique_while_its_message_lives(queue: Any) -> None:
    first = queue.enqueue("a", 1, key="k")
    assert queue.enqueue("a", 2, key="k") == type(first)(CreateOutcome.DUPLICATE, first.id)
    assert queue.enqueue("b", 2, key="k").outcome == "created"
    queue.complete(queue.dequeue(10))
    assert queue.enqueue("a", 3, key="k").outcome == "created"


def test_the_highest_priority_comes_first(queue: Any) -> None:
    queue.enqueue("a", "plain")
    queue.enqueue("a", "low", priority=1)
    queue.enqueue("a", "high", priority=9)
    assert [message.payload for message in queue.dequeue(3)] == ["high", "low", "plain"]


@pytest.mark.parametrize("later", [{"delay": timedelta(hours=1)}, {"delay": 3600}, {"delay": 3599.9995}])
def test_a_delayed_message_is_not_released_early(queue: Any, later: dict[str, Any]) -> None:
    queue.enqueue("a", 1, **later)
    batch = queue.dequeue()
    assert (len(batch), batch.outcome) == (0, DequeueOutcome.EMPTY)
    assert queue.channel("a").explain().reason == "scheduled"


def test_a_scheduled_message_waits_for_its_time(queue: Any) -> None:
    at = datetime.now(UTC) + timedelta(days=1)
    queue.enqueue("a", "later", at=at)
    queue.enqueue("a", "overdue", at=datetime(1969, 7, 20, tzinfo=UTC))
    assert [message.payload for message in queue.dequeue(10)] == ["overdue"]
    assert abs(queue.channel("a").explain().head_dequeue_at - at.timestamp() * 1000) <= 1


def test_a_message_exists_if_and_only_if_the_callers_transaction_commits(
    queue: Any, open_connection: OpenConnection
) -> None:
    connection = open_connection()
    queue.enqueue("a", "rolled back", connection=connection)
    connection.rollback()
    queue.enqueue("a", "committed", connection=connection)
    assert len(queue.dequeue()) == 0
    connection.commit()
    assert [message.payload for message in queue.dequeue(10)] == ["committed"]


def test_the_callers_connection_may_have_any_row_factory(queue: Any, open_connection: OpenConnection) -> None:
    from psycopg.rows import dict_row

    connection = open_connection(row_factory=dict_row, autocommit=True)
    queue.enqueue("a", 1, connection=connection)
    assert queue.dequeue(connection=connection)[0].complete(connection=connection) == "completed"


def test_an_object_that_is_not_a_connection_is_refused(queue: Any, flavour: str) -> None:
    expected = "psycopg AsyncConnection" if flavour == "async" else "psycopg Connection"
    with pytest.raises(
        InvalidArgument, match=f"connection must be a {expected} .*, got a value of type object"
    ):
        queue.enqueue("a", 1, connection=object())


def test_plain_sql_can_read_what_the_client_wrote(queue: Any, connect: Connect) -> None:
    created = queue.enqueue("a", {"n": 1})
    row = connect().execute("select message from message_json where id = %s", (created.id,)).fetchone()
    assert row is not None
    assert row[0]["content"] == json.loads('{"n": 1}')


def test_dropped_messages_raise_an_error_on_request(queue: Any) -> None:
    queue.channel("full").set(max_size=1)
    queue.enqueue("full", 1, raise_if_dropped=True)
    with pytest.raises(ChannelFull, match=r"1 of 1 messages were dropped.*'full'.*raise max_size") as caught:
        queue.enqueue("full", 2, raise_if_dropped=True)
    assert caught.value.channels == ("full",)
    with pytest.raises(ChannelFull):
        queue.channel("full").enqueue(2, raise_if_dropped=True)
    assert queue.enqueue("full", 2).outcome == "dropped"
    many = [NewMessage(channel=name, payload=1) for name in ("full", "empty", "full")]
    with pytest.raises(ChannelFull, match="2 of 3 messages were dropped") as caught:
        queue.enqueue_many(many, raise_if_dropped=True)
    # The others were created.
    assert [one.outcome for one in caught.value.created] == ["dropped", "created", "dropped"]
    assert queue.status().waiting == 2


def test_channel_full_leaves_the_callers_transaction_to_roll_back(
    queue: Any, open_connection: OpenConnection
) -> None:
    queue.channel("full").set(max_size=0)
    connection = open_connection()
    queue.enqueue("a", 1, connection=connection)
    with pytest.raises(ChannelFull):
        queue.enqueue("full", 1, raise_if_dropped=True, connection=connection)
    connection.rollback()
    assert queue.status().waiting == 0
