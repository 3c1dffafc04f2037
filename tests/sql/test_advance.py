"""A message whose work has a next step goes on with that: the same message, as if it was new."""

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.conftest import Open
from tests.sql.session import Reply, Session, ids_of

BYTES, NUMBERS, HEADERS = "bytea[]", "bigint[]", "jsonb[]"


def advance(
    queue: Session,
    leases: list[Reply],
    contents: list[bytes | None] | None = None,
    delays: list[int | None] | None = None,
    headers: list[Jsonb | None] | None = None,
) -> list[str]:
    types = [BYTES, NUMBERS, HEADERS]
    return queue.end("message_advance", leases, contents, delays, headers, types=types)


def test_a_message_goes_on_with_its_next_step(queue: Session) -> None:
    created = queue.create("a", b"one", key="k", max_attempts=2, headers=Jsonb({"region": "eu"}))
    queue.defer([queue.lease()], state=b"page 2", error="broken")
    first = queue.lease()
    assert (first.attempt, first.state) == (2, b"page 2")
    assert advance(queue, [first], [b"two"]) == ["advanced"]
    second = queue.lease()
    assert (second.message_id, second.channel, second.key) == (created, "a", "k")
    assert (second.attempt, second.max_attempts, second.state) == (1, 2, None)
    assert (second.content, second.headers) == (b"two", {"region": "eu"})
    assert second.created_at > first.created_at
    assert queue.ask("select error from message") is None
    assert queue.complete([second]) == ["completed"]


def test_without_details_content_and_headers_stay(queue: Session) -> None:
    queue.create("a", b"one", headers=Jsonb({"n": "1"}))
    assert advance(queue, [queue.lease()]) == ["advanced"]
    leased = queue.lease()
    assert (leased.content, leased.headers) == (b"one", {"n": "1"})


def test_each_message_of_a_batch_has_its_own_next_step(queue: Session) -> None:
    created = queue.fill("a", 3, headers=[Jsonb({"n": "1"})] * 3)
    taken = queue.take(3)
    contents = [b"a", None, b""]
    headers = [Jsonb({"n": "2"}), None, Jsonb({})]
    assert advance(queue, taken, contents, [60_000, None, 0], headers) == ["advanced"] * 3
    found = queue.rows("select id, content, headers, dequeue_at - created_at from message order by id")
    assert found == [
        (created[0], b"a", {"n": "2"}, 60_000),
        (created[1], b"x", {"n": "1"}, 0),
        (created[2], b"", None, 0),
    ]


def test_the_next_step_waits_behind_what_waits_and_for_its_delay(queue: Session) -> None:
    first, second = queue.fill("a", 2)
    advance(queue, [queue.lease()], delays=[150])
    at = queue.ask("select dequeue_at from message where id = %s", first)
    (taken,) = queue.dequeue(1)
    assert taken.message_id == second
    again = queue.lease()
    assert again.message_id == first
    assert again.leased_at >= at * 1000


def test_a_priority_is_kept_unless_the_next_step_has_a_delay(queue: Session) -> None:
    queue.create("a")
    urgent = queue.create("a", dequeue_at=-5)
    for _ in range(3):
        leased = queue.lease()
        assert (leased.message_id, leased.dequeue_at) == (urgent, -5)
        advance(queue, [leased])
    leased = queue.lease()
    advance(queue, [leased], delays=[0])
    assert queue.lease().message_id != urgent


def test_a_full_channel_does_not_drop_the_next_step(queue: Session) -> None:
    queue.set("a", max_size=1)
    queue.create("a")
    leased = queue.lease()
    queue.create("a")
    assert queue.try_create("a")[0] == "dropped"
    assert advance(queue, [leased]) == ["advanced"]
    assert len(queue.drain()) == 2


def test_a_key_is_held_until_the_last_step_has_ended(session: Open) -> None:
    queue, other = session(), session()
    created = queue.create("a", key="k")
    for _ in range(2):
        assert other.try_create("a", key="k") == ("duplicate", created)
        advance(queue, [queue.lease()])
    queue.complete([queue.lease()])
    assert other.try_create("a", key="k")[0] == "created"


def test_suspicion_ends_with_a_step(queue: Session) -> None:
    queue.create("a")
    queue.create("a")
    taken = queue.dequeue(2, is_shared=True)
    queue.expire(taken)
    taken = queue.take(2)
    assert [one.suspicion for one in taken] == [1, 1]
    advance(queue, taken[:1])
    assert queue.lease().suspicion == 0


def test_each_step_is_recorded_as_a_completed_attempt(queue: Session) -> None:
    queue.run('select queue_set(\'{"history": "full"}\')')
    created = queue.create("a", b"one")
    advance(queue, [queue.lease()], [b"two"])
    queue.complete([queue.lease()])
    rows = queue.rows("select message_id, outcome, attempt, content, created_at from history order by id")
    assert [row[:4] for row in rows] == [(created, "completed", 1, b"one"), (created, "completed", 1, b"two")]
    assert rows[0][4] < rows[1][4]


def test_a_result_is_that_of_the_last_step(queue: Session) -> None:
    created = queue.create("a", headers=Jsonb({"lonnymq-keep-result-ms": "60000"}))
    advance(queue, [queue.lease()])
    assert queue.ask("select status from message_status_of(%s)", [created]) == "waiting"
    assert queue.ask("select count(*) from result") == 0
    leased = queue.lease()
    queue.run("select message_complete(%s, %s, %s)", [created], [leased.token], [b"5"])
    rows = queue.rows("select status, content from message_status_of(%s)", [created])
    assert rows == [("completed", b"5")]


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ("p_contents => array['x', 'y']::bytea[]", "contents"),
        ("p_contents => array[convert_to(repeat('x', 1001), 'UTF8')]", "contents"),
        ("p_delays_ms => '{}'", "delays_ms"),
        ("p_delays_ms => '{-1}'", "delays_ms"),
        ("p_delays_ms => '{3155760000001}'", "delays_ms"),
        ("p_headers => array['{}', '{}']::jsonb[]", "headers"),
        ("p_headers => array['[]']::jsonb[]", "headers"),
        ("""p_headers => array['{"n": 1}']::jsonb[]""", "headers"),
    ],
)
def test_wrong_details_are_refused_and_nothing_changes(queue: Session, more: str, name: str) -> None:
    queue.run("select queue_set('{\"max_content_bytes\": 1000}')")
    queue.create("a")
    leased = queue.lease()
    with pytest.raises(psycopg.Error, match=name) as raised:
        queue.run(f"select message_advance(%s, %s, {more})", ids_of([leased]), [leased.token])
    assert raised.value.sqlstate == "LQ001"
    assert queue.complete([leased]) == ["completed"]
