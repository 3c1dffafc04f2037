"""A process that outlives a killed parent, to end the server and remove the temporary directories.

    python -I -S guardian.py ALIVE_FD DATA_DIR [DIRECTORY_TO_REMOVE ...]

The parent holds the other end of standard input and never writes: end of file means that it is gone, however
it died. ALIVE_FD is a pipe that initdb, postgres and every backend inherit: end of file means that all of
them are gone. When the parent has cleaned up itself, both ends come at once and there is nothing left to do.
"""

import importlib.util
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path
from types import ModuleType

# Fast, then immediate, then kill -9: each with its patience in seconds.
WAYS_TO_END = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0))


def main(alive_fd: int, data_dir: Path, removed: list[Path]) -> None:
    ignore_signals()
    postmaster = load_postmaster()
    wait_for_end_of_file(sys.stdin.fileno())
    end_server(postmaster, alive_fd, data_dir)
    if any(path in data_dir.parents for path in removed):
        postmaster.free_shared_memory(data_dir)
    for path in removed:
        shutil.rmtree(path, ignore_errors=True)


def ignore_signals() -> None:
    """A service manager signals every process of the service; our end is the parent's end, nothing else."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def load_postmaster() -> ModuleType:
    """By path: importing it through the package would load all of the project into this small process."""
    spec = importlib.util.spec_from_file_location("postmaster", Path(__file__).with_name("postmaster.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["postmaster"] = module
    spec.loader.exec_module(module)
    return module


def wait_for_end_of_file(descriptor: int) -> None:
    while os.read(descriptor, 1024):
        pass


def end_server(postmaster: ModuleType, alive_fd: int, data_dir: Path) -> None:
    """Only ever signals one postmaster: after its end the directory may belong to someone else's."""
    pid: int | None = None
    for number, patience_s in WAYS_TO_END:
        deadline = time.monotonic() + patience_s
        is_signalled = False
        while not is_at_end_of_file(alive_fd) and time.monotonic() < deadline:
            # Not there at once if the parent died before postgres had written its pid file.
            pid = pid or postmaster.running_pid(data_dir)
            if pid is not None and not is_signalled and postmaster.running_pid(data_dir) == pid:
                end_postmaster(postmaster, pid, number)
                is_signalled = True


def end_postmaster(postmaster: ModuleType, pid: int, number: signal.Signals) -> None:
    if number is signal.SIGKILL:
        postmaster.kill_with_backends(pid)
    else:
        postmaster.signal_process(pid, number)


def is_at_end_of_file(descriptor: int) -> bool:
    """Waits a moment for it; nobody writes to this pipe, so readable means ended."""
    readable, _, _ = select.select([descriptor], [], [], 0.05)
    return bool(readable)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
