"""Runs initdb: UTF8, the superuser `postgres`, and a random password that is kept in the cluster."""

import secrets
import signal
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lonnymq.embedded import private_files
from lonnymq.embedded.errors import ServerNotStarted
from lonnymq.embedded.runner import ProgramRunner

SUPERUSER = "postgres"
PASSWORD_FILE = "lonnymq.password"
LOCALES = ("C.UTF-8", "C")


@dataclass(frozen=True)
class Initdb:
    """A way to run initdb; `scratch_dir` is private to the server's user and removed with the server."""

    runner: ProgramRunner
    scratch_dir: Path
    alive_fd: int
    is_synced: bool

    def run(self, directory: Path) -> None:
        password = secrets.token_hex(16)
        password_file = self.scratch_dir / PASSWORD_FILE
        private_files.write(password_file, password, self.runner.account)
        for locale in LOCALES:
            code, output = self._attempt([*self._command(directory, password_file), f"--locale={locale}"])
            if "invalid locale name" not in output:
                break
        if code != 0:
            raise ServerNotStarted(f"initdb failed for {directory}:\n{output.strip()}")
        password_file.unlink()
        private_files.write(directory / PASSWORD_FILE, password, self.runner.account)

    def _command(self, directory: Path, password_file: Path) -> list[str]:
        command = ["initdb", "-D", str(directory), "-U", SUPERUSER, "-E", "UTF8", f"--pwfile={password_file}"]
        command += ["--auth-local=trust", "--auth-host=scram-sha-256"]
        command += [] if self.is_synced else ["--no-sync"]
        # Without this, initdb would remove the group's access to a directory of the caller.
        command += ["--allow-group-access"] if directory.stat().st_mode & stat.S_IRGRP else []
        return command

    def _attempt(self, command: list[str]) -> tuple[int, str]:
        process = self.runner.spawn(command, output=subprocess.PIPE, alive_fd=self.alive_fd)
        try:
            output, _ = process.communicate()
        except BaseException:
            process.send_signal(signal.SIGTERM)  # initdb then removes what it has created
            process.wait()
            raise
        return process.returncode, output.decode(errors="replace")
