"""The queue designs that are compared, behind a common interface."""

from benchmarks.contenders.bare import Bare
from benchmarks.contenders.channel_row import ChannelRow
from benchmarks.contenders.lonnymq import LonnyMQ

__all__ = ["Bare", "ChannelRow", "LonnyMQ"]
