"""Headers: texts that travel with a message from its producer to its end."""

import uuid
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.session import Session
from tests.sql.test_bulk import publish, stage

TRACE = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tenant region": "eu"}
HOSTILE = {"\" ' \\ {}": "%s; drop table message; --", "ünïcödé 🐘": "line\nbreak\ttab \x7f\x01", "empty": ""}
LARGEST = {"n": "x" * (8192 - len('{"n": ""}'))}


def headers_of(queue: Session) -> list[Any]:
    return [one.headers for one in queue.take(100)]


@pytest.mark.parametrize("headers", [TRACE, HOSTILE, LARGEST, {}])
def test_headers_are_returned_unchanged(queue: Session, headers: dict[str, str]) -> None:
    queue.create("a", headers=Jsonb(headers))
    queue.create("a", headers=Jsonb(headers), key="k")
    queue.create_many(["a"], headers=[Jsonb(headers)])
    part = stage(queue, "p", [{"headers": Jsonb(headers)}])
    publish(queue, "p", {part: 1})
    assert headers_of(queue) == [headers] * 4


def test_a_message_without_headers_has_none(queue: Session) -> None:
    queue.create("a")
    queue.create_many(["a", "a"], headers=[None, Jsonb(TRACE)])
    parts = {stage(queue, "p", [{"headers": None}, {}]): 2}
    publish(queue, "p", parts)
    assert headers_of(queue) == [None, None, TRACE, None, None]


def test_a_retry_and_a_redrive_keep_the_headers(queue: Session) -> None:
    queue.create("a", headers=Jsonb(TRACE))
    queue.defer([queue.lease()])
    leased = queue.lease()
    assert leased.headers == TRACE
    queue.bury([leased])
    assert queue.ask("select headers from dead_list()") == TRACE
    queue.run("select dead_redrive(%s::bigint[])", [leased.message_id])
    assert queue.lease().headers == TRACE


def test_a_lost_message_keeps_its_headers_as_a_dead_letter(queue: Session) -> None:
    queue.create("a", headers=Jsonb(TRACE), max_attempts=1)
    queue.lease()
    queue.run("update lease set unlock_at = 0")
    assert queue.dequeue() == []
    assert queue.ask("select headers from dead") == TRACE


def test_full_history_has_the_headers_and_metadata_has_not(queue: Session) -> None:
    for mode in ("full", "metadata"):
        queue.run("select queue_set(%s)", Jsonb({"history": mode}))
        queue.create("a", headers=Jsonb(TRACE))
        queue.complete([queue.lease()])
    queue.run("select history_prepare(0)")
    assert queue.rows("select headers from history order by id") == [(TRACE,), (None,)]


def test_what_operators_see_has_the_headers(queue: Session) -> None:
    created = queue.create("a", headers=Jsonb(TRACE))
    assert queue.ask("select headers from message_peek('a', p_preview_bytes => 0)") == TRACE
    assert queue.ask("select headers from message_show(array[%s]::bigint[])", created) == TRACE
    assert queue.ask("select headers from message_status") == TRACE
    assert queue.ask("select message -> 'headers' from message_json") == TRACE


def test_large_headers_are_left_out_of_a_reply_and_read_later(queue: Session) -> None:
    queue.create_many(["a"] * 20, headers=[Jsonb(LARGEST)] * 20)
    taken = queue.dequeue(20)
    assert len(taken) == 20
    assert [(one.content, one.headers, one.unread_bytes) for one in taken] == [(None, None, 8193)] * 20
    rows = queue.rows(
        "select headers from message_read(%s, %s)",
        [one.message_id for one in taken],
        [one.token for one in taken],
    )
    assert rows == [(LARGEST,)] * 20


INVALID = [
    ("[]", r"headers must be a JSON object of strings, got \[\]"),
    ('"text"', 'headers must be a JSON object of strings, got "text"'),
    ("null", "headers must be a JSON object of strings, got null"),
    ('{"a": 5}', "headers must be strings, got 5 for 'a'"),
    ('{"a": null}', "headers must be strings, got null for 'a'"),
    ('{"a": {"b": "c"}}', "headers must be strings, got .* for 'a'"),
    ('{"": "x"}', "headers must be named by 1 to 255 characters .*, got ''"),
    ('{"a\\nb": "x"}', "headers must be named by .* without control characters"),
    ('{"%s": "x"}' % ("n" * 256), "headers must be named by 1 to 255 characters"),
    ('{"n": "%s"}' % ("x" * 8184), "headers must be at most 8192 bytes, got 8193 bytes"),
    ('{"n": "%s"}' % ("\\n" * 4092), "headers must be at most 8192 bytes, got 8193 bytes"),
]


@pytest.mark.parametrize(("text", "error"), INVALID)
def test_invalid_headers_are_refused_everywhere(queue: Session, text: str, error: str) -> None:
    calls = (
        "message_create('a', 'x', p_headers => %s)",
        "message_create_many('{a,a}', '{x,y}', p_headers => array[null, %s::jsonb])",
    )
    for call in calls:
        with pytest.raises(psycopg.Error, match=error) as raised:
            queue.run(f"select {call}", text)
        assert raised.value.sqlstate == "LQ001"
    part = stage(queue, "p", [{}, {"headers": text}])
    with pytest.raises(psycopg.Error, match=error) as raised:
        publish(queue, "p", {part: 2})
    assert raised.value.sqlstate == "LQ001"
    assert queue.ask("select count(*) from message") == 0


def test_one_array_of_headers_must_be_as_long_as_the_messages(queue: Session) -> None:
    with pytest.raises(psycopg.Error, match="headers must be an array of 2 elements"):
        queue.run("select message_create_many('{a,a}', '{x,y}', p_headers => '{null}')")
    with pytest.raises(psycopg.errors.CheckViolation):
        queue.run(
            "insert into stage (publication, part, ordinal, channel, contents, headers)"
            " values ('p', %s, 0, 'a', '{x}', '{null,null}')",
            uuid.uuid4(),
        )


def test_rows_from_before_headers_existed_have_none(queue: Session) -> None:
    """A column that is added later is absent from the rows that exist."""
    created = queue.create("a")
    queue.run("alter table message drop column headers cascade")
    queue.run("alter table message add column headers jsonb")
    assert queue.ask("select headers from message_show(array[%s]::bigint[])", created) is None
    assert queue.lease().headers is None
