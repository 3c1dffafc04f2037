"""A1: the messages of a channel are released in the order of (dequeue_at, id)."""

from tests.sql.conftest import Open
from tests.sql.session import Session, ids_of


def test_messages_come_out_in_the_order_they_were_created(queue: Session) -> None:
    created = [queue.create("a", b"%d" % n) for n in range(25)]
    drained = queue.drain(limit=4)
    assert ids_of(drained) == created
    assert [one.content for one in drained] == [b"%d" % n for n in range(25)]


def test_messages_of_one_transaction_keep_their_order(queue: Session) -> None:
    with queue.connection.transaction():
        created = [queue.create("a") for _ in range(10)] + queue.fill("a", 10) + [queue.create("a")]
    assert len(set(queue.rows("select dequeue_at from message"))) == 1
    assert ids_of(queue.drain(limit=3)) == created


def test_equal_times_are_ordered_by_id(queue: Session) -> None:
    created = queue.fill("a", 10, dequeue_ats=[7] * 10)
    assert ids_of(queue.drain(limit=3)) == created


def test_a_batch_is_returned_in_order(queue: Session) -> None:
    ats = [5, 3, 9, 1, 7, 2, 8, 6, 4, 0]
    created = queue.fill("a", 10, dequeue_ats=ats)
    expected = [message for _, message in sorted(zip(ats, created, strict=True))]
    assert ids_of(queue.dequeue(10)) == expected


def test_messages_that_arrive_below_the_mark_are_released_first(queue: Session) -> None:
    later = queue.fill("a", 6, dequeue_ats=[100] * 6)
    first = ids_of(queue.dequeue(2))
    late = queue.fill("a", 3, dequeue_ats=[50, 40, 60])
    assert first == later[:2]
    assert ids_of(queue.dequeue(2)) == [late[1], late[0]]
    assert ids_of(queue.dequeue(10)) == [late[2], *later[2:]]


def test_a_message_committed_late_is_released_before_newer_ones(session: Open) -> None:
    slow, fast = session(autocommit=False), session()
    early = slow.create("a")
    rest = fast.fill("a", 4)
    assert ids_of(fast.dequeue(2)) == rest[:2]
    slow.connection.commit()
    assert ids_of(fast.dequeue(3)) == [early, *rest[2:]]


def test_late_messages_are_released_over_several_turns_in_order(queue: Session) -> None:
    rest = queue.fill("a", 5, dequeue_ats=[1_000] * 5)
    assert ids_of(queue.dequeue(3)) == rest[:3]
    late = queue.fill("a", 4, dequeue_ats=[10] * 4)
    later = queue.fill("a", 2, dequeue_ats=[20, 5])
    assert [ids_of(queue.dequeue(1))[0] for _ in range(8)] == [later[1], *late, later[0], *rest[3:]]


def test_a_late_message_is_released_after_all_others_were_leased(queue: Session) -> None:
    queue.fill("a", 3, dequeue_ats=[1_000] * 3)
    taken = queue.dequeue(3)
    late = queue.create("a", dequeue_at=1)
    assert ids_of(queue.dequeue(5)) == [late]
    assert queue.complete(taken) == ["completed"] * 3


def test_other_channels_do_not_change_the_order_within_a_channel(queue: Session) -> None:
    with queue.connection.transaction():
        for n in range(30):
            queue.create(f"c{n % 3}")
    drained = queue.drain(limit=7)
    for channel in ("c0", "c1", "c2"):
        mine = [one.message_id for one in drained if one.channel == channel]
        assert mine == sorted(mine)
        assert len(mine) == 10
