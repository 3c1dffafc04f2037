"""Commands on a real terminal: the live table, confirmation, narrow windows, Ctrl-C."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.cells import cell_len

from lonnymq import NewMessage, Queue
from lonnymq.cli.exit_codes import CommandExit
from tests.cli.conftest import DEADLINE_S, environment
from tests.cli.test_workers import report

CONTROL_C = b"\x03"


class Terminal:
    """A command with a terminal for its stdin, stdout and stderr."""

    def __init__(self, process: "subprocess.Popen[bytes]", descriptor: int) -> None:
        self._process = process
        self._descriptor = descriptor
        self.shown = b""

    def wait_for(self, text: bytes) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            assert self._read(), self.shown

    def type(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def exit_code(self) -> int:
        """Read until the command ends, and return its exit code."""
        while self._read():
            pass
        return self._process.wait(DEADLINE_S)

    def _read(self) -> bool:
        if not select.select([self._descriptor], [], [], DEADLINE_S)[0]:
            return False
        try:
            read = os.read(self._descriptor, 65536)
        except OSError:
            return False  # the command has closed the terminal
        self.shown += read
        return bool(read)


@contextmanager
def terminal(
    dsn: str,
    *arguments: str,
    columns: int = 120,
    is_lonnymq: bool = True,
    cwd: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> Iterator[Terminal]:
    """Start `lonnymq` with these arguments, or another program, on a terminal."""
    controller, terminal_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", RUN_LONNYMQ if is_lonnymq else RUN_PROGRAM, *arguments],
        stdin=terminal_end,
        stdout=terminal_end,
        stderr=terminal_end,
        start_new_session=True,
        cwd=cwd,
        env=environment(dsn, TERM="xterm", COLUMNS=str(columns), LINES="30", **(more or {})),
    )
    os.close(terminal_end)
    try:
        yield Terminal(process, controller)
    finally:
        process.kill()
        process.wait(DEADLINE_S)
        os.close(controller)


# Ctrl-C reaches only a process that has the terminal as its controlling terminal.
TAKE_TERMINAL = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
RUN_LONNYMQ = f"{TAKE_TERMINAL}; from lonnymq.cli import main; sys.exit(main())"
RUN_PROGRAM = f"{TAKE_TERMINAL}; os.execvp(sys.argv[1], sys.argv[1:])"


def test_top_refreshes_until_control_c(dsn: str, queue: Queue) -> None:
    queue.enqueue("acme", 1)
    with terminal(dsn, "top", "--interval", "0.1") as screen:
        screen.wait_for(b"acme")
        queue.enqueue("newcomer", 1)
        screen.wait_for(b"newcomer")
        screen.type(CONTROL_C)
        assert screen.exit_code() == CommandExit.INTERRUPTED
    assert b"\x1b[?1049l" in screen.shown  # leave the alternate screen
    assert b"\x1b[?25h" in screen.shown  # show the cursor again
    assert b"Traceback" not in screen.shown


def test_watched_workers_are_seen_to_drain(dsn: str, queue: Queue) -> None:
    report(queue, "web:1")
    with terminal(dsn, "workers", "--watch", "--interval", "0.1", columns=200) as screen:
        screen.wait_for(b"1 working, 0 draining, 0 gone; 1 of 4 slots busy")
        queue.drain_workers("web")
        screen.wait_for(b"0 working, 1 draining, 0 gone; 0 of 0 slots busy")
        screen.type(CONTROL_C)
        assert screen.exit_code() == CommandExit.INTERRUPTED
    assert b"\x1b[?1049l" in screen.shown  # leave the alternate screen
    assert not {"\x9b", "\u202e"} & set(screen.shown.decode())


def test_cancelling_asks_for_confirmation_on_a_terminal(dsn: str, queue: Queue) -> None:
    made = queue.enqueue("acme", 1).id
    for keys, code in (
        (b"n\n", CommandExit.NO),
        (CONTROL_C, CommandExit.INTERRUPTED),
        (b"y\n", CommandExit.DONE),
    ):
        assert queue.status().waiting == 1
        with terminal(dsn, "message", "cancel", str(made)) as screen:
            screen.wait_for(b"Cancel 1 message? [y/N] ")
            screen.type(keys)
            assert screen.exit_code() == code, screen.shown
    assert queue.status().waiting == 0


def test_a_narrow_terminal_wraps_lines_but_shows_every_column(dsn: str, queue: Queue) -> None:
    queue.enqueue("acme", 1, delay=3600)
    for command, expected in (("channels", (b"acme", b"schedule")), ("status", (b"lonnymq,", b"current"))):
        with terminal(dsn, command, columns=25) as screen:
            assert screen.exit_code() == CommandExit.DONE
        assert [text for text in expected if text not in screen.shown] == [], screen.shown


LONG = "tenant-" + "x" * 240 + "-end"
WIDE = "東京" * 60


@pytest.mark.parametrize(
    ("columns", "headers"),
    [
        (50, "channel waiting leased reason"),
        (80, "channel waiting change leased cap oldest reason"),
        (120, "channel waiting change leased cap rate oldest reason"),
        (200, "channel waiting change leased cap rate oldest reason"),
    ],
)
def test_top_shows_each_channel_on_one_line_at_any_width(
    dsn: str, queue: Queue, columns: int, headers: str
) -> None:
    for name in (LONG, WIDE, "acme"):
        queue.channel(name).set(max_concurrency=1, release_interval_ms=300_000, release_burst=100)
        queue.enqueue_many([NewMessage(channel=name, payload=1)] * 3)
    queue.dequeue(1)
    with terminal(dsn, "top", "--count", "2", "--interval", "0.1", columns=columns) as screen:
        assert screen.exit_code() == CommandExit.DONE
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.shown.decode())
    frame = [line.rstrip() for line in text[text.rindex("3 channels") :].split("\n")]
    assert max(map(cell_len, frame)) <= columns, text
    assert headers in " ".join(" ".join(frame).split())
    for beginning in ("tenant-xxx", "東京", "acme"):
        [line] = [one for one in frame if one.startswith(beginning)]
        assert line.split()[-1] in ("capped", "ready", "throttled")
        # A long name gets all remaining width.
        assert ("…" in line) == (beginning != "acme")
        assert cell_len(line) > columns - len("throttled")
    # No figure is broken across lines.
    assert "0 workers asleep" in "\n".join(frame)


def test_top_says_one_channel_in_the_singular(dsn: str, queue: Queue) -> None:
    queue.enqueue("acme", 1)
    with terminal(dsn, "top", "--count", "1") as screen:
        assert screen.exit_code() == CommandExit.DONE
    assert b"channels" not in screen.shown
