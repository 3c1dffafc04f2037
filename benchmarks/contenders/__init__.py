"""The designs that are measured, each behind the same few verbs."""

from benchmarks.contenders.bare import Bare
from benchmarks.contenders.channel_row import ChannelRow
from benchmarks.contenders.ours import Ours

__all__ = ["Bare", "ChannelRow", "Ours"]
