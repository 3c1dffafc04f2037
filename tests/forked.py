"""Programs as forks of a process that has imported their modules, as that takes most of a start's CPU.

Each is a process of its own, with signals, an exit code and children. Tests of how programs start use
subprocess instead.
"""

import multiprocessing
import os
import runpy
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import TimeoutExpired

# Imported once per process of pytest: by the command line, by workers, and by commands of Django.
IMPORTED = ["lonnymq.cli.app", "typer._adapters", "tests.worker.program"]
IMPORTED += ["django.core.management.commands.migrate", "django.core.management.commands.makemigrations"]
IMPORTED += ["django.contrib.admin.apps", "django.contrib.auth.apps", "django.db.backends.postgresql.base"]

FORK_SERVER = multiprocessing.get_context("forkserver")
FORK_SERVER.set_forkserver_preload(IMPORTED)


class ForkedProgram:
    """`python -m MODULE ARGUMENTS` as a fork, used like subprocess.Popen.

    With `output`, that file is written instead of stdout and stderr.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        output: Path | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        if output is not None:
            output.touch()
        settings = (module, arguments, output, cwd or Path.cwd(), dict(os.environ if env is None else env))
        self._process = FORK_SERVER.Process(target=_run, args=settings)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutExpired(str(self._process), timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self._process.is_alive():
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(
    module: str, arguments: tuple[str, ...], output: Path | None, cwd: Path, env: dict[str, str]
) -> None:
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    if output is not None:
        descriptor = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.close(descriptor)
    sys.argv = [module, *arguments]
    sys.path.insert(0, str(cwd))
    # As the main module, so that processes that it starts import it too.
    runpy.run_module(module, run_name="__main__", alter_sys=True)
