"""Spark finds data sources in packages named `pyspark_*`: `format("lonnymq")` needs no registration."""

from lonnymq.spark.source import LonnySource as DefaultSource

__all__ = ["DefaultSource"]
