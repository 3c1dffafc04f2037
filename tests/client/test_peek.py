"""Inspecting messages and busy channels without leasing anything."""

from datetime import timedelta
from typing import Any

import pytest

from lonnymq import InvalidArgument, NewMessage


def test_peek_returns_the_next_messages_without_leasing_them(queue: Any) -> None:
    later = queue.enqueue("acme", {"n": 1}, delay=timedelta(hours=1)).id
    first = queue.enqueue("acme", {"n": 2}, key="k", max_attempts=7).id
    urgent = queue.enqueue("acme", {"n": 3}, priority=5).id
    other = queue.enqueue("other", b"\xff" * 5000).id
    peeked = queue.peek("acme")
    assert [(one.id, one.status) for one in peeked] == [
        (urgent, "waiting"),
        (first, "waiting"),
        (later, "scheduled"),
    ]
    assert (peeked[1].channel, peeked[1].key, peeked[1].max_attempts) == ("acme", "k", 7)
    assert (peeked[1].content, peeked[1].attempts, peeked[1].worker) == (b'{"n":2}', 0, None)
    assert [one.id for one in queue.peek(limit=2)] == [later, first]
    (cut,) = queue.peek("other", preview_bytes=3)
    assert (cut.id, cut.content, cut.content_bytes) == (other, b"\xff" * 3, 5000)
    assert len(queue.peek("other", preview_bytes=None)[0].content) == 5000
    assert queue.peek("nobody") == []
    assert queue.status().leased == 0


def test_peek_returns_leased_messages_only_on_request(queue: Any) -> None:
    queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(3)])
    queue.channel("a").set(max_attempts=4)
    (message,) = queue.dequeue(worker="worker-1")
    (leased,) = queue.peek("a", is_leased=True)
    assert (leased.id, leased.status, leased.worker) == (message.id, "leased", "worker-1")
    assert (leased.attempts, leased.max_attempts) == (1, 4)
    assert (leased.leased_at, leased.unlock_at) == (message.leased_at, message.unlock_at)
    assert [one.id for one in queue.peek(is_leased=True)] == [message.id]
    assert queue.peek("b", is_leased=True) == []
    assert message.id not in [one.id for one in queue.peek("a")]


def test_show_returns_a_message_while_it_is_live(queue: Any) -> None:
    made = queue.enqueue("a", "x" * 5000).id
    assert queue.show(made).content_bytes == len(queue.show(made).content) == 5002
    (message,) = queue.dequeue()
    message.defer(delay=60, state={"step": 2}, error="the disk was full")
    shown = queue.show(made)
    assert (shown.status, shown.error, shown.state_content) == (
        "scheduled",
        "the disk was full",
        b'{"step":2}',
    )
    queue.cancel([made])
    assert queue.show(made) is None
    assert queue.show(-1) is None


def test_show_returns_a_dead_letter(queue: Any) -> None:
    made = [queue.enqueue("a", n).id for n in range(2)]
    queue.bury(queue.dequeue(2), error="no")
    assert queue.dead().show(made[1]).id == queue.dead("a").show(made[1]).id == made[1]
    assert queue.dead("b").show(made[0]) is None
    assert queue.dead().show(made[0] + 1000) is None


def test_the_busiest_channels_come_first(queue: Any) -> None:
    for name, count in {"small": 1, "large": 5, "leased": 3}.items():
        queue.enqueue_many([NewMessage(channel=name, payload=n) for n in range(count)])
    queue.channel("idle").set()
    assert queue.status().channels == 4
    before = queue.busiest()
    assert [one.channel for one in before] == ["large", "leased", "small", "idle"]
    assert before[0].head_created_at is not None
    queue.dequeue(9)
    assert [(one.channel, one.waiting, one.leased) for one in queue.busiest(limit=2)] == [
        ("large", 0, 5),
        ("leased", 0, 3),
    ]
    assert queue.busiest()[-1].head_created_at is None


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda queue: queue.peek(""), "channel"),
        (lambda queue: queue.peek(limit=0), "limit"),
        (lambda queue: queue.peek(preview_bytes=-1), "preview_bytes"),
        (lambda queue: queue.show("1"), "message_id"),
        (lambda queue: queue.dead().show(-1), "message_id"),
        (lambda queue: queue.busiest(limit=10_001), "limit"),
    ],
)
def test_an_invalid_argument_is_named(queue: Any, call: Any, argument: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{argument} must be"):
        call(queue)
