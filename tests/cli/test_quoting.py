"""Untrusted names, errors and contents cannot control a terminal or a shell."""

import json
import logging
import os
import shutil
import subprocess
import sys
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest

from lonnymq import Queue, quoting, texts
from lonnymq.cli import log
from lonnymq.diagnostics import OverdueChannel
from lonnymq.doctor.findings import findings
from tests.cli.conftest import Run, environment
from tests.cli.test_doctor import NOW, QUEUE_FACTS, blocked_by, server
from tests.cli.test_terminal import terminal
from tests.conftest import Connect

# ESC, CSI of C1, bell, DEL, right-to-left override, isolate, zero width, soft hyphen, line separator, filler,
# byte order mark, a tag, private use.
CONTROL_CHARACTERS = "\x1b\x9b\x07\x7f\u202e\u2066\u200b\u00ad\u2028\u3164\ufeff\U000e0041\ue000"
HOSTILE = f"a{CONTROL_CHARACTERS}ü✓"
# A channel's name may not contain control characters.
CHANNEL = "".join(one for one in HOSTILE if unicodedata.category(one) != "Cc")
INJECTIONS = [
    "a$(touch pwned)",
    "a`touch pwned`",
    "a;touch pwned",
    "a' 'b",
    'a"b',
    "a\\b",
    "-a",
    "--yes",
    "a\nb",
    "~",
    "*",
]


@pytest.mark.parametrize("character", CONTROL_CHARACTERS)
def test_control_characters_are_shown_as_escapes(character: str) -> None:
    shown = texts.escape_hidden(f"a{character}b")
    assert character not in shown
    assert shown.encode("ascii").decode("unicode_escape") == f"a{character}b"
    text = quoting.json_line({"x": character})
    assert character not in text
    assert json.loads(text) == {"x": character}


def test_other_text_is_shown_unchanged() -> None:
    text = "line\n\tZürich, 東京, שלום, ✓ 🎉 a\u0301"
    assert texts.escape_hidden(text) == text
    assert texts.escape_hidden(text, keep="") == text.replace("\n", "\\n").replace("\t", "\\t")
    assert quoting.json_line([text[6:]]) == f'["{text[6:]}"]'


def test_no_command_prints_control_characters(lonnymq: Run, queue: Queue) -> None:
    queue.enqueue(CHANNEL, {HOSTILE: HOSTILE}, key=HOSTILE)
    queue.enqueue(CHANNEL, HOSTILE.encode())
    queue.enqueue("buried", 1)
    for message in queue.dequeue(3, worker=HOSTILE):
        if message.channel == "buried":
            message.bury(error=HOSTILE)
    dead = str(queue.dead().list()[0].id)
    queue.channel(CHANNEL).pause()
    commands = [
        ["channels"],
        ["peek"],
        ["peek", "--leased"],
        ["peek", CHANNEL],
        ["message", "show", "1"],
        ["channel", "explain", CHANNEL],
        ["channel", "set", CHANNEL, "--weight", "2"],
        ["channel", "pause", CHANNEL],
        ["dead", "list"],
        ["dead", "show", dead],
        ["top", "--count", "1"],
        ["doctor"],
        ["enqueue", CHANNEL, "1"],
        ["message", "cancel", "--channel", CHANNEL, "--key", HOSTILE, "--yes"],
        ["work", HOSTILE],
    ]
    for command in commands:
        for more in ([], ["--json"]):
            result = lonnymq(*command, *more)
            raw = [character for character in CONTROL_CHARACTERS if character in result.out + result.err]
            assert raw == [], (command, more, result)
    [found] = lonnymq("peek", CHANNEL, "--leased", "--json", "--limit", "1").json
    assert (found["channel"], found["worker"]) == (CHANNEL, HOSTILE)


def test_a_line_break_in_a_name_does_not_look_like_another_row(lonnymq: Run, queue: Queue) -> None:
    queue.enqueue("acme", 1, key="a\nforged")
    rows = lonnymq("peek").out.splitlines()
    assert [row for row in rows if row.startswith("forged")] == []
    assert "a\\nforged" in rows[-1]


def test_the_live_table_shows_escapes_too(dsn: str, queue: Queue) -> None:
    queue.enqueue("a\u202eb\u200bc", 1)
    with terminal(dsn, "top", "--count", "1") as screen:
        assert screen.exit_code() == 0
    assert rb"a\u202eb\u200bc" in screen.shown


def test_a_log_line_cannot_control_the_terminal() -> None:
    record = logging.makeLogRecord({"msg": "bad %s", "args": (HOSTILE,), "levelname": "INFO", "of": HOSTILE})
    record.ratio = float("nan")
    text, line = log.TextFormatter().format(record), log.JsonFormatter().format(record)
    assert [character for character in CONTROL_CHARACTERS if character in text + line] == []
    assert json.loads(line)["of"] == HOSTILE


@pytest.mark.parametrize("name", [*INJECTIONS, HOSTILE, f"{HOSTILE}'\\", "acme"])
def test_a_name_in_a_suggested_command_stays_one_argument(name: str, tmp_path: Path) -> None:
    """Run the suggested commands with a `lonnymq` that prints its arguments."""
    paused = OverdueChannel(name, "paused", 5, 0, 120.0)
    facts = replace(server(role=name), channels=(paused, replace(paused, reason="ready")))
    facts = replace(facts, privileges=replace(facts.privileges, functions=()))
    advice = [one.advice for one in findings(facts, QUEUE_FACTS, NOW) if one.advice]
    commands = [one[one.index("lonnymq ") :].partition("|")[0] for one in advice if "lonnymq " in one]
    assert len(commands) == 4
    for command in commands:
        assert texts.escape_hidden(command, keep="") == command
        script = "lonnymq() { printf '%s\\0' \"$@\"; }\n" + command
        answer = subprocess.run(
            ["bash", "-c", script], capture_output=True, check=True, cwd=tmp_path, env={"LC_ALL": "C.UTF-8"}
        )
        printed = answer.stdout.decode().split("\0")[:-1]
        place = 1 if printed[0] == "grant" else 2
        assert (printed[place + 1] if printed[place] == "--" else printed[place]) == name
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [*INJECTIONS, HOSTILE, "a\\'b"])
def test_a_name_in_suggested_sql_stays_one_value(name: str, connect: Connect) -> None:
    rows = connect().execute(f"select {quoting.sql_literal(name)} as {quoting.sql_identifier(name)}".encode())
    assert rows.fetchone() == (name,)
    assert rows.description is not None
    assert rows.description[0].name == name
    slot = blocked_by(None, "replication slot")
    facts = replace(slot, vacuum_blockers=(replace(slot.vacuum_blockers[0], name=name),))
    assert any(quoting.sql_literal(name) in one.advice for one in findings(facts, QUEUE_FACTS, NOW))


@pytest.mark.parametrize("program", ["bash", "zsh", "fish"])
def test_completion_offers_no_name_that_a_shell_would_run(
    program: str, dsn: str, queue: Queue, tmp_path: Path
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    for name in ("billing$(touch pwned)", "bills`touch pwned`", "bird;touch pwned", "bison.eu-1:a@b"):
        queue.enqueue(name, 1)
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin" / "lonnymq"
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lonnymq "$@"\n')
    wrapper.chmod(0o755)
    path = f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}"
    more = {"PATH": path, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = subprocess.run(
        ["lonnymq", "--show-completion", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment(dsn, **more),
    ).stdout
    (tmp_path / "completion").write_text(script)
    start = {
        "bash": ["bash", "--norc", "-i"],
        "zsh": ["zsh", "-f", "-i"],
        "fish": ["fish", "--no-config", "-i"],
    }[program]
    prepare = {"zsh": "autoload -Uz compinit && compinit -u; "}.get(program, "")
    with terminal(dsn, *start, is_lonnymq=False, cwd=tmp_path, more=more) as screen:
        screen.type(f"{prepare}source ./completion; echo rea''dy\n".encode())
        screen.wait_for(b"ready")
        for beginning, ending in (("bill", b"bill"), ("bird", b"bird"), ("bis", b"bison.eu-1:a@b")):
            screen.type(f"echo lonnymq; lonnymq peek {beginning}\t".encode())
            screen.wait_for(ending)
            screen.type(b"\n")
        screen.type(b"echo fini''shed\nexit\n")
        screen.wait_for(b"finished")
        screen.exit_code()
    assert not (tmp_path / "pwned").exists(), screen.shown
