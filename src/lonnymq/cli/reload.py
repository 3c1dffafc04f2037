"""Start a command again whenever a .py file below the working directory changes; for development."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from lonnymq.cli.show import console
from lonnymq.texts import visible

LOOK_S = 0.5
# Set for the process that is started again and again; its stdin ends when its parent does.
WATCHED = "LONNYMQ_WATCHED"
# How long the worker may finish; it has its own deadline, this one is for a worker that ignores it.
PATIENCE_S = 60.0


def run(arguments: Sequence[str]) -> int:
    """Run `lonnymq` with these arguments, without --reload, until a signal comes; return its exit code."""
    command = [sys.executable, "-m", "lonnymq", *(one for one in arguments if one != "--reload")]
    ended = threading.Event()
    before = _stamps()
    child = _started(command)

    def end(number: int, frame: object) -> None:
        if ended.is_set():
            # The second time: now.
            child.terminate()
        ended.set()

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)
    while not ended.wait(LOOK_S):
        now = _stamps()
        if now == before:
            continue
        _tell(f"{_changed(before, now)} changed: starting again")
        before = now
        _stop(child)
        if not ended.is_set():
            child = _started(command)
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


def _started(command: Sequence[str]) -> "subprocess.Popen[bytes]":
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


def _stamps() -> dict[Path, int]:
    stamps = {}
    for path in _sources(Path.cwd()):
        try:
            stamps[path] = path.stat().st_mtime_ns
        except OSError:
            continue  # gone in this very moment
    return stamps


def _sources(folder: Path) -> Iterator[Path]:
    """Yield .py files, but none of hidden folders and virtual environments."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            is_skipped = entry.name.startswith(".") or entry.name in ("__pycache__", "node_modules")
            if not is_skipped and not (entry / "pyvenv.cfg").exists():
                yield from _sources(entry)
        elif entry.suffix == ".py":
            yield entry


def _changed(before: dict[Path, int], now: dict[Path, int]) -> str:
    paths = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
    return str(paths[0].relative_to(Path.cwd()))


def _tell(text: str) -> None:
    console(is_error=True).print(visible(text), style="dim")
