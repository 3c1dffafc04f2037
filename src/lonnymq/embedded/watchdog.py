"""The parent's hold on its guardian: two pipes and the guardian process."""

import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Iterable
from pathlib import Path

from lonnymq.embedded import guardian
from lonnymq.embedded.environment import environment

_guards: "weakref.WeakSet[Guard]" = weakref.WeakSet()


class Guard:
    """Started before anything is made, so that there is no moment in which a kill leaves something behind."""

    def __init__(self, data_dir: Path, removed: Iterable[Path]) -> None:
        guardian_end, self._parent_fd = os.pipe()
        guardian_alive_end, self.alive_fd = os.pipe()
        script = [str(guardian_alive_end), str(data_dir), *map(str, removed)]
        try:
            self._process = subprocess.Popen(
                [_python(), "-I", "-S", guardian.__file__, *script],
                stdin=guardian_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=environment(),
                start_new_session=True,
                pass_fds=(guardian_alive_end,),
            )
        except BaseException:
            self.let_go()
            raise
        finally:
            os.close(guardian_end)
            os.close(guardian_alive_end)
        _guards.add(self)

    @property
    def pid(self) -> int:
        return self._process.pid

    def release(self) -> None:
        """Once the server has ended and its directories are gone, so that the guardian has nothing to do."""
        self.let_go()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def let_go(self) -> None:
        """The server's pipe first: the guardian must never believe that our server still runs."""
        for descriptor in (self.alive_fd, self._parent_fd):
            os.close(descriptor)
        _guards.discard(self)


def _python() -> str:
    return sys.executable or shutil.which("python3") or "python3"


def _let_go_in_forked_child() -> None:
    """A forked child that kept our pipes open would hide the parent's death from the guardian."""
    for guard in list(_guards):
        guard.let_go()


os.register_at_fork(after_in_child=_let_go_in_forked_child)
