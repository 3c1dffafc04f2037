"""The scans of files in the plans that Spark has executed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def executed_scans(spark: "SparkSession") -> Iterator[list[str]]:
    """Yield a list that has, once the block has ended, the description of each scan that ran in it."""
    jvm_session: Any = spark._jsparkSession
    store = jvm_session.sharedState().statusStore()

    def executions() -> Iterator[tuple[int, str]]:
        """Newest first."""
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        found = store.executionsList()
        for place in reversed(range(found.size())):
            one = found.apply(place)
            yield one.executionId(), one.physicalPlanDescription()

    last = next((number for number, _ in executions()), -1)
    scans: list[str] = []
    yield scans
    for number, plan in executions():
        if number <= last:
            break
        scans += re.findall(r"^\(\d+\) Scan parquet.*?(?=^\(\d+\)|\Z)", plan, re.MULTILINE | re.DOTALL)
