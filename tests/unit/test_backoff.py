"""Who goes first when one message wakes many."""

from lonnymq.client.courtesy import MOST_S, Courtesy


def test_who_is_woken_in_vain_waits_ever_longer_up_to_a_bound_until_something_comes() -> None:
    courtesy = Courtesy()
    pauses_s = []
    for _ in range(6):
        pauses_s.append(courtesy.woken(was_notified=True))
        courtesy.in_vain()
    assert pauses_s[0] == 0.0
    assert pauses_s == sorted(pauses_s)
    assert pauses_s[-1] == MOST_S
    courtesy.rewarded()
    assert courtesy.woken(was_notified=True) == 0.0


def test_a_look_by_the_clock_that_finds_nothing_delays_no_notification() -> None:
    courtesy = Courtesy()
    courtesy.woken(was_notified=False)
    courtesy.in_vain()
    # Nobody was woken between these two.
    courtesy.in_vain()
    assert courtesy.woken(was_notified=True) == 0.0
    assert courtesy.woken(was_notified=False) > 0.0
