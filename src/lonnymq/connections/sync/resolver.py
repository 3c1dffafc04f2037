"""The blocking version of aio/resolver.py, by hand: the driver resolves names in the caller's thread."""

from typing import Any


def resolve(dsn: str) -> dict[str, Any]:
    """Return no options: the driver resolves the name itself."""
    return {}
