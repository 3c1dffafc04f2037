"""Shell completion that asks the queue."""

import os
import re
from typing import Any

import typer

from lonnymq import ClientSettings, LonnyError, Queue

MOST = 50
# The shell inserts a completed name into the command line as it is: only names that mean nothing to a shell.
HARMLESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@/+,=%-]*")


def channels(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return harmless names of channels that begin with this; none if the database does not answer soon."""
    given: dict[str, Any] = ctx.params
    dsn = given.get("dsn") or os.environ.get("LONNYMQ_DSN", "")
    schema = given.get("schema") or os.environ.get("LONNYMQ_SCHEMA", "lonnymq")
    settings = ClientSettings(pool_max_size=1, retry_for_s=0.0)
    try:
        with Queue(dsn, schema=schema, settings=settings) as queue:
            found = queue.channels(after=incomplete, limit=MOST)
    except (LonnyError, OSError):
        return []
    names = [one.channel for one in found if one.channel.startswith(incomplete)]
    return [name for name in names if HARMLESS.fullmatch(name)]
