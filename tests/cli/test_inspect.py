"""status, channels, peek, message show, top and check change nothing."""

import json
from typing import Any

import pytest

from lonnymq import NewMessage, Queue
from lonnymq.cli.exit_codes import CommandExit
from lonnymq.schema import files
from tests.cli.conftest import Run
from tests.conftest import Connect

HOSTILE = "\x9b31m [bold]b[/bold] :smile: \u202e"


@pytest.fixture
def busy(queue: Queue) -> Queue:
    """A queue with a channel for every reason to wait, leases and a dead letter."""
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
    queue.enqueue("ready", {"n": 1}, priority=7, key="key-7", max_attempts=3, headers={"region": "eu\x1b"})
    return queue


def test_status_shows_the_queue_at_a_glance(lonnymq: Run, busy: Queue) -> None:
    shown = lonnymq("status")
    assert shown.err == ""
    lines = dict(line.split("  ", 1) for line in shown.out.splitlines())
    assert {name.strip(): value.strip() for name, value in lines.items()} == {
        "queue": f"lonnymq, version {files.latest_version()}, current",
        "channels": "7",
        "waiting": "7, 1 of them scheduled",
        "leased": "2",
        "due": "1 of 1 channels",
        "turn lag": lines["turn lag".ljust(len(next(iter(lines))))].strip(),
        "dead letters": "1",
        "workers asleep": "0",
        "history": "off",
        "unfolded wakes": lines["unfolded wakes"].strip(),
        "oldest transaction": "-",
    }
    for found in (lonnymq("status", "--json").json, lonnymq("status", "--exact", "--json").json):
        assert (found["waiting"], found["dead"], found["state"]) == (7, 1, "current")
        assert (found["demand"], found["is_exact"]) == (1, True)


def test_channels_shows_why_each_channel_waits(lonnymq: Run, busy: Queue) -> None:
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
    assert rows[0] == ["channel", "waiting", "leased", "cap", "rate", "oldest", "reason"]
    by_name = {row[0]: row[1:] for row in rows[2:]}
    assert by_name["capped"][:3] == ["2", "1", "1"]
    assert by_name["slow"][3:6] == ["1", "per", "1m"]
    assert by_name["later"][-2:] == ["-", "scheduled"]
    first = lonnymq("channels", "--order", "messages", "--limit", "1", "--json").json
    assert first[0]["channel"] in ("capped", "slow")
    page = lonnymq("channels", "--after", "empty", "--limit", "2", "--json").json
    assert [one["channel"] for one in page] == ["later", "paused"]
    assert lonnymq("channels", "--after", "a", "--order", "messages").code == CommandExit.USAGE


def test_commands_say_when_there_is_nothing_to_show(lonnymq: Run) -> None:
    for command, message in {
        "channels": "no channels yet",
        "peek": "no waiting messages",
        "peek --leased": "no leased messages",
        "dead list": "no dead letters",
        "cron list": "no crons",
    }.items():
        assert message in lonnymq(*command.split()).out
        assert lonnymq(*command.split(), "--json").json == []


def test_peek_and_show_lease_nothing(lonnymq: Run, busy: Queue) -> None:
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
    assert "region=eu\\x1b" in shown.out
    assert lonnymq("message", "show", str(message["id"]), "--json").json == {
        **message,
        "content_bytes": 7,
    }
    assert busy.status().leased == 2


def test_showing_a_dead_letter_names_the_right_command(lonnymq: Run, busy: Queue) -> None:
    dead = busy.dead().list()[0].id
    result = lonnymq("message", "show", str(dead))
    assert result.code == CommandExit.NO
    assert (
        result.error_text
        == f"error: message {dead} is not live it is a dead letter: `lonnymq dead show {dead}`"
    )
    assert "it has already finished, or never existed" in lonnymq("message", "show", "999999").error_text


def test_top_shows_rates_between_two_refreshes(lonnymq: Run, busy: Queue) -> None:
    shown = lonnymq("top", "--count", "2", "--interval", "0.1", "--limit", "3")
    assert shown.code == 0
    assert "/s created" in shown.out
    assert "change" in shown.out
    lines = lonnymq("top", "--count", "2", "--interval", "0.1", "--json").out.splitlines()
    first, second = (json.loads(line) for line in lines)
    assert first["rates"] is None
    assert second["rates"]["waiting"]["capped"] == 0
    assert {one["channel"] for one in second["channels"]} >= {"capped", "slow"}


def test_untrusted_text_cannot_control_the_terminal(lonnymq: Run, queue: Queue) -> None:
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
def test_check_finds_problems_and_repair_fixes_them(lonnymq: Run, busy: Queue, connect: Connect) -> None:
    assert lonnymq("check").out == "no problems found\n"
    assert lonnymq("check", "--json").json == []
    connect().execute("update turn set in_flight = in_flight + 5, version = version + 1")
    broken = lonnymq("check")
    assert broken.code == CommandExit.NO
    assert "in_flight is wrong" in broken.out
    assert lonnymq("repair").code == CommandExit.NO
    assert lonnymq("check").code == CommandExit.NO
    repaired = lonnymq("repair", "--yes", "--json").json
    assert {problem["is_repaired"] for problem in repaired} == {True}
    assert lonnymq("check").code == 0


def test_output_into_a_pipe_is_not_cut(shell: Run, queue: Queue) -> None:
    name = "n" * 200
    queue.enqueue(name, {"text": "x" * 500})
    assert any(line.startswith(name) for line in shell("channels").out.splitlines())
    found: Any = shell("peek", "--json").json
    assert found[0]["content"] == {"text": "x" * 500}
    preview = shell("peek", name, "--json", "--limit", "1").json[0]
    assert preview["content_bytes"] == 511


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
def test_times_beyond_the_year_9999_are_shown(
    lonnymq: Run, queue: Queue, connect: Connect, dequeue_at: int, shown: str
) -> None:
    session = connect()
    for _ in range(3):
        session.execute("select message_create('acme', '1', p_dequeue_at => %s)", (dequeue_at,))
    # If the messages are due, one is now leased and one is dead.
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
