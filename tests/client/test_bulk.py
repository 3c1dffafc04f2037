"""Bulk loads: staged by COPY, then published at once."""

import os
import resource
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lonnymq import InvalidArgument, NewMessage, Published, PublishOutcome, SchemaMissing
from lonnymq.calls import stage
from tests.client.conftest import OpenConnection, OpenQueue
from tests.conftest import Connect


def messages(count: int, channel: str = "a") -> Iterator[NewMessage]:
    return (NewMessage(channel=channel, payload=n) for n in range(count))


def test_a_bulk_load_keeps_the_order_and_all_fields(queue: Any) -> None:
    result = queue.copy_in(
        [
            NewMessage(channel="ä", payload={"n": 1}, key="schlüssel", max_attempts=3),
            NewMessage(channel="ä", payload=b"\0\xff"),
            NewMessage(channel="ä", payload="first", priority=5),
            NewMessage(channel="ä", payload="later", delay=3600),
        ]
    )
    assert (result.outcome, result.created, result.duplicates) == (PublishOutcome.PUBLISHED, 4, 0)
    first, second, third = queue.dequeue(10)
    assert (first.payload, first.dequeue_at) == ("first", -5)
    assert (second.payload, second.key, second.max_attempts) == ({"n": 1}, "schlüssel", 3)
    assert third.content == b"\0\xff"


def test_a_large_load_reports_its_progress(queue: Any) -> None:
    seen: list[int] = []
    assert queue.copy_in(messages(25_000), on_progress=seen.append).created == 25_000
    assert seen == [10_000, 20_000, 25_000]
    assert [message.payload for message in queue.dequeue(500)] == list(range(500))
    assert queue.status().waiting == 24_500


@pytest.mark.parametrize(("limit", "value"), [("CHUNK_MESSAGES", 64), ("CHUNK_BYTES", 200)])
def test_channels_keep_their_order_across_chunks(
    queue: Any, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    """A load is sent in chunks, each of which is grouped by channel."""
    monkeypatch.setattr(stage, limit, value)
    loaded = [NewMessage(channel=f"c{n % 3}", payload=n, key=f"k{n}" if n % 7 else None) for n in range(500)]
    assert queue.copy_in(loaded).created == 500
    found: dict[str, list[int]] = {}
    for message in queue.dequeue(500):
        assert message.key == (f"k{message.payload}" if message.payload % 7 else None)
        found.setdefault(message.channel, []).append(message.payload)
    assert found == {f"c{first}": list(range(first, 500, 3)) for first in range(3)}


def test_a_stopped_server_makes_the_sender_wait_without_buffering(
    queue: Any, open_connection: OpenConnection
) -> None:
    """The backend is stopped for a second; meanwhile, data must not accumulate in this process."""
    connection = open_connection()
    backend = connection.info.backend_pid
    command = Path(f"/proc/{backend}/cmdline")
    if not command.exists() or b"postgres" not in command.read_bytes():
        pytest.skip("the server is on another machine")
    sizes = [resident_bytes()]

    def load() -> Iterator[NewMessage]:
        for number in range(1_600):
            if number == 400:
                os.kill(backend, signal.SIGSTOP)
                threading.Timer(1.0, os.kill, [backend, signal.SIGCONT]).start()
            sizes.append(resident_bytes())
            yield NewMessage(channel="a", payload=bytes(100_000))

    assert queue.copy_in(load(), connection=connection).created == 1_600
    assert max(sizes) - sizes[0] < 80_000_000


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_an_empty_load_succeeds(queue: Any) -> None:
    assert queue.copy_in([]).created == 0


def test_a_publication_is_published_once(queue: Any) -> None:
    assert queue.copy_in(messages(3), publication="load-7") == Published(
        PublishOutcome.PUBLISHED, 3, 0, "load-7"
    )
    assert queue.copy_in(messages(3), publication="load-7") == Published(
        PublishOutcome.ALREADY_PUBLISHED, 3, 0, "load-7"
    )
    assert queue.status().waiting == 3


def test_live_keys_are_counted_as_duplicates(queue: Any) -> None:
    queue.enqueue("a", 0, key="k1")
    loaded = [NewMessage(channel="a", payload=n, key=f"k{n}") for n in range(3)]
    result = queue.copy_in(loaded)
    assert (result.created, result.duplicates) == (2, 1)


def test_a_load_joins_the_callers_transaction(queue: Any, open_connection: OpenConnection) -> None:
    connection = open_connection()
    connection.execute("set search_path to public")
    connection.commit()
    queue.copy_in(messages(5), connection=connection)
    assert connection.execute("show search_path").fetchone() == ("public",)
    connection.rollback()
    assert queue.status().waiting == 0
    queue.copy_in(messages(5), connection=connection)
    connection.commit()
    assert queue.status().waiting == 5


def test_a_load_that_fails_midway_leaves_nothing(queue: Any, connect: Connect) -> None:
    def broken() -> Iterator[NewMessage]:
        yield from messages(70_000)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        queue.copy_in(broken())
    assert queue.status().waiting == 0
    assert connect().execute("select count(*) from stage").fetchone() == (0,)
    assert queue.copy_in(messages(1)).created == 1


def test_a_load_names_the_invalid_message_and_creates_none(queue: Any) -> None:
    wrong = NewMessage(channel="a", payload=2, key="")
    with pytest.raises(InvalidArgument, match=r"^messages\[3\]: key must be"):
        queue.copy_in([*messages(3), wrong])
    assert queue.status().waiting == 0


def test_staged_messages_that_nobody_will_publish_are_pruned(queue: Any, connect: Connect) -> None:
    queue.copy_in(messages(3), publication="p")
    queue.copy_in(messages(3), publication="p")
    queue.stage_prune()
    assert connect().execute("select count(*) from stage").fetchone() == (0,)


def test_a_load_into_a_missing_queue_says_what_to_do(open_queue: OpenQueue) -> None:
    with pytest.raises(SchemaMissing, match=r"run install\(\)"):
        open_queue(schema="elsewhere").copy_in(messages(1))
