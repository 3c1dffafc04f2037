"""The blocking twin of aio/resolving.py, by hand: here the driver resolves names in the caller's thread."""

from typing import Any


def addresses(dsn: str) -> dict[str, Any]:
    return {}
