"""A25: what dashboards read: the pulse, the channels that wait longest, counters, pages, groups."""

from collections import Counter
from typing import Any

import pytest

from tests.sql.session import Reply, Session


def pulse(queue: Session, *columns: str) -> Any:
    row = queue.rows(f"select {', '.join(columns)} from queue_pulse()")[0]
    return row[0] if len(columns) == 1 else row


def overdue(queue: Session, limit: int = 20) -> list[str]:
    return [row[0] for row in queue.rows("select channel from channel_overdue(%s)", limit)]


def test_the_pulse_of_a_new_queue_is_all_zero(queue: Session) -> None:
    assert pulse(
        queue, "due_channels", "demand", "turn_lag_s", "expired", "channels", "waiting", "leased", "dead"
    ) == (0, 0, 0, 0, 0, 0, 0, 0)
    assert pulse(queue, "is_due_complete", "is_exact", "first_due_at", "first_expiry_at") == (
        True,
        True,
        None,
        None,
    )


def test_the_pulse_counts_what_is_there(queue: Session) -> None:
    queue.fill("a", 5)
    queue.fill("b", 3)
    queue.create("later", delay_ms=3_600_000)
    taken = queue.take(4)
    queue.bury(taken[:1])
    queue.expire(taken[1:2])
    assert pulse(queue, "channels", "waiting", "scheduled", "leased", "expired", "dead") == (3, 5, 1, 3, 1, 1)


def test_demand_is_what_workers_could_get_now(queue: Session) -> None:
    """Messages that are scheduled, or that a cap, a rate limit or a pause holds back, do not count."""
    queue.set("capped", max_concurrency=3)
    queue.set("slow", release_interval_ms=60_000, release_burst=2)
    queue.set("paused", is_paused=True)
    for channel in ("free", "capped", "slow", "paused"):
        queue.fill(channel, 10)
    queue.fill("mixed", 4)
    queue.create_many(["mixed"] * 50, delays_ms=[3_600_000] * 50)
    queue.create("later", delay_ms=3_600_000)
    # Nobody has dequeued yet: 10 + 3 + 2 + 4.
    assert pulse(queue, "due_channels", "demand") == (4, 19)
    taken = queue.take(7)
    by_channel = Counter(one.channel for one in taken)
    assert pulse(queue, "demand") == 19 - 7
    assert set(by_channel) <= {"free", "capped", "slow", "mixed"}
    queue.take(100)
    assert pulse(queue, "due_channels", "demand", "turn_lag_s") == (0, 0, 0)
    assert queue.ask("select reason from channel_status where channel = 'capped'") == "capped"


def test_a_completion_in_a_capped_channel_is_demand_before_any_dequeue(queue: Session) -> None:
    queue.set("capped", max_concurrency=2)
    queue.fill("capped", 5)
    taken = queue.take(2)
    queue.dequeue_once()
    assert pulse(queue, "demand") == 0
    queue.complete(taken[:1])
    assert pulse(queue, "demand") == 1


def test_the_lag_is_how_long_the_first_channel_has_been_due(queue: Session) -> None:
    now = queue.epoch_ms()
    queue.create("new", dequeue_at=now - 1)
    queue.run("update message set created_at = created_at - 90000, dequeue_at = dequeue_at - 90000")
    queue.run("update wake set at = at - 90000")
    # No dequeue has seen the channel; then it has a turn.
    assert 90 <= pulse(queue, "turn_lag_s") < 600
    queue.fill("other", 2)
    assert overdue(queue) == ["new", "other"]
    assert [one.channel for one in queue.take(2)] == ["new", "other"]
    assert overdue(queue, 1) == ["other"]
    queue.run("update turn set next_at = next_at - 60000000, last_at = last_at - 60000000")
    assert 60 <= pulse(queue, "turn_lag_s") < 600


def test_a_message_with_a_priority_is_due_since_it_was_created(queue: Session) -> None:
    queue.create("a", dequeue_at=-5)
    assert 0 <= pulse(queue, "turn_lag_s") < 60
    (ready,) = queue.rows("select extract(epoch from clock_timestamp() - ready_at) from channel_overdue()")
    assert 0 <= ready[0] < 60


def test_overdue_channels_say_since_when_they_are_ready(queue: Session) -> None:
    queue.set("paused", is_paused=True)
    for channel in ("a", "paused", "b"):
        queue.fill(channel, 3)
    found = queue.rows("select channel, reason, ready_at is not null, waiting from channel_overdue()")
    assert sorted(found) == [("a", "ready", True, 3), ("b", "ready", True, 3)]
    assert queue.ask("select ready_at from channel_status where channel = 'paused'") is None


def test_more_due_channels_than_were_looked_at_are_reported(queue: Session) -> None:
    queue.create_many([f"c{n}" for n in range(150)])
    assert queue.rows("select due_channels, is_due_complete from queue_pulse(100)") == [(100, False)]
    assert queue.rows("select due_channels, is_due_complete from queue_pulse(150)") == [(150, True)]


def test_the_busiest_channels_of_a_large_queue_are_found_in_a_sample(queue: Session) -> None:
    queue.fill("heavy", 30_000)
    queue.create_many([f"light {n}" for n in range(10_000)])
    queue.fill("second", 10_000)
    found = queue.rows("select channel, waiting from channel_busiest(2)")
    assert found == [("heavy", 30_000), ("second", 10_000)]
    assert not pulse(queue, "is_exact")


def test_channels_are_paged_by_prefix_whether_a_dequeue_has_seen_them_or_not(queue: Session) -> None:
    def page(*arguments: object) -> list[str]:
        places = ", ".join(["%s"] * len(arguments))
        return [row[0] for row in queue.rows(f"select channel from channel_page({places})", *arguments)]

    for channel in ("a/1", "a/2", "a_3", "b"):
        queue.fill(channel, 1)
    queue.take(4)
    for channel in ("a/1", "a/%", "é"):
        queue.fill(channel, 2)
    assert page() == ["a/%", "a/1", "a/2", "a_3", "b", "é"]
    assert page("a/") == ["a/%", "a/1", "a/2"]
    assert page("a/", "a/%", 1) == ["a/1"]
    assert page("a_") == ["a_3"]
    assert page("", "b") == ["é"]
    assert page("é", "é") == []
    assert page("a/1x") == []
    # More wakes than are looked at: the full name is found all the same.
    for channel in ("many", "last"):
        queue.create_many([channel] * 1)
        queue.run("select message_create('many', 'x') from generate_series(1, 1100)")
    assert page("last") == ["last"]
    assert page("las") == []


def waits(queue: Session, channel: str) -> tuple[int, int]:
    found: tuple[int, int] = queue.rows(
        "select released, waited_ms from channel_status where channel = %s", channel
    )[0]
    return found


def expected_waits(taken: list[Reply]) -> tuple[int, int]:
    return len(taken), sum(one.leased_at // 1000 - max(one.dequeue_at, one.created_at) for one in taken)


@pytest.mark.parametrize("policy", [{}, {"max_concurrency": 500}, {"weight": 3}])
@pytest.mark.parametrize("limit", [1, 7, 100])
def test_a_channel_counts_its_releases_and_how_long_they_waited(
    queue: Session, policy: dict[str, int], limit: int
) -> None:
    taken: dict[str, list[Reply]] = {"a": [], "b": []}
    for channel in taken:
        queue.set(channel, **policy)
    for at in (-3, -2, None, queue.epoch_ms() - 50_000):
        for channel in taken:
            queue.fill(channel, 20, **({} if at is None else {"dequeue_ats": [at] * 20}))
    queue.run("update message set created_at = created_at - id * 1000 where dequeue_at < 0")
    while sum(map(len, taken.values())) < 160:
        for one in queue.take(limit):
            taken[one.channel].append(one)
    for channel, replies in taken.items():
        assert waits(queue, channel) == expected_waits(replies)
    # A message that returns counts again, and has waited only since it was due again.
    first = taken["a"][0]
    queue.defer([first], 0)
    again = queue.lease()
    released, waited_ms = expected_waits([*taken["a"], again])
    assert waits(queue, "a") == (released, waited_ms)


def pages(queue: Session, function: str, **arguments: Any) -> list[list[int]]:
    """Return the ids of all pages."""
    found: list[list[int]] = []
    cursor: dict[str, Any] = {}
    while True:
        given = {**arguments, **cursor}
        names = ", ".join(f"p_{name} => %s" for name in given)
        ids, next_id, next_at = queue.rows(
            f"select ids, next_id, next_at from {function}({names})", *given.values()
        )[0]
        found.append(ids)
        if next_id is None:
            return found
        cursor = {"before_id": next_id, "before_at": next_at}


def test_messages_are_paged_newest_first(queue: Session) -> None:
    made = queue.fill("a", 25) + queue.fill("b", 5)
    assert pages(queue, "message_page", limit=12) == [made[:17:-1], made[17:5:-1], made[5::-1]]
    assert pages(queue, "message_page", channel="a", limit=20) == [made[24:4:-1], made[4::-1]]
    assert pages(queue, "message_page", channel="c") == [[]]


def test_a_page_of_messages_has_only_those_with_a_status(queue: Session) -> None:
    waiting, scheduled = queue.fill("a", 6), queue.fill("a", 3, delays_ms=[3_600_000] * 3)
    leased = {one.message_id for one in queue.take(2)}
    for channel in (None, "a"):
        for status, expected in {
            "leased": leased,
            "scheduled": set(scheduled),
            "waiting": set(waiting) - leased,
        }.items():
            found = pages(queue, "message_page", channel=channel, status=status, limit=2)
            assert {id_ for page in found for id_ in page} == expected
            assert all(len(page) <= 2 for page in found)


def test_a_search_for_rare_messages_pauses_after_a_thousand(queue: Session) -> None:
    first = queue.lease() if queue.create("a") else None
    assert first is not None
    queue.fill("b", 2_500)
    found = pages(queue, "message_page", status="leased")
    assert found == [[], [], [first.message_id]]


def bury(queue: Session, channel: str, *errors: str | None) -> list[int]:
    queue.fill(channel, len(errors))
    taken = queue.take(len(errors))
    for one, error in zip(taken, errors, strict=True):
        queue.bury([one], error)
    queue.run("update dead set buried_at = message_id * 1000")
    return [one.message_id for one in taken]


def test_dead_letters_are_paged_last_buried_first(queue: Session) -> None:
    a = bury(queue, "a", *["no disk"] * 7)
    b = bury(queue, "b", "no disk", None, "Traceback\n  ...\nValueError: 1\n\n")
    assert pages(queue, "dead_page", limit=6) == [[*b[::-1], *a[:3:-1]], a[3::-1]]
    assert pages(queue, "dead_page", channel="a", limit=6) == [a[:0:-1], a[:1]]
    assert pages(queue, "dead_page", error="no disk", limit=5) == [[b[0], *a[:2:-1]], a[2::-1]]
    assert pages(queue, "dead_page", channel="b", error="") == [[b[1]]]
    assert pages(queue, "dead_page", error="ValueError: 1") == [[b[2]]]
    # Those buried at the same time are not lost between pages.
    queue.run("update dead set buried_at = 7")
    assert pages(queue, "dead_page", limit=4) == [[*b[::-1], a[6]], a[5:1:-1], a[1::-1]]


def test_dead_letters_are_grouped_by_the_line_that_names_the_error(queue: Session) -> None:
    bury(queue, "a", *["no disk"] * 3, "Traceback\n  File x\nKeyError: 'k'\r\n", None)
    last = bury(queue, "b", "no disk", "Traceback\n  File y\nKeyError: 'k'")
    found = queue.rows("select error, letters, channels, last_id, is_complete from dead_groups()")
    assert found[:2] == [("no disk", 4, 2, last[0], True), ("KeyError: 'k'", 2, 2, last[1], True)]
    assert found[2][:3] == ("", 1, 1)
    assert queue.rows("select error, letters, is_complete from dead_groups('b', 1)") == [
        ("KeyError: 'k'", 1, True)
    ]
    newest = queue.rows("select error, letters, is_complete from dead_groups(p_letters => 2)")
    assert sorted(newest) == [("KeyError: 'k'", 1, False), ("no disk", 1, False)]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (None, ""),
        ("", ""),
        ("\n \n", ""),
        ("one", "one"),
        ("a\n\nb: c  \n", "b: c"),
        ("x" * 300, "x" * 200),
        ("y\n" + "x" * 20_000, "x" * 200),
        ("weird \u2028 separators\x0b stay", "weird \u2028 separators\x0b stay"),
    ],
)
def test_an_error_is_named_by_its_last_line(queue: Session, error: str | None, line: str) -> None:
    queue.create("a")
    queue.bury(queue.take(1), error)
    assert queue.ask("select error from dead_groups()") == line


def test_estimates_survive_lost_statistics(queue: Session) -> None:
    """A crash of the server loses its counts, but not what vacuum found."""
    queue.fill("a", 20_000)
    queue.run("vacuum message")
    queue.run("select pg_stat_reset()")
    assert 19_000 <= pulse(queue, "waiting") <= 21_000


def test_pages_of_messages_by_the_beginning_of_their_channels_names(queue: Session) -> None:
    ids: dict[str, list[int]] = {name: [] for name in ("eu-1", "eu-2", "us-1", "EU-1")}
    for n in range(40):
        name = list(ids)[n % 4]
        ids[name].append(queue.create(name))
    # Known by its messages, or by the table of channels.
    for is_served in (False, True):
        if is_served:
            assert len(queue.take(4)) == 4
        found: list[int] = []
        cursor: tuple[int | None, int | None] = (None, None)
        while True:
            page, *next_ = queue.rows(
                "select ids, next_id, next_at from message_page(null, null, %s, %s, 7, 'eu-')", *cursor
            )[0]
            found += page
            if next_[0] is None:
                break
            cursor = (next_[0], next_[1])
        assert found == sorted(ids["eu-1"] + ids["eu-2"], reverse=True)
    leased = queue.ask("select ids from message_page(p_status => 'leased', p_prefix => 'us-')")
    assert leased == ids["us-1"][:1]
    assert queue.ask("select ids from message_page(p_prefix => '%')") == []
