"""A lock so that only one process at a time creates or starts a data directory."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from lonnymq.embedded.errors import ServerNotStarted


@contextlib.contextmanager
def lock_directory(directory: Path, deadline: float) -> Iterator[None]:
    """Lock the directory itself, without adding a file; the kernel releases the lock if we die."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        while not _is_locked_by_us(descriptor):
            if time.monotonic() > deadline:
                raise ServerNotStarted(f"another process has been starting {directory} for too long")
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _is_locked_by_us(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
