"""What is submitted to a cluster: write a frame, archive what became of it, analyse that."""

import sys
from collections.abc import Iterable, Iterator

from lonnymq import Queue
from lonnymq.pipeline import submit
from lonnymq.pipeline.session import session


def where(_: Iterable[int]) -> Iterator[str]:
    import lonnymq

    yield lonnymq.__file__


def main(dsn: str, lake: str) -> None:
    spark = session()
    frame = spark.range(0, 1000, 1, 4).selectExpr("'a' as channel", "cast(id as string) as content")
    frame.write.format("lonnymq").option("dsn", dsn).mode("append").save()
    live = spark.read.format("lonnymq").option("dsn", dsn).option("table", "message").load()
    places = spark.sparkContext.parallelize(range(4), 4).mapPartitions(where).collect()
    print("counted", live.count(), "from", sorted(set(places)), flush=True)
    with Queue(dsn) as queue:
        while batch := queue.dequeue(500):
            queue.complete(list(batch))
    assert submit.main(["archive", "--lake", lake, "--dsn", dsn]) == 0
    assert submit.main(["analyse", "--lake", lake, "--window", "1h"]) == 0
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
