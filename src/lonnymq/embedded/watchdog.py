"""The watchdog process as its parent sees it: the process and two pipes."""

import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Iterable
from pathlib import Path

from lonnymq.embedded import watchdog_main
from lonnymq.embedded.environment import environment

_watchdogs: "weakref.WeakSet[Watchdog]" = weakref.WeakSet()


class Watchdog:
    """Ends the server and removes temporary directories when the parent is gone, however it died.

    It is started before anything is created, so that a kill never leaves anything behind.
    """

    def __init__(self, data_dir: Path, dirs_to_remove: Iterable[Path]) -> None:
        watchdog_fd, self._parent_fd = os.pipe()
        watchdog_alive_fd, self.alive_fd = os.pipe()
        arguments = [str(watchdog_alive_fd), str(data_dir), *map(str, dirs_to_remove)]
        try:
            self._process = subprocess.Popen(
                [_python(), "-I", "-S", watchdog_main.__file__, *arguments],
                stdin=watchdog_fd,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=environment(),
                start_new_session=True,
                pass_fds=(watchdog_alive_fd,),
            )
        except BaseException:
            self.close_pipes()
            raise
        finally:
            os.close(watchdog_fd)
            os.close(watchdog_alive_fd)
        _watchdogs.add(self)

    @property
    def pid(self) -> int:
        return self._process.pid

    def release(self) -> None:
        """End the watchdog: the server has ended and its directories are gone."""
        self.close_pipes()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close_pipes(self) -> None:
        """Close the server's pipe first, so that the watchdog never believes that our server still runs."""
        for descriptor in (self.alive_fd, self._parent_fd):
            os.close(descriptor)
        _watchdogs.discard(self)


def _python() -> str:
    return sys.executable or shutil.which("python3") or "python3"


def _close_pipes_in_forked_child() -> None:
    """Keep a forked child from hiding the parent's death from the watchdog by open pipes."""
    for watchdog in list(_watchdogs):
        watchdog.close_pipes()


os.register_at_fork(after_in_child=_close_pipes_in_forked_child)
