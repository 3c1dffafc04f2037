"""Keeps files of tests in memory if there is room: a new cluster or database consists of hundreds of them."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")


def has_room(gib: int) -> bool:
    """Whether this much is free, and programs copied there could run: in containers, they often cannot."""
    if not MEMORY.is_dir() or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(MEMORY).free >= gib * 2**30


def use_for_temporary_files() -> None:
    """Let this process and those it starts create their temporary files in memory, unless TMPDIR is set."""
    if "TMPDIR" not in os.environ and has_room(8):
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


@contextmanager
def data_dir() -> Iterator[Path | None]:
    """Yield a data directory in memory for the server that tests share; None: no room."""
    if not has_room(4):
        yield None
        return
    root = Path(tempfile.mkdtemp(prefix="lonnymq-test-", dir=MEMORY))
    # The server may run as another user, which needs access.
    root.chmod(0o755)
    try:
        yield root / "data"
    finally:
        shutil.rmtree(root, ignore_errors=True)
