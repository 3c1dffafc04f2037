"""Shell completion of channel names, read from the queue."""

import os
import re
from typing import Any

import typer

from lonnymq import ClientSettings, LonnyError, Queue

MAX_NAMES = 50
# The shell inserts a completed name unquoted, so only names without special characters are offered.
SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@/+,=%-]*")


def complete_channel(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return safe channel names with this prefix; nothing if the database does not answer soon."""
    given: dict[str, Any] = ctx.params
    dsn = given.get("dsn") or os.environ.get("LONNYMQ_DSN", "")
    schema = given.get("schema") or os.environ.get("LONNYMQ_SCHEMA", "lonnymq")
    settings = ClientSettings(pool_max_size=1, retry_for_s=0.0)
    try:
        with Queue(dsn, schema=schema, settings=settings) as queue:
            found = queue.channels(after=incomplete, limit=MAX_NAMES)
    except (LonnyError, OSError):
        return []
    names = [one.channel for one in found if one.channel.startswith(incomplete)]
    return [name for name in names if SAFE_NAME.fullmatch(name)]
