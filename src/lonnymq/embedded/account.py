"""The user that PostgreSQL runs as. It refuses to run as root, so root uses an existing unprivileged user."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from lonnymq.embedded.environment import environment
from lonnymq.embedded.errors import AccountNotFound

PREFERRED_NAMES = ("postgres", "nobody")


class PopenOptions(TypedDict, total=False):
    """The arguments of `subprocess.Popen` that change the user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Account:
    """A user of this machine; `is_other_user` if it is not the user of this process."""

    name: str
    uid: int
    gid: int
    is_other_user: bool

    @property
    def popen_options(self) -> PopenOptions:
        if not self.is_other_user:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": os.getgrouplist(self.name, self.gid)}

    def can_enter(self, directory: Path) -> bool:
        """Whether the user can enter a directory; checked as that user, because of ACLs."""
        if not self.is_other_user:
            return os.access(directory, os.X_OK)
        command = ["/bin/sh", "-c", 'test -d "$1" && test -x "$1"', "sh", str(directory)]
        return subprocess.run(command, cwd="/", env=environment(), **self.popen_options).returncode == 0

    def give_ownership(self, path: Path) -> None:
        """Make the user the owner of a file or directory that we have created."""
        if self.is_other_user:
            os.lchown(path, self.uid, self.gid)


def choose(data_dir: Path | None) -> Account:
    """Return this process's user; for root, the owner of the existing data, `postgres` or `nobody`."""
    if os.geteuid() != 0:
        return _account(_by_uid(os.geteuid()), is_other_user=False)
    if data_dir is not None and data_dir.exists() and data_dir.stat().st_uid != 0:
        return _account(_by_uid(data_dir.stat().st_uid), is_other_user=True)
    for name in PREFERRED_NAMES:
        try:
            return _account(pwd.getpwnam(name), is_other_user=True)
        except KeyError:
            continue
    raise AccountNotFound(
        "PostgreSQL refuses to run as root, and this machine has no user 'postgres' or 'nobody' to run it "
        "as: run as a normal user"
    )


def _by_uid(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise AccountNotFound(
            f"user id {uid} has no entry in the user database, which initdb needs; "
            "run as a user that has a name"
        ) from None


def _account(entry: pwd.struct_passwd, *, is_other_user: bool) -> Account:
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, is_other_user=is_other_user)
