"""Whether a channel had room for all that it was given."""

from collections.abc import Sequence

from lonnymq.errors import ChannelFull
from lonnymq.model import Created, CreateOutcome

# At most this many full channels are named.
MOST_NAMED = 5


def require_room(channels: Sequence[str], created: Sequence[Created]) -> None:
    """Raise if messages were dropped; `channels` has the channel of each."""
    dropped = [
        channel
        for channel, one in zip(channels, created, strict=True)
        if one.outcome is CreateOutcome.DROPPED
    ]
    if not dropped:
        return
    full = list(dict.fromkeys(dropped))
    named = ", ".join(map(repr, full[:MOST_NAMED])) + (", ..." if len(full) > MOST_NAMED else "")
    raise ChannelFull(
        f"{len(dropped)} of {len(created)} messages dropped, at their max_size are: {named}; raise max_size,"
        " or try again when messages have been worked",
        full,
        created,
    )
