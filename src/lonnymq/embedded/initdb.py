"""A run of initdb: UTF8, the superuser `postgres`, and a random password kept inside the cluster."""

import secrets
import signal
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lonnymq.embedded import places
from lonnymq.embedded.errors import ServerNotStarted
from lonnymq.embedded.programs import Programs

SUPERUSER = "postgres"
PASSWORD_FILE = "lonnymq.password"
LOCALES = ("C.UTF-8", "C")


@dataclass(frozen=True)
class Initdb:
    """`scratch_dir` is private to the server's user and removed with the server."""

    programs: Programs
    scratch_dir: Path
    alive_fd: int
    is_synced: bool

    def run(self, place: Path) -> None:
        password = secrets.token_hex(16)
        password_file = self.scratch_dir / PASSWORD_FILE
        places.write_private(password_file, password, self.programs.account)
        for locale in LOCALES:
            code, output = self._attempt([*self._command(place, password_file), f"--locale={locale}"])
            if "invalid locale name" not in output:
                break
        if code != 0:
            raise ServerNotStarted(f"initdb failed for {place}:\n{output.strip()}")
        password_file.unlink()
        places.write_private(place / PASSWORD_FILE, password, self.programs.account)

    def _command(self, place: Path, password_file: Path) -> list[str]:
        command = ["initdb", "-D", str(place), "-U", SUPERUSER, "-E", "UTF8", f"--pwfile={password_file}"]
        command += ["--auth-local=trust", "--auth-host=scram-sha-256"]
        command += [] if self.is_synced else ["--no-sync"]
        # Without this, initdb would take the group's access away from a directory that is the caller's.
        command += ["--allow-group-access"] if place.stat().st_mode & stat.S_IRGRP else []
        return command

    def _attempt(self, command: list[str]) -> tuple[int, str]:
        process = self.programs.spawn(command, output=subprocess.PIPE, alive_fd=self.alive_fd)
        try:
            output, _ = process.communicate()
        except BaseException:
            process.send_signal(signal.SIGTERM)  # initdb then removes what it has made
            process.wait()
            raise
        return process.returncode, output.decode(errors="replace")
