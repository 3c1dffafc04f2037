"""Small files, written whole or not at all."""

import os
import secrets
from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Write a file so that a reader, or a crash, finds the old one or the new one; a link is replaced."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    # In a directory that others write to, a name that they can guess could be a link to a file of ours.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
