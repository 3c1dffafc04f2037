"""What readers may see of messages: everything but contents, states, headers and results."""

import psycopg
import pytest

from tests.sql.conftest import Login
from tests.sql.session import Session

SECRET = b"the secret"


def test_a_reader_sees_messages_and_dead_letters_without_contents(queue: Session, login: Login) -> None:
    queue.run('select queue_set(\'{"history": "full"}\')')
    queue.run("select history_prepare(1)")
    headers = '{"secret": "the secret", "lonnymq-keep-result-ms": "60000"}'
    waiting, buried, ended = (
        queue.ask("select message_id from message_create('a', %s, p_headers => %s)", SECRET, headers)
        for _ in range(3)
    )
    leases = {one.message_id: one for one in queue.take(3)}
    queue.defer([leases[waiting]], error="try again", state=SECRET)
    queue.bury([leases[buried]], "gave up")
    queue.run("select message_complete(%s, %s, %s)", [ended], [leases[ended].token], [SECRET])
    reader = login("reader")
    found = reader.rows("select s::text from message_page() p, message_outline(p.ids) s")
    assert len(found) == 1
    assert "try again" in found[0][0]
    found += reader.rows("select s::text from dead_page() p, dead_outline(p.ids) s")
    assert "gave up" in found[1][0]
    found += reader.rows("select s::text from message_attempts(%s) s", waiting)
    assert "deferred" in found[2][0]
    found += reader.rows("select s::text from message_status_outline(%s) s", [waiting, buried, ended, 7])
    assert [row[0].split(",")[1] for row in found[3:]] == ["waiting", "buried", "completed", "unknown"]
    found += reader.rows("select g::text from dead_groups() g")
    assert not any("secret" in row[0] or SECRET.hex() in row[0] for row in found)
    for call in ("message_show", "dead_show", "message_status_of"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.run(f"select {call}(array[1])")


def test_the_attempts_of_a_message_are_found_in_history(queue: Session) -> None:
    queue.run('select queue_set(\'{"history": "metadata"}\')')
    queue.run("select history_prepare(1)")
    assert queue.rows("select * from message_attempts(1)") == [(None, True, *[None] * 6)]
    message = queue.create("a", max_attempts=3)
    for error in ("first", "second", "third"):
        queue.defer(queue.take(1), 3_600_000, error=error)
        for _ in range(4):
            queue.create("b")
            queue.complete(queue.take(1))
        queue.run("select message_run_now(%s)", [message])
    found = queue.rows("select outcome, attempt, error, is_complete from message_attempts(%s)", message)
    assert found == [
        ("buried", 3, "third", True),
        ("deferred", 2, "second", True),
        ("deferred", 1, "first", True),
    ]
    found = queue.rows("select attempt, is_complete from message_attempts(%s, p_limit => 2)", message)
    assert found == [(3, False), (2, False)]
    # The newest five attempts are four of others and its last one.
    found = queue.rows("select attempt, is_complete from message_attempts(%s, 5)", message)
    assert found == [(3, False)]
    found = queue.rows("select attempt, is_complete from message_attempts(%s, 4)", message)
    assert found == [(None, False)]
    assert queue.ask("select searched_from from message_attempts(%s, 4)", message) > 1_600_000_000_000
