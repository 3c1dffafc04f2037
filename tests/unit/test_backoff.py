"""How long to pause after a failure, and which sleeper asks first when one message wakes several."""

import time

from lonnymq.client.wakeup_backoff import FIRST_S, MAX_S, WakeupBackoff
from lonnymq.connections.backoff import Backoff


def assert_within(pauses_s: list[float], bounds_s: list[float]) -> None:
    """Check pauses, of which jitter takes off up to half."""
    for pause_s, bound_s in zip(pauses_s, bounds_s, strict=True):
        assert bound_s / 2 <= pause_s <= bound_s


def test_pauses_double_up_to_a_maximum_and_reset_after_a_success() -> None:
    backoff = Backoff(first_s=1.0, max_s=5.0)
    assert_within([backoff.next_s() for _ in range(5)], [1.0, 2.0, 4.0, 5.0, 5.0])
    backoff.reset()
    assert_within([backoff.next_s()], [1.0])


def test_not_even_the_first_pause_exceeds_the_maximum() -> None:
    assert_within([Backoff(first_s=1.0, max_s=0.1).next_s()], [0.1])


def test_clients_that_failed_together_do_not_retry_together() -> None:
    assert len({Backoff(first_s=1.0, max_s=1.0).next_s() for _ in range(10)}) > 1


def test_pauses_end_when_the_time_is_over_but_at_least_one_is_given() -> None:
    began = time.monotonic()
    taken = []
    for pause_s in Backoff(first_s=0.001, max_s=0.004).pauses(for_s=0.02):
        taken.append(pause_s)
        time.sleep(pause_s)
    # How many there are depends on the machine.
    assert_within(taken, [0.001, 0.002, *[0.004] * len(taken)][: len(taken)])
    assert 0.02 <= time.monotonic() - began < 5
    assert len(list(Backoff(first_s=1, max_s=1).pauses(for_s=0))) == 1


def test_a_sleeper_woken_in_vain_waits_longer_until_a_message_comes() -> None:
    backoff = WakeupBackoff()
    pauses_s = []
    for _ in range(6):
        pauses_s.append(backoff.wake(was_notified=True))
        backoff.fail()
    assert_within(pauses_s, [0.0, FIRST_S, 2 * FIRST_S, 4 * FIRST_S, MAX_S, MAX_S])
    backoff.succeed()
    assert backoff.wake(was_notified=True) == 0.0


def test_an_empty_timer_wakeup_does_not_delay_notifications() -> None:
    backoff = WakeupBackoff()
    backoff.wake(was_notified=False)
    backoff.fail()
    # There was no wake-up between these two.
    backoff.fail()
    assert backoff.wake(was_notified=True) == 0.0
    assert backoff.wake(was_notified=False) > 0.0
