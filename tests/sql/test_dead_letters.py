"""A15: bury, list, redrive and purge."""

import pytest

from tests.sql.conftest import Open
from tests.sql.session import Session, ids_of


def bury_new(queue: Session, channel: str, count: int, **options: object) -> list[int]:
    created = queue.fill(channel, count, **options)
    taken = [one for one in queue.take(count) if one.message_id in created]
    assert queue.bury(taken, "broken") == ["buried"] * count
    return created


def redrive(queue: Session, *ids: int) -> list[str]:
    return [row[0] for row in queue.rows("select outcome from dead_redrive(%s::bigint[])", list(ids))]


def purge(queue: Session, *ids: int) -> list[str]:
    return [row[0] for row in queue.rows("select outcome from dead_purge(%s::bigint[])", list(ids))]


def dead_ids(queue: Session, *arguments: object) -> list[int]:
    places = ", ".join(["%s"] * len(arguments))
    return [row[0] for row in queue.rows(f"select message_id from dead_list({places})", *arguments)]


def test_a_buried_message_leaves_the_queue_with_its_error(queue: Session) -> None:
    created = queue.create("a", b"bad", key="k", max_attempts=9)
    leased = queue.lease()
    assert queue.bury([leased], "cannot be read") == ["buried"]
    assert queue.dequeue() == []
    (dead,) = queue.rows(
        "select message_id, channel, key, attempts, error, content, state, created_at,"
        " buried_at >= created_at from dead_list()"
    )
    assert dead == (created, "a", "k", 1, "cannot be read", b"bad", None, leased.created_at, True)


def test_each_message_of_a_batch_has_its_own_error(queue: Session) -> None:
    created = queue.fill("a", 3)
    taken = queue.take(3)
    queue.rows(
        "select * from message_bury(%s, %s, %s)",
        ids_of(taken),
        [one.token for one in taken],
        ["e1", None, "e3"],
    )
    assert queue.rows("select message_id, error from dead_list()") == [
        (created[0], "e1"),
        (created[1], None),
        (created[2], "e3"),
    ]


def test_dead_letters_are_listed_by_page_and_by_channel(queue: Session) -> None:
    a, b = bury_new(queue, "a", 5), bury_new(queue, "b", 3)
    assert dead_ids(queue) == sorted(a + b)
    assert dead_ids(queue, "b") == b
    assert dead_ids(queue, "a", 2) == a[:2]
    assert dead_ids(queue, "a", 2, a[1]) == a[2:4]
    assert dead_ids(queue, None, 3, a[-1]) == b
    assert dead_ids(queue, "nobody") == []


def test_a_redriven_message_is_processed_again_from_its_first_attempt(queue: Session) -> None:
    created = queue.create("a", b"x", key="k", max_attempts=1)
    queue.bury([queue.lease()], "broken")
    assert redrive(queue, created) == ["redriven"]
    assert dead_ids(queue) == []
    leased = queue.lease()
    assert (leased.message_id, leased.attempt, leased.key, leased.content, leased.max_attempts) == (
        created,
        1,
        "k",
        b"x",
        1,
    )


def test_redriving_keeps_the_state(queue: Session) -> None:
    created = queue.create("a")
    queue.defer([queue.lease()], state=b"page 2")
    queue.bury([queue.lease()], "broken")
    redrive(queue, created)
    assert queue.lease().state == b"page 2"


def test_outcomes_come_in_the_order_given(queue: Session) -> None:
    created = bury_new(queue, "a", 3)
    assert redrive(queue, created[2], 999_999, created[0]) == ["redriven", "unknown", "redriven"]
    assert purge(queue, 999_999, created[1], created[0]) == ["unknown", "purged", "unknown"]
    assert sorted(ids_of(queue.drain())) == [created[0], created[2]]


def test_a_dead_letter_whose_key_is_live_is_not_redriven(queue: Session) -> None:
    created = queue.create("a", key="k")
    queue.bury([queue.lease()])
    live = queue.create("a", key="k")
    assert redrive(queue, created) == ["duplicate"]
    assert dead_ids(queue) == [created]
    assert ids_of(queue.drain()) == [live]
    assert redrive(queue, created) == ["redriven"]


def test_of_two_dead_letters_with_one_key_the_first_is_redriven(queue: Session) -> None:
    first = queue.create("a", key="k")
    queue.bury([queue.lease()])
    second = queue.create("a", key="k")
    queue.bury([queue.lease()])
    assert redrive(queue, second, first) == ["duplicate", "redriven"]
    assert queue.ask("select dead_redrive_channel('a')") == 0
    assert dead_ids(queue) == [second]


def test_a_live_key_in_another_channel_does_not_prevent_redriving(queue: Session) -> None:
    created = queue.create("a", key="k")
    queue.bury([queue.lease()])
    queue.create("b", key="k")
    assert redrive(queue, created) == ["redriven"]


def test_a_whole_channel_is_redriven_in_steps(queue: Session) -> None:
    created, other = bury_new(queue, "a", 5), bury_new(queue, "b", 2)
    redriven = "select dead_redrive_channel('a', 2)"
    assert [queue.ask(redriven) for _ in range(4)] == [2, 2, 1, 0]
    assert ids_of(queue.drain(limit=2)) == created
    assert dead_ids(queue) == other


def test_redriving_a_channel_skips_keys_that_are_live(queue: Session) -> None:
    created = queue.create("a", key="k")
    queue.bury([queue.lease()])
    others = bury_new(queue, "a", 3)
    queue.create("a", key="k")
    assert [queue.ask("select dead_redrive_channel('a', 1)") for _ in range(4)] == [1, 1, 1, 0]
    assert dead_ids(queue) == [created]
    assert len(others) == 3


def test_a_channel_is_purged_in_steps_and_by_age(queue: Session) -> None:
    created = bury_new(queue, "a", 5)
    other = bury_new(queue, "b", 1)
    queue.run("update dead set buried_at = 0 where message_id = any(%s)", created[:3])
    assert queue.ask("select dead_purge_channel('a', 2, now() - interval '1 day')") == 2
    assert queue.ask("select dead_purge_channel('a', 100, now() - interval '1 day')") == 1
    assert dead_ids(queue) == [*created[3:], *other]
    assert queue.ask("select dead_purge_channel('a')") == 2
    assert dead_ids(queue) == other


@pytest.mark.parametrize("name", ["dead_redrive", "dead_purge"])
def test_a_dead_letter_that_another_transaction_has_locked_is_busy(session: Open, name: str) -> None:
    queue, other = session(), session(autocommit=False)
    queue.run("set lock_timeout = '50ms'")
    created = bury_new(queue, "a", 2)
    other.run(f"select {name}(%s)", created[:1])
    expected = "redriven" if name == "dead_redrive" else "purged"
    assert [row[0] for row in queue.rows(f"select outcome from {name}(%s)", created)] == ["busy", expected]
    other.connection.rollback()
    assert [row[0] for row in queue.rows(f"select outcome from {name}(%s)", created)] == [expected, "unknown"]


def test_redriving_recreates_a_channel_that_was_deleted(queue: Session) -> None:
    created = bury_new(queue, "a", 2)
    assert queue.ask("select channel_delete('a')") == "deleted"
    assert redrive(queue, *created) == ["redriven"] * 2
    assert [(one.channel, one.message_id) for one in queue.drain()] == [("a", one) for one in created]


def test_redriven_messages_take_turns_with_other_channels(queue: Session) -> None:
    created = bury_new(queue, "a", 50)
    queue.fill("b", 50)
    redrive(queue, *created)
    channels = [one.channel for one in queue.take(20)]
    assert channels.count("a") == channels.count("b") == 10


def test_what_was_redriven_and_failed_again_is_not_what_was_seen(queue: Session) -> None:
    first, second = queue.create(), queue.create()
    queue.bury(queue.take(2), "no disk")
    queue.wait_until_us((queue.epoch_ms() + 1) * 1000)
    read_at = queue.ask("select read_at from dead_page()")
    assert redrive(queue, first) == ["redriven"]
    queue.bury(queue.take(1), "cannot parse it")
    seen = ([first, second], read_at)
    assert queue.rows("select outcome from dead_purge(%s::bigint[], %s)", *seen) == [
        ("unknown",),
        ("purged",),
    ]
    assert queue.rows("select outcome from dead_redrive(%s::bigint[], %s)", *seen) == [("unknown",)] * 2
    assert queue.ask("select dead_purge_channel('a', p_before => %s)", read_at) == 0
    assert redrive(queue, first) == ["redriven"]
