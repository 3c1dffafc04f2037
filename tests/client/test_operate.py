"""Inspecting and operating: channels, dead letters, settings, roles."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from lonnymq import (
    Busy,
    ChannelPolicy,
    ClientSettings,
    HistoryMode,
    NewMessage,
    NotPermitted,
    QueueSettings,
    RoleKind,
    SchemaUnsafe,
)
from tests.client.conftest import OpenQueue
from tests.conftest import Connect


def test_setting_some_policy_fields_keeps_the_others(queue: Any) -> None:
    channel = queue.channel("acme")
    channel.set(max_concurrency=3, weight=2, max_size=10)
    channel.set(release_interval_ms=100, weight=None)
    assert channel.status().policy == ChannelPolicy(max_concurrency=3, release_interval_ms=100, max_size=10)
    channel.set(max_concurrency=None, max_size=None, release_interval_ms=None)
    assert channel.status().policy == ChannelPolicy()


def test_a_whole_policy_can_be_set(queue: Any) -> None:
    policy = ChannelPolicy(max_concurrency=1, release_burst=5, max_attempts=7, is_paused=True)
    queue.channel("acme").set_policy(policy)
    assert queue.channel("acme").status().policy == policy


def test_an_unknown_channel_has_no_status(queue: Any) -> None:
    assert queue.channel("never").status() is None
    assert queue.channel("never").explain().reason == "unknown"
    assert queue.channel("never").delete() == "unknown"


def test_a_paused_channel_releases_nothing_until_it_is_resumed(queue: Any) -> None:
    channel = queue.channel("a")
    channel.enqueue(1)
    channel.pause()
    assert len(queue.dequeue()) == 0
    assert channel.explain().reason == "paused"
    channel.resume()
    assert len(queue.dequeue()) == 1


def test_a_channel_at_its_cap_is_explained_as_capped(queue: Any) -> None:
    queue.channel("a").set(max_concurrency=1)
    queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(3)])
    assert len(queue.dequeue(10)) == 1
    explanation = queue.channel("a").explain()
    assert (explanation.reason, explanation.waiting, explanation.leased) == ("capped", 2, 1)
    status = queue.channel("a").status()
    assert (status.reason, status.waiting, status.leased) == ("capped", 2, 1)


def test_a_channel_is_deleted_only_when_it_is_empty(queue: Any) -> None:
    queue.enqueue("a", 1)
    message = queue.dequeue()[0]
    assert queue.channel("a").delete() == "not_empty"
    message.complete()
    assert queue.channel("a").delete() == "deleted"


def test_a_channel_that_another_transaction_changes_is_busy(open_queue: OpenQueue, connect: Connect) -> None:
    queue = open_queue(settings=ClientSettings(busy_for_s=0.05))
    queue.channel("a").set(weight=2)
    holder = connect()
    holder.execute("begin")
    holder.execute("select channel_set('a', '{\"weight\": 3}')")
    with pytest.raises(Busy, match="'a'"):
        queue.channel("a").set(weight=4)
    holder.execute("rollback")


def test_channels_are_listed_by_name(queue: Any) -> None:
    for name in "cab":
        queue.channel(name).set()
    assert [status.channel for status in queue.channels()] == ["a", "b", "c"]
    assert [status.channel for status in queue.channels(after="a", limit=1)] == ["b"]


def test_dead_letters_are_listed_page_by_page(queue: Any) -> None:
    ids = sorted(one.id for one in queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(5)]))
    queue.bury(queue.dequeue(5))
    assert [dead.id for dead in queue.dead("a").list(limit=2)] == ids[:2]
    assert [dead.id for dead in queue.dead("a").list(after=ids[1])] == ids[2:]
    assert queue.dead("b").list() == []


def test_dead_letters_are_redriven_and_purged_by_id(queue: Any) -> None:
    queue.enqueue_many([NewMessage(channel="a", payload=n, key=f"k{n}") for n in range(3)])
    queue.bury(queue.dequeue(3))
    one, two, three = [dead.id for dead in queue.dead().list()]
    queue.enqueue("a", "new", key="k1")
    assert queue.dead().redrive([one, two, 999]) == ["redriven", "duplicate", "unknown"]
    assert queue.dead().purge([three, 999]) == ["purged", "unknown"]
    assert [dead.id for dead in queue.dead().list()] == [two]


def test_a_whole_channel_is_redriven_or_purged(queue: Any) -> None:
    queue.enqueue_many([NewMessage(channel=name, payload=n) for n in range(5) for name in "ab"])
    queue.bury(queue.dequeue(10))
    assert queue.dead("a").redrive_all() == 5
    assert len(queue.dequeue(10)) == 5
    assert queue.dead("b").purge_all(before=datetime.now(UTC) - timedelta(days=1)) == 0
    assert queue.dead("b").purge_all() == 5
    assert queue.dead().list() == []


def test_settings_are_changed_and_returned(queue: Any) -> None:
    assert queue.set() == QueueSettings(HistoryMode.OFF, 67_108_864, 4)
    assert queue.set(history="full") == QueueSettings(HistoryMode.FULL, 67_108_864, 4)
    assert queue.set(max_content_bytes=1000) == QueueSettings(HistoryMode.FULL, 1000, 4)
    assert queue.set(quantum=1) == QueueSettings(HistoryMode.FULL, 1000, 1)
    assert queue.status().history is HistoryMode.FULL


def test_the_status_counts_channels_and_messages(queue: Any) -> None:
    queue.enqueue_many([NewMessage(channel=name, payload=1) for name in "aab"])
    queue.dequeue(1)
    queue.dequeue(1)[0].bury()
    status = queue.status()
    assert (status.channels, status.waiting, status.leased, status.dead, status.version) == (2, 1, 1, 1, 1)


@pytest.mark.broken_on_purpose
def test_broken_invariants_are_found_and_repaired(queue: Any, connect: Connect) -> None:
    queue.enqueue("a", 1)
    queue.dequeue()
    connect().execute("insert into turn (channel_id, version) select channel_id, version + 1 from turn")
    problems = queue.check()
    assert problems
    assert problems[0].channel == "a"
    queue.check(repair=True)
    assert queue.check() == []


@pytest.fixture
def role(connect: Connect) -> Any:
    """A role for this test only, because roles belong to the whole server."""
    name = f'role "{time.time_ns()}"'
    connection = connect()
    connection.execute(
        psycopg.sql.SQL("create role {} login password 'secret'").format(psycopg.sql.Identifier(name))
    )
    yield name
    connection.execute(
        psycopg.sql.SQL("drop owned by {0}; drop role {0}").format(psycopg.sql.Identifier(name))
    )


def test_a_role_may_do_what_it_was_granted_and_nothing_else(
    queue: Any, open_queue: OpenQueue, role: str, dsn: str
) -> None:
    theirs = open_queue(psycopg.conninfo.make_conninfo(dsn, user=role, password="secret"))
    one = NewMessage(channel="a", payload=1)
    with pytest.raises(NotPermitted, match="permission denied for schema"):
        theirs.enqueue("a", 1)
    with pytest.raises(NotPermitted, match="permission denied for schema"):
        theirs.copy_in([one])
    with pytest.raises(SchemaUnsafe, match="only the owner may install or migrate"):
        theirs.migrate()
    queue.grant(role, RoleKind.PRODUCER)
    theirs.enqueue("a", 1)
    assert theirs.copy_in([one]).created == 1
    with pytest.raises(NotPermitted):
        theirs.dequeue()
    queue.grant(role, "worker")
    queue.revoke(role)
    with pytest.raises(NotPermitted):
        theirs.enqueue("a", 1)


def test_a_worker_role_can_wait(queue: Any, open_queue: OpenQueue, role: str, dsn: str) -> None:
    queue.grant(role, "worker")
    theirs = open_queue(psycopg.conninfo.make_conninfo(dsn, user=role, password="secret"))
    assert len(theirs.dequeue(wait=0.1)) == 0
    queue.enqueue("a", 1)
    message = theirs.dequeue(wait=10)[0]
    assert message.heartbeat() == "extended"
    assert message.complete() == "completed"


def test_a_reader_role_sees_channels_but_no_content(
    queue: Any, open_queue: OpenQueue, role: str, dsn: str
) -> None:
    queue.grant(role, "reader")
    queue.channel("a").set(weight=2)
    queue.enqueue("a", 1)
    theirs = open_queue(psycopg.conninfo.make_conninfo(dsn, user=role, password="secret"))
    assert theirs.channel("a").explain().reason == "ready"
    assert theirs.channel("a").status().policy.weight == 2
    assert theirs.status().waiting == 1
    assert theirs.schema_status().state == "current"
    with pytest.raises(NotPermitted):
        theirs.dead().list()
