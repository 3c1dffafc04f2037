"""What is submitted to a cluster: write a frame, and say where the executors found the package."""

import sys
from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession

from lonnymq.spark.source import LonnySource


def where(_: Iterable[int]) -> Iterator[str]:
    import lonnymq

    yield lonnymq.__file__


def main(dsn: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    # Spark looks for sources where packages are installed, not in what was shipped.
    spark.dataSource.register(LonnySource)
    frame = spark.range(0, 1000, 1, 4).selectExpr("'a' as channel", "cast(id as string) as content")
    frame.write.format("lonnymq").option("dsn", dsn).mode("append").save()
    live = spark.read.format("lonnymq").option("dsn", dsn).option("table", "message").load()
    places = spark.sparkContext.parallelize(range(4), 4).mapPartitions(where).collect()
    print("counted", live.count(), "from", sorted(set(places)))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
