"""A25: channel_explain, the views and queue_status."""

import json

from lonnymq.schema import files
from tests.sql.session import Session


def reason(queue: Session, channel: str) -> str:
    found: str = queue.ask("select reason from channel_explain(%s)", channel)
    return found


def test_a_channel_that_was_never_used_is_unknown(queue: Session) -> None:
    assert queue.rows("select reason, waiting, leased, head_id from channel_explain('a')") == [
        ("unknown", None, None, None)
    ]


def test_a_channel_that_no_worker_has_seen_yet_is_ready(queue: Session) -> None:
    created = queue.create("a")
    assert queue.rows("select reason, waiting, leased, head_id from channel_explain('a')") == [
        ("ready", 1, 0, created)
    ]
    assert queue.rows("select channel, waiting, reason from channel_status") == [("a", 1, "ready")]


def test_a_channel_with_a_policy_but_no_messages_is_empty(queue: Session) -> None:
    queue.set("a", weight=2)
    assert reason(queue, "a") == "empty"


def test_a_channel_whose_messages_are_all_leased_is_empty(queue: Session) -> None:
    queue.fill("a", 3)
    queue.take(3)
    (found,) = queue.rows("select reason, detail, waiting, leased from channel_explain('a')")
    assert (found[0], found[2], found[3]) == ("empty", 0, 3)
    assert "3 messages are leased" in found[1]


def test_a_paused_channel_is_paused(queue: Session) -> None:
    queue.create("a")
    queue.run("select channel_pause('a')")
    assert reason(queue, "a") == "paused"


def test_a_channel_at_its_cap_is_capped(queue: Session) -> None:
    queue.set("a", max_concurrency=2)
    queue.fill("a", 3)
    queue.take(2)
    (found,) = queue.rows("select reason, detail, waiting, leased, max_concurrency from channel_explain('a')")
    assert (found[0], *found[2:]) == ("capped", 1, 2, 2)
    assert "2 of 2" in found[1]


def test_a_rate_limited_channel_is_throttled_until_its_next_release(queue: Session) -> None:
    queue.set("a", release_interval_ms=60_000)
    queue.fill("a", 2)
    taken = queue.lease()
    (found,) = queue.rows(
        "select reason, release_interval_ms, extract(epoch from next_release_at) * 1000"
        " from channel_explain('a')"
    )
    assert found[:2] == ("throttled", 60_000)
    assert int(found[2]) == taken.leased_at // 1000 + 60_000


def test_a_channel_whose_next_message_is_not_due_is_scheduled(queue: Session) -> None:
    at = queue.epoch_ms() + 3_600_000
    created = queue.create("a", dequeue_at=at)
    queue.dequeue_once()
    found = queue.rows("select reason, head_id, head_dequeue_at, right(detail, 3) from channel_explain('a')")
    # In UTC, whatever the session's time zone.
    assert found == [("scheduled", created, at, "+00")]


def test_a_channel_with_a_due_message_is_ready(queue: Session) -> None:
    queue.fill("a", 2)
    queue.lease()
    assert reason(queue, "a") == "ready"


def test_the_reason_follows_the_state_of_the_channel(queue: Session) -> None:
    queue.fill("a", 2)
    leased = queue.lease()
    queue.set("a", max_concurrency=1)
    assert reason(queue, "a") == "capped"
    queue.complete([leased])
    assert reason(queue, "a") == "ready"
    queue.drain()
    assert reason(queue, "a") == "empty"


def test_channel_status_counts_waiting_and_leased_messages(queue: Session) -> None:
    queue.fill("a", 5)
    status = "select waiting, leased from channel_status where channel = 'a'"
    taken = queue.dequeue(2)
    assert queue.rows(status) == [(3, 2)]
    queue.complete(taken[:1])
    assert queue.rows(status) == [(3, 1)]
    queue.give_back(taken[1:])
    assert queue.rows(status) == [(4, 0)]
    queue.create("a")
    assert queue.rows(status) == [(5, 0)]


def test_channel_status_never_shows_a_negative_count(queue: Session) -> None:
    queue.create("a")
    leased = queue.lease()
    queue.cancel(leased.message_id)
    status = "select waiting, leased from channel_status where channel = 'a'"
    assert queue.rows(status) == [(0, 1)]
    assert queue.complete([leased]) == ["cancelled"]
    assert queue.rows(status) == [(0, 0)]


def test_channel_status_shows_the_next_message_and_the_last_release(queue: Session) -> None:
    created = queue.fill("a", 2, dequeue_ats=[5, 3])
    queue.create("b", dequeue_at=1)
    leased = next(one for one in queue.take(2) if one.channel == "a")
    assert leased.message_id == created[1]
    (found,) = queue.rows(
        "select head_id, head_dequeue_at, extract(epoch from last_release_at) * 1000, max_concurrency,"
        " weight from channel_status where channel = 'a'"
    )
    assert (found[:2], found[3:]) == ((created[0], 5), (None, 1))
    assert abs(found[2] - leased.leased_at // 1000) <= 1


def test_message_json_shows_any_content(queue: Session) -> None:
    shown: dict[bytes, object] = {
        b'{"video": 7}': {"video": 7},
        b"[1, null]": [1, None],
        b"17": 17,
        b"plain text": "plain text",
        "na\u00efve".encode(): "na\u00efve",
        b"": "",
        b"\x00": {"base64": "AA=="},
        b"\xff\xfe": {"base64": "//4="},
        b'"\\u0000"': '"\\u0000"',
        b"{broken": "{broken",
        b"1e999999": "1e999999",
    }
    for content in shown:
        queue.create("a", content)
    messages = [row[0] for row in queue.rows("select message from message_json order by id")]
    assert [message["content"] for message in messages] == list(shown.values())
    assert [message["content_bytes"] for message in messages] == [len(content) for content in shown]


def test_message_json_shows_long_binary_content_on_one_line(queue: Session) -> None:
    queue.create("a", bytes(range(256)))
    shown = queue.ask("select message -> 'content' ->> 'base64' from message_json")
    assert "\n" not in shown


def test_message_json_shows_the_status_of_each_message(queue: Session) -> None:
    leased, waiting = queue.create("a", key="k", max_attempts=3), queue.create("a")
    scheduled = queue.create("a", delay_ms=60_000)
    queue.dequeue(1, worker="w1")
    found = {row[0]: row[1] for row in queue.rows("select id, message from message_json")}
    assert {one: found[one]["status"] for one in found} == {
        leased: "leased",
        waiting: "waiting",
        scheduled: "scheduled",
    }
    assert found[leased]["worker"] == "w1"
    assert (found[leased]["key"], found[leased]["channel"], found[leased]["max_attempts"]) == ("k", "a", 3)
    assert queue.rows("select channel, key from message_json where id = %s", leased) == [("a", "k")]


def test_message_json_shows_state_and_error_of_a_retry(queue: Session) -> None:
    queue.create("a")
    queue.defer([queue.lease()], state=json.dumps({"page": 2}).encode(), error="no answer")
    message = queue.ask("select message from message_json")
    assert (message["attempts"], message["state"], message["error"]) == (1, {"page": 2}, "no answer")


def test_lease_status_shows_who_holds_what_until_when(queue: Session) -> None:
    created = queue.create("a")
    (leased,) = queue.dequeue(1, 5_000, "w1")
    found = queue.rows(
        "select message_id, channel, worker, attempt, extract(epoch from leased_at) * 1000,"
        " extract(epoch from unlock_at) * 1000, is_expired, is_cancelled from lease_status"
    )
    leased_ms = leased.leased_at // 1000
    assert found == [(created, "a", "w1", 1, leased_ms, leased_ms + 5_000, False, False)]
    queue.expire([leased])
    queue.cancel(created)
    assert queue.rows("select is_expired, is_cancelled from lease_status") == [(True, True)]


def test_the_view_dead_letter_shows_everything_but_the_content(queue: Session) -> None:
    created = queue.create("a", b"secret", key="k")
    queue.bury([queue.lease()], "broken")
    assert queue.rows("select message_id, channel, key, attempts, error, content_bytes from dead_letter") == [
        (created, "a", "k", 1, "broken", 6)
    ]
    columns = {
        row[0]
        for row in queue.rows("select attname from pg_attribute where attrelid = 'dead_letter'::regclass")
    }
    assert "content" not in columns


def test_table_size_lists_every_table_and_index(queue: Session) -> None:
    queue.fill("a", 100)
    sizes = {(row[0], row[1]): row[2] for row in queue.rows("select name, kind, bytes from table_size")}
    for name in (
        "channel",
        "turn",
        "message",
        "lease",
        "wake",
        "dead",
        "history",
        "stage",
        "sleeper",
        "setting",
    ):
        assert (name, "table") in sizes
    for name in ("message_order_ix", "message_pkey", "lease_pkey", "wake_lane_ix", "turn_channel_ix"):
        assert (name, "index") in sizes
    assert sizes["message", "table"] > 0
    assert queue.ask("select bool_and(size = pg_size_pretty(bytes)) from table_size")


def test_queue_status_of_a_new_queue_is_all_zero(queue: Session) -> None:
    found = queue.rows(
        "select channels, waiting, leased, expired, dead, sleepers, history from queue_status()"
    )
    assert found == [(0, 0, 0, 0, 0, 0, "off")]


def test_queue_status_counts_everything(queue: Session) -> None:
    queue.fill("a", 5)
    queue.fill("b", 2)
    taken = queue.take(4)
    queue.bury(taken[:1], "x")
    queue.complete(taken[1:2])
    queue.expire(taken[2:3])
    queue.run("select sleeper_register('w1', 60000), sleeper_register('w2', 60000)")
    found = queue.rows(
        "select channels, waiting, leased, expired, dead, sleepers, history_overflow, version"
        " from queue_status()"
    )
    assert found == [(2, 3, 2, 1, 1, 2, 0, files.latest_version())]


def test_from_epoch_is_the_inverse_of_to_epoch(queue: Session) -> None:
    instants = [0, 1, -1, -1_001, 1_700_000_000_123, -62_135_596_800_000, 9_000_000_000_000_000]
    for instant in instants:
        assert queue.ask("select (extract(epoch from from_epoch(%s)) * 1000)::bigint", instant) == instant
