"""Looking without contents, the attempts of a message, exact counts, and making scheduled messages due."""

import uuid
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from lonnymq import NotPermitted, RunNowOutcome
from tests.client.conftest import OpenQueue
from tests.conftest import Connect

HEADERS = {"trace": "the secret"}


def test_without_a_preview_nothing_of_the_contents_is_read(queue: Any) -> None:
    queue.enqueue("a", "the secret", headers=HEADERS)
    message = queue.enqueue("a", "the secret", headers=HEADERS)
    queue.dequeue(1)[0].bury(error="no disk")
    dead = queue.dead("a")
    for found in (
        *queue.messages("a", preview_bytes=0).items,
        queue.show(message.id, preview_bytes=0),
        *dead.page(preview_bytes=0).items,
        dead.show(dead.ids().items[0], preview_bytes=0),
    ):
        assert "secret" not in repr(found)
        assert found.content_bytes == len('"the secret"')
        assert (found.content, found.state_content, found.headers) == (b"", None, {})
    assert queue.show(message.id).headers == HEADERS
    assert dead.show(dead.ids().items[0]).headers == HEADERS
    assert queue.dead("b").show(dead.ids().items[0]) is None
    assert queue.show(10**15, preview_bytes=0) is None


def test_a_reader_may_look_only_without_contents(
    open_queue: OpenQueue, connect: Connect, queue: Any, dsn: str
) -> None:
    message = queue.enqueue("a", "the secret", keep_result=60)
    queue.dequeue(1)[0].complete(result="the secret")
    waiting = queue.enqueue("a", "the secret")
    owner = connect()
    role = f"lonnymq_reader_{uuid.uuid4().hex[:8]}"
    owner.execute(f"create role {role}".encode())
    try:
        owner.execute("select queue_grant(%s, 'reader')", (role,))
        reader = open_queue(make_conninfo(dsn, options=f"-c role={role}"))
        assert reader.show(waiting.id, preview_bytes=0).id == waiting.id
        assert len(reader.messages(preview_bytes=0).items) == 1
        assert reader.dead().page(preview_bytes=0).items == []
        assert reader.status_of(message.id, has_result=False).result_content is None
        assert reader.attempts(message.id).attempts == []
        looks: Any = [
            lambda: reader.show(waiting.id),
            lambda: reader.messages(),
            lambda: reader.dead().page(),
            lambda: reader.status_of(message.id),
            lambda: reader.run_now([waiting.id]),
        ]
        for look in looks:
            with pytest.raises(NotPermitted):
                look()
        reader.close()
    finally:
        owner.execute(f"drop owned by {role}".encode())
        owner.execute(f"drop role {role}".encode())
    assert queue.status_of(message.id).result_content == b'"the secret"'


def test_scheduled_messages_are_made_due(queue: Any) -> None:
    scheduled = queue.enqueue("a", 1, delay=3600)
    assert len(queue.dequeue()) == 0
    assert queue.run_now([scheduled.id, 10**15]) == [RunNowOutcome.DUE, RunNowOutcome.UNKNOWN]
    assert [message.id for message in queue.dequeue()] == [scheduled.id]
    assert queue.run_now([scheduled.id]) == [RunNowOutcome.LEASED]


def test_the_attempts_of_a_message_are_read_from_history(queue: Any) -> None:
    queue.set(history="metadata")
    queue.history.prepare(days=1)
    message = queue.enqueue("a", 1)
    assert queue.attempts(message.id).attempts == []
    for error in ("first", "second"):
        queue.dequeue(worker="w")[0].defer(error=error)
    found = queue.attempts(message.id)
    assert [(one.outcome, one.attempt, one.error, one.worker) for one in found.attempts] == [
        ("deferred", 2, "second", "w"),
        ("deferred", 1, "first", "w"),
    ]
    assert found.is_complete
    assert found.searched_from is not None
    assert found.searched_from <= found.attempts[-1].ended_at
    assert not queue.attempts(message.id, rows=1).is_complete


def test_exact_counts_have_an_age(queue: Any) -> None:
    assert queue.count(may_count=False) is None
    queue.enqueue("a", 1)
    counts = queue.count()
    assert (counts.channels, counts.waiting, counts.leased, counts.dead) == (1, 1, 0, 0)
    assert 0 <= counts.age_s < 60
    queue.enqueue("a", 2)
    assert queue.count().waiting == 1
