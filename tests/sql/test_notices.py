"""A message can name a channel in which a notice is created when it is buried, in the same transaction."""

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.conftest import Open
from tests.sql.session import Session

ON_BURIED = {"lonnymq-on-buried": "failures", "region": "eu"}


def create(queue: Session, **options: Any) -> int:
    return queue.create("a", b"work", headers=Jsonb(ON_BURIED), **options)


def bury(queue: Session, created: int) -> str:
    queue.bury([queue.lease()], "no disk")
    return "no disk"


def defer(queue: Session, created: int) -> str:
    queue.defer([queue.lease()], error="no network")
    return "no network"


def lose(queue: Session, created: int) -> str:
    queue.lease()
    queue.run("update lease set unlock_at = 0 where message_id = %s", created)
    return "the lease of attempt 1 expired: an attempt was spent"


@pytest.mark.parametrize("end", [bury, defer, lose])
def test_every_way_to_be_buried_creates_one_notice(queue: Session, end: Any) -> None:
    created = create(queue, max_attempts=1, key="k")
    error = end(queue, created)
    (notice,) = queue.take(10)
    assert (notice.channel, notice.content, notice.key, notice.max_attempts) == (
        "failures",
        b"work",
        None,
        None,
    )
    assert notice.headers == {
        "region": "eu",
        "lonnymq-buried-id": str(created),
        "lonnymq-buried-channel": "a",
        "lonnymq-buried-error": error,
        **({"lonnymq-buried-expired": "true"} if end is lose else {}),
    }
    assert queue.ask("select headers from dead_list()") == ON_BURIED
    # A notice that is buried creates no other one.
    queue.bury([notice])
    assert queue.take(10) == []
    assert queue.ask("select count(*) from dead") == 2


def test_other_messages_create_no_notice(queue: Session) -> None:
    queue.create("a")
    queue.create("a", headers=Jsonb({"region": "eu"}))
    queue.bury(queue.take(2))
    assert queue.ask("select count(*) from message") == 0


def test_many_notices_of_one_call_keep_the_order(queue: Session) -> None:
    ids = [create(queue) for _ in range(20)]
    queue.bury(queue.take(20))
    assert [one.headers["lonnymq-buried-id"] for one in queue.take(99) if one.headers] == list(map(str, ids))


def test_a_redriven_message_is_noticed_again(queue: Session) -> None:
    created = create(queue)
    for _ in range(2):
        queue.bury([one for one in queue.take(9) if one.message_id == created])
        queue.run("select dead_redrive(array[%s]::bigint[])", created)
    assert sorted(one.channel for one in queue.take(9)) == ["a", "failures"]


def test_a_notice_exists_if_and_only_if_the_burial_is_committed(session: Open) -> None:
    queue, other = session(), session(autocommit=False)
    create(queue)
    leased = queue.lease()
    other.bury([leased])
    other.connection.rollback()
    assert queue.take(9) == []
    queue.bury([leased])
    assert [one.channel for one in queue.take(9)] == ["failures"]


@pytest.mark.parametrize("channel", ["", "x" * 256, "a\nb"])
def test_a_notice_needs_a_valid_channel(queue: Session, channel: str) -> None:
    with pytest.raises(psycopg.Error, match="header lonnymq-on-buried must be a channel") as raised:
        queue.create("a", headers=Jsonb({"lonnymq-on-buried": channel}))
    assert raised.value.sqlstate == "LQ001"
