"""The data directory: checked before anything is changed, then created completely or not at all."""

import os
import secrets
import stat
from pathlib import Path

from lonnymq.embedded import private_files
from lonnymq.embedded.account import Account
from lonnymq.embedded.directory_lock import lock_directory
from lonnymq.embedded.errors import DataDirRefused
from lonnymq.embedded.initdb import PASSWORD_FILE, Initdb
from lonnymq.embedded.runner import ProgramRunner

ACCEPTED_MODES = (0o700, 0o750)


def is_cluster(data_dir: Path) -> bool:
    return (data_dir / "PG_VERSION").is_file()


def refuse_unusable(data_dir: Path, account: Account) -> None:
    """Refuse a directory that is not missing, empty or a cluster, or whose owner or mode does not fit."""
    _refuse_unreachable(data_dir, account)
    if not os.path.lexists(data_dir):
        return
    if not data_dir.is_dir():
        raise DataDirRefused(f"{data_dir} is not a directory")
    status = data_dir.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != account.uid:
        raise DataDirRefused(
            f"{data_dir} belongs to user id {status.st_uid}, but PostgreSQL would run as {account.name!r} "
            f"(user id {account.uid}) and must own its data directory. {_another(data_dir)}"
        )
    if mode not in ACCEPTED_MODES:
        raise DataDirRefused(
            f"{data_dir} has mode {mode:04o}, but PostgreSQL accepts only 0700 or 0750, and the mode of an "
            f"existing directory is not changed. {_another(data_dir)}"
        )
    if not is_cluster(data_dir) and any(data_dir.iterdir()):
        raise DataDirRefused(
            f"{data_dir} is not empty and is not a PostgreSQL data directory; nothing in it was changed. "
            f"{_another(data_dir)}"
        )


def refuse_other_major(data_dir: Path, runner: ProgramRunner) -> None:
    major = (data_dir / "PG_VERSION").read_text().strip()
    if major != str(runner.major):
        raise DataDirRefused(
            f"{data_dir} was made by PostgreSQL {major}, but the binaries in {runner.binaries.bin_dir} are "
            f"PostgreSQL {runner.major}. Pass binaries= of PostgreSQL {major}, or another data_dir."
        )


def build_path(data_dir: Path) -> Path:
    """Return a path next to `data_dir`, so that a single rename puts a complete cluster there."""
    return data_dir.with_name(f".{data_dir.name}.{secrets.token_hex(8)}")


def make(data_dir: Path, build_dir: Path, initdb: Initdb, deadline: float) -> None:
    """Make the cluster next to `data_dir` and rename it; if `data_dir` exists already, make it there."""
    account = initdb.runner.account
    if data_dir.exists():
        with lock_directory(data_dir, deadline):
            if not is_cluster(data_dir):
                initdb.run(data_dir)
        return
    _make_parents(data_dir.parent, account)
    private_files.make_directory(build_dir, account)
    initdb.run(build_dir)
    try:
        build_dir.rename(data_dir)
    except OSError:
        if not is_cluster(data_dir):
            raise
        private_files.remove_directories(
            (build_dir,)
        )  # another process was faster, and its cluster is equivalent


def read_password(data_dir: Path) -> str:
    try:
        with open(private_files.open_no_follow(data_dir / PASSWORD_FILE, os.O_RDONLY)) as file:
            return file.read().strip()
    except FileNotFoundError:
        raise DataDirRefused(
            f"{data_dir} was not made by lonnymq, so the password of its superuser is unknown: "
            "use the unix socket (leave out port=)"
        ) from None


def _refuse_unreachable(data_dir: Path, account: Account) -> None:
    if not account.is_other_user:
        return
    for parent in reversed(data_dir.parents):
        if parent.exists() and not account.can_enter(parent):
            mode = stat.S_IMODE(parent.stat().st_mode)
            raise DataDirRefused(
                f"PostgreSQL refuses to run as root, so it runs as {account.name!r}, which cannot enter "
                f"{parent} (mode {mode:04o}), a parent of data_dir {data_dir}: choose another data_dir, or "
                "run as a normal user"
            )


def _make_parents(directory: Path, account: Account) -> None:
    """Make the parent directories, passable for another user; existing ones stay unchanged."""
    if directory.exists():
        return
    _make_parents(directory.parent, account)
    directory.mkdir(exist_ok=True)
    if account.is_other_user:
        directory.chmod(0o711)


def _another(data_dir: Path) -> str:
    return f"Pass a directory that does not exist yet, such as {data_dir / 'postgresql'}."
