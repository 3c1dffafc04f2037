"""The data directory: judged before anything is touched, then made whole or not at all."""

import os
import secrets
import stat
from pathlib import Path

from lonnymq.embedded import places
from lonnymq.embedded.account import Account
from lonnymq.embedded.errors import DataDirRefused
from lonnymq.embedded.exclusive import alone_in
from lonnymq.embedded.initdb import PASSWORD_FILE, Initdb
from lonnymq.embedded.programs import Programs

ACCEPTED_MODES = (0o700, 0o750)


def is_cluster(data_dir: Path) -> bool:
    return (data_dir / "PG_VERSION").is_file()


def refuse_unusable(data_dir: Path, account: Account) -> None:
    """A directory must be absent, or empty, or a cluster; and one that we did not make must fit as it is."""
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
            f"{data_dir} has mode {mode:04o}; PostgreSQL accepts 0700 or 0750 only, and its mode is not ours "
            f"to change. {_another(data_dir)}"
        )
    if not is_cluster(data_dir) and any(data_dir.iterdir()):
        raise DataDirRefused(
            f"{data_dir} is not empty and is no PostgreSQL data directory; nothing in it was touched. "
            f"{_another(data_dir)}"
        )


def refuse_other_major(data_dir: Path, programs: Programs) -> None:
    major = (data_dir / "PG_VERSION").read_text().strip()
    if major != str(programs.major):
        raise DataDirRefused(
            f"{data_dir} was made by PostgreSQL {major}, and the binaries in {programs.binaries.bin_dir} are "
            f"PostgreSQL {programs.major}. Pass binaries= of PostgreSQL {major}, or another data_dir."
        )


def building_name(data_dir: Path) -> Path:
    """Beside its future place, so that one rename puts a complete cluster there or none."""
    return data_dir.with_name(f".{data_dir.name}.{secrets.token_hex(8)}")


def make(data_dir: Path, building: Path, initdb: Initdb, deadline: float) -> None:
    """Makes the cluster beside `data_dir` and renames it there, or inside it if the caller has made it."""
    account = initdb.programs.account
    if data_dir.exists():
        with alone_in(data_dir, deadline):
            if not is_cluster(data_dir):
                initdb.run(data_dir)
        return
    _make_parents(data_dir.parent, account)
    places.make_private(building, account)
    initdb.run(building)
    try:
        building.rename(data_dir)
    except OSError:
        if not is_cluster(data_dir):
            raise
        places.remove((building,))  # another process was faster; its cluster is as good as ours


def read_password(data_dir: Path) -> str:
    try:
        with open(places.open_owned(data_dir / PASSWORD_FILE, os.O_RDONLY)) as file:
            return file.read().strip()
    except FileNotFoundError:
        raise DataDirRefused(
            f"{data_dir} was not made by lonnymq, so the password of its superuser is not known: "
            "use the unix socket (leave out port=)."
        ) from None


def _refuse_unreachable(data_dir: Path, account: Account) -> None:
    if not account.is_borrowed:
        return
    for parent in reversed(data_dir.parents):
        if parent.exists() and not account.can_enter(parent):
            mode = stat.S_IMODE(parent.stat().st_mode)
            raise DataDirRefused(
                f"PostgreSQL refuses to run as root and runs as {account.name!r}, who cannot enter {parent} "
                f"(mode {mode:04o}), where data_dir {data_dir} lies. Choose a data_dir elsewhere, "
                "or run as a normal user."
            )


def _make_parents(directory: Path, account: Account) -> None:
    """Those made here let a borrowed account through, whatever the umask; those found stay as they are."""
    if directory.exists():
        return
    _make_parents(directory.parent, account)
    directory.mkdir(exist_ok=True)
    if account.is_borrowed:
        directory.chmod(0o711)


def _another(data_dir: Path) -> str:
    return f"Name a directory that does not exist yet, such as {data_dir / 'postgresql'}."
