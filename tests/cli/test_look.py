"""status, channels, peek, message show, top, check: looking changes nothing."""

import json
from typing import Any

import pytest

from lonnymq import NewMessage, Queue
from lonnymq.cli.exits import Exit
from tests.cli.conftest import Run
from tests.conftest import Connect

HOSTILE = "\x9b31m [bold]b[/bold] :smile: \u202e"


@pytest.fixture
def busy(queue: Queue) -> Queue:
    """A queue in which everything is to be seen: every reason to wait, a lease, a dead letter."""
    queue.channel("capped").set(max_concurrency=1)
    queue.channel("slow").set(release_interval_ms=60_000)
    queue.channel("paused").pause()
    queue.channel("empty").set(weight=3)
    queue.enqueue("bad", {"n": 1}, key="k")
    queue.bury(queue.dequeue(), error="Traceback\n  ...\nValueError: no disk")
    for name in ("capped", "slow"):
        queue.enqueue_many([NewMessage(channel=name, payload={"n": n}) for n in range(3)])
    queue.dequeue(10, worker="worker-1")
    queue.enqueue("paused", {"n": 1})
    queue.enqueue("later", {"n": 1}, delay=3600)
    queue.enqueue("ready", {"n": 1}, priority=7, key="key-7", max_attempts=3)
    return queue


def test_the_status_is_a_glance(lonnymq: Run, busy: Queue) -> None:
    shown = lonnymq("status")
    assert shown.err == ""
    lines = dict(line.split("  ", 1) for line in shown.out.splitlines())
    assert {name.strip(): value.strip() for name, value in lines.items()} == {
        "queue": "lonnymq, version 1, current",
        "channels": "7",
        "waiting": "7",
        "leased": "2",
        "dead letters": "1",
        "workers asleep": "0",
        "history": "off",
        "unfolded wakes": lines["unfolded wakes"].strip(),
        "oldest transaction": "-",
    }
    found = lonnymq("status", "--json").json
    assert (found["waiting"], found["dead"], found["state"]) == (7, 1, "current")


def test_channels_say_why_they_wait(lonnymq: Run, busy: Queue) -> None:
    found = lonnymq("channels", "--json").json
    assert {one["channel"]: one["reason"] for one in found} == {
        "bad": "empty",
        "capped": "capped",
        "empty": "empty",
        "later": "scheduled",
        "paused": "paused",
        "ready": "ready",
        "slow": "throttled",
    }
    rows = [line.split() for line in lonnymq("channels").out.splitlines()]
    assert rows[0] == ["channel", "waiting", "leased", "cap", "rate", "oldest", "why", "it", "waits"]
    by_name = {row[0]: row[1:] for row in rows[2:]}
    assert by_name["capped"][:3] == ["2", "1", "1"]
    assert by_name["slow"][3:6] == ["1", "per", "1m"]
    assert by_name["later"][-2:] == ["-", "scheduled"]
    first = lonnymq("channels", "--order", "messages", "--limit", "1", "--json").json
    assert first[0]["channel"] in ("capped", "slow")
    page = lonnymq("channels", "--after", "empty", "--limit", "2", "--json").json
    assert [one["channel"] for one in page] == ["later", "paused"]
    assert lonnymq("channels", "--after", "a", "--order", "messages").code == Exit.USAGE


def test_an_empty_queue_says_so(lonnymq: Run) -> None:
    for command, words in {
        "channels": "no channel yet",
        "peek": "no message waits",
        "peek --leased": "no message is leased",
        "dead list": "no dead letters",
        "cron list": "no crons",
    }.items():
        assert words in lonnymq(*command.split()).out
        assert lonnymq(*command.split(), "--json").json == []


def test_peeking_and_showing_lease_nothing(lonnymq: Run, busy: Queue) -> None:
    (message,) = lonnymq("peek", "ready", "--json").json
    assert (message["content"], message["key"], message["status"]) == ({"n": 1}, "key-7", "waiting")
    assert "priority 7" in lonnymq("peek", "ready").out
    assert "in 59m" in lonnymq("peek", "later").out
    leased = lonnymq("peek", "--leased", "--json").json
    assert {one["worker"] for one in leased} == {"worker-1"}
    assert "worker-1, 2" in lonnymq("peek", "capped", "--leased").out
    assert len(lonnymq("peek", "-n", "3", "--json").json) == 3
    shown = lonnymq("message", "show", str(message["id"]))
    assert '{"n":1}' in shown.out
    assert "0 of 3" in shown.out
    assert lonnymq("message", "show", str(message["id"]), "--json").json == {
        **message,
        "content_bytes": 7,
    }
    assert busy.status().leased == 2


def test_a_message_that_is_not_live_is_told_from_a_dead_letter(lonnymq: Run, busy: Queue) -> None:
    dead = busy.dead().list()[0].id
    ended = lonnymq("message", "show", str(dead))
    assert ended.code == Exit.NO
    assert (
        ended.trouble == f"error: message {dead} is not live it is a dead letter: `lonnymq dead show {dead}`"
    )
    assert "it has already finished, or never existed" in lonnymq("message", "show", "999999").trouble


def test_top_shows_rates_between_two_looks(lonnymq: Run, busy: Queue) -> None:
    shown = lonnymq("top", "--count", "2", "--interval", "0.1", "--limit", "3")
    assert shown.code == 0
    assert "/s created" in shown.out
    assert "change" in shown.out
    looks = lonnymq("top", "--count", "2", "--interval", "0.1", "--json").out.splitlines()
    first, second = (json.loads(look) for look in looks)
    assert first["rates"] is None
    assert second["rates"]["waiting"]["capped"] == 0
    assert {one["channel"] for one in second["channels"]} >= {"capped", "slow"}


def test_strangers_words_do_not_steer_the_terminal(lonnymq: Run, queue: Queue) -> None:
    name = f"x{HOSTILE[4:]}"
    queue.enqueue(name, HOSTILE, key=HOSTILE)
    queue.enqueue("bad", 1)
    for message in queue.dequeue(5):
        if message.channel == "bad":
            message.bury(error=f"\x1b]0;owned\x07{HOSTILE}")
        else:
            message.give_back()
    dead = str(queue.dead().list()[0].id)
    for command in (
        ["channels"],
        ["peek"],
        ["channel", "explain", name],
        ["dead", "list"],
        ["dead", "show", dead],
    ):
        shown = lonnymq(*command).out
        assert not set("\x1b\x9b\x07\u202e") & set(shown), command
        assert "[bold]b[/bold] :smile:" in shown
    assert lonnymq("channels", "--json").json[1]["channel"] == name


@pytest.mark.broken_on_purpose
def test_check_finds_and_repair_mends(lonnymq: Run, busy: Queue, connect: Connect) -> None:
    assert lonnymq("check").out == "all is well\n"
    assert lonnymq("check", "--json").json == []
    connect().execute("update turn set in_flight = in_flight + 5, version = version + 1")
    broken = lonnymq("check")
    assert broken.code == Exit.NO
    assert "in_flight is wrong" in broken.out
    assert lonnymq("repair").code == Exit.NO
    assert lonnymq("check").code == Exit.NO
    mended = lonnymq("repair", "--yes", "--json").json
    assert {problem["is_repaired"] for problem in mended} == {True}
    assert lonnymq("check").code == 0


def test_a_pipe_gets_whole_lines(shell: Run, queue: Queue) -> None:
    name = "n" * 200
    queue.enqueue(name, {"text": "x" * 500})
    assert any(line.startswith(name) for line in shell("channels").out.splitlines())
    found: Any = shell("peek", "--json").json
    assert found[0]["content"] == {"text": "x" * 500}
    cut = shell("peek", name, "--json", "--limit", "1").json[0]
    assert cut["content_bytes"] == 511


FAR = 9_000_000_000_000_000


@pytest.mark.parametrize(
    ("dequeue_at", "shown"),
    [
        (253_402_300_799_999, "9999-12-31 23:59:59Z"),
        (253_402_300_800_000, "10000-01-01 00:00:00Z"),
        (FAR, "287168-08-24 16:00:00Z"),
        (-1, "priority 1"),
        (-62_135_596_800_001, "priority 62135596800001"),
        (-FAR, f"priority {FAR}"),
    ],
)
def test_a_time_of_any_year_is_shown(
    lonnymq: Run, queue: Queue, connect: Connect, dequeue_at: int, shown: str
) -> None:
    session = connect()
    for _ in range(3):
        session.execute("select message_create('acme', '1', p_dequeue_at => %s)", (dequeue_at,))
    # Those that are due: one is leased, one is dead.
    queue.bury(queue.dequeue(2)[:1])
    waiting = queue.peek("acme")[0]
    assert shown in lonnymq("channel", "explain", "acme").out
    assert lonnymq("channel", "explain", "acme", "--json").json["head_dequeue_at"] == dequeue_at
    assert shown in lonnymq("peek", "acme").out
    assert shown in lonnymq("message", "show", str(waiting.id)).out
    for command in (
        ["status"],
        ["channels"],
        ["top", "--count", "1"],
        ["doctor"],
        ["dead", "list"],
        ["check"],
    ):
        for more in ([], ["--json"]):
            assert lonnymq(*command, *more).err == ""
