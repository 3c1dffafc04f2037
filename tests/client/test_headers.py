"""Headers: texts that a producer attaches to a message, and that the worker receives with it."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lonnymq
from lonnymq import InvalidArgument, NewMessage, Queue
from lonnymq.calls.headers import encode_headers
from tests.client.conftest import OpenConnection

HOSTILE = {"\" ' \\ {} %s": "$1; drop table message; --", "ünïcödé 🐘": "line\nbreak \x7f\x01", "empty": ""}
NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=50)


def test_every_way_to_enqueue_takes_headers(queue: Any, open_connection: OpenConnection) -> None:
    message = NewMessage(channel="a", payload=1, headers=HOSTILE)
    without = NewMessage(channel="a", payload=2)
    queue.enqueue("a", 1, headers=HOSTILE)
    queue.channel("a").enqueue(1, headers=HOSTILE)
    queue.enqueue_many([without, message])
    queue.copy_in([message, without])
    connection = open_connection()
    queue.enqueue("a", 3, headers=HOSTILE, connection=connection)
    connection.commit()
    found = queue.dequeue(100)
    assert [one.headers for one in found] == [HOSTILE, HOSTILE, {}, HOSTILE, HOSTILE, {}, HOSTILE]


def test_headers_stay_with_a_message_until_its_end(queue: Any) -> None:
    created = queue.enqueue("a", 1, headers=HOSTILE)
    queue.dequeue()[0].defer()
    message = queue.dequeue()[0]
    assert message.headers == HOSTILE
    assert queue.show(created.id).headers == queue.peek(is_leased=True)[0].headers == HOSTILE
    message.bury()
    assert queue.dead().show(created.id).headers == HOSTILE
    queue.dead().redrive([created.id])
    assert queue.dequeue()[0].headers == HOSTILE


def test_large_headers_are_read_after_the_reply(queue: Any) -> None:
    headers = {"n": "x" * 8000}
    queue.enqueue_many([NewMessage(channel="a", payload=n, headers=headers) for n in range(20)])
    found = queue.dequeue(20)
    assert [(one.payload, one.headers) for one in found] == [(n, headers) for n in range(20)]


@given(st.dictionaries(NAMES, VALUES, max_size=5))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_size_of_headers_is_the_same_in_python_and_sql(connect: Any, headers: dict[str, str]) -> None:
    text = encode_headers(headers) or "{}"
    row = connect().execute("select octet_length(%s::text::jsonb::text)", (text,)).fetchone()
    assert row == (len(text.encode()),)


REFUSED: list[tuple[Any, str]] = [
    ("a=1", "headers must be a mapping of strings to strings, got 'a=1'"),
    ([("a", "1")], "headers must be a mapping of strings to strings"),
    ({"a": 5}, "header 'a' must be a string, got 5"),
    ({"a": None}, "header 'a' must be a string, got None"),
    ({"a": b"x"}, "header 'a' must be a string, got b'x'"),
    ({"a": "x\0"}, "header 'a' must be a string without NUL"),
    ({"a": "\ud800"}, "header 'a' must be .*no lone surrogates"),
    ({5: "x"}, "the name of a header must be 1 to 255 characters, got 5"),
    ({"": "x"}, "the name of a header must be 1 to 255 characters, got ''"),
    ({"n" * 256: "x"}, "the name of a header must be 1 to 255 characters, got 'nnn"),
    ({"a\nb": "x"}, "the name of a header must be .* without control characters, got 'a.nb'"),
    ({"n": "x" * 8184}, "headers must be at most 8192 bytes as JSON, got '?8193 bytes"),
    ({"n": "\n" * 4092}, "headers must be at most 8192 bytes as JSON, got '?8193 bytes"),
    ({"n": "ü" * 4092}, "headers must be at most 8192 bytes as JSON, got '?8193 bytes"),
    ({str(n): "x" for n in range(8193)}, "headers must be at most 8192 bytes as JSON"),
]


@pytest.mark.parametrize(("headers", "error"), REFUSED)
def test_invalid_headers_are_refused_without_a_round_trip(headers: Any, error: str) -> None:
    with Queue("postgresql://nobody@127.0.0.1:1/none") as queue:
        with pytest.raises(InvalidArgument, match=error):
            queue.enqueue("a", 1, headers=headers)
        with pytest.raises(InvalidArgument, match=rf"messages\[0\]: {error}"):
            queue.enqueue_many([NewMessage(channel="a", payload=1, headers=headers)])


def test_a_task_takes_headers_as_an_option(queue: Any, dsn: str) -> None:
    app = lonnymq.App(dsn)

    @app.task
    def resize(video: int) -> None: ...

    resize.options(headers={"a": "1"}).enqueue("acme", 7)
    app.queue.enqueue_many([resize.options(headers={"a": "2"}).message("acme", 8)])
    assert [message.headers for message in queue.dequeue(2)] == [{"a": "1"}, {"a": "2"}]
    app.queue.close()
