"""Shell completion that asks the queue."""

import os
from typing import Any

import typer

from lonnymq import ClientSettings, LonnyError, Queue

MOST = 50


def channels(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return names of channels that begin so; none at all if the database cannot say so at once."""
    given: dict[str, Any] = ctx.params
    dsn = given.get("dsn") or os.environ.get("LONNYMQ_DSN", "")
    schema = given.get("schema") or os.environ.get("LONNYMQ_SCHEMA", "lonnymq")
    settings = ClientSettings(pool_max_size=1, retry_for_s=0.0)
    try:
        with Queue(dsn, schema=schema, settings=settings) as queue:
            found = queue.channels(after=incomplete, limit=MOST)
    except (LonnyError, OSError):
        return []
    return [one.channel for one in found if one.channel.startswith(incomplete)]
