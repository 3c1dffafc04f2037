"""Flushes files to disk, so that they survive a power failure."""

import os
from collections.abc import Iterable


def flush(paths: Iterable[str | os.PathLike[str]]) -> None:
    """Flush files, or directories: the names in them."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
