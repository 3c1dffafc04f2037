"""Files and directories that only the server's user may read."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lonnymq.embedded.account import Account
from lonnymq.embedded.errors import EmbeddedError

# The path of a socket has at most 107 bytes on Linux and 103 on macOS.
SOCKET_PATH_BYTES = 103
LONGEST_SOCKET_NAME = ".s.PGSQL.65535"


def choose_directory(account: Account, *, is_for_sockets: bool = False) -> Path:
    """Return the path of a new temporary directory; the watchdog must know it before it is created."""
    for parent in _candidates():
        path = parent / f"lonnymq-{secrets.token_hex(8)}"
        if is_for_sockets and len(os.fsencode(path / LONGEST_SOCKET_NAME)) > SOCKET_PATH_BYTES:
            continue
        if os.access(parent, os.W_OK | os.X_OK) and account.can_enter(parent):
            return path
    tried = ", ".join(str(parent) for parent in _candidates())
    raise EmbeddedError(
        f"no temporary directory is usable for user {account.name!r} (tried {tried}): set TMPDIR to a "
        "directory that this user can enter and whose path is shorter than 60 bytes"
    )


def make_directory(path: Path, account: Account) -> None:
    """Make the directory with mode 0700 for the account; fail if anything has that name already."""
    path.mkdir(mode=0o700)
    account.give_ownership(path)


def write(path: Path, text: str, account: Account) -> None:
    """Write a new file with mode 0600 for the account."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    account.give_ownership(path)


def open_no_follow(path: Path, flags: int) -> int:
    """Open a file of the account as this process, maybe as root; refuse a symbolic link in its place."""
    return os.open(path, flags | os.O_NOFOLLOW)


def remove_directories(paths: tuple[Path, ...]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)


def _candidates() -> Iterator[Path]:
    seen = set()
    for name in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"):
        parent = Path(os.path.realpath(name))
        if parent not in seen and parent.is_dir():
            seen.add(parent)
            yield parent
