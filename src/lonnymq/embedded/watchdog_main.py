"""The program of the watchdog process, which outlives a killed parent to end the server and clean up.

    python -I -S watchdog_main.py ALIVE_FD DATA_DIR [DIRECTORY_TO_REMOVE ...]

The parent holds the other end of standard input and never writes, so end of file means that the parent is
gone, however it died. ALIVE_FD is a pipe that initdb, postgres and every backend inherit, so end of file
means that all of them are gone. If the parent has cleaned up, both come at once and nothing is left to do.
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

# A fast shutdown, then an immediate one, then kill -9, each with its timeout in seconds.
SHUTDOWN_SIGNALS = ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0))


def main(alive_fd: int, data_dir: Path, dirs_to_remove: list[Path]) -> None:
    ignore_signals()
    postmaster = load_postmaster()
    wait_for_end_of_file(sys.stdin.fileno())
    stop_server(postmaster, alive_fd, data_dir)
    if any(path in data_dir.parents for path in dirs_to_remove):
        postmaster.free_shared_memory(data_dir)
    for path in dirs_to_remove:
        shutil.rmtree(path, ignore_errors=True)


def ignore_signals() -> None:
    """A service manager signals every process of a service, but only the parent's end may end this one."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def load_postmaster() -> ModuleType:
    """Load the module by path: importing the package would load the whole project into this small process."""
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


def stop_server(postmaster: ModuleType, alive_fd: int, data_dir: Path) -> None:
    """Signal only one postmaster: after its end, another server may use the directory."""
    pid: int | None = None
    for number, timeout_s in SHUTDOWN_SIGNALS:
        deadline = time.monotonic() + timeout_s
        is_signaled = False
        while not is_at_end_of_file(alive_fd) and time.monotonic() < deadline:
            # There is no pid yet if the parent died before postgres wrote its pid file.
            pid = pid or postmaster.running_pid(data_dir)
            if pid is not None and not is_signaled and postmaster.running_pid(data_dir) == pid:
                stop_postmaster(postmaster, pid, number)
                is_signaled = True


def stop_postmaster(postmaster: ModuleType, pid: int, number: signal.Signals) -> None:
    if number is signal.SIGKILL:
        postmaster.kill_with_backends(pid)
    else:
        postmaster.signal_process(pid, number)


def is_at_end_of_file(descriptor: int) -> bool:
    """Wait a moment for end of file; nothing is written to this pipe, so that is when it becomes readable."""
    readable, _, _ = select.select([descriptor], [], [], 0.05)
    return bool(readable)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
