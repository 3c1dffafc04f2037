"""Inspecting messages and busy channels without leasing anything."""

from datetime import timedelta
from typing import Any

import pytest

from lonnymq import InvalidArgument, NewMessage, PageCursor


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
    (outline,) = queue.peek("other", preview_bytes=0)
    assert (outline.id, outline.content, outline.headers, outline.content_bytes) == (other, b"", {}, 5000)
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


def test_the_pulse_and_the_channels_that_wait_longest(queue: Any) -> None:
    for name in ("first", "second"):
        queue.enqueue_many([NewMessage(channel=name, payload=n) for n in range(3)])
    pulse = queue.pulse()
    assert (pulse.due_channels, pulse.demand, pulse.waiting, pulse.is_exact) == (2, 6, 6, True)
    assert (pulse.history, pulse.is_due_complete) == ("off", True)
    assert 0 < pulse.turn_lag_s == pytest.approx((pulse.at - pulse.first_due_at).total_seconds(), abs=0.01)
    found = queue.overdue()
    assert [one.channel for one in found] == ["first", "second"]
    assert found[0].ready_at == pulse.first_due_at
    leased = queue.dequeue(6)
    assert queue.pulse().demand == 0
    status = queue.channel("first").status()
    waited_ms = sum(
        (one.leased_at.timestamp() - one.created_at.timestamp()) * 1000
        for one in leased
        if one.channel == "first"
    )
    assert status.released == 3
    assert status.waited_ms == pytest.approx(waited_ms, abs=6)
    assert status.ready_at is None


def test_messages_and_dead_letters_are_paged_newest_first(queue: Any) -> None:
    made = [queue.enqueue("a", n).id for n in range(5)]
    page = queue.messages("a", limit=3)
    assert [one.id for one in page.items] == made[:1:-1]
    rest = queue.messages("a", before=PageCursor.parse(str(page.next)))
    assert ([one.id for one in rest.items], rest.next) == (made[1::-1], None)
    leased = queue.dequeue(2)
    assert {one.id for one in queue.messages(status="leased").items} == {one.id for one in leased}
    assert queue.messages("never").items == []
    queue.bury(leased, error="no\nKeyError: 'x'")
    letters = queue.dead("a")
    page = letters.page(limit=1, preview_bytes=0)
    assert (page.items[0].content, page.items[0].content_bytes) == (b"", 1)
    page = letters.page(before=page.next)
    assert (len(page.items), page.next) == (1, None)
    assert page.items[0].content in (b"0", b"1")
    (group,) = letters.groups().groups
    assert (group.error, group.letters, group.channels) == ("KeyError: 'x'", 2, 1)
    found = letters.ids(error=group.error)
    assert (sorted(found.items), found.next) == (made[:2], None)
    assert letters.ids(error="another").items == queue.dead("b").ids().items == []
    # A dead letter that came later is left alone.
    queue.bury(queue.dequeue(1), error="KeyError: 'x'")
    assert letters.redrive(found.items) == ["redriven", "redriven"]
    assert [one.id for one in letters.page().items] == [made[2]]


@pytest.mark.parametrize("text", ["", "1", "1_", "_1", "1_2_3", "1_x", "1_" + "9" * 20, "\u0661_1"])
def test_a_cursor_is_read_only_from_what_a_page_returned(text: str) -> None:
    assert PageCursor.parse("-1_2") == PageCursor(-1, 2)
    with pytest.raises(ValueError, match="12_34"):
        PageCursor.parse(text)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda queue: queue.peek(""), "channel"),
        (lambda queue: queue.peek(limit=0), "limit"),
        (lambda queue: queue.peek(preview_bytes=-1), "preview_bytes"),
        (lambda queue: queue.show("1"), "message_id"),
        (lambda queue: queue.dead().show(-1), "message_id"),
        (lambda queue: queue.busiest(limit=10_001), "limit"),
        (lambda queue: queue.overdue(limit=0), "limit"),
        (lambda queue: queue.pulse(channels=0), "channels"),
        (lambda queue: queue.messages(limit=0), "limit"),
        (lambda queue: queue.messages(status="done"), "status"),
        (lambda queue: queue.dead().page(error="x" * 201), "error"),
        (lambda queue: queue.dead().ids(limit=10_001), "limit"),
        (lambda queue: queue.dead().groups(letters=0), "letters"),
    ],
)
def test_an_invalid_argument_is_named(queue: Any, call: Any, argument: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{argument} must be"):
        call(queue)
