"""Writes small files atomically."""

import os
import secrets
from pathlib import Path

from lonnymq.pipeline.durable import flush


def replace_file(path: Path, text: str) -> None:
    """Replace a file so that readers, even after a crash, find the old or the new one; a link is replaced."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    # In a directory that others can write to, a predictable name could be a link that they planted.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        flush([path.parent])
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
