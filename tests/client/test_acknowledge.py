"""Ending attempts: complete, defer, bury, give back, cancel; and heartbeats."""

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from lonnymq import ClientSettings, NewMessage, WrongIsolationLevel
from lonnymq.model.acknowledge import ACTIONS
from tests.client.conftest import OpenConnection, OpenQueue
from tests.conftest import Connect


def test_a_completed_message_is_gone(queue: Any) -> None:
    queue.enqueue("a", 1)
    message = queue.dequeue()[0]
    assert message.complete() == "completed"
    assert message.complete() == "lease_lost"
    assert queue.status().waiting == queue.status().leased == 0


def test_a_deferred_message_is_retried_with_its_state(queue: Any) -> None:
    queue.enqueue("a", 1)
    assert queue.dequeue()[0].defer(state={"page": 3}, error="first try") == "deferred"
    message = queue.dequeue()[0]
    assert (message.attempt, message.state, message.state_content) == (2, {"page": 3}, b'{"page":3}')
    assert message.defer() == "deferred"
    assert queue.dequeue()[0].state == {"page": 3}


def test_a_deferred_message_waits_for_its_delay(queue: Any) -> None:
    queue.enqueue("a", 1)
    queue.dequeue()[0].defer(delay=3600)
    assert len(queue.dequeue()) == 0
    assert queue.channel("a").explain().reason == "scheduled"


def test_a_message_is_buried_after_its_last_attempt(queue: Any) -> None:
    queue.enqueue("a", 1, max_attempts=2)
    assert queue.dequeue()[0].defer(error="one") == "deferred"
    assert queue.dequeue()[0].defer(error="two") == "buried"
    assert [(dead.attempts, dead.error) for dead in queue.dead("a").list()] == [(2, "two")]


def test_a_buried_message_is_a_dead_letter(queue: Any) -> None:
    created = queue.enqueue("a", b"content", key="k")
    assert queue.dequeue()[0].bury(error="no use") == "buried"
    (dead,) = queue.dead().list()
    assert (dead.id, dead.channel, dead.key, dead.content) == (created.id, "a", "k", b"content")


def test_an_error_with_any_characters_is_stored(queue: Any) -> None:
    queue.enqueue("a", 1)
    queue.dequeue()[0].bury(error="nul \0, surrogate \ud800, 🐘")
    assert queue.dead().list()[0].error == "nul \\x00, surrogate \\ud800, 🐘"


def test_giving_back_spends_no_attempt(queue: Any) -> None:
    queue.enqueue("a", 1, max_attempts=1)
    assert queue.dequeue()[0].give_back() == "given_back"
    assert queue.dequeue()[0].attempt == 1


def test_a_heartbeat_extends_the_lease(queue: Any, connect: Connect) -> None:
    queue.enqueue("a", 1)
    message = queue.dequeue(lease_s=1)[0]
    assert message.heartbeat(lease_s=3600) == "extended"
    row = connect().execute("select unlock_at - now() > interval '59 minutes' from lease_status").fetchone()
    assert row == (True,)


def test_a_worker_learns_that_its_message_was_cancelled(queue: Any) -> None:
    created = queue.enqueue("a", 1)
    message = queue.dequeue()[0]
    assert queue.cancel([created.id]) == ["cancelled"]
    assert message.heartbeat() == "cancelled"
    assert message.complete() == "cancelled"


@pytest.mark.parametrize("end", [*(action.name for action in ACTIONS), "heartbeat"])
def test_a_stale_token_changes_nothing(queue: Any, end: str) -> None:
    queue.enqueue("a", 1)
    message = queue.dequeue()[0]
    forged = SimpleNamespace(id=message.id, token=message.token + 1)
    assert getattr(queue, end)([forged]) == ["lease_lost"]
    assert message.complete() == "completed"


def test_acknowledging_many_messages_returns_an_outcome_for_each(queue: Any) -> None:
    queue.enqueue_many([NewMessage(channel=f"c{n % 3}", payload=n) for n in range(12)])
    batch = queue.dequeue(12)
    unknown = SimpleNamespace(id=999, token=1)
    assert queue.heartbeat(batch) == ["extended"] * 12
    assert queue.complete([*batch[:4], unknown]) == ["completed"] * 4 + ["lease_lost"]
    assert queue.defer(batch[4:8], delay=60, error="later") == ["deferred"] * 4
    assert queue.bury(batch[8:10], errors=["one", None]) == ["buried"] * 2
    assert queue.give_back(batch[10:]) == ["given_back"] * 2
    assert sorted(dead.error or "" for dead in queue.dead().list()) == ["", "one"]


def test_each_deferred_message_can_have_its_own_delay_state_and_error(queue: Any) -> None:
    queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(3)])
    queue.defer(
        queue.dequeue(3), delays=[None, 3600, 0], states=[b"x", None, {"n": 2}], errors=["e", None, None]
    )
    found = {message.payload: message.state_content for message in queue.dequeue(3)}
    assert found == {0: b"x", 2: b'{"n":2}'}


def test_an_acknowledgement_joins_the_callers_transaction(
    queue: Any, open_connection: OpenConnection
) -> None:
    queue.enqueue("a", 1)
    message = queue.dequeue()[0]
    connection = open_connection()
    assert message.complete(connection=connection) == "completed"
    connection.rollback()
    assert message.complete(connection=connection) == "completed"
    connection.commit()
    assert message.heartbeat() == "lease_lost"


def test_acknowledging_in_another_isolation_level_is_refused(
    queue: Any, open_connection: OpenConnection
) -> None:
    queue.enqueue("a", 1)
    message = queue.dequeue()[0]
    connection = open_connection(autocommit=True)
    connection.execute("begin isolation level serializable")
    with pytest.raises(WrongIsolationLevel):
        message.complete(connection=connection)
    connection.execute("rollback")


def test_a_lease_that_stays_locked_is_busy(open_queue: OpenQueue, connect: Connect) -> None:
    queue = open_queue(settings=ClientSettings(busy_for_s=0.1))
    queue.enqueue("a", 1)
    message = queue.dequeue()[0]
    holder = connect()
    holder.execute("begin")
    holder.execute("select from lease for update")
    began = time.monotonic()
    assert message.complete() == "busy"
    assert time.monotonic() - began > 0.05
    holder.execute("rollback")
    assert message.complete() == "completed"


def test_a_briefly_locked_lease_is_not_reported_as_busy(open_queue: OpenQueue, connect: Connect) -> None:
    queue = open_queue(settings=ClientSettings(busy_for_s=20))
    queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(3)])
    batch = queue.dequeue(3)
    holder = connect()
    holder.execute("begin")
    holder.execute("select from lease where message_id = %s for update", (batch[1].id,))
    release = threading.Timer(0.1, lambda: holder.execute("rollback"))
    release.start()
    assert queue.complete(batch) == ["completed"] * 3
    release.join()


def test_messages_are_cancelled_by_id_and_by_key(queue: Any) -> None:
    one, two = queue.enqueue("a", 1).id, queue.enqueue("a", 2, key="k").id
    assert queue.cancel([one, 12345]) == ["cancelled", "unknown"]
    assert queue.cancel_key("a", "k") == "cancelled"
    assert queue.cancel_key("a", "k") == "unknown"
    assert queue.cancel([two]) == ["unknown"]
    assert len(queue.dequeue(10)) == 0


def test_more_messages_than_fit_in_one_call_are_acknowledged(
    queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lonnymq.client.sync.caller.MAX_BATCH", 4)
    monkeypatch.setattr("lonnymq.client.aio.caller.MAX_BATCH", 4)
    queue.enqueue_many([NewMessage(channel="a", payload=n) for n in range(10)])
    assert queue.complete(queue.dequeue(10)) == ["completed"] * 10
