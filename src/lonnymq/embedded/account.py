"""Whom PostgreSQL runs as: it refuses root, so root lends it an existing unprivileged user."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from lonnymq.embedded.environment import environment
from lonnymq.embedded.errors import AccountNotFound

PREFERRED_NAMES = ("postgres", "nobody")


class Identity(TypedDict, total=False):
    """The keywords of `subprocess.Popen` that change user."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Account:
    """A user of this machine; `is_borrowed` when it is not the user of this process."""

    name: str
    uid: int
    gid: int
    is_borrowed: bool

    @property
    def identity(self) -> Identity:
        if not self.is_borrowed:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": os.getgrouplist(self.name, self.gid)}

    def can_enter(self, directory: Path) -> bool:
        """Asks the kernel as that user, because mode bits alone know nothing of ACLs."""
        if not self.is_borrowed:
            return os.access(directory, os.X_OK)
        question = ["/bin/sh", "-c", 'test -d "$1" && test -x "$1"', "sh", str(directory)]
        return subprocess.run(question, cwd="/", env=environment(), **self.identity).returncode == 0

    def give(self, path: Path) -> None:
        """Hands over a file or directory that we have made ourselves."""
        if self.is_borrowed:
            os.lchown(path, self.uid, self.gid)


def choose(data_dir: Path | None) -> Account:
    """This process's own user; for root, the owner of the existing data, else `postgres`, else `nobody`."""
    if os.geteuid() != 0:
        return _account(_by_uid(os.geteuid()), is_borrowed=False)
    if data_dir is not None and data_dir.exists() and data_dir.stat().st_uid != 0:
        return _account(_by_uid(data_dir.stat().st_uid), is_borrowed=True)
    for name in PREFERRED_NAMES:
        try:
            return _account(pwd.getpwnam(name), is_borrowed=True)
        except KeyError:
            continue
    raise AccountNotFound(
        "PostgreSQL refuses to run as root, and this machine has neither a user 'postgres' nor 'nobody' "
        "to run it as. Run as a normal user."
    )


def _by_uid(uid: int) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        raise AccountNotFound(
            f"user id {uid} has no entry in the user database, which initdb needs; "
            "run as a user that has a name."
        ) from None


def _account(entry: pwd.struct_passwd, *, is_borrowed: bool) -> Account:
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, is_borrowed=is_borrowed)
