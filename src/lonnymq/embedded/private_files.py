"""Where temporary directories go: somewhere the server's user can enter, and short enough for a socket."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lonnymq.embedded.account import Account
from lonnymq.embedded.errors import EmbeddedError

# A socket address holds 107 bytes on Linux and 103 on macOS; the smaller is safe on both.
SOCKET_PATH_BYTES = 103
LONGEST_SOCKET_NAME = ".s.PGSQL.65535"


def reserve(account: Account, *, is_for_sockets: bool = False) -> Path:
    """Names a directory that does not exist yet, so that the guardian can know it before it is made."""
    for place in _candidates():
        path = place / f"lonnymq-{secrets.token_hex(8)}"
        if is_for_sockets and len(os.fsencode(path / LONGEST_SOCKET_NAME)) > SOCKET_PATH_BYTES:
            continue
        if os.access(place, os.W_OK | os.X_OK) and account.can_enter(place):
            return path
    tried = ", ".join(str(place) for place in _candidates())
    raise EmbeddedError(
        f"no temporary directory fits user {account.name!r} (tried {tried}); set TMPDIR to a directory "
        "that this user can enter and whose path is shorter than 60 bytes."
    )


def make_private(path: Path, account: Account) -> None:
    """Makes the directory with mode 0700 for the account; fails if anything has that name already."""
    path.mkdir(mode=0o700)
    account.give(path)


def write_private(path: Path, text: str, account: Account) -> None:
    """Writes a new file with mode 0600 for the account."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    account.give(path)


def open_owned(path: Path, flags: int) -> int:
    """Opens a file of the account as ourselves, maybe as root, so a link put in its place is refused."""
    return os.open(path, flags | os.O_NOFOLLOW)


def remove(paths: tuple[Path, ...]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)


def _candidates() -> Iterator[Path]:
    seen = set()
    for name in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"):
        place = Path(os.path.realpath(name))
        if place not in seen and place.is_dir():
            seen.add(place)
            yield place
