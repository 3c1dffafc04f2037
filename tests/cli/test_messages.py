"""enqueue, message cancel and the commands for dead letters."""

import shlex
import subprocess
import sys

import pytest

from lonnymq import NewMessage, Queue
from lonnymq.cli.exit_codes import CommandExit
from tests.cli.conftest import Run, environment


def test_a_message_is_enqueued_as_json_text_or_bytes(lonnymq: Run, queue: Queue) -> None:
    made = lonnymq("enqueue", "acme", '{"video": 7}')
    assert (made.code, made.out) == (0, "message 1 created in channel 'acme'\n")
    lonnymq("enqueue", "acme", "hello", "--text")
    lonnymq("enqueue", "acme", "-", given=b"\xff\x00")
    assert [message.content for message in queue.dequeue(5)] == [b'{"video":7}', b'"hello"', b"\xff\x00"]
    assert lonnymq("enqueue", "acme", "1", "--json").json == {"outcome": "created", "id": 4}


def test_enqueue_stores_the_options_of_a_message(lonnymq: Run, queue: Queue) -> None:
    assert lonnymq("enqueue", "a", "1", "--key", "k", "--max-attempts", "3", "--priority", "9").code == 0
    assert lonnymq("enqueue", "a", "2", "--delay", "1h30m").code == 0
    assert lonnymq("enqueue", "a", "3", "--at", "2100-01-01T00:00+01:00").code == 0
    first, second, third = queue.peek("a")
    assert (first.key, first.max_attempts, first.dequeue_at) == ("k", 3, -9)
    assert abs(second.dequeue_at - second.created_at.timestamp() * 1000 - 5_400_000) < 60_000
    assert third.dequeue_at == 4_102_441_200_000 - 0
    assert lonnymq("enqueue", "h", "1", "--header", "a=1", "--header", "b=x=y", "--header", "c=").code == 0
    assert queue.peek("h")[0].headers == {"a": "1", "b": "x=y", "c": ""}
    again = lonnymq("enqueue", "a", "1", "--key", "k")
    assert (again.code, "already has this key" in again.out) == (0, True)


def test_enqueue_to_a_full_channel_exits_with_1(lonnymq: Run, queue: Queue) -> None:
    queue.channel("a").set(max_size=0)
    result = lonnymq("enqueue", "a", "1")
    assert (result.code, result.out) == (CommandExit.NO, "")
    assert "channel 'a' is full" in result.error_text
    assert lonnymq("enqueue", "a", "1", "--json").out == '{"outcome": "dropped", "id": null}\n'


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["a", "{oops"], "the payload is not JSON"),
        (["a", "1", "--header", "x"], "'x' is not a header: write --header NAME=VALUE"),
        (["a", "1", "--header", "=x"], "'=x' is not a header"),
        (["a", "1", "--header", "x=1", "--header", "x=2"], "header 'x' was given twice"),
        (["a", "1", "--header", f"x={8192 * 'y'}"], "headers must be at most 8192 bytes"),
        (["", "1"], "channel must be 1 to 255 characters"),
        (["a", "1", "--delay", "soon"], "'soon' is not a duration: write 90, 90s"),
        (["a", "1", "--at", "2030-01-01"], "ISO 8601 with UTC offset"),
        (["a", "1", "--delay", "1s", "--priority", "1"], "only one of"),
        (["a", "1", "--priority", "0"], "--priority"),
        (["a"], "Missing argument"),
    ],
)
def test_an_invalid_message_is_refused(lonnymq: Run, arguments: list[str], error: str) -> None:
    result = lonnymq("enqueue", *arguments)
    assert result.code == CommandExit.USAGE
    assert error in result.error_text


def test_messages_are_cancelled_by_id_or_key_after_confirmation(lonnymq: Run, queue: Queue) -> None:
    ids = [str(queue.enqueue("a", n, key=f"k{n}").id) for n in range(4)]
    for answer in ("", "n\n", "what\n"):
        refused = lonnymq("message", "cancel", ids[0], given=answer)
        assert (refused.code, refused.out) == (CommandExit.NO, "")
        assert refused.err.startswith("Cancel 1 message? [y/N]")
        assert "nothing was changed pass --yes to skip the question" in refused.error_text
    assert queue.status().waiting == 4
    assert lonnymq("message", "cancel", ids[0], given="y\n").code == 0
    result = lonnymq("message", "cancel", ids[0], ids[1], "--yes")
    assert result.code == CommandExit.NO
    assert [line.split() for line in result.out.splitlines()[2:]] == [
        [ids[0], "unknown"],
        [ids[1], "cancelled"],
    ]
    done = lonnymq("message", "cancel", "--channel", "a", "--key", "k2", "-y", "--json").json
    assert done == {"k2": "cancelled"}
    assert queue.status().waiting == 1
    for wrong in ([], ["1", "--key", "k"], ["--channel", "a"], ["1", "--channel", "a", "--key", "k"]):
        assert lonnymq("message", "cancel", *wrong, "--yes").code == CommandExit.USAGE


def test_dead_letters_are_listed_shown_redriven_and_purged(lonnymq: Run, queue: Queue) -> None:
    messages = [NewMessage(channel=name, payload={"n": n}) for name in "ab" for n in range(4)]
    queue.enqueue_many(messages)
    for message in queue.dequeue(8):
        message.bury(error="Traceback:\n  File x\nValueError: no disk")
    ids = [str(one["id"]) for one in lonnymq("dead", "list", "--channel", "a", "--json").json]
    shown = lonnymq("dead", "list", "--limit", "1").out.splitlines()[2]
    assert shown.endswith("ValueError: no disk")
    page = lonnymq("dead", "list", "--after", ids[1], "--channel", "a", "--json").json
    assert [str(one["id"]) for one in page] == ids[2:]
    whole = lonnymq("dead", "show", ids[0]).out
    assert "Traceback:" in whole
    assert '{"n":0}' in whole
    assert lonnymq("dead", "show", ids[0], "--json").json["content"] == {"n": 0}
    assert lonnymq("dead", "show", "999999").code == CommandExit.NO

    assert lonnymq("dead", "redrive", ids[0], "--json").json == {ids[0]: "redriven"}
    assert lonnymq("dead", "redrive", ids[0], "999999").code == CommandExit.NO
    assert lonnymq("dead", "purge", ids[1], "--yes", "--json").json == {ids[1]: "purged"}
    assert lonnymq("dead", "redrive", "--channel", "a", given="n\n").code == CommandExit.NO
    assert (
        lonnymq("dead", "redrive", "--channel", "a", given="y\n").out
        == "2 dead letters of channel 'a' redriven\n"
    )
    young = lonnymq("dead", "purge", "--channel", "b", "--older-than", "1h", "--yes", "--json").json
    assert young == {"purged": 0}
    assert lonnymq("dead", "purge", "--channel", "b", given="").code == CommandExit.NO
    assert (
        lonnymq("dead", "purge", "--channel", "b", "--yes").out == "4 dead letters of channel 'b' deleted\n"
    )
    assert queue.status().dead == 0
    for command in (
        ["redrive"],
        ["purge"],
        ["redrive", "1", "--channel", "a"],
        ["purge", "1", "--older-than", "1h"],
    ):
        assert lonnymq("dead", *command, "--yes").code == CommandExit.USAGE


def test_characters_that_the_encoding_lacks_are_escaped(shell: Run, queue: Queue) -> None:
    queue.enqueue("münchen \U0001f600", b'"\\ud800"')
    for encoding in ("utf-8", "ascii"):
        shown = shell("peek", "--json", PYTHONIOENCODING=encoding).json
        assert (shown[0]["channel"], shown[0]["content"]) == ("münchen \U0001f600", "\ud800")
    result = shell("peek", PYTHONIOENCODING="ascii")
    assert (result.code, "m\\xfcnchen" in result.out) == (0, True)


def test_a_closed_stdout_is_not_an_error(dsn: str) -> None:
    command = shlex.join([sys.executable, "-m", "lonnymq", "status"])
    result = subprocess.run(["sh", "-c", f"{command} >&-"], env=environment(dsn), check=False)
    assert result.returncode == 0


def test_dead_letters_are_redriven_and_purged_by_their_error(lonnymq: Run, queue: Queue) -> None:
    for error, count in {"no disk": 3, "Traceback\n  ...\nKeyError: 'k'": 2}.items():
        for _ in range(count):
            queue.enqueue("a", 1)
            queue.bury(queue.dequeue(1), error=error)
    groups = lonnymq("dead", "groups", "--json").json
    assert [(one["error"], one["letters"]) for one in groups["groups"]] == [
        ("no disk", 3),
        ("KeyError: 'k'", 2),
    ]
    assert groups["is_complete"]
    assert "KeyError: 'k'" in lonnymq("dead", "groups", "-c", "a").out
    assert lonnymq("dead", "redrive", "--error", "another").code == CommandExit.NO
    assert lonnymq("dead", "redrive", "1", "--error", "no disk").code == CommandExit.USAGE
    assert lonnymq("dead", "purge", "-e", "no disk", "--older-than", "1h").code == CommandExit.USAGE
    redriven = lonnymq("dead", "redrive", "-e", "KeyError: 'k'", "--yes", "--json").json
    assert set(redriven.values()) == {"redriven"}
    assert len(redriven) == queue.status().waiting == 2
    purged = lonnymq("dead", "purge", "--channel", "a", "--error", "no disk", "--yes", "--json").json
    assert len(purged) == 3
    assert queue.status().dead == 0
