"""Restart a command whenever a .py file below the working directory changes; for development."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from lonnymq.cli.exit_codes import CommandExit
from lonnymq.cli.output import console, print_error
from lonnymq.errors import install_advice
from lonnymq.texts import escape_hidden

# Set in the restarted process; its stdin is closed when its parent ends.
RELOADED = "LONNYMQ_RELOADED"
# Only for a worker that ignores its own shutdown deadline.
KILL_AFTER_S = 60.0


def run(command: Sequence[str]) -> int:
    """Run a command until a signal comes, again after each change; return its exit code."""
    try:
        from watchfiles import PythonFilter, watch
    except ImportError:
        print_error("--reload needs watchfiles", install_advice("cli"))
        return CommandExit.USAGE
    folder = Path.cwd()
    ended = threading.Event()
    child = _start(command)

    def on_signal(number: int, frame: object) -> None:
        if ended.is_set():
            # A second signal does not wait for running handlers.
            child.terminate()
        ended.set()

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), on_signal)
    for changes in watch(
        folder, watch_filter=PythonFilter(), stop_event=ended, ignore_permission_denied=True
    ):
        _log(f"{min(Path(path).relative_to(folder) for _, path in changes)} changed: restarting")
        _stop(child)
        if not ended.is_set():
            child = _start(command)
    _stop(child)
    # Negative if the signal killed it before it had installed its own handler.
    return max(child.returncode, 0)


def end_with_parent() -> None:
    """End this process when the one that watches the files has ended, however that happened."""
    if not os.environ.get(RELOADED):
        return

    def wait_for_parent() -> None:
        os.read(sys.stdin.fileno(), 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_for_parent, daemon=True).start()


def _start(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    # In its own session, so that Ctrl-C reaches only this process, which passes it on once.
    environment = {**os.environ, RELOADED: "1"}
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=environment)


def _stop(child: "subprocess.Popen[bytes]") -> None:
    child.terminate()
    try:
        child.wait(KILL_AFTER_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _log(text: str) -> None:
    console(is_error=True).print(escape_hidden(text), style="dim")
