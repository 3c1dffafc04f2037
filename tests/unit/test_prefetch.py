"""How many messages a worker leases ahead, by a clock that the tests move."""

from typing import Any

import pytest

from lonnymq.model import Dequeued, DequeueOutcome, LeasedMessage
from lonnymq.worker.prefetch import MAX_PREFETCH, Prefetch
from lonnymq.worker.reply_limit import MAX_MESSAGES, MIN_MESSAGES, ReplyLimit

PLACES = 10


class Clock:
    """Calls that take `call_s`, each for messages that are processed in `work_s`, then an idle time."""

    def __init__(self, setting: int | None = None) -> None:
        self.now = 1000.0
        self.prefetch = Prefetch(setting, PLACES, self.now)

    def work(self, messages: int, *, work_s: float, call_s: float = 0.001, idle_s: float = 0.0) -> int:
        """Process one reply, and return the limit after the next one has arrived."""
        self._reply(call_s, messages)
        self.prefetch.count_processed(messages)
        self.now += work_s
        self.prefetch.end_work(self.now)
        self.now += idle_s
        return self._reply(call_s, 0)

    def _reply(self, call_s: float, messages: int) -> int:
        self.prefetch.start_call(self.now)
        self.now += call_s
        self.prefetch.add_reply(self.now, messages)
        return self.prefetch.limit


def test_a_process_that_waits_for_others_leases_no_less_ahead() -> None:
    alone, starved = Clock(), Clock()
    assert alone.work(100, work_s=0.01) == starved.work(100, work_s=0.01, idle_s=0.09) == 200


def test_slower_calls_are_made_for_more_messages() -> None:
    assert Clock().work(100, work_s=0.01, call_s=0.01) == 400
    assert Clock().work(100, work_s=0.01, call_s=0.05) == 500


def test_the_prefetch_is_bounded() -> None:
    assert Clock().work(1_000, work_s=0.001) == MAX_PREFETCH


def test_slow_messages_are_not_leased_ahead() -> None:
    clock = Clock()
    assert clock.work(PLACES, work_s=10) == 0
    # One that ended early does not make the others fast.
    assert clock.work(1, work_s=0.0001) == 0


def test_nothing_is_leased_ahead_after_a_pause() -> None:
    clock = Clock()
    assert clock.work(100, work_s=0.01) > 0
    assert clock.work(1, work_s=0.001, idle_s=0.2) == 0
    assert clock.work(100, work_s=0.01) > 0


def test_a_setting_is_a_maximum() -> None:
    assert Clock(setting=50).prefetch.limit == 50
    assert Clock(setting=50).work(100, work_s=0.01) == 50
    assert Clock(setting=50).work(100, work_s=1) == 10
    assert Clock(setting=0).work(100, work_s=0.01) == 0


def test_nothing_is_leased_ahead_after_messages_went_back() -> None:
    clock = Clock(setting=50)
    clock.prefetch.suspend()
    assert clock.prefetch.limit == 0
    assert clock.work(1, work_s=0.001) == 0
    assert clock.work(100, work_s=0.01) == 50


@pytest.mark.parametrize(
    ("size", "unread", "expected"),
    [(1, 0, MAX_MESSAGES), (100, 0, 320), (1_000, 0, MIN_MESSAGES), (0, 128, 250), (0, 0, MAX_MESSAGES)],
)
def test_a_call_asks_for_as_many_contents_as_fit_into_its_reply(
    size: int, unread: int, expected: int
) -> None:
    limit = ReplyLimit()
    limit.adapt(reply(messages=60, size=size, unread=unread))
    assert limit.messages == expected


def reply(messages: int, size: int, unread: int) -> Any:
    """Return a reply with contents of one size, or with contents that it leaves out."""
    leases = tuple(
        LeasedMessage(
            id=n,
            channel="a",
            token=n,
            attempt=1,
            max_attempts=None,
            suspicion=0,
            dequeue_at=0,
            created_ms=0,
            leased_us=0,
            unlock_us=0,
            key=None,
            content=b"x" * size,
            state_content=None,
        )
        for n in range(messages)
    )
    return Dequeued(DequeueOutcome.LEASED, 0, leases, {n: unread for n in range(messages) if unread})
