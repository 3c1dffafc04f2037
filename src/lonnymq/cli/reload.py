"""Start a command again whenever a .py file below the working directory changes; for development."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from lonnymq.cli.exits import Exit
from lonnymq.cli.show import console, warn
from lonnymq.errors import install_advice
from lonnymq.texts import visible

# Set for the process that is started again and again; its stdin ends when its parent does.
WATCHED = "LONNYMQ_WATCHED"
# How long the worker may finish; it has its own deadline, this one is for a worker that ignores it.
PATIENCE_S = 60.0


def run(arguments: Sequence[str]) -> int:
    """Run `lonnymq` with these arguments, without --reload, until a signal comes; return its exit code."""
    try:
        from watchfiles import PythonFilter, watch
    except ImportError:
        warn("--reload needs watchfiles", install_advice("cli"))
        return Exit.USAGE
    folder = Path.cwd()
    command = [sys.executable, "-m", "lonnymq", *(one for one in arguments if one != "--reload")]
    ended = threading.Event()
    child = _start(command)

    def end(number: int, frame: object) -> None:
        if ended.is_set():
            # The second time: now.
            child.terminate()
        ended.set()

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)
    for changes in watch(
        folder, watch_filter=PythonFilter(), stop_event=ended, ignore_permission_denied=True
    ):
        _tell(f"{min(Path(path).relative_to(folder) for _, path in changes)} changed: starting again")
        _stop(child)
        if not ended.is_set():
            child = _start(command)
    _stop(child)
    # Negative: it died of the signal, before it had learned to end in its own way.
    return max(child.returncode, 0)


def end_with_parent() -> None:
    """Have this process end when the one that watches the files is gone, however that ended."""
    if not os.environ.get(WATCHED):
        return

    def wait() -> None:
        os.read(sys.stdin.fileno(), 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def _start(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    # In a session of its own: Ctrl-C comes to this process, which passes it on, once.
    environment = {**os.environ, WATCHED: "1"}
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=environment)


def _stop(child: "subprocess.Popen[bytes]") -> None:
    child.terminate()
    try:
        child.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _tell(text: str) -> None:
    console(is_error=True).print(visible(text), style="dim")
