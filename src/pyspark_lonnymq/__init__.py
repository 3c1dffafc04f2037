"""Where Spark looks for data sources by itself: with this, `format("lonnymq")` needs no registration."""

from lonnymq.spark.source import LonnySource as DefaultSource

__all__ = ["DefaultSource"]
