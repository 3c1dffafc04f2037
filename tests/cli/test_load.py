"""load: messages from files and pipes, all or none."""

import json
import os
from pathlib import Path

import pytest

from lonnymq import Queue
from lonnymq.cli.exit_codes import CommandExit
from tests.cli.conftest import DEADLINE_S, Run, Start

JSON_LINES = """
{"channel": "a", "payload": {"n": 1}, "key": "k", "max_attempts": 3}
{"channel": "b", "payload": null, "delay": "1h"}

{"channel": "b", "payload": "ü", "priority": 4, "headers": {"region": "eu"}}
{"channel": "c", "payload": 1, "at": "2100-01-01T00:00Z", "key": null}
"""
CSV = """channel,payload,key,delay,priority,max_attempts,headers
a,"{""n"": 1}",k,,,3,"{""region"": ""eu""}"
b,null,,1h,,,
b,"[1,
2]",,,4,,
"""


def contents(queue: Queue) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for one in queue.peek(limit=1000):
        found.setdefault(one.channel, []).append(one.content)
    return found


def test_json_lines_are_loaded_with_their_options(lonnymq: Run, queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "some file.jsonl"
    file.write_text("\ufeff" + JSON_LINES.strip(), encoding="utf-8")
    result = lonnymq("load", str(file))
    assert (result.code, result.out, result.err) == (0, "4 messages loaded\n", "")
    assert contents(queue) == {"a": [b'{"n":1}'], "b": [b"null", '"ü"'.encode()], "c": [b"1"]}
    (first,) = queue.peek("a")
    assert (first.key, first.max_attempts) == ("k", 3)
    urgent, later = queue.peek("b")
    assert (urgent.dequeue_at, later.status) == (-4, "scheduled")
    assert (urgent.headers, later.headers) == ({"region": "eu"}, {})
    assert queue.peek("c")[0].dequeue_at == 4_102_444_800_000
    again = lonnymq("load", str(file), "--json").json
    assert (again["created"], again["duplicates"]) == (3, 1)


def test_csv_is_loaded_by_its_header(lonnymq: Run, queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "messages.csv"
    file.write_text(CSV, encoding="utf-8")
    assert lonnymq("load", str(file)).out == "3 messages loaded\n"
    assert contents(queue) == {"a": [b'{"n":1}'], "b": [b"null", b"[1,2]"]}
    assert (queue.peek("a")[0].max_attempts, queue.peek("a")[0].headers) == (3, {"region": "eu"})
    assert queue.peek("b")[0].dequeue_at == -4


def test_a_csv_cell_may_be_as_large_as_a_message(lonnymq: Run, queue: Queue) -> None:
    large = "x" * 200_000
    assert lonnymq("load", "--format", "csv", given=f'channel,payload\na,"""{large}"""\n').code == 0
    assert queue.peek("a", preview_bytes=None)[0].content == f'"{large}"'.encode()


def test_with_a_channel_option_whole_rows_are_payloads(lonnymq: Run, queue: Queue) -> None:
    assert lonnymq("load", "--channel", "a", given='{"x": 1}\n[2]\n"three"\n').code == 0
    assert lonnymq("load", "-", "--channel", "b", "--format", "csv", given="id,name\n7,Ann\n").code == 0
    assert contents(queue) == {"a": [b'{"x":1}', b"[2]", b'"three"'], "b": [b'{"id":"7","name":"Ann"}']}


def test_a_publication_is_loaded_once_from_a_pipe(shell: Run, queue: Queue) -> None:
    lines = "".join(json.dumps({"channel": f"c{n % 7}", "payload": n}) + "\n" for n in range(5_000))
    first = shell("load", "--publication", "orders-1", given=lines)
    assert (first.code, first.out) == (0, "5,000 messages loaded\n"), first
    second = shell("load", "--publication", "orders-1", given=lines)
    assert second.out == "'orders-1' was already loaded (5,000 messages): nothing was added\n"
    assert queue.status().waiting == 5_000


@pytest.mark.parametrize(
    ("text", "options", "error"),
    [
        ('{"channel": "a", "payload": 1}\n{oops\n', [], "line 2: not JSON"),
        (
            '{"channel": "a", "payload": 1}\n\n{"channel": "a"}\n',
            [],
            "line 3: payload missing; with --channel,",
        ),
        ("7\n", [], "line 1: a line must be an object with channel and payload"),
        (
            '{"channel": "a", "payload": 1, "prio": 1}\n',
            [],
            "line 1: unknown name 'prio'; allowed are channel, payload",
        ),
        ('{"channel": "", "payload": 1}\n', [], "line 1: channel must be 1 to 255 characters"),
        ('{"channel": "a", "payload": 1, "delay": "soon"}\n', [], "line 1: 'soon' is not a duration"),
        ('{"channel": "a", "payload": 1, "at": "2030"}\n', [], "line 1: '2030' is not a time"),
        ('{"channel": "a", "payload": 1, "max_attempts": 0}\n', [], "line 1: max_attempts must be"),
        ("channel,payload\na\n", ["--format", "csv"], "line 2: 1 cell for 2 columns"),
        ("channel,payload\na,oops\n", ["--format", "csv"], "line 2: not JSON"),
        ("channel,channel\n", ["--format", "csv"], "line 1: duplicate column names: channel, channel"),
        ("channel,text\n", ["--format", "csv"], "line 1: payload missing"),
        ('channel,payload\na,"1\n', ["--format", "csv"], "not CSV"),
        ("channel,payload,priority\na,1,high\n", ["--format", "csv"], "line 2: priority must be"),
        ("1\n", ["--channel", "a", "--publication", ""], "publication must be 1 to 255 characters"),
    ],
)
def test_an_invalid_line_is_named_and_nothing_is_loaded(
    lonnymq: Run, queue: Queue, text: str, options: list[str], error: str
) -> None:
    for more in ([], ["--dry-run"]):
        result = lonnymq("load", *options, *more, given=text)
        if more and "publication" in error:
            continue
        assert result.code == CommandExit.USAGE
        assert error in result.error_text
    assert queue.status().waiting == 0


def test_bytes_that_are_not_utf8_are_refused(lonnymq: Run) -> None:
    assert "line 2: not UTF-8" in lonnymq("load", "--channel", "a", given=b"1\n\xff\n").error_text


def test_a_dry_run_checks_everything_and_loads_nothing(lonnymq: Run, queue: Queue) -> None:
    result = lonnymq("load", "--dry-run", given=JSON_LINES)
    assert result.out == "4 messages read, all valid; nothing was loaded\n"
    assert lonnymq("load", "--dry-run", "--json", given=JSON_LINES).json == {"messages": 4}
    assert queue.status().waiting == 0


def test_a_missing_file_or_a_directory_is_refused(lonnymq: Run, tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "nothing.jsonl", "there is no file"), (tmp_path, "is a directory")):
        refused = lonnymq("load", str(path))
        assert refused.code == CommandExit.USAGE
        assert reason in " ".join(refused.err.split())


def test_a_named_pipe_can_be_loaded(start: Start, queue: Queue, tmp_path: Path) -> None:
    pipe = tmp_path / "orders.jsonl"
    os.mkfifo(pipe)
    process = start("load", str(pipe), "--channel", "a")
    pipe.write_text("1\n2\n", encoding="utf-8")
    assert process.wait(DEADLINE_S) == CommandExit.DONE
    assert contents(queue) == {"a": [b"1", b"2"]}
