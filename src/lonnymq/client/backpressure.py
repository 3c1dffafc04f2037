"""Tells producers that channels are full."""

from collections.abc import Sequence

from lonnymq.errors import ChannelFull
from lonnymq.model import Created, CreateOutcome, TenantCreated

# The error names at most this many full channels.
MAX_NAMED = 5


def raise_for_dropped(channels: Sequence[str], created: Sequence[Created | TenantCreated]) -> None:
    """Raise ChannelFull if messages were dropped; `channels` has the channel of each message."""
    dropped = [
        channel
        for channel, one in zip(channels, created, strict=True)
        if one.outcome is CreateOutcome.DROPPED
    ]
    if not dropped:
        return
    full = list(dict.fromkeys(dropped))
    names = ", ".join(map(repr, full[:MAX_NAMED])) + (", ..." if len(full) > MAX_NAMED else "")
    raise ChannelFull(
        f"{len(dropped)} of {len(created)} messages were dropped, because these channels are at their"
        f" max_size: {names}; raise max_size, or try again when messages have been processed",
        full,
        created,
    )
